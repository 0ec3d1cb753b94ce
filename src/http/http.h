// http.h: an HTTP/1.1 server (RFC 9110, RFC 9112) on the event loop. It knows nothing of jobs: it
// takes connections, reads requests that mean one thing only, and carries replies away.
//
// One thread, the loop's. Nothing polls: a server without connections has no timer, and one that
// waits has a timer only for what would end the waiting. Everything has a bound: connections, the
// head, the body, what waits to be sent, the time for each of them.
//
// No callback runs inside a call to this module: what a call causes is told later, from the loop.
//
// The life of a request:
//   begin()            its head is whole. The handler calls http_body_collect() or
//                      http_body_stream() to read the body, or replies at once; doing neither
//                      leaves the body unread until one of them is called.
//   the body's calls   as below
//   a reply            http_reply(), http_reply_buf(), http_reply_file(), or http_stream_begin(),
//                      _write(), _end(); now or at any later time
//   the gone call      at most once: the peer has closed its side. It may have closed only that (a
//                      half-close), so a reply still goes out; http_abort() gives up.
//   the end call       exactly once, last: the request is no more when it returns
#ifndef ISLE_HTTP_HTTP_H
#define ISLE_HTTP_HTTP_H

#include "base/buf.h"
#include "io/loop.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct http_server;
struct http_request;

// Who is on the other side.
struct http_peer {
    bool local;         // by a Unix socket
    struct in6_addr ip; // TCP: the address, IPv4 as ::ffff:a.b.c.d
    uint16_t port;      // TCP
    pid_t pid;          // Unix: SO_PEERCRED; 0 where the process is in no namespace of ours
    uid_t uid;          // Unix: 65534 for whoever has no uid in our user namespace
    gid_t gid;          // Unix
    char text[INET6_ADDRSTRLEN]; // for a log: "127.0.0.1", "::1", "unix"
};

struct http_listener {
    int fd;               // listening stream socket, IPv4, IPv6 or Unix; any flags
    unsigned connections; // at most, of this listener; an idle one makes room for a new one
    unsigned per_peer;    // at most of one address (TCP; trusted proxies excepted)
};

// Addresses of which one says that they speak for others.
struct http_net {
    struct in6_addr ip;
    unsigned prefix; // bits, of 128
};
enum { HTTP_MAX_LISTENERS = 8, HTTP_MAX_NETS = 32 };

struct http_config {
    struct http_listener listeners[HTTP_MAX_LISTENERS];
    size_t n_listeners;
    size_t head_bytes;      // request line and fields together: 431
    size_t target_bytes;    // the request's target: 414
    size_t fields;          // 431
    size_t bodies_bytes;    // of all bodies being collected, together: 503. An owner
    size_t replies_bytes;   // (http_set_owner()) may have as much as is left. Replies: the same
    size_t out_bytes;       // what a streamed reply may have waiting to be sent, per request
    uint32_t head_ms;       // for a head, from its first byte: 408
    uint32_t idle_ms;       // between requests, and before the first: closed
    uint32_t window_ms;     // in each such time, a body or a reply under way must move
    size_t window_bytes;    // this much, else 408, or cut when it is a reply
    uint32_t linger_ms;     // after the last reply: closed once a peer has sent nothing for so long
    uint32_t linger_max_ms; // and whatever it sends
    uint32_t sse_ms;        // a comment in a silent event stream
    struct http_net trusted[HTTP_MAX_NETS]; // proxies: not bound by per_peer
    size_t n_trusted;

    // The head of a request is whole.
    void (*begin)(void *ctx, struct http_request *r);
    // A request was refused before it reached begin(), or while its body was read: writes a body
    // for `status` to `body` and returns its content type (NULL: none). May be NULL. `why` says
    // it to a person; it quotes nothing of the request.
    const char *(*refused)(void *ctx, const struct http_peer *peer, int status, const char *why,
                           struct buf *body);
    void *ctx;
    struct work_pool *pool; // io/work.h: where large files are closed; NULL: here
};

// All bounds as a service on the open network wants them; no listener, no callback.
void http_config_init(struct http_config *ret);

// Listens. Copies config; owns the listeners' descriptors from here on, also on failure.
// 0 or -errno.
int http_server_new(struct loop *loop, const struct http_config *config, struct http_server **ret);
// Closes the listeners and idle connections; what runs is served and then closed. `stopped` is
// called from the loop when the last connection is gone. Calling it again changes the callback.
void http_server_stop(struct http_server *s, void (*stopped)(void *ctx), void *ctx);
// Cuts every connection (end calls run inside this one) and frees. NULL is harmless. Not to be
// called from a callback but `stopped`.
void http_server_free(struct http_server *s);
// Connections that are open, and requests of them that have begun and not ended.
void http_server_count(const struct http_server *s, unsigned *ret_connections,
                       unsigned *ret_requests);

// ---- The request. All text is valid until the end call, and NUL-terminated.

enum http_method {
    HTTP_M_GET = 1,
    HTTP_M_HEAD,
    HTTP_M_POST,
    HTTP_M_PUT,
    HTTP_M_DELETE,
    HTTP_M_PATCH,
    HTTP_M_OPTIONS,
};

enum http_method http_method(const struct http_request *r);
const char *http_method_text(const struct http_request *r);
// Percent-decoded: valid UTF-8 without control characters, begins with '/' ("*" for OPTIONS *). No
// segment is "." or "..", and none holds a '/' of its own: the text is the list of segments.
const char *http_path(const struct http_request *r);
// The i-th pair of the query, decoded, valid UTF-8. false past the last.
bool http_query(const struct http_request *r, size_t i, const char **ret_name,
                const char **ret_value);
