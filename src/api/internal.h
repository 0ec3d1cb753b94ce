// internal.h: what the files of the API's core share.
#ifndef ISLE_API_INTERNAL_H
#define ISLE_API_INTERNAL_H

#include "api/call.h"

#include "http/value.h"
#include "io/loop.h"
#include "store/key.h"

enum {
    API_KEYS_CACHED = 256, // slots; a power of two
    API_TRIERS = 256,
    API_TRIES = 20,           // failed keys of one address ...
    API_TRIES_MS = 60 * 1000, // ... in this time
    API_MAX_WORDS = 64,
    API_POLICY_BYTES = 256,
    API_CLASSES = 6,
    API_KEY_TOUCH_MS = 60 * 1000, // how exact "last used" is
};

// A key that has been read of the store.
struct api_key {
    char id[KEY_ID_CHARS + 1]; // "": empty
    char team[129];
    uint8_t salt[KEY_SALT_BYTES], hash[SHA256_BYTES];
    bool admin, revoked;
    int64_t touched_ms;
};

struct api_trier {
    struct in6_addr ip; // an IPv6 network of 64 bits counts as one
    unsigned failed;
    int64_t since_ms;
};

struct api {
    struct api_config with;
    char *words; // of the lists below
    const char *hosts[API_MAX_WORDS], *origins[API_MAX_WORDS];
    size_t n_hosts, n_origins;
    struct http_config proxies; // its trusted networks only
    struct api_key keys[API_KEYS_CACHED];
    struct api_trier triers[API_TRIERS];
    uint64_t seed; // of the table of triers
    bool has_keys; // a key was ever made
    bool keys_known;
    struct api_call *live;    // whose requests have not ended, the newest first
    struct api_call *unread;  // long bodies that wait to be read, in the order in which they came
    struct api_call *reading; // that of this one is being read
    char read_team[257];      // whose that is, or was
    struct buf openapi, docs; // as they are sent
    char docs_policy[API_POLICY_BYTES];
    const struct http_server *server; // for figures; NULL: not known
    uint64_t answered[API_CLASSES];   // requests, by the first digit of their status
    struct api_events {               // events.c: who may have something to be told
        struct stream *first, *last;
        struct loop_timer turn; // of the first ones
    } events;
};

// access.c: 0, or false with the call failed.
int api_access_init(struct api *a);
bool api_access_check(struct api_call *c); // host, origin
void api_access_preflight(struct api_call *c);
// Comes by loopback itself: no proxy speaks for somebody else.
bool api_is_local(const struct api_call *c);
// For whom the request speaks: the peer, or whom a trusted proxy names.
void api_client_of(const struct api_call *c, struct http_client *ret);

// auth.c: who calls, and may they? `then` comes at once or later, unless the call has failed.
int api_auth_init(struct api *a);
void api_auth_check(struct api_call *c, void (*then)(struct api_call *c));
void api_auth_forget(struct api *a, const char *key_id); // revoked

// body.c: the body is whole: reads it, here or on a thread, and calls the handler, or fails the
// call.
void api_body_read(struct api_call *c);
// A body that waits to be read is not any more. Harmless on others.
void api_body_forget(struct api_call *c);

void api_events_init(struct api *a);

// later.c: what api_call_grow() holds is given back.
void api_call_grown(struct api_call *c);
// A long answer's envelope is written on a thread: takes what `data` holds. False: it is short.
bool api_reply_later(struct api_call *c, int status, struct buf *data);

// call.c: frees a call that is over and has nothing under way.
void api_call_drop(struct api_call *c);
// call.c: cuts what runs for this key, but for one call: how many those are. Their end calls come
// from the loop.
unsigned api_call_cut(struct api *a, const char *key_id, const struct api_call *but);

// call.c; for struct http_config: ctx is the api.
void api_begin(void *ctx, struct http_request *r);
const char *api_refused(void *ctx, const struct http_peer *peer, int status, const char *why,
                        struct buf *body);

// openapi.c, docs.c: 0 or -errno.
int api_openapi_init(struct api *a);
int api_openapi_write(struct buf *out);
int api_docs_write(struct buf *out, char policy[API_POLICY_BYTES]);

void api_metrics(struct api_call *c); // metrics.c

// trace.c
void api_trace_take(struct api_call *c);

#endif
