// call.h: one request on its way through a handler: what a route's handler is given, and how it
// answers.
#ifndef ISLE_API_CALL_H
#define ISLE_API_CALL_H

#include "api/api.h"

#include "base/buf.h"
#include "codec/sha256.h"
#include "io/work.h"
#include "model/job.h"

struct schema; // api/schema.h

// Codes of the envelope, with their HTTP status: one table (api/envelope.c), from which docs are
// generated.
enum api_code {
    API_OK = 0,
    API_UNKNOWN = 1000,
    API_VALIDATION = 1001,   // 422
    API_BAD_REQUEST = 1002,  // 400
    API_INTERNAL = 1003,     // 500
    API_FORBIDDEN = 1004,    // 403
    API_TIMEOUT = 1005,      // 408
    API_TOO_LARGE = 1006,    // 413
    API_MEDIA_TYPE = 1007,   // 415
    API_PRECONDITION = 1008, // 412
    API_METHOD = 1009,       // 405
    API_UNAUTHORISED = 2000, // 401
    API_NOT_FOUND = 4000,    // 404
    API_GONE = 4001,         // 410
    API_EXISTS = 5101,       // 409
    API_LIMITED = 5400,      // 429: come back later
    API_UNAVAILABLE = 5401,  // 503: nothing can run; the envelope says 5400, the status which
};

enum api_who {
    API_ANYONE,   // without a key
    API_TEAM,     // a key's team; without any key in the store, on loopback, the team "default"
    API_ADMIN,    // an admin's key, or the Unix socket
    API_OPERATOR, // as ADMIN, and whoever calls by loopback
};

enum api_body {
    API_NO_BODY,
    API_JSON,   // collected, parsed, checked against the route's schema before the handler
    API_STREAM, // the handler reads it
};

enum {
    API_MAX_SEGMENTS = 4,
    API_LIST_LIMIT = 50, // rows of a list whose caller does not say; of files STORE_LIST_MAX
};

struct api_call;
struct api_route {
    enum http_method method;
    const char *path; // "/api/v1/sandbox/jobs/{id}/artifacts/{name}"; "{path...}": the rest
    enum api_who who;
    enum api_body body;
    size_t max_bytes; // of the body; JSON: 0 is 64 KiB
    bool job;         // JSON: the body is a job
    // JSON: makes call.job of a body that has passed the schema, on whichever thread; may leave
    // what else it wants of it in call.kept, or fail the call by call.verdict and call.faults.
    void (*read)(struct api_call *c);
    const struct schema *request, *response; // response: what `data` is; NULL: not JSON
    int success;                             // status; 0: 200
    const struct schema *also;               // what `data` is when the status is 200 instead
    const char *type;                        // of an answer that is not in the envelope
    void (*handle)(struct api_call *c);
    const char *summary; // for OpenAPI and /docs
    const char *query;   // names of query parameters, separated by spaces (api/schemas.c has them)
    const char *headers; // the same of header fields that it reads
    const char *example; // a whole body, JSON, for whoever reads OpenAPI or /docs
};

