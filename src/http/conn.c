#include "base/fd.h"
#include "http/internal.h"

#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum {
    READS_PER_RUN = 8,     // then others have their turn
    REQUESTS_PER_RUN = 32, // of one packet of many small ones
    FILLS_PER_RUN = 16,    // pieces of a file, where the peer reads as fast as it is read
};

static uint64_t after_ms(uint32_t ms) { return clock_now_ns() + ms * NS_PER_MS; }

void conn_cut(struct http_conn *c, enum http_end how)
{
    if (!c->cut) {
        c->cut = true;
        c->cut_how = how;
    }
}

void refuse_later(struct http_request *r, int status, const char *why)
{
    if (!r->refusal) {
        r->refusal = status;
        r->why = why;
    }
}

static void end_request(struct http_conn *c, enum http_end how)
{
    struct http_request *r = c->req;
    c->req = NULL;
    if (!r) {
        return;
    }
    bool busy = c->busy;
    c->busy = true; // also when the server is freed: whatever is called now only sets marks
    if (r->told && r->on_end) {
        r->on_end(r, how);
    }
    c->busy = busy;
    body_drop(r);
    reply_drop(r);
    http_parser_done(&r->parser);
    free(r);
}

void conn_free(struct http_conn *c)
{
    struct http_server *s = c->server;
    end_request(c, c->cut ? c->cut_how : HTTP_END_GONE);
    loop_remove(s->loop, &c->watch);
    close(c->fd);
    *(c->before ? &c->before->next : &s->conns) = c->next;
    if (c->next) {
        c->next->before = c->before;
    }
    for (struct http_conn **p = &s->kicks; c->kicked && *p; p = &(*p)->kick_next) {
        if (*p == c) {
            *p = c->kick_next;
            break;
        }
    }
    s->n_conns--;
    if (s->stopping && !s->conns && !s->stop_told) {
        loop_timer_set(s->loop, &s->kick_timer, 0);
    }
    outbox_free(&c->out);
    free(c->in);
    free(c);
}

static struct outbox *payload(const struct http_conn *c)
{
    return c->req ? &c->req->payload : NULL;
}

size_t conn_unsent(const struct http_conn *c)
{
    return outbox_left(&c->out) + (payload(c) ? outbox_left(payload(c)) : 0);
}

int conn_flush(struct http_conn *c)
{
    size_t before = conn_unsent(c);
    if (before == 0 || c->cut) {
        return c->cut ? -EPIPE : 0;
    }
    int e = outbox_flush(&c->out, c->fd);
    if (e == 1 && payload(c)) {
        e = outbox_flush(payload(c), c->fd);
    }
    c->moved += before - conn_unsent(c);
    if (e < 0) {
        conn_cut(c, HTTP_END_GONE);
        return -EPIPE;
    }
    return 0;
}

// ---- Reading

static bool wants_input(const struct http_conn *c)
{
    if (c->lingering) {
        return true;
    }
    return !c->closing && (!c->req || !c->req->told || body_wanted(c->req));
}

static int new_request(struct http_conn *c)
{
    struct http_request *r = calloc(1, sizeof *r);
    if (!r) {
        return -ENOMEM;
    }
    r->conn = c;
    r->file = -1;
    r->fields = BUF_INIT(FIELDS_OUT_MAX);
    http_parser_init(&r->parser, &c->server->config);
    c->req = r;
    c->until_ns = after_ms(c->server->config.head_ms);
    return 0;
}

static void begin(struct http_conn *c)
{
    struct http_request *r = c->req;
    r->told = true;
    c->until_ns = 0;
    c->server->config.begin(c->server->config.ctx, r);
}

// One thing that the parser says. A request without a body is read to its end before it is told.
static void parse(struct http_conn *c)
{
    if (!c->req && new_request(c)) {
        conn_cut(c, HTTP_END_GONE);
        return;
    }
    struct http_request *r = c->req;
    size_t used = 0;
    enum http_parsed event = http_parse(&r->parser, c->in + c->in_at, c->in_len - c->in_at, &used);
    c->in_at += used;
    switch (event) {
    case HTTP_PARSED_MORE:
        c->starved = true;
        break;
    case HTTP_PARSED_HEAD:
        if (r->parser.length != 0) {
            begin(c);
        }
        break;
    case HTTP_PARSED_BODY:
        c->moved += r->parser.body_len;
        body_take(r, r->parser.body, r->parser.body_len);
        break;
    case HTTP_PARSED_END:
        r->whole = true;
        if (!r->told) {
            begin(c);
        }
        break;
    case HTTP_PARSED_BAD:
        refuse_later(r, r->parser.status, r->parser.why);
        break;
    }
}

