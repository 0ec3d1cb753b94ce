// call.c: the way of one request: where from, which route, who, which body; then its handler.
#include "api/envelope.h"
#include "api/internal.h"
#include "api/route.h"
#include "api/schema.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/shared.h"
#include "log/log.h"
#include "model/refuse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    BODY_BYTES = 64 << 10,   // of a route that does not say
    NO_BODY_BYTES = 4 << 10, // what a route without a body reads and forgets
    MESSAGE_BYTES = 4096,
    ENVELOPE_BYTES = 256,
    BUSY_RETRY_S = 1,
};

static void end(struct api_call *c)
{
    if (c->end) {
        c->end(c);
    }
    yyjson_doc_free(c->json);
    job_done(&c->job);
    buf_free(&c->faults);
    buf_free(&c->kept);
    buf_free(&c->text);
    buf_free(&c->data);
    buf_free(&c->answer);
    shared_release(c->shared);
    free(c->path);
    free(c);
}

void api_call_hold(struct api_call *c) { c->holds++; }

void api_call_release(struct api_call *c)
{
    c->holds--;
    api_call_drop(c);
}

void api_call_drop(struct api_call *c)
{
    if (c->over && c->holds == 0 && !c->work.queued) {
        end(c);
    }
}

// ---- Those whose requests have not ended.

static void enter(struct api_call *c)
{
    c->next_live = c->api->live;
    if (c->next_live) {
        c->next_live->live_before = c;
    }
    c->api->live = c;
}

static void leave(const struct api_call *c)
{
    *(c->live_before ? &c->live_before->next_live : &c->api->live) = c->next_live;
    if (c->next_live) {
        c->next_live->live_before = c->live_before;
    }
}

unsigned api_call_cut(struct api *a, const char *key_id, const struct api_call *but)
{
    unsigned n = 0;
    for (const struct api_call *c = a->live; c; c = c->next_live) {
        if (c != but && strcmp(c->key_id, key_id) == 0) {
            http_abort(c->r);
            n++;
        }
    }
    return n;
}

static void ended(struct http_request *r, enum http_end how)
{
    struct api_call *c = http_ctx(r);
    int status = how == HTTP_END_REFUSED ? 0 : c->status; // api_refused() has counted it
    c->api->answered[status > 0 && status / 100 < API_CLASSES ? status / 100 : 0]++;
    c->over = true;
    leave(c);
    api_body_forget(c);
    api_call_drop(c);
}

static void gone(struct http_request *r)
{
    struct api_call *c = http_ctx(r);
    c->left = true;
    if (c->gone) {
        c->gone(c);
    }
}

// ---- Answers.

static void send_envelope(struct api_call *c, int status, enum api_code code,
                          const struct buf *data, const char *msg)
{
    struct buf out = BUF_INIT((data ? data->len : 0) + MESSAGE_BYTES * 6 + ENVELOPE_BYTES);
    buf_reserve(&out, (data ? data->len : 0) + ENVELOPE_BYTES);
    api_envelope_write(&out, code, data, msg);
    c->status = status;
    api_call_grown(c);
    if (out.error) {
        buf_free(&out);
        c->status = 500;
        http_reply(c->r, 500, NULL, NULL, 0);
        return;
    }
    http_reply_buf(c->r, status, "application/json", &out);
}

void api_reply(struct api_call *c, int status, struct buf *data)
{
    if (c->over) {
        // nobody is there
    } else if (data->error || !data->len) {
        api_fail(c, API_INTERNAL, "the answer could not be written");
    } else if (!api_reply_later(c, status, data)) {
        send_envelope(c, status, API_OK, data, "success");
    }
    buf_free(data);
}

static void log_refused(struct api_call *c, enum api_code code, int status, const char *msg)
{
    struct http_client client;
    api_client_of(c, &client);
    // A probe that asks again and again is told so by its status.
    enum log_level level = c->route && c->route->who == API_ANYONE ? LOG_DEBUG
                           : status >= 500                         ? LOG_ERROR
                                                                   : LOG_WARNING;
    log_say(c->with->log, level, "request refused", LOG_I("status", status),
            LOG_I("code", api_code_told(code)), LOG_T("method", http_method_text(c->r)),
            LOG_T("path", http_path(c->r)), LOG_T("client", client.text),
            LOG_T("team", *c->team ? c->team : NULL), LOG_T("key", *c->key_id ? c->key_id : NULL),
            LOG_T("trace", c->trace), LOG_T("why", msg));
}