struct api_call {
    struct http_request *r;
    struct api *api;
    const struct api_config *with;
    const struct api_route *route;
    const char *segment[API_MAX_SEGMENTS]; // what stood for {...}, in order; ids are well-formed
    char team[257];
    bool admin;
    char key_id[17];  // "" without a key
    char trace[33];   // trace id: of traceparent, or made
    const char *body; // API_JSON: as it came; until the end call
    size_t body_len;
    yyjson_doc *json; // API_JSON: parsed, checked; an empty body is {}. Not of a job
    struct job job;   // the route's body is one, or is read as one: parsed, no descriptors to come
    int job_error;    // of job_parse_value(), with job_why
    struct job_error job_why;
    char body_hash[SHA256_HEX];  // of such a body that came with an idempotency key
    const char *idempotency_key; // NULL: none; 1 to 255 printable characters of ASCII
    // The handler's own. `gone` (may be NULL) as http.h has it. `written` (may be NULL) comes on
    // the loop, when the text of an answer is made and only its reader is waited for: what it was
    // made of may go. `end` (may be NULL) comes last, when the request is over and nobody holds the
    // call; then it is freed.
    void *ctx;
    void (*gone)(struct api_call *c);
    void (*written)(struct api_call *c);
    void (*end)(struct api_call *c);
    int status; // of the reply; for the log. A handler that replies by http.h itself sets it
    bool over;  // the request has ended, though the call is held: r is not to be touched
    // inner
    char *path;
    uint64_t began_ns;
    void (*then)(struct api_call *c);
    unsigned holds;
    bool left;                                // the peer has closed its side
    struct api_call *next_live, *live_before; // of the calls whose requests have not ended
    // body.c, later.c
    struct work work;
    struct api_call *next_unread;
    struct buf text, faults, kept;
    enum api_code verdict;
    // later.c
    void (*run)(struct api_call *c), (*run_then)(struct api_call *c);
    void (*write)(struct api_call *c, struct buf *data);
    const char *shared; // held: what is read, or sent
    size_t shared_len, grown;
    struct buf data, answer; // what the envelope is to hold; the envelope
    int answer_status;
};

// While something is asked for the call whose answer may come after the request's end: the call
// stays. Once it is over, what api_reply() and api_fail() are given goes nowhere.
void api_call_hold(struct api_call *c);
void api_call_release(struct api_call *c);

// {"code":0,"data":DATA,"msg":"success"}; takes what `data` holds (JSON text). status 200, 201,
// 202.
void api_reply(struct api_call *c, int status, struct buf *data);
// The same for an answer of about `bytes`, which `write` writes: on a thread, if it is long. It may
// read what the handler keeps by c->ctx until the end call, and change nothing. An error of the
// buffer is an internal one.
void api_reply_written(struct api_call *c, int status, size_t bytes,
                       void (*write)(struct api_call *c, struct buf *data));
// The same for JSON of base/shared.h, which is held until it is written: who does not read the
// answer costs its length once.
void api_reply_shared(struct api_call *c, int status, const char *json, size_t len);
// Held as c->shared until the end call, or api_call_unshare(), and counted among what waits for
// slow readers. False: it is not, as too much is (api_fail_busy()), or the call is over.
bool api_call_share(struct api_call *c, const char *json, size_t len);
void api_call_unshare(struct api_call *c);
// Reads something long on a thread, if it is, and goes on by `then` unless the request is over. One
// at a time.
void api_work(struct api_call *c, size_t bytes, void (*run)(struct api_call *c),
              void (*then)(struct api_call *c));
// {"code":N,"data":null,"msg":"..."}; the text names field, limit and value.
void api_fail(struct api_call *c, enum api_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// 429 and 503, with Retry-After.
void api_fail_later(struct api_call *c, enum api_code code, uint32_t retry_after_s,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
// WHAT: what the system said (-errno): 503 where it is short of something, else 500.
void api_fail_system(struct api_call *c, const char *what, int error);
// What is being made of the answer has come to so many bytes, which count until it is handed over.
// False: too much is held (api_fail_busy()), or the call is over.
bool api_call_grow(struct api_call *c, size_t bytes);
// 503: too much is held for those who read slowly.
void api_fail_busy(struct api_call *c);
// The errors of job_parse() and the like: 422 with field and text.
void api_fail_field(struct api_call *c, const struct job_error *why);
// A parameter of the query that the route lists: its value, or where it is absent NULL, `initial`,
// false. It has been held against its row in api/schemas.c before.
const char *api_query(const struct api_call *c, const char *name);
int64_t api_query_number(const struct api_call *c, const char *name, int64_t initial);
bool api_query_flag(const struct api_call *c, const char *name);

// Handlers: one file per subject (struct api_subject in route.h, joined in routes.c).

#endif
