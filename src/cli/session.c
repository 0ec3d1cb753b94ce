#include "cli/session.h"

#include "base/fd.h"
#include "base/msg.h"
#include "cli/terminal.h"
#include "codec/frame.h"
#include "codec/json.h"
#include "io/outbox.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { EXECUTION = 1, READ_BYTES = 64 * 1024, RESULT_AND_REST_BYTES = 12 << 20 };

// One frame's output on its way: the frame stays in the decoder until all of it is written, and so
// the service, and with it the job, waits for a slow reader.
struct pending {
    bool is_stderr;
    const char *data;
    size_t left;
    size_t most; // bytes of one write
};

struct talk {
    struct session *s;
    const struct job *job;
    struct outbox out;
    struct frame_decoder in;
    struct pending pending;
    uint32_t sent;
    unsigned signals;
    bool finished;
    enum session_end end;
    char *chunk;      // READ_BYTES
    struct buf clean; // of the frame that is written, where that is a terminal
};

static void finish(struct talk *t, enum session_end end)
{
    t->finished = true;
    t->end = end;
}

// ---- To the service

static int post(struct talk *t, enum frame_type type, const void *data, size_t len)
{
    return frame_encode(&t->out.data, FRAME_FROM_FRONT, type, EXECUTION, ++t->sent, data, len);
}

// Descriptors travel with the first byte of their frame, so these frames are sent whole; the reader
// is reading, and they are small.
static int send_fds(struct talk *t, const struct run_job *job)
{
    for (size_t at = 0; at < job->n_fds; at += FRAME_MAX_FDS) {
        AUTO_BUF struct buf frame = BUF_INIT(64);
        size_t n = job->n_fds - at < FRAME_MAX_FDS ? job->n_fds - at : FRAME_MAX_FDS;
        const unsigned char count[4] = {(unsigned char)n, 0, 0, 0};
        int e = frame_encode(&frame, FRAME_FROM_FRONT, FRAME_FDS, EXECUTION, ++t->sent, count,
                             sizeof count);
        e = e ? e : msg_send(t->s->service, frame.data, frame.len, job->fds + at, (int)n, 0);
        if (e) {
            return e;
        }
    }
    return 0;
}

static void cancel(struct talk *t)
{
    if (!t->s->cancelled) {
        t->s->cancelled = true;
        post(t, FRAME_CANCEL, NULL, 0);
    }
}

// ---- The job's output

// How much may be written now without blocking, when poll(2) says writable: a pipe or a terminal
// takes PIPE_BUF at least; what is no stream takes everything.
static size_t room(int fd)
{
    struct stat st;
    bool file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    return file ? SIZE_MAX : PIPE_BUF;
}

static void drop_pending(struct talk *t) { t->pending = (struct pending){}; }

static void write_pending(struct talk *t)
{
    struct session *s = t->s;
    struct pending *p = &t->pending;
    int fd = p->is_stderr ? s->err : s->out;
    ssize_t n = write(fd, p->data, p->left < p->most ? p->left : p->most);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (n < 0) { // nobody reads, or nothing more fits: the job has no purpose any more
        *(p->is_stderr ? &s->err_error : &s->out_error) = errno;
        drop_pending(t);
        cancel(t);
        return;
    }
    if (!p->is_stderr && n > 0) {
        s->line_open = p->data[n - 1] != '\n';
    }
    p->data += n;
    p->left -= (size_t)n;
}

static void begin_output(struct talk *t, bool is_stderr, const struct frame *f)
{
    struct session *s = t->s;
    int fd = is_stderr ? s->err : s->out;
    if (fd < 0 || (is_stderr ? s->err_error : s->out_error)) {
        return;
    }
    t->pending = (struct pending){is_stderr, f->payload, f->length, room(fd)};
    if (isatty(fd)) {
        buf_free(&t->clean);
        t->clean = BUF_INIT(terminal_room(f->length));
        int e = terminal_clean(&t->clean, f->payload, f->length);
        t->pending.data = buf_text(&t->clean);
        t->pending.left = e ? 0 : t->clean.len;
    }
}

// ---- From the service

static void begin_artifact(struct talk *t, const struct frame *f)
{
    struct json_error why;
    yyjson_doc *doc = json_parse(f->payload, f->length, &why);
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *name = yyjson_get_str(yyjson_obj_get(root, "name"));
    int64_t size = -1;
    if (!name || json_int(yyjson_obj_get(root, "size"), &size) || size < 0) {
        finish(t, SESSION_LOST);
    } else {
        outdir_begin(t->s->artifacts, name, (uint64_t)size);
    }
    yyjson_doc_free(doc);
}

// A result is no longer than what this job may write, with every byte a control character (six
// bytes of JSON), and the rest: the front's memory is not the service's to fill.
static void take_final(struct talk *t, const struct frame *f)
{
    const int64_t *limits = t->job->limits.value;
    // a command's result is its output once more
    size_t outputs = 2 * (size_t)limits[LIMIT_STDOUT] + (size_t)limits[LIMIT_STDERR];
    size_t most = outputs * 1024 * 6 + RESULT_AND_REST_BYTES;
    bool good = f->length <= most && buf_add(&t->s->final, f->payload, f->length) == 0;
    finish(t, good ? SESSION_FINAL : SESSION_LOST);
}

