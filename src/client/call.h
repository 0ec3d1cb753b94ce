// call.h: one request to the service and its answer, by libcurl. Redirects are not followed (the
// key would go with them), certificates are checked, every wait has an end, and an answer is
// believed up to a bound: a service may be anybody's.
#ifndef ISLE_CLIENT_CALL_H
#define ISLE_CLIENT_CALL_H

#include "base/buf.h"
#include "client/address.h"

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

struct caller {
    const struct address *to;
    const char *key; // or NULL
    int signals;     // signalfd of what ends a call; -1: none
    // inner
    void *curl, *multi;
};

struct call_error {
    char text[800]; // what is wrong and what to do; may quote the service: not for a terminal as is
};

enum {
    CALL_ANSWER_MAX = 16 << 20, // bytes of an answer that is no result
    CALL_RESULT_MAX = 72 << 20, // of one with a job's result in it
    CALL_HEADERS = 3,
    CALL_SILENCE_S = 60, // a stream of events says something every 15 s
    CALL_TOTAL_S = 300,
};

struct call {
    const char *method, *path; // path: escaped, with query; begins with '/'
    // The body: bytes, a file, or none.
    const char *body;
    size_t body_len;
    int file;                          // -1: none; read from where it is
    int64_t file_bytes;                // -1: to its end
    const char *type;                  // of the body; NULL: JSON
    const char *headers[CALL_HEADERS]; // whole lines
    size_t max_bytes;                  // of an answer that is kept in `answer`
    // A body that succeeded, as it comes; NULL: it is kept. Not 0 ends the call with that -errno.
    int (*take)(void *ctx, const char *data, size_t len);
    // Asked when a signal is there (it has been read): true goes on. NULL: ends the call.
    bool (*signalled)(void *ctx);
    void (*moved)(void *ctx, int64_t bytes); // progress of a body, either way; or NULL
    void *ctx;
    bool endless;       // no bound on the whole time, only on silence
    unsigned silence_s; // 0: CALL_SILENCE_S
    // out
    long status; // 0: there was no answer
    struct buf answer;
    char etag[80];       // without quotes; ""
    int64_t length;      // of the body as announced; -1: was not
    int64_t retry_after; // seconds; -1
    char location[256];  // of a redirect
};
#define CALL_INIT(METHOD, PATH)                                                                    \
    {                                                                                              \
        .method = (METHOD), .path = (PATH), .file = -1, .max_bytes = CALL_ANSWER_MAX,              \
        .length = -1, .retry_after = -1                                                            \
    }

// 0, or -errno.
int caller_open(struct caller *c, const struct address *to, const char *key, int signals);
void caller_close(struct caller *c);

// 0: the service did what was asked (status 2xx). -EINTR: a signal ended it; else -errno with
// *ret_error: -ENOENT 404, -EPROTO no answer of isle's, -EACCES 401 and 403, -EAGAIN 429 and 503,
// what take() gave. call_done() either way.
int call_make(struct caller *c, struct call *call, struct call_error *ret_error);
void call_done(struct call *call);

// The `data` of an answer; *ret_doc owns it. NULL with *ret_error: it is none of isle's.
yyjson_val *call_data(const struct call *call, yyjson_doc **ret_doc, struct call_error *ret_error);

int call_refuse(struct call_error *e, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
