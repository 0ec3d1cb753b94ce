#include "http/internal.h"

#include <string.h>

bool body_wanted(const struct http_request *r)
{
    return r->mode != BODY_UNREAD && !r->whole && !r->held && !r->ended && !r->refusal;
}

void body_drop(struct http_request *r)
{
    share_give(r, SHARE_BODIES);
    buf_free(&r->body);
}

static void collect(struct http_request *r, const char *data, size_t len)
{
    if (!share_take(r, SHARE_BODIES, len)) {
        refuse_later(r, 503, "too many large requests at once");
    } else if (buf_add(&r->body, data, len)) {
        refuse_later(r, 503, "no memory for the body");
    }
}

void body_take(struct http_request *r, const char *data, size_t len)
{
    if (r->refusal) {
        return;
    }
    if (len > r->body_max - r->body_read) {
        refuse_later(r, 413, "the body is too long");
        return;
    }
    r->body_read += len;
    if (r->mode == BODY_COLLECT) {
        collect(r, data, len);
    } else {
        r->piece(r, data, len);
    }
}

bool body_deliver(struct http_request *r)
{
    if (!r->whole || r->delivered || r->held || r->ended || r->refusal || r->mode == BODY_UNREAD) {
        return false;
    }
    r->delivered = true;
    if (r->mode == BODY_COLLECT) {
        r->ready(r);
    } else {
        r->piece(r, NULL, 0);
    }
    return true;
}

// A body is asked for: a peer that waits for leave gets it (RFC 9110, 10.1.1), unless it has begun
// to send or is too long anyway.
static void ask(struct http_request *r, enum body_mode mode, uint64_t max_bytes)
{
    struct http_conn *c = r->conn;
    if (r->mode != BODY_UNREAD || r->ended) {
        return;
    }
    r->mode = mode;
    r->body_max = max_bytes;
    if (r->parser.length > 0 && (uint64_t)r->parser.length > max_bytes) {
        refuse_later(r, 413, "the body is too long");
    } else if (r->parser.expects && !r->whole && !r->begun && c->in_at == c->in_len) {
        buf_puts(&c->out.data, "HTTP/1.1 100 Continue\r\n\r\n");
    }
    server_kick(c);
}

void http_body_collect(struct http_request *r, size_t max_bytes,
                       void (*ready)(struct http_request *r))
{
    if (r->mode == BODY_UNREAD) {
        r->ready = ready;
        r->body = BUF_INIT(max_bytes);
    }
    ask(r, BODY_COLLECT, max_bytes);
}

const char *http_body(const struct http_request *r, size_t *ret_len)
{
    *ret_len = r->body.len;
    return buf_text(&r->body);
}

void http_body_own(struct http_request *r, struct buf *ret)
{
    *ret = r->body;
    r->body = BUF_INIT(0);
}

void http_body_stream(struct http_request *r, uint64_t max_bytes,
                      void (*piece)(struct http_request *r, const char *data, size_t len))
{
    if (r->mode == BODY_UNREAD) {
        r->piece = piece;
    }
    ask(r, BODY_STREAM, max_bytes);
}

void http_body_hold(struct http_request *r) { r->held = true; }

void http_body_resume(struct http_request *r)
{
    r->held = false;
    server_kick(r->conn);
}