// The peer has closed its side.
static void at_end(struct http_conn *c)
{
    c->peer_shut = c->at_end = true;
    if (c->lingering || !c->req || !c->req->parser.begun) {
        c->closed = true;
    } else {
        refuse_later(c->req, 400, "the request ended before its end");
    }
}

// What comes is thrown away: a peer that is sending a long body reads the reply only behind it.
static void linger_on(struct http_conn *c)
{
    uint64_t until = after_ms(c->server->config.linger_ms);
    if (!c->server->stopping) {
        c->until_ns = until < c->linger_end_ns ? until : c->linger_end_ns;
    }
    c->starved = true;
}

static bool receive(struct http_conn *c)
{
    if (!c->readable || c->reads == 0) {
        return false; // where there is more, epoll says so again
    }
    c->reads--;
    if (!c->in && !(c->in = malloc(IN_BYTES))) {
        conn_cut(c, HTTP_END_GONE);
        return true;
    }
    ssize_t n = recv(c->fd, c->in, IN_BYTES, MSG_DONTWAIT);
    if (n < 0) {
        c->readable = errno == EINTR;
        if ((errno != EAGAIN && errno != EINTR) || (errno == EAGAIN && c->hung_up)) {
            conn_cut(c, HTTP_END_GONE);
        }
        return c->cut || c->readable;
    }
    if (n == 0) {
        at_end(c);
        return true;
    }
    c->in_at = 0;
    c->in_len = (size_t)n;
    c->starved = false;
    if (c->lingering) {
        linger_on(c);
    }
    return true;
}

// ---- Ends

// Nothing more is said. The peer may still be sending: closing now would make its kernel throw the
// reply away (RFC 9112, 9.6).
static void linger(struct http_conn *c)
{
    c->closing = false;
    if (c->at_end || c->hung_up || shutdown(c->fd, SHUT_WR)) {
        c->closed = true;
        return;
    }
    c->lingering = true;
    c->until_ns = after_ms(c->server->config.linger_ms);
    c->linger_end_ns = after_ms(c->server->config.linger_max_ms);
    linger_on(c);
}

static void finish(struct http_conn *c)
{
    bool last = c->req->close_after || !c->req->whole || c->server->stopping;
    end_request(c, HTTP_END_SENT);
    if (last) {
        c->closing = true;
        return;
    }
    c->starved = c->in_at == c->in_len;
    c->until_ns = after_ms(c->server->config.idle_ms);
}

static void refuse(struct http_conn *c)
{
    struct http_request *r = c->req;
    if (r->begun) {
        conn_cut(c, HTTP_END_GONE);
        return;
    }
    reply_refuse(r);
    end_request(c, HTTP_END_REFUSED);
    c->closing = true;
}

// ---- The driver

static bool tell_gone(struct http_conn *c)
{
    struct http_request *r = c->req;
    if (!c->peer_shut || !r || !r->told || r->gone_told || r->ended || !r->whole) {
        return false;
    }
    r->gone_told = true;
    if (r->on_gone) {
        r->on_gone(r);
    }
    return true;
}

static bool want_room(struct http_conn *c)
{
    struct http_request *r = c->req;
    size_t out_bytes = c->server->config.out_bytes;
    // Where less may wait than that, a write is sure to be taken only when nothing does.
    size_t low = share_of_stream(c->server) < out_bytes ? 0 : out_bytes / 4;
    if (!r->begun || r->ended || !r->room_wanted || !r->on_room || outbox_left(&c->out) > low) {
        return false;
    }
    r->room_wanted = false;
    r->on_room(r);
    return true;
}

// Does one thing. false: nothing is left to do now.
static bool step(struct http_conn *c)
{
    struct http_request *r = c->req;
    conn_flush(c);
    if (c->cut || (c->hung_up && !wants_input(c))) {
        c->closed = true;
        return true;
    }
    if (r && r->refusal && !r->ended) {
        refuse(c);
        return true;
    }
    if (r && r->ended && r->file < 0 && conn_unsent(c) == 0) {
        finish(c);
        return true;
    }
    if (!r && c->closing && conn_unsent(c) == 0) {
        linger(c);
        return true;
    }
    if (!r && c->server->stopping && !c->closing && !c->lingering) {
        c->closed = true;
        return true;
    }
    if (r && r->told && (reply_fill(r) || want_room(c) || body_deliver(r) || tell_gone(c))) {
        return true;
    }
    if (!wants_input(c)) {
        return false;
    }
    if (!c->starved) {
        parse(c);
        return true;
    }
    return receive(c);
}

static bool moves(const struct http_conn *c)
{
    return conn_unsent(c) > 0 || (c->req && c->req->told && body_wanted(c->req));
}

