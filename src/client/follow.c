#include "client/follow.h"

#include "base/clock.h"
#include "base/fd.h"
#include "cli/terminal.h"
#include "codec/json.h"

#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

enum {
    PATIENT_TRIES = 20, // half a minute: a service that is started again
    TRIES = 5,          // connections in a row that brought nothing
    LONGEST_PAUSE_MS = 2000,
    LEAVE_MS = 500,        // once cancelled, output that nobody takes is not waited for long
    EVENT_REST = 64 << 10, // of an event beside its text
};

// ---- The job's output

// How much may be written without blocking, when poll(2) says writable.
static size_t room(int fd)
{
    struct stat st;
    bool file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    return file ? SIZE_MAX : PIPE_BUF;
}

static bool signalled(void *ctx)
{
    struct follow *f = ctx;
    f->signals++;
    return false; // the call ends; the job is cancelled by another one
}

// True when a signal has come that nobody has read yet.
static bool take_signal(struct follow *f)
{
    struct signalfd_siginfo info;
    int fd = f->c->caller.signals;
    return fd >= 0 && read(fd, &info, sizeof info) == sizeof info && !signalled(f);
}

// 0, or the errno of a failure; ETIMEDOUT: nobody took it after a signal had come.
static int write_out(struct follow *f, int fd, const char *data, size_t len)
{
    size_t most = room(fd);
    while (len > 0) {
        struct pollfd fds[] = {{fd, POLLOUT, 0}, {f->c->caller.signals, POLLIN, 0}};
        int n = poll(fds, ARRAY_LEN(fds), f->signals ? LEAVE_MS : -1);
        if (n == 0) {
            return ETIMEDOUT;
        }
        if (n > 0 && fds[1].revents && take_signal(f) && f->signals > 1) {
            return ETIMEDOUT;
        }
        if (n < 0 || !fds[0].revents) {
            continue;
        }
        ssize_t put = write(fd, data, len < most ? len : most);
        if (put < 0 && errno != EINTR && errno != EAGAIN) {
            return errno;
        }
        data += put > 0 ? put : 0;
        len -= put > 0 ? (size_t)put : 0;
    }
    return 0;
}

static int put_text(struct follow *f, bool is_stderr, const char *data, size_t len)
{
    int fd = is_stderr ? f->err : f->out;
    int *error = is_stderr ? &f->err_error : &f->out_error;
    AUTO_BUF struct buf clean = BUF_INIT(terminal_room(len));
    if (fd < 0 || *error || len == 0) {
        return 0;
    }
    if (isatty(fd)) {
        int e = terminal_clean(&clean, data, len);
        if (e) {
            return e;
        }
        data = buf_text(&clean);
        len = clean.len;
    }
    *error = write_out(f, fd, data, len);
    if (!is_stderr) {
        f->line_open = data[len - 1] != '\n';
    }
    return f->signals ? -EINTR : *error ? -ECANCELED : 0;
}

static int take_output(struct follow *f, bool is_stderr, yyjson_val *root)
{
    yyjson_val *text = yyjson_obj_get(root, "text");
    int64_t offset = 0;
    if (!yyjson_is_str(text) || json_int(yyjson_obj_get(root, "offset"), &offset) || offset < 0) {
        return -EPROTO;
    }
    uint64_t at = (uint64_t)offset, len = yyjson_get_len(text), *next = &f->next[is_stderr];
    uint64_t known = *next > at ? *next - at : 0;
    if (known >= len) {
        return 0;
    }
    *next = at + len; // also what cannot be written: it is not tried again
    return put_text(f, is_stderr, yyjson_get_str(text) + known, len - known);
}

// ---- Events

static int take_known(struct follow *f, const struct sse_event *e)
{
    static const char *const streams[] = {"stdout", "stderr"};
    if (strcmp(e->name, "result") == 0) {
        f->ended = true;
        return buf_add(&f->final, e->data, e->len);
    }
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        if (strcmp(e->name, streams[i]) == 0) {
            struct json_error ignored;
            yyjson_doc *doc = json_parse(e->data, e->len, &ignored);
            int rc = doc ? take_output(f, i == 1, yyjson_doc_get_root(doc)) : -EPROTO;
            yyjson_doc_free(doc);
            return rc;
        }
    }
    return 0;
}