// The value of the one pair with this name: 1, or 0 where there is none, or -EEXIST for several.
int http_query_value(const struct http_request *r, const char *name, const char **ret_value);
// The i-th field: name in lower case; value without the white space around it, no control
// character but tab, not always UTF-8. false past the last.
bool http_field(const struct http_request *r, size_t i, const char **ret_name,
                const char **ret_value);
// The value of the one field with this name (in lower case): 1, 0 or -EEXIST, as above.
int http_field_value(const struct http_request *r, const char *name, const char **ret_value);
// "" where an HTTP/1.0 request has none; else host or host:port of safe characters.
const char *http_host(const struct http_request *r);
const struct http_peer *http_peer(const struct http_request *r);
// Bytes of the body: -1 when not known (chunked), 0 when there is none.
int64_t http_body_length(const struct http_request *r);

// For the handler's own use; NULL at first.
void http_set_ctx(struct http_request *r, void *ctx);
void *http_ctx(const struct http_request *r);
// For whom it is: who of several owners holds how much of the bounds for all. At first: nobody.
// Once. 0, or -EBUSY: of those who come by TCP this one has as many requests under way as are left
// for others; it is to be refused.
int http_set_owner(struct http_request *r, const char *name);
// Before the handler keeps so many bytes of its own until the end call, for a peer that may be
// slow. 0, or -ENOBUFS: replies_bytes would be passed, or the owner's share of it.
int http_hold(struct http_request *r, size_t bytes);
// Gives back of it before the end.
void http_unhold(struct http_request *r, size_t bytes);

enum http_end {
    HTTP_END_SENT,    // the whole reply was handed to the kernel
    HTTP_END_REFUSED, // the request broke a rule while its body came; it was answered
    HTTP_END_GONE,    // the peer is gone or too slow, or the server is freed
    HTTP_END_ABORTED, // http_abort(), or a reply that ended short of its length
};
void http_on_end(struct http_request *r, void (*end)(struct http_request *r, enum http_end how));
void http_on_gone(struct http_request *r, void (*gone)(struct http_request *r));

// Reads the whole body, at most max_bytes (413), then calls ready().
void http_body_collect(struct http_request *r, size_t max_bytes,
                       void (*ready)(struct http_request *r));
// The collected body; NULL-terminated, "" when empty.
const char *http_body(const struct http_request *r, size_t *ret_len);
// Hands the collected body over, to be freed by the handler, which may have it past the end call.
// It counts as the request's until then.
void http_body_own(struct http_request *r, struct buf *ret);
// Reads the body in pieces, at most max_bytes in all (413); piece() with len 0 is the end.
void http_body_stream(struct http_request *r, uint64_t max_bytes,
                      void (*piece)(struct http_request *r, const char *data, size_t len));
// No more pieces until http_body_resume(). The peer is not blamed for the time.
void http_body_hold(struct http_request *r);
void http_body_resume(struct http_request *r);

// What If-Match and If-None-Match (RFC 9110, 13) make of a request for something that has this
// entity tag (with its quotes; NULL: nothing is there): 0 to go on, 304 or 412.
int http_condition(const struct http_request *r, const char *etag);

// ---- The reply. After the call that completes it the request is not to be touched but by the
// gone and end calls. A reply before the whole body was read closes the connection after it.

// Adds a field. 0; -EINVAL for a name that is no token or a value with a control character (a tab
// may be) or bytes that are no UTF-8; -EPERM for what the server writes itself (Connection,
// Content-Length, Transfer-Encoding, Date); -EMSGSIZE above 16 KiB in all; -EALREADY once begun.
// An error is sticky: the reply becomes 500, so that a call need not be checked.
int http_set(struct http_request *r, const char *name, const char *value);

// A whole reply. type NULL: no Content-Type. The body is not sent for HEAD, 204 and 304.
void http_reply(struct http_request *r, int status, const char *type, const void *body, size_t len);
// The same; takes what `body` holds, which is empty afterwards. 503 in its place where too much
// waits for slow peers (replies_bytes).
void http_reply_buf(struct http_request *r, int status, const char *type, struct buf *body);
// A regular file, or what pread(2) can read, `size` bytes from offset 0; owns fd. With etag (an
// entity tag with its quotes; may be NULL) conditions and ranges of the request are honoured:
// 200, 206, 304, 412 or 416. Reads as the peer takes it. A file that has become shorter ends in
// HTTP_END_ABORTED.
void http_reply_file(struct http_request *r, int fd, uint64_t size, const char *type,
                     const char *etag);

// A reply in pieces. length -1: not known (chunked; HTTP/1.0: until the connection's end).
// 0, or 1 when no body is wanted (HEAD, 204, 304): what is written is dropped, _end() is next.
int http_stream_begin(struct http_request *r, int status, const char *type, int64_t length);
// 0; 1: taken, but so much waits that room() will tell when to go on; -EAGAIN: not taken, as
// out_bytes would be passed; -EMSGSIZE: more than out_bytes at once, or than the length that was
// said; -EPIPE: the peer is gone, the end call comes.
int http_stream_write(struct http_request *r, const void *data, size_t len);
void http_stream_on_room(struct http_request *r, void (*room)(struct http_request *r));
void http_stream_end(struct http_request *r);
// Gives up: the connection is cut, the peer sees that the reply is not whole.
void http_abort(struct http_request *r);

// Server-sent events (WHATWG HTML, 9.2): begin, then events, then http_stream_end(). A silent
// stream gets a comment now and then. As http_stream_begin() and _write(). id and event may be
// NULL and must be one line; data is cut into lines; -EINVAL for what cannot be said.
int http_sse_begin(struct http_request *r);
int http_sse_send(struct http_request *r, const char *id, const char *event, const char *data,
                  size_t len);

#endif