static void fail(struct api_call *c, enum api_code code, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
static void fail(struct api_call *c, enum api_code code, const char *format, va_list args)
{
    char msg[MESSAGE_BYTES];
    int status = api_code_status(code);
    if (c->over) {
        return;
    }
    vsnprintf(msg, sizeof msg, format, args);
    log_refused(c, code, status, msg);
    send_envelope(c, status, code, NULL, msg);
}

void api_fail(struct api_call *c, enum api_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(c, code, format, args);
    va_end(args);
}

void api_fail_later(struct api_call *c, enum api_code code, uint32_t retry_after_s,
                    const char *format, ...)
{
    char seconds[16];
    va_list args;
    snprintf(seconds, sizeof seconds, "%u", retry_after_s);
    if (!c->over) {
        http_set(c->r, "Retry-After", seconds);
    }
    va_start(args, format);
    fail(c, code, format, args);
    va_end(args);
}

void api_fail_system(struct api_call *c, const char *what, int error)
{
    if (error_is_shortage(error)) {
        api_fail_later(c, API_UNAVAILABLE, BUSY_RETRY_S, "%s: %s", what, strerrordesc_np(-error));
    } else {
        api_fail(c, API_INTERNAL, "%s: %s", what, strerrordesc_np(-error));
    }
}

void api_fail_busy(struct api_call *c)
{
    api_fail_later(c, API_UNAVAILABLE, BUSY_RETRY_S, "too many large results are being read");
}

void api_fail_field(struct api_call *c, const struct job_error *why)
{
    api_fail(c, why->too_large ? API_TOO_LARGE : API_VALIDATION, "%s", why->text);
}

const char *api_refused(void *ctx, const struct http_peer *peer, int status, const char *why,
                        struct buf *body)
{
    struct api *a = ctx;
    a->answered[status / 100 < API_CLASSES ? status / 100 : 0]++;
    log_say(a->with.log, LOG_WARNING, "request refused", LOG_I("status", status),
            LOG_I("code", api_code_told(api_code_of_status(status))), LOG_T("client", peer->text),
            LOG_T("why", why));
    api_envelope_write(body, api_code_of_status(status), NULL, why);
    return "application/json";
}

// ---- The query.

const char *api_query(const struct api_call *c, const char *name)
{
    const char *value = NULL;
    http_query_value(c->r, name, &value);
    return value;
}

int64_t api_query_number(const struct api_call *c, const char *name, int64_t initial)
{
    const char *text = api_query(c, name);
    return text ? strtoll(text, NULL, 10) : initial;
}

bool api_query_flag(const struct api_call *c, const char *name)
{
    const char *text = api_query(c, name);
    return text && strcmp(text, "true") == 0;
}

static bool lists(const char *names, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = names; at && n && (at = strstr(at, name)); at += n) {
        if ((at == names || at[-1] == ' ') && (at[n] == '\0' || at[n] == ' ')) {
            return true;
        }
    }
    return false;
}

// A parameter that nobody reads is a typo, or a key where it would be logged. Pages and probes are
// spared: what stands before them adds its own.
static bool check_query(struct api_call *c)
{
    const char *name, *value, *only;
    AUTO_BUF struct buf faults = BUF_INIT(MESSAGE_BYTES);
    for (size_t i = 0; c->route->who != API_ANYONE && http_query(c->r, i, &name, &value); i++) {
        const struct schema_field *f = schema_query(name);
        if (!f || !lists(c->route->query, name)) {
            api_fail(c, API_VALIDATION, "%.60s: unknown query parameter; this takes %s", name,
                     c->route->query ? c->route->query : "none");
            return false;
        }
        if (http_query_value(c->r, name, &only) < 0) {
            api_fail(c, API_VALIDATION, "%s: given more than once", name);
            return false;
        }
        if (schema_check_query(f, value, &faults)) {
            api_fail(c, API_VALIDATION, "%s", buf_text(&faults));
            return false;
        }
    }
    return true;
}

// ---- The body.

static void body_ready(struct http_request *r)
{
    struct api_call *c = http_ctx(r);
    c->body = http_body(r, &c->body_len);
    if (c->route->body == API_NO_BODY) {
        c->body = NULL;
        c->route->handle(c);
        return;
    }
    if (c->body_len == 0) {
        c->body = "{}";
        c->body_len = 2;
    }
    api_body_read(c);
}

// A type that browsers do not send without asking first.
static bool check_type(struct api_call *c)
{
    const char *type = "", *encoding = "identity";
    static const char json[] = "application/json";
    bool one = http_field_value(c->r, "content-type", &type) >= 0;
    if (http_field_value(c->r, "content-encoding", &encoding) < 0 ||
        strcasecmp(encoding, "identity") != 0) {
        api_fail(c, API_MEDIA_TYPE, "Content-Encoding: a body must come as it is");
        return false;
    }
    if (c->route->body != API_JSON || http_body_length(c->r) == 0) {
        return true;
    }
    size_t n = strcspn(type, "; \t");
    const char *more = type + n + strspn(type + n, "; \t");
    bool utf8 = !*more || strcasecmp(more, "charset=utf-8") == 0 ||
                strcasecmp(more, "charset=\"utf-8\"") == 0;
    if (!one || n != sizeof json - 1 || strncasecmp(type, json, n) != 0 || !utf8) {
        char shown[SHOWN_BYTES];
        api_fail(c, API_MEDIA_TYPE, "Content-Type: must be application/json, in UTF-8, not %s",
                 job_show_text(type, strlen(type), shown));
        return false;
    }
    return true;
}

