// internal.h: what the files of this folder share: a connection and the request that it carries.
// A connection is driven by conn_run() alone; whatever the handler calls sets marks and has it run
// later, so that no callback runs inside a call and nothing is freed under its caller.
#ifndef ISLE_HTTP_INTERNAL_H
#define ISLE_HTTP_INTERNAL_H

#include "base/clock.h"
#include "http/http.h"
#include "http/parse.h"
#include "io/loop.h"
#include "io/outbox.h"
#include "io/work.h"

enum {
    IN_BYTES = 16 << 10,       // read at once, and what may wait unread of a next request
    SMALL_BODY = 16 << 10,     // goes out with its head
    FIELDS_OUT_MAX = 16 << 10, // of a reply, by http_set()
    HEAD_OUT_MAX = 1 << 10,    // what the server writes itself
    FILE_PIECE = 32 << 10,
    FILE_AHEAD = 2 << 20,
};

// What a request holds while its peer may be slow: bytes, and its place among all connections.
enum share_kind { SHARE_BODIES, SHARE_REPLIES, SHARE_REQUESTS, SHARE_KINDS };

enum body_mode { BODY_UNREAD, BODY_COLLECT, BODY_STREAM };

struct http_request {
    struct http_conn *conn;
    struct http_parser parser;
    void *ctx;
    uint64_t owner; // a hash
    size_t shares[SHARE_KINDS];
    void (*on_end)(struct http_request *r, enum http_end how);
    void (*on_gone)(struct http_request *r);

    bool told;  // begin() was called
    bool whole; // all of it was read
    bool gone_told;
    int refusal; // a status that is to be sent instead of a reply
    const char *why;

    enum body_mode mode;
    bool held;
    bool delivered; // the end of the body was told
    uint64_t body_max, body_read;
    struct buf body;
    void (*ready)(struct http_request *r);
    void (*piece)(struct http_request *r, const char *data, size_t len);

    struct buf fields; // of the reply
    int fields_error;
    bool begun, ended; // the reply
    bool no_body;      // HEAD, 204, 304
    bool chunked;
    bool close_after;
    bool room_wanted;
    int64_t left; // of the length that was said; -1: none was
    void (*on_room)(struct http_request *r);
    struct outbox payload;                   // the body of a whole reply, behind conn->out
    int file;                                // or of a file reply
    uint64_t file_at, file_left, file_ahead; // ahead: to where the kernel was told to read
    bool sse;
    uint64_t sse_due_ns;
};

struct http_conn {
    struct http_server *server;
    struct http_conn *next, *before; // of all
    struct http_conn *kick_next;
    bool kicked;
    struct http_peer peer;
    const struct http_listener *listener;
    int fd;
    struct loop_watch watch;
    char *in; // IN_BYTES, while there is something in it
    size_t in_at, in_len;
    bool starved; // the parser wants more bytes
    struct outbox out;
    struct http_request *req; // from the first byte to the end of the reply
    bool busy;                // conn_run() is at work
    bool readable;            // may be
    bool peer_shut;           // has closed its side
    bool at_end;              // and all that it sent was read
    int reads, fills;         // that this run may still do
    bool hung_up;             // both sides, or an error
    bool cut;                 // nothing more can be sent: end
    enum http_end cut_how;
    bool closing;   // after what waits to be sent
    bool lingering; // reads what nobody wants, until the peer closes
    bool closed;
    uint64_t due_ns;   // when conn_due() is to be called; 0: never
    uint64_t until_ns; // of the present state: idle, head, linger
    uint64_t linger_end_ns;
    uint64_t window_ns;   // end of the window in which bytes must move; 0: none
    uint64_t moved;       // bytes read of bodies, and handed to the kernel
    uint64_t window_from; // progress at its begin
};

struct http_server {
    struct loop *loop;
    struct http_config config;
    struct loop_watch watches[HTTP_MAX_LISTENERS];
    struct http_conn *conns;
    unsigned n_conns;
    size_t shares[SHARE_KINDS]; // of all requests
    struct loop_timer due_timer, kick_timer, accept_timer;
    struct http_conn *kicks;
    bool stopping, stop_told;
    void (*stopped)(void *ctx);
    void *stopped_ctx;
};

// server.c
void server_kick(struct http_conn *c);
void server_arm(struct http_server *s, uint64_t due_ns);

// conn.c
int conn_new(struct http_server *s, const struct http_listener *l, int fd,
             const struct http_peer *peer);
void conn_run(struct http_conn *c);
void conn_due(struct http_conn *c, uint64_t now_ns);
void conn_free(struct http_conn *c); // ends its request
// A refusal takes the place of the reply when the connection runs; the first one counts.
void refuse_later(struct http_request *r, int status, const char *why);
void conn_cut(struct http_conn *c, enum http_end how);
// What was sent and what waits; 0, or -errno with the connection cut.
int conn_flush(struct http_conn *c);
size_t conn_unsent(const struct http_conn *c);

// body.c: what the parser said, and what there is to tell the handler.
void body_take(struct http_request *r, const char *data, size_t len);
bool body_deliver(struct http_request *r); // whether anything was
bool body_wanted(const struct http_request *r);
void body_drop(struct http_request *r);

// share.c
bool share_take(struct http_request *r, enum share_kind kind, size_t amount);
void share_give(struct http_request *r, enum share_kind kind);
// What a streamed reply may have waiting: less than out_bytes while there are many connections.
size_t share_of_stream(const struct http_server *s);

// reply.c
void reply_refuse(struct http_request *r); // writes the refusal; the handler has been told
void reply_drop(struct http_request *r);
bool reply_fill(struct http_request *r); // from a file; whether anything was done
void reply_sse_due(struct http_request *r, uint64_t now_ns);
// Begins a reply whose body follows as `length` bytes (-1: not known).
int reply_head(struct http_request *r, int status, const char *type, int64_t length);

#endif
