#include "base/fd.h"
#include "http/internal.h"
#include "http/value.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
    ACCEPTS_AT_ONCE = 16,
    ACCEPT_PAUSE_MS = 200,
    TURNED_AWAY_READS = 8,
};

void http_config_init(struct http_config *ret)
{
    *ret = (struct http_config){
        .head_bytes = 32 << 10,
        .target_bytes = 8 << 10,
        .fields = 100,
        .bodies_bytes = 256 << 20,
        .replies_bytes = 256 << 20,
        .out_bytes = 256 << 10,
        .head_ms = 10000,
        .idle_ms = 75000,
        .window_ms = 20000,
        .window_bytes = 4 << 10,
        .linger_ms = 2000,
        .linger_max_ms = 30000,
        .sse_ms = 15000,
    };
}

// ---- Deadlines: one timer of the loop for all connections. It is moved only towards now, so it
// may fire for nothing, once; a server without connections has none.

void server_arm(struct http_server *s, uint64_t due_ns)
{
    if (s->due_timer.due_ns && s->due_timer.due_ns <= due_ns) {
        return;
    }
    uint64_t now = clock_now_ns();
    loop_timer_set(s->loop, &s->due_timer, due_ns > now ? due_ns - now : 0);
}

static void on_due(struct loop_timer *t)
{
    struct http_server *s = t->ctx;
    uint64_t now = clock_now_ns(), soonest = 0;
    for (struct http_conn *c = s->conns, *next; c; c = next) {
        next = c->next; // a run frees no connection but its own
        if (c->due_ns && c->due_ns <= now) {
            conn_due(c, now);
        }
    }
    for (const struct http_conn *c = s->conns; c; c = c->next) {
        if (c->due_ns && (!soonest || c->due_ns < soonest)) {
            soonest = c->due_ns;
        }
    }
    if (soonest) {
        server_arm(s, soonest);
    }
}

// ---- Kicks: connections to run from the loop

void server_kick(struct http_conn *c)
{
    struct http_server *s = c->server;
    if (c->kicked || c->busy) { // a run that is at work sees the marks itself
        return;
    }
    c->kicked = true;
    c->kick_next = s->kicks;
    s->kicks = c;
    if (!s->kick_timer.due_ns) {
        loop_timer_set(s->loop, &s->kick_timer, 0);
    }
}

static void tell_stopped(struct http_server *s)
{
    if (s->stopping && !s->conns && !s->stop_told) {
        s->stop_told = true;
        if (s->stopped) {
            s->stopped(s->stopped_ctx);
        }
    }
}

static void on_kick(struct loop_timer *t)
{
    struct http_server *s = t->ctx;
    // Only those that are there now: one that kicks itself must not keep the loop from the others.
    struct http_conn *list = s->kicks;
    s->kicks = NULL;
    for (struct http_conn *c; (c = list);) {
        list = c->kick_next;
        c->kicked = false;
        conn_run(c);
    }
    tell_stopped(s); // last: it may free the server
}

// ---- Connections that come

static bool same_peer(const struct http_peer *a, const struct http_peer *b)
{
    // One host has a whole /64 of IPv6.
    size_t n = IN6_IS_ADDR_V4MAPPED(&a->ip) ? 16 : 8;
    return !a->local && !b->local && memcmp(&a->ip, &b->ip, n) == 0;
}

// Nothing is lost with it: all that was asked on it was answered.
static bool is_idle(const struct http_conn *c) { return !c->req && !c->closing; }

// Whether one more may be held; closes an idle one to make room.
static bool has_room(struct http_server *s, const struct http_listener *l,
                     const struct http_peer *peer)
{
    unsigned all = 0, of_peer = 0;
    struct http_conn *idle = NULL;
    for (struct http_conn *c = s->conns; c; c = c->next) {
        if (c->listener != l) {
            continue;
        }
        all++;
        of_peer += same_peer(&c->peer, peer);
        if (is_idle(c) && (!idle || c->until_ns < idle->until_ns)) {
            idle = c;
        }
    }
    bool bound = !peer->local && !http_net_has(s->config.trusted, s->config.n_trusted, &peer->ip);
    if (bound && of_peer >= l->per_peer) {
        return false;
    }
    if (all >= l->connections && idle) {
        conn_free(idle);
        all--;
    }
    return all < l->connections;
}

static void peer_of(int fd, const struct sockaddr_storage *from, struct http_peer *ret)
{
    struct http_peer peer = {0};
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)from;
        peer.ip = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
        memcpy(peer.ip.s6_addr + 12, &in->sin_addr, 4);
        peer.port = ntohs(in->sin_port);
        inet_ntop(AF_INET, &in->sin_addr, peer.text, sizeof peer.text);
    } else if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)from;
        peer.ip = in->sin6_addr;
        peer.port = ntohs(in->sin6_port);
        if (IN6_IS_ADDR_V4MAPPED(&peer.ip)) {
            inet_ntop(AF_INET, peer.ip.s6_addr + 12, peer.text, sizeof peer.text);
        } else {
            inet_ntop(AF_INET6, &peer.ip, peer.text, sizeof peer.text);
        }
    } else {
        struct ucred who = {.uid = (uid_t)-1, .gid = (gid_t)-1};
        socklen_t n = sizeof who;
        peer.local = true;
        (void)!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n);
        peer.pid = who.pid;
        peer.uid = who.uid;
        peer.gid = who.gid;
        snprintf(peer.text, sizeof peer.text, "unix");
    }
    *ret = peer;
}