static bool take_idempotency_key(struct api_call *c)
{
    const char *key = NULL;
    int given = http_field_value(c->r, "idempotency-key", &key);
    if (given == 0) {
        return true;
    }
    size_t n = given > 0 ? strlen(key) : 0;
    bool sound = n >= 1 && n <= 255;
    for (size_t i = 0; i < n; i++) {
        sound = sound && key[i] > 0x20 && key[i] < 0x7f;
    }
    if (!sound) {
        api_fail(c, API_VALIDATION,
                 "Idempotency-Key: must be one, of 1 to 255 printable ASCII characters");
        return false;
    }
    c->idempotency_key = key;
    return true;
}

static void authorised(struct api_call *c)
{
    if (!check_query(c) || !check_type(c) || !take_idempotency_key(c)) {
        return;
    }
    size_t max = c->route->max_bytes ? c->route->max_bytes : BODY_BYTES;
    int64_t length = http_body_length(c->r);
    if (c->route->body == API_JSON && length > (int64_t)max) {
        api_fail(c, API_TOO_LARGE, "body: %lld bytes are above the maximum of %zu",
                 (long long)length, max);
    } else if (c->route->body == API_STREAM || (c->route->body == API_NO_BODY && length == 0)) {
        c->route->handle(c);
    } else {
        http_body_collect(c->r, c->route->body == API_NO_BODY ? NO_BODY_BYTES : max, body_ready);
    }
}

// ---- The head.

static void answer_options(struct api_call *c, unsigned methods)
{
    char allow[64];
    api_route_allow(methods, allow, sizeof allow);
    http_set(c->r, "Allow", allow);
    api_access_preflight(c);
    c->status = 204;
    http_reply(c->r, 204, NULL, NULL, 0);
}

static void refuse_method(struct api_call *c, unsigned methods)
{
    char allow[64];
    api_route_allow(methods, allow, sizeof allow);
    http_set(c->r, "Allow", allow);
    api_fail(c, API_METHOD, "%s: this path has %s", http_method_text(c->r), allow);
}

static void route(struct api_call *c)
{
    struct api_match m = {0};
    enum http_method method = http_method(c->r);
    enum api_found found = api_route_find(api_subjects, method, c->path, &m);
    c->route = m.route;
    if (!api_access_check(c)) {
        return;
    }
    if (method == HTTP_M_OPTIONS && (m.methods || strcmp(c->path, "*") == 0)) {
        answer_options(c, m.methods);
    } else if (found == API_NO_METHOD) {
        refuse_method(c, m.methods);
    } else if (found == API_BAD_ID) {
        char shown[SHOWN_BYTES];
        api_fail(c, API_NOT_FOUND, "path: %s is not %s", job_show_text(m.bad, strlen(m.bad), shown),
                 m.form);
    } else if (found == API_NO_PATH) {
        api_fail(c, API_NOT_FOUND, "no such path; /docs lists them");
    } else {
        for (size_t i = 0; i < API_MAX_SEGMENTS; i++) {
            c->segment[i] = m.segment[i];
        }
        api_auth_check(c, authorised);
    }
}

void api_begin(void *ctx, struct http_request *r)
{
    struct api *a = ctx;
    struct api_call *c = calloc(1, sizeof *c);
    char *path = strdup(http_path(r));
    if (!c || !path) {
        free(c);
        free(path);
        http_reply(r, 503, NULL, NULL, 0);
        return;
    }
    *c = (struct api_call){.r = r,
                           .api = a,
                           .with = &a->with,
                           .path = path,
                           .began_ns = clock_now_ns(),
                           .job = {.stdin_fd = -1}};
    enter(c);
    http_set_ctx(r, c);
    http_on_end(r, ended);
    http_on_gone(r, gone);
    api_trace_take(c);
    http_set(r, "X-Content-Type-Options", "nosniff");
    http_set(r, "Cache-Control", "no-store");
    route(c);
}

void api_show_server(struct api *a, const struct http_server *server) { a->server = server; }

int api_new(const struct api_config *config, struct api **ret)
{
    struct api *a = calloc(1, sizeof *a);
    if (!a) {
        return -ENOMEM;
    }
    a->with = *config;
    api_events_init(a);
    int e = api_access_init(a);
    e = e ? e : api_openapi_init(a);
    e = e ? e : api_auth_init(a);
    if (e) {
        api_free(a);
        return e;
    }
    *ret = a;
    return 0;
}

void api_free(struct api *a)
{
    if (a) {
        if (a->reading) { // its thread and its request are over
            api_call_release(a->reading);
        }
        loop_timer_clear(a->with.loop, &a->events.turn);
        free(a->words);
        buf_free(&a->openapi);
        buf_free(&a->docs);
        explicit_bzero(a->keys, sizeof a->keys);
        free(a);
    }
}