static void take_frame(struct talk *t, const struct frame *f)
{
    switch (f->type) {
    case FRAME_STDOUT:
    case FRAME_STDERR:
        begin_output(t, f->type == FRAME_STDERR, f);
        break;
    case FRAME_ARTIFACT:
        begin_artifact(t, f);
        break;
    case FRAME_ARTIFACT_DATA:
        outdir_write(t->s->artifacts, f->payload, f->length);
        break;
    case FRAME_FINAL:
        take_final(t, f);
        break;
    default:
        finish(t, SESSION_LOST);
        break;
    }
}

// Frames that are here already, up to one whose output must be written first.
static void take_frames(struct talk *t)
{
    struct frame f;
    while (!t->finished && t->pending.left == 0) {
        int rc = frame_next(&t->in, &f);
        if (rc < 0) {
            finish(t, SESSION_LOST);
        }
        if (rc <= 0) {
            return;
        }
        take_frame(t, &f);
    }
}

static void receive(struct talk *t)
{
    ssize_t n = recv(t->s->service, t->chunk, READ_BYTES, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0 || frame_feed(&t->in, t->chunk, (size_t)n)) {
        finish(t, SESSION_LOST);
        return;
    }
    take_frames(t);
}

static void take_signal(struct talk *t)
{
    struct signalfd_siginfo info;
    if (read(t->s->signals, &info, sizeof info) != sizeof info) {
        return;
    }
    if (++t->signals > 1) {
        finish(t, SESSION_CANCELLED);
        return;
    }
    cancel(t);
}

// ---- The loop

enum { POLL_SERVICE, POLL_SIGNALS, POLL_OUTPUT, N_POLL };

static int wait_ready(struct talk *t, struct pollfd fds[N_POLL])
{
    bool writing = t->pending.left > 0;
    short reading = writing ? 0 : POLLIN;
    short sending = outbox_left(&t->out) > 0 ? POLLOUT : 0;
    fds[POLL_SERVICE] = (struct pollfd){t->s->service, (short)(reading | sending), 0};
    if (!fds[POLL_SERVICE].events) {
        fds[POLL_SERVICE].fd = -1; // else its hang-up would spin while we wait for the writer
    }
    fds[POLL_SIGNALS] = (struct pollfd){t->s->signals, POLLIN, 0};
    int fd = t->pending.is_stderr ? t->s->err : t->s->out;
    fds[POLL_OUTPUT] = (struct pollfd){writing ? fd : -1, POLLOUT, 0};
    // Once cancelled, output that nobody takes is not waited for long.
    int limit_ms = writing && t->s->cancelled ? 500 : -1;
    int n = poll(fds, N_POLL, limit_ms);
    if (n == 0) {
        *(t->pending.is_stderr ? &t->s->err_error : &t->s->out_error) = ETIMEDOUT;
        drop_pending(t);
    }
    return n < 0 && errno != EINTR ? -errno : 0;
}

static int step(struct talk *t)
{
    struct pollfd fds[N_POLL];
    int e = wait_ready(t, fds);
    if (e) {
        return e;
    }
    if (fds[POLL_SIGNALS].revents) {
        take_signal(t);
    }
    if (fds[POLL_OUTPUT].revents && t->pending.left > 0) {
        write_pending(t);
    }
    if (fds[POLL_SERVICE].revents & (POLLIN | POLLHUP | POLLERR) && t->pending.left == 0) {
        receive(t);
    }
    take_frames(t);
    // A service that is gone shows when reading.
    if (!t->finished && outbox_flush(&t->out, t->s->service) < 0) {
        outbox_free(&t->out);
    }
    return 0;
}

int session_run(struct session *s, const struct run_job *job, enum session_end *ret_end)
{
    AUTO_FREE char *chunk = malloc(READ_BYTES);
    struct talk t = {
        .s = s, .job = &job->job, .chunk = chunk, .out = OUTBOX_INIT(JOB_MAX_JSON_BYTES + 1024)};
    s->final = BUF_INIT(frame_bound(FRAME_TO_FRONT, FRAME_FINAL));
    frame_decoder_init(&t.in, FRAME_TO_FRONT);
    int e = chunk ? send_fds(&t, job) : -ENOMEM;
    if (e == -EPIPE || e == -ECONNRESET) {
        finish(&t, SESSION_LOST);
        e = 0;
    }
    e = e ? e : post(&t, FRAME_JOB, job->json.data, job->json.len);
    while (!e && !t.finished) {
        e = step(&t);
    }
    frame_decoder_done(&t.in);
    outbox_free(&t.out);
    buf_free(&t.clean);
    *ret_end = t.end;
    return e;
}

void session_done(struct session *s) { buf_free(&s->final); }