static int on_event(void *ctx, const struct sse_event *e)
{
    struct follow *f = ctx;
    f->progress = true;
    int rc = f->ended ? -EPROTO : 0;
    rc = rc || !f->seen ? rc : f->seen(f->ctx, e);
    snprintf(f->last, sizeof f->last, "%s", e->id);
    return rc ? rc : take_known(f, e);
}

static int on_bytes(void *ctx, const char *data, size_t len)
{
    struct follow *f = ctx;
    return sse_feed(&f->sse, data, len);
}

// ---- Connections

static int ask_events(struct follow *f, struct call_error *why)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    char last[160];
    client_path(&path, "/sandbox/jobs/%s/events", f->id);
    struct call call = CALL_INIT("GET", buf_text(&path));
    call.take = on_bytes;
    call.signalled = signalled;
    call.ctx = f;
    call.endless = true;
    if (f->last[0]) {
        snprintf(last, sizeof last, "Last-Event-ID: %s", f->last);
        call.headers[0] = last;
    }
    sse_init(&f->sse, f->max_result + EVENT_REST, on_event, f);
    int e = call_make(&f->c->caller, &call, why);
    sse_done(&f->sse);
    if (e == -EMSGSIZE || (e == -EPROTO && !why->text[0])) {
        e = call_refuse(why, -EBADMSG,
                        e == -EMSGSIZE ? "the service sent more than the job may say"
                                       : "the service's events are not what isle's are");
    }
    call_done(&call);
    return e;
}

static int cancel(struct follow *f, struct call_error *why)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    client_path(&path, "/sandbox/jobs/%s/cancel", f->id);
    struct call call = CALL_INIT("POST", buf_text(&path));
    f->cancelled = true;
    int e = call_make(&f->c->caller, &call, why);
    call_done(&call);
    return e;
}

// A moment before the next try; a signal ends it.
static void pause_ms(struct follow *f, int ms)
{
    struct pollfd fd = {f->c->caller.signals, POLLIN, 0};
    if (poll(&fd, 1, ms) > 0) {
        take_signal(f);
    }
}

static bool is_passing(int error)
{
    return error == 0 || error == -EPROTO || error == -ETIMEDOUT || error == -ECONNREFUSED ||
           error == -EAGAIN;
}

// What a connection's end means: 1: go on; 0 or -errno: that is it.
static int judge(struct follow *f, int error, unsigned *tries, struct call_error *why)
{
    if (f->ended) {
        return 0;
    }
    if (f->signals > 1 || (f->signals && !f->cancels)) {
        return -EINTR;
    }
    if ((error == -ECANCELED || f->signals) && !f->cancelled) {
        return !f->cancels ? error : cancel(f, why) == 0 ? 1 : -EINTR;
    }
    if (error == -ECANCELED) {
        return 1; // the other stream has no reader either
    }
    // A job that is known to be there is worth waiting for its service; an address may be wrong.
    bool known = f->cancels || f->last[0];
    unsigned most = error && error != -ETIMEDOUT && known ? PATIENT_TRIES : TRIES;
    *tries = f->progress ? 0 : *tries + 1;
    if (!is_passing(error) || *tries >= most || (error == -ECONNREFUSED && !known)) {
        return error ? error
                     : call_refuse(why, -EPROTO, "the service's events end without a result");
    }
    pause_ms(f, *tries < 5 ? 100 << *tries : LONGEST_PAUSE_MS);
    return 1;
}

int follow_job(struct follow *f, struct call_error *ret_error)
{
    unsigned tries = 0;
    int rc = 1;
    f->final = BUF_INIT(f->max_result);
    while (rc == 1) {
        f->progress = false;
        rc = judge(f, ask_events(f, ret_error), &tries, ret_error);
    }
    return rc;
}

void follow_done(struct follow *f) { buf_free(&f->final); }
