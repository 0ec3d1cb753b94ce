// body.c: a body of JSON becomes what its handler takes: a document that has the route's shape, or
// a job. A long one is read on a thread: a million keys take as long as a thousand small requests.
//
// One is read at a time, so that no more than one document is in memory and threads are left for
// others; and where several teams wait, no team has two turns in a row.
#include "api/internal.h"
#include "api/schema.h"

#include "codec/json.h"

#include <stdio.h>
#include <string.h>

enum {
    HERE_BYTES = 128 << 10, // up to so many on the loop: less than a millisecond, most often
    FAULTS_BYTES = 4096,
    BUSY_RETRY_S = 1,
};

static void hash_body(struct api_call *c)
{
    struct sha256 sha;
    uint8_t digest[SHA256_BYTES];
    sha256_init(&sha);
    sha256_add(&sha, c->body, c->body_len);
    sha256_end(&sha, digest);
    sha256_hex(digest, c->body_hash);
}

static void read_job(struct api_call *c)
{
    c->job_error = job_parse_value(yyjson_doc_get_root(c->json), 0, &c->job, &c->job_why);
    job_bind(&c->job, NULL, 0);
    yyjson_doc_free(c->json); // here, as this too takes its time
    c->json = NULL;
    if (c->idempotency_key && !c->job_error) {
        hash_body(c);
    }
}

// On whichever thread: touches nothing but the call's own.
static void read_body(struct api_call *c)
{
    struct json_error why;
    c->faults = BUF_INIT(FAULTS_BYTES);
    c->json = json_parse_envelope(c->body, c->body_len, &why);
    if (!c->json) {
        c->verdict = API_BAD_REQUEST;
        buf_printf(&c->faults, "body: not valid JSON: %s", why.text);
        return;
    }
    enum schema_verdict v =
        c->route->request
            ? schema_check(c->route->request, yyjson_doc_get_root(c->json), &c->faults)
            : SCHEMA_SOUND;
    c->verdict = v == SCHEMA_SOUND       ? API_OK
                 : v == SCHEMA_TOO_LARGE ? API_TOO_LARGE
                                         : API_VALIDATION;
    if (v == SCHEMA_SOUND && c->route->job) {
        read_job(c);
    } else if (v == SCHEMA_SOUND && c->route->read) {
        c->route->read(c);
        yyjson_doc_free(c->json); // here, as this too takes its time
        c->json = NULL;
    }
}

static void go_on(struct api_call *c)
{
    if (c->verdict == API_OK) {
        c->route->handle(c);
    } else {
        api_fail(c, c->verdict, "%s", buf_text(&c->faults));
    }
}

// ---- On a thread

// The first of another team than the last one, or else the first.
static struct api_call *pick(struct api *a)
{
    struct api_call *c = a->unread;
    while (c && strcmp(c->team, a->read_team) == 0) {
        c = c->next_unread;
    }
    c = c ? c : a->unread;
    if (c) {
        api_body_forget(c);
        snprintf(a->read_team, sizeof a->read_team, "%s", c->team);
    }
    return c;
}

static void on_thread(struct work *w) { read_body(w->ctx); }

static void was_read(struct work *w);

static void read_next(struct api *a)
{
    struct api_call *c;
    while (!a->reading && (c = pick(a))) {
        c->work = (struct work){
            .run = on_thread, .done = was_read, .ctx = c, .owner = work_owner(c->team)};
        if (work_queue(a->with.pool, &c->work)) {
            api_fail_later(c, API_UNAVAILABLE, BUSY_RETRY_S, "no thread to read the body");
        } else {
            api_call_hold(c);
            a->reading = c;
        }
    }
}

static void was_read(struct work *w)
{
    struct api_call *c = w->ctx;
    struct api *a = c->api;
    a->reading = NULL;
    read_next(a);
    if (!c->over && c->left && (c->route->job || c->route->read)) { // nobody hears of it any more
        http_abort(c->r);
    } else if (!c->over) {
        go_on(c);
        if (c->left && c->gone && !c->over && !c->status) { // the handler was not there to hear it
            c->gone(c);
        }
    }
    api_call_release(c);
}

void api_body_read(struct api_call *c)
{
    struct api_call **last = &c->api->unread;
    if (c->body_len <= HERE_BYTES) {
        read_body(c);
        go_on(c);
        return;
    }
    http_body_own(c->r, &c->text); // the request may end while it is read
    c->body = buf_text(&c->text);
    while (*last) {
        last = &(*last)->next_unread;
    }
    c->next_unread = NULL;
    *last = c;
    read_next(c->api);
}

void api_body_forget(struct api_call *c)
{
    struct api_call **p = &c->api->unread;
    while (*p && *p != c) {
        p = &(*p)->next_unread;
    }
    if (*p) {
        *p = c->next_unread;
    }
}