// What has come, up to a bound.
static void throw_away(int fd)
{
    char piece[4096];
    for (int i = 0; i < TURNED_AWAY_READS; i++) {
        if (recv(fd, piece, sizeof piece, MSG_DONTWAIT) <= 0) {
            break;
        }
    }
}

// In one breath, and without waiting: whoever has too many connections gets no state of ours. A
// request that has come is read: a close above it would be a reset, for which some kernels throw
// the answer away before it is read.
static void turn_away(int fd)
{
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
                               "Retry-After: 1\r\nContent-Length: 0\r\n\r\n";
    (void)!send(fd, text, sizeof text - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    throw_away(fd);
}

static void listen_again(struct loop_timer *t)
{
    struct http_server *s = t->ctx;
    for (size_t i = 0; i < s->config.n_listeners; i++) {
        if (s->watches[i].fd >= 0) {
            loop_change(s->loop, &s->watches[i], EPOLLIN);
        }
    }
}

// No descriptor or no memory: what waits keeps waiting, without this loop turning for it.
static void listen_later(struct http_server *s)
{
    for (size_t i = 0; i < s->config.n_listeners; i++) {
        if (s->watches[i].fd >= 0) {
            loop_change(s->loop, &s->watches[i], 0);
        }
    }
    loop_timer_set(s->loop, &s->accept_timer, ACCEPT_PAUSE_MS * NS_PER_MS);
}

static void on_listener(struct loop_watch *w, uint32_t events)
{
    (void)events;
    struct http_server *s = w->ctx;
    const struct http_listener *l = &s->config.listeners[w - s->watches];
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        struct sockaddr_storage from = {0};
        socklen_t len = sizeof from;
        AUTO_CLOSE int fd =
            accept4(w->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                listen_later(s);
            }
            return; // nobody waits, or whoever did has gone: epoll tells of the next
        }
        struct http_peer peer;
        peer_of(fd, &from, &peer);
        if (!has_room(s, l, &peer)) {
            turn_away(fd);
            continue;
        }
        if (!peer.local) {
            int on = 1;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        }
        if (conn_new(s, l, fd, &peer) == 0) {
            fd_take(&fd);
        }
    }
}

// ---- The server

static void close_listeners(struct http_server *s)
{
    for (size_t i = 0; i < s->config.n_listeners; i++) {
        loop_remove(s->loop, &s->watches[i]);
        s->config.listeners[i].fd = fd_close(s->config.listeners[i].fd);
    }
    loop_timer_clear(s->loop, &s->accept_timer);
}

static int listen_all(struct http_server *s)
{
    for (size_t i = 0; i < s->config.n_listeners; i++) {
        int fd = s->config.listeners[i].fd;
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
            fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
            return -errno;
        }
        int e = loop_add(s->loop, &s->watches[i], fd, EPOLLIN);
        if (e) {
            return e;
        }
    }
    return 0;
}

int http_server_new(struct loop *loop, const struct http_config *config, struct http_server **ret)
{
    struct http_server *s = calloc(1, sizeof *s);
    if (!s) {
        for (size_t i = 0; i < config->n_listeners; i++) {
            close(config->listeners[i].fd);
        }
        return -ENOMEM;
    }
    s->loop = loop;
    s->config = *config;
    s->due_timer = LOOP_TIMER_INIT(on_due, s);
    s->kick_timer = LOOP_TIMER_INIT(on_kick, s);
    s->accept_timer = LOOP_TIMER_INIT(listen_again, s);
    for (size_t i = 0; i < HTTP_MAX_LISTENERS; i++) {
        s->watches[i] = LOOP_WATCH_INIT(on_listener, s);
    }
    int e = listen_all(s);
    if (e) {
        http_server_free(s);
        return e;
    }
    *ret = s;
    return 0;
}

void http_server_stop(struct http_server *s, void (*stopped)(void *ctx), void *ctx)
{
    s->stopped = stopped;
    s->stopped_ctx = ctx;
    s->stopping = true;
    close_listeners(s);
    for (struct http_conn *c = s->conns; c; c = c->next) {
        server_kick(c);
    }
    if (!s->conns) {
        loop_timer_set(s->loop, &s->kick_timer, 0);
    }
}

void http_server_free(struct http_server *s)
{
    if (!s) {
        return;
    }
    s->stop_told = true;
    close_listeners(s);
    while (s->conns) {
        conn_free(s->conns);
    }
    loop_timer_clear(s->loop, &s->due_timer);
    loop_timer_clear(s->loop, &s->kick_timer);
    free(s);
}

void http_server_count(const struct http_server *s, unsigned *ret_connections,
                       unsigned *ret_requests)
{
    unsigned requests = 0;
    for (const struct http_conn *c = s->conns; c; c = c->next) {
        requests += c->req && c->req->told;
    }
    *ret_connections = s->n_conns;
    *ret_requests = requests;
}
