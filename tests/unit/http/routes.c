#include "routes.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BODY_MAX = 64 << 10 };

struct stream {
    struct http_request *r;
    struct loop_timer timer;
    size_t left;
};

static struct routes *of(struct http_request *r)
{
    struct stream *s = http_ctx(r);
    return s->timer.ctx;
}

static void on_end(struct http_request *r, enum http_end how)
{
    struct stream *s = http_ctx(r);
    struct routes *t = of(r);
    t->ends[how]++;
    if (t->kept == r) {
        t->kept = NULL;
    }
    loop_timer_clear(t->loop, &s->timer);
    free(s);
}

static void on_gone(struct http_request *r)
{
    of(r)->gone++;
    if (of(r)->give_up) {
        http_abort(r);
    }
}

static void hello(struct http_request *r) { http_reply(r, 200, "text/plain", "hello\n", 6); }

static void echo_ready(struct http_request *r)
{
    size_t len;
    const char *body = http_body(r, &len);
    http_reply(r, 200, "application/octet-stream", body, len);
}

static void echo(struct http_request *r) { http_body_collect(r, BODY_MAX, echo_ready); }

static void count_piece(struct http_request *r, const char *data, size_t len)
{
    struct stream *s = http_ctx(r);
    (void)data;
    s->left += len;
    of(r)->streamed += len;
    if (len == 0) {
        char text[32];
        int n = snprintf(text, sizeof text, "%zu\n", s->left);
        http_reply(r, 200, "text/plain", text, (size_t)n);
    }
}

static void count(struct http_request *r) { http_body_stream(r, UINT64_C(1) << 40, count_piece); }

static void hold_piece(struct http_request *r, const char *data, size_t len)
{
    if (len > 0) {
        http_body_hold(r);
    }
    count_piece(r, data, len);
}

static void hold(struct http_request *r)
{
    of(r)->kept = r;
    http_body_stream(r, UINT64_C(1) << 40, hold_piece);
}

static void early(struct http_request *r) { http_reply(r, 401, "text/plain", "no\n", 3); }

static void later_fire(struct loop_timer *timer)
{
    struct stream *s = (struct stream *)((char *)timer - offsetof(struct stream, timer));
    http_body_collect(s->r, BODY_MAX, echo_ready);
}

static void later(struct http_request *r)
{
    struct stream *s = http_ctx(r);
    s->timer.fire = later_fire;
    loop_timer_set(of(r)->loop, &s->timer, 20 * 1000 * 1000);
}

static void more(struct http_request *r)
{
    static const char piece[10000] = {0};
    struct stream *s = http_ctx(r);
    while (s->left > 0) {
        size_t n = s->left < sizeof piece ? s->left : sizeof piece;
        int e = http_stream_write(r, piece, n);
        if (e < 0) {
            return;
        }
        s->left -= n;
        if (e == 1) {
            return;
        }
    }
    http_stream_end(r);
}

static void stream(struct http_request *r, int64_t length)
{
    struct stream *s = http_ctx(r);
    const char *n = "100000";
    (void)http_query_value(r, "n", &n);
    s->left = strtoul(n, NULL, 10);
    http_stream_on_room(r, more);
    if (http_stream_begin(r, 200, "application/octet-stream", length < 0 ? -1 : (int64_t)s->left)) {
        s->left = 0;
    }
    more(r);
}

static void chunked(struct http_request *r) { stream(r, -1); }
static void sized(struct http_request *r) { stream(r, 0); }

static void cut_short(struct http_request *r)
{
    http_stream_begin(r, 200, "text/plain", 10);
    http_stream_write(r, "half", 4);
    http_stream_end(r);
}

static void file(struct http_request *r)
{
    int fd = of(r)->file < 0 ? -1 : fcntl(of(r)->file, F_DUPFD_CLOEXEC, 3);
    http_reply_file(r, fd, (uint64_t)lseek(fd, 0, SEEK_END), "text/plain", "\"v1\"");
}

static void wait_long(struct http_request *r) { of(r)->kept = r; }

static void sse(struct http_request *r)
{
    of(r)->kept = r;
    if (http_sse_begin(r)) {
        http_stream_end(r);
        return;
    }
    http_sse_send(r, "1", "stdout", "a\nb\r\nc\rd", 8);
    http_sse_send(r, NULL, NULL, "", 0);
    if (http_query_value(r, "end", &(const char *){NULL})) {
        http_stream_end(r);
    }
}

static void split(struct http_request *r)
{
    http_set(r, "X-A", "a\r\nSet-Cookie: b");
    http_reply(r, 200, "text/plain", "x", 1);
}

static void own(struct http_request *r)
{
    http_set(r, "content-length", "7");
    http_reply(r, 200, "text/plain", "x", 1);
}

static void fields(struct http_request *r)
{
    http_set(r, "X-A", "b");
    http_reply(r, 204, NULL, "dropped", 7);
}

static void state(struct http_request *r)
{
    const struct routes *t = of(r);
    char text[200];
    int n = snprintf(text, sizeof text,
                     "{\"begun\":%u,\"refused\":%u,\"gone\":%u,\"ends\":[%u,%u,%u,%u],"
                     "\"streamed\":%zu}\n",
                     t->begun, t->refused, t->gone, t->ends[0], t->ends[1], t->ends[2], t->ends[3],
                     t->streamed);
    http_reply(r, 200, "application/json", text, (size_t)n);
}

static const struct {
    const char *path;
    void (*begin)(struct http_request *r);
} table[] = {
    {"/hello", hello},      {"/echo", echo},   {"/count", count},    {"/hold", hold},
    {"/early", early},      {"/later", later}, {"/stream", chunked}, {"/sized", sized},
    {"/short", cut_short},  {"/file", file},   {"/wait", wait_long}, {"/sse", sse},
    {"/split", split},      {"/own", own},     {"/fields", fields},  {"/state", state},
    {"/abort", http_abort},
};

static void begin(void *ctx, struct http_request *r)
{
    struct routes *t = ctx;
    struct stream *s = calloc(1, sizeof *s);
    if (!s) {
        abort();
    }
    s->r = r;
    s->timer.ctx = t;
    t->begun++;
    http_set_ctx(r, s);
    http_on_end(r, on_end);
    http_on_gone(r, on_gone);
    const char *owner;
    if (http_field_value(r, "x-owner", &owner) == 1 && http_set_owner(r, owner)) {
        http_reply(r, 429, NULL, NULL, 0);
        return;
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(http_path(r), table[i].path) == 0) {
            table[i].begin(r);
            return;
        }
    }
    http_reply(r, 404, "text/plain", http_path(r), strlen(http_path(r)));
}

static const char *refused(void *ctx, const struct http_peer *peer, int status, const char *why,
                           struct buf *body)
{
    struct routes *t = ctx;
    (void)peer;
    t->refused++;
    t->refused_status = status;
    buf_printf(body, "%s\n", why);
    return "text/plain";
}

void routes_init(struct routes *t, struct loop *loop)
{
    *t = (struct routes){.loop = loop, .file = -1};
    http_config_init(&t->config);
    t->config.begin = begin;
    t->config.refused = refused;
    t->config.ctx = t;
}