// Bytes that really went: not those that only the kernel has.
static uint64_t progress(const struct http_conn *c)
{
    int queued = 0;
    if (ioctl(c->fd, SIOCOUTQ, &queued) || queued < 0) {
        queued = 0;
    }
    return (uint64_t)queued < c->moved ? c->moved - (uint64_t)queued : 0;
}

static void set_deadline(struct http_conn *c)
{
    if (!moves(c)) {
        c->window_ns = 0;
    } else if (!c->window_ns) {
        c->window_ns = after_ms(c->server->config.window_ms);
        c->window_from = progress(c);
    }
    uint64_t sse = c->req && c->req->sse && !c->req->ended ? c->req->sse_due_ns : 0;
    uint64_t until = !c->closing && (!c->req || !c->req->told) ? c->until_ns : 0;
    const uint64_t all[] = {c->window_ns, sse, until};
    c->due_ns = 0;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (all[i] && (!c->due_ns || all[i] < c->due_ns)) {
            c->due_ns = all[i];
        }
    }
    if (c->due_ns) {
        server_arm(c->server, c->due_ns);
    }
}

static void set_events(struct http_conn *c)
{
    uint32_t events = 0;
    if (wants_input(c)) {
        events |= EPOLLIN;
    } else if (!c->peer_shut) {
        events |= EPOLLRDHUP;
    }
    if (conn_unsent(c) > 0) {
        events |= EPOLLOUT;
    }
    if (loop_change(c->server->loop, &c->watch, events)) {
        conn_cut(c, HTTP_END_GONE);
    }
}

void conn_run(struct http_conn *c)
{
    if (c->busy) {
        return;
    }
    c->busy = true;
    c->reads = READS_PER_RUN;
    c->fills = FILLS_PER_RUN;
    int requests = REQUESTS_PER_RUN;
    while (!c->closed && requests > 0) {
        bool had = c->req;
        if (!step(c)) {
            break;
        }
        requests -= had && !c->req;
    }
    c->busy = false;
    if (c->closed) {
        conn_free(c);
        return;
    }
    if (c->starved && c->in) { // an idle connection costs little
        free(c->in);
        c->in = NULL;
        c->in_at = c->in_len = 0;
    }
    set_events(c);
    set_deadline(c);
    if (requests == 0 || c->fills == 0 || c->cut) {
        server_kick(c);
    }
}

static void on_ready(struct loop_watch *w, uint32_t events)
{
    struct http_conn *c = w->ctx;
    c->readable = c->readable || (events & (EPOLLIN | EPOLLHUP | EPOLLERR));
    c->peer_shut = c->peer_shut || (events & EPOLLRDHUP);
    c->hung_up = c->hung_up || (events & (EPOLLHUP | EPOLLERR));
    conn_run(c);
}

static void too_slow(struct http_conn *c)
{
    if (conn_unsent(c) > 0) {
        conn_cut(c, HTTP_END_GONE);
    } else if (c->req) {
        refuse_later(c->req, 408, "the body comes too slowly");
    }
}

void conn_due(struct http_conn *c, uint64_t now_ns)
{
    struct http_request *r = c->req;
    if (c->window_ns && c->window_ns <= now_ns) {
        c->window_ns = 0;
        if (progress(c) < c->window_from + c->server->config.window_bytes) {
            too_slow(c);
        }
    } else if (r && r->told && r->sse) {
        reply_sse_due(r, now_ns);
    } else if ((!r || !r->told) && c->until_ns && c->until_ns <= now_ns) {
        if (r && r->parser.begun) {
            refuse_later(r, 408, "the head comes too slowly");
        } else {
            c->closed = true;
        }
    }
    conn_run(c);
}

int conn_new(struct http_server *s, const struct http_listener *l, int fd,
             const struct http_peer *peer)
{
    struct http_conn *c = calloc(1, sizeof *c);
    if (!c) {
        return -ENOMEM;
    }
    c->server = s;
    c->listener = l;
    c->peer = *peer;
    c->fd = fd;
    c->starved = true;
    // Twice: an outbox keeps what it has sent until that is half of it.
    c->out = OUTBOX_INIT(2 * (s->config.out_bytes + FIELDS_OUT_MAX + SMALL_BODY + HEAD_OUT_MAX));
    c->watch = LOOP_WATCH_INIT(on_ready, c);
    c->until_ns = after_ms(s->config.idle_ms);
    int e = loop_add(s->loop, &c->watch, fd, EPOLLIN);
    if (e) {
        free(c);
        return e;
    }
    c->next = s->conns;
    if (c->next) {
        c->next->before = c;
    }
    s->conns = c;
    s->n_conns++;
    set_deadline(c);
    return 0;
}
