#include "job/guest.h"

#include "base/fd.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "job/line.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
    READ_BYTES = 64 * 1024,
    ROUNDS = 4,         // reads per event: output and timers have their turn in between
    DRAIN_ROUNDS = 512, // more than any socket buffer holds
    EXECUTION = 1,
    CHECK_HERE_BYTES = 128 << 10,
    OUT_BYTES = 10 << 20, // code, params, options, headers
};

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 // Linux 6.16
#endif

// The verdict stays.
static void guest_close(struct guest *g)
{
    if (g->fd >= 0) {
        loop_remove(g->loop, &g->watch);
        g->fd = fd_close(g->fd);
    }
    outbox_free(&g->out);
    frame_decoder_done(&g->in);
}

void guest_done(struct guest *g)
{
    guest_close(g);
    free(g->value);
    free(g->error);
    g->value = g->error = NULL;
}

static void refuse(struct guest *g, enum guest_verdict verdict, const char *why)
{
    free(g->value);
    free(g->error);
    g->value = NULL;
    g->error = strdup(why);
    g->verdict = verdict;
    guest_close(g);
}

static void add_member(struct buf *b, yyjson_val *root, const char *key, const char *before,
                       const char *after)
{
    yyjson_val *v = yyjson_obj_get(root, key);
    if (yyjson_is_str(v) && yyjson_get_len(v) > 0) {
        buf_puts(b, before);
        line_add(b, yyjson_get_str(v), yyjson_get_len(v));
        buf_puts(b, after);
    }
}

// The wrapper encodes values and stops at the bound: {"type":"ResultTooLarge","size":...} says how
// far it came, at least.
static bool take_too_large(struct guest *g, yyjson_val *root)
{
    yyjson_val *type = yyjson_obj_get(root, "type");
    if (!yyjson_equals_str(type, "ResultTooLarge")) {
        return false;
    }
    int64_t size = 0;
    (void)json_int(yyjson_obj_get(root, "size"), &size);
    g->announced = size < 0 || size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
    g->verdict = GUEST_TOO_LARGE;
    return true;
}

// {"type","message","path"?} becomes "TypeError: not serialisable (at result.a[2])".
static void take_error(struct guest *g, const struct frame *f)
{
    struct json_error why;
    yyjson_doc *doc = json_parse(f->payload, f->length, &why);
    yyjson_val *root = doc ? yyjson_doc_get_root(doc) : NULL;
    if (!yyjson_is_obj(root)) {
        yyjson_doc_free(doc);
        refuse(g, GUEST_MALFORMED, "malformed result: the error frame is not a JSON object");
        return;
    }
    if (take_too_large(g, root)) {
        yyjson_doc_free(doc);
        return;
    }
    AUTO_BUF struct buf text = BUF_INIT(GUEST_ERROR_BYTES);
    add_member(&text, root, "type", "", "");
    add_member(&text, root, "message", text.len ? ": " : "", "");
    add_member(&text, root, "path", " (at ", ")");
    yyjson_doc_free(doc);
    free(g->error);
    g->error = text.len ? buf_take(&text) : NULL;
    g->verdict = GUEST_ERROR;
}

void guest_check(struct guest *g)
{
    struct json_error why = {{0}};
    if (json_check(g->value, g->value_len, &why)) {
        snprintf(g->malformed, sizeof g->malformed, "malformed result: %.140s", why.text);
    }
}

void guest_judge(struct guest *g)
{
    g->unchecked = false;
    if (g->malformed[0]) {
        refuse(g, GUEST_MALFORMED, g->malformed);
    }
}

static void take_result(struct guest *g, const struct frame *f)
{
    g->value = malloc((size_t)f->length + 1);
    if (!g->value) {
        refuse(g, GUEST_MALFORMED, "no memory for the result");
        return;
    }
    memcpy(g->value, f->payload, f->length);
    g->value[f->length] = '\0';
    g->value_len = f->length;
    g->verdict = GUEST_RESULT;
    g->unchecked = f->length > CHECK_HERE_BYTES;
    if (!g->unchecked) {
        guest_check(g);
        guest_judge(g);
    }
}

static void take_frame(struct guest *g, const struct frame *f)
{
    if (f->exec != EXECUTION || (f->type != FRAME_RESULT && f->type != FRAME_ERROR)) {
        refuse(g, GUEST_MALFORMED, "malformed result: a frame that is not expected");
    } else if (g->verdict != GUEST_SILENT) {
        refuse(g, GUEST_MALFORMED, "malformed result: more than one");
    } else if (f->type == FRAME_ERROR) {
        take_error(g, f);
    } else {
        take_result(g, f);
    }
}

static void decode(struct guest *g)
{
    struct frame f = {0};
    int e;
    while (g->fd >= 0 && (e = frame_next(&g->in, &f)) != 0) {
        if (e == 1) {
            take_frame(g, &f);
        } else if (e == -EMSGSIZE && f.type == FRAME_RESULT) {
            g->announced = f.length;
            refuse(g, GUEST_TOO_LARGE, "the result is too large");
        } else {
            refuse(g, GUEST_MALFORMED, "malformed result: not a frame");
        }
    }
}

// Up to `rounds` reads. False when there is nothing more for now, or ever.
static bool receive(struct guest *g, int rounds)
{
    char chunk[READ_BYTES / 8];
    for (int i = 0; i < rounds; i++) {
        ssize_t n = recv(g->fd, chunk, sizeof chunk, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return false;
        }
        if (n <= 0) {
            // the guest's last copy is closed; what it left unsaid shows at the end of the job
            guest_close(g);
            return false;
        }
        if (frame_feed(&g->in, chunk, (size_t)n)) {
            refuse(g, GUEST_MALFORMED, "malformed result: no room");
            return false;
        }
        decode(g);
        if (g->fd < 0) {
            return false;
        }
        if ((size_t)n < sizeof chunk) {
            return false; // a stream socket gives all it has
        }
    }
    return true;
}

// True while the talk goes on.
static bool send_out(struct guest *g)
{
    int e = outbox_flush(&g->out, g->fd);
    if (e < 0) { // nobody listens: the program closed it, or is gone. It may still have answered
        outbox_free(&g->out);
        e = 1;
    }
    if (e == 1) {
        outbox_free(&g->out); // a large params text is not kept for the time of the job
    }
    uint32_t events = e == 1 ? EPOLLIN : EPOLLIN | EPOLLOUT;
    return g->watch.fd < 0 || loop_change(g->loop, &g->watch, events) == 0;
}

static void ready(struct loop_watch *w, uint32_t events)
{
    struct guest *g = w->ctx;
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        receive(g, ROUNDS);
    }
    if (g->fd >= 0 && (events & EPOLLOUT)) {
        send_out(g);
    }
}

void guest_drain(struct guest *g)
{
    if (g->fd >= 0) {
        receive(g, DRAIN_ROUNDS);
    }
    guest_close(g);
}

static int encode(struct guest *g, const struct job *j)
{
    static const char *const modes[] = {
        [JOB_ENTRY_TOP] = "snippet", [JOB_ENTRY_MAIN] = "function", [JOB_ENTRY_CHECK] = "check"};
    AUTO_BUF struct buf run = BUF_INIT(GUEST_RUN_BYTES);
    buf_puts(&run, "{\"name\":");
    utf8_json_string(&run, j->code_name, strlen(j->code_name));
    buf_printf(&run, ",\"mode\":\"%s\"}", modes[j->entry]);
    const struct {
        enum frame_type type;
        const char *data;
        size_t len;
    } frames[] = {
        {FRAME_CODE, j->code, j->code_len},
        {FRAME_PARAMS, j->params, j->params_len},
        {FRAME_RUN, buf_text(&run), run.len},
    };
    int e = run.error;
    for (unsigned i = 0; !e && i < ARRAY_LEN(frames); i++) {
        e = frame_encode(&g->out.data, FRAME_TO_GUEST, frames[i].type, EXECUTION, i + 1,
                         frames[i].data, frames[i].len);
    }
    return e;
}

int guest_open(struct guest *g, struct loop *loop, const struct job *j, int *ret_theirs)
{
    *g = (struct guest){.loop = loop, .fd = -1};
    g->watch = LOOP_WATCH_INIT(ready, g);
    g->out = OUTBOX_INIT(OUT_BYTES);
    frame_decoder_init(&g->in, FRAME_FROM_GUEST);
    int pair[2] = {-1, -1};
    int e = encode(g, j);
    if (!e && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
        e = -errno;
    }
    if (e) {
        guest_done(g);
        return e;
    }
    g->fd = pair[0];
    AUTO_CLOSE int theirs = pair[1];
    // Descriptors that the job sends would be closed by us, and a close may take its time: a TCP
    // socket with SO_LINGER as long as the job likes. An older kernel relies on the job's filter.
    const int no = 0;
    setsockopt(g->fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof no);
    // The socket's buffer takes a small job whole, before there is anybody to read it.
    e = outbox_flush(&g->out, g->fd);
    if (e >= 0) {
        e = loop_add(loop, &g->watch, g->fd, e == 1 ? EPOLLIN : EPOLLIN | EPOLLOUT);
    }
    if (e) {
        guest_done(g);
        return e;
    }
    *ret_theirs = fd_take(&theirs);
    return 0;
}
