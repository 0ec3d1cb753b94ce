// events.c: a job as it goes on, as server-sent events: status, stdout, stderr, and at the end the
// result.
//
// Nothing is kept for a reader. What a job says stands in its kept heads, so an event's id is how
// much of them has been told: "STATUS.OUT.ERR", the number of the last status and the positions in
// both texts. A reader that comes back with it goes on from there, also after the job's end, when
// the texts are those of the stored result. Positions count bytes of the text as it is told (UTF-8,
// what was invalid replaced), which is how it stands in the result.
//
// Thousands may follow one job, so nobody is told at once: they stand in a line, of which each turn
// of the loop tells as many as it has time for, each a few pieces, and then it is the next one's.
#include "api/internal.h"
#include "api/job_call.h"
#include "api/route.h"
#include "api/schema.h"

#include "base/clock.h"
#include "base/fd.h"
#include "codec/json_out.h"
#include "codec/utf8.h"
#include "io/loop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    PIECE_BYTES = 16 << 10,  // of a text, in one event
    PIECES = 8,              // at once: others have theirs in between
    TELL_MS = 2,             // in one turn of the loop, all of them
    RESULT_PIECE = 64 << 10, // of the result, in one write
    EVENT_BYTES = 8 * PIECE_BYTES,
    NONE_YET = -1,
    ALL_TOLD = STATUS_COUNT, // the status of a reader that has had the result
};

struct head {
    const char *event; // "stdout"
    uint64_t told;     // bytes of the text
    size_t raw;        // that many bytes of the head are in it
    bool found;        // `raw` belongs to `told`
};

struct stream {
    struct api_call *call;
    struct jobs_watch watch;
    struct head heads[2];
    int status; // that was told
    // after the end
    size_t json_told;         // of the call's shared text
    yyjson_doc *parsed, *doc; // parsed: a thread's, until it is done
    bool result_begun, full;  // full: room() comes
    bool unread;              // the result is there, and is to be parsed
    unsigned pieces;          // of this turn
    bool in_line;
    struct stream *next; // in line
};

// ---- Positions ---------------------------------------------------------------------------------

static void write_id(const struct stream *s, char *ret, size_t size)
{
    snprintf(ret, size, "%d.%llu.%llu", s->status, (unsigned long long)s->heads[0].told,
             (unsigned long long)s->heads[1].told);
}

// ---- Telling -----------------------------------------------------------------------------------

// Its turn comes.
static void tell_soon(struct stream *s)
{
    struct api_events *e = &s->call->api->events;
    if (s->in_line) {
        return;
    }
    s->in_line = true;
    s->next = NULL;
    *(e->last ? &e->last->next : &e->first) = s;
    e->last = s;
    if (!e->turn.due_ns) {
        loop_timer_set(s->call->with->loop, &e->turn, 0);
    }
}

static void leave_line(struct stream *s)
{
    struct api_events *e = &s->call->api->events;
    struct stream **at = &e->first, *before = NULL;
    while (s->in_line && *at != s) {
        before = *at;
        at = &before->next;
    }
    if (s->in_line) {
        *at = s->next;
        e->last = s->next ? e->last : before;
        s->in_line = false;
    }
}

// False: enough in this turn, though the reader takes more.
static bool may_go_on(struct stream *s)
{
    if (s->pieces++ < PIECES) {
        return true;
    }
    tell_soon(s);
    return false;
}

// False: nothing more now, since the reader has enough or is gone.
static bool sent(struct stream *s, int e)
{
    s->full = e != 0;
    return e == 0;
}

static bool tell_status(struct stream *s, int status)
{
    char id[64], data[64];
    if (status == s->status) {
        return true;
    }
    int before = s->status;
    s->status = status;
    write_id(s, id, sizeof id);
    int n = snprintf(data, sizeof data, "{\"status\":\"%s\"}", status_names[status]);
    int e = http_sse_send(s->call->r, id, "status", data, (size_t)n);
    if (e < 0) {
        s->status = before;
    }
    return sent(s, e);
}

// One piece of a text, from `data`, whose bytes are raw or clean already.
static int tell_piece(struct stream *s, struct head *h, const char *data, size_t len)
{
    AUTO_BUF struct buf out = BUF_INIT(EVENT_BYTES), clean = BUF_INIT(4 * PIECE_BYTES);
    char id[64];
    uint64_t from = h->told;
    if (utf8_clean(&clean, data, len)) {
        return -ENOMEM;
    }
    json_begin(&out, NULL, '{');
    json_put_int(&out, "offset", (int64_t)from);
    json_put_bytes(&out, "text", buf_text(&clean), clean.len);
    json_end(&out, '}');
    h->told += clean.len;
    write_id(s, id, sizeof id);
    int e =
        out.error ? out.error : http_sse_send(s->call->r, id, h->event, buf_text(&out), out.len);
    if (e < 0) {
        h->told = from;
    }
    return e;
}

// What there is of a head, on character borders; `whole`: its end is no middle of a character.
static bool tell_head(struct stream *s, struct head *h, const char *data, size_t len, bool whole)
{
    if (!h->found) {
        h->raw = utf8_source_of(data, len, h->told);
        h->found = true;
    }
    while (h->raw < len) {
        if (!may_go_on(s)) {
            return false;
        }
        size_t n = len - h->raw;
        bool last = n <= PIECE_BYTES;
        n = last ? n : PIECE_BYTES;
        n = last && whole ? n : utf8_cut(data + h->raw, n);
        if (n == 0) {
            break;
        }
        int e = tell_piece(s, h, data + h->raw, n);
        if (e >= 0) {
            h->raw += n;
        }
        if (!sent(s, e)) {
            return false;
        }
    }
    return true;
}

static bool tell_text(struct stream *s, struct head *h, const char *name)
{
    yyjson_val *v = yyjson_obj_get(yyjson_doc_get_root(s->doc), name);
    const char *text = yyjson_get_str(v);
    return !text || tell_head(s, h, text, yyjson_get_len(v), true);
}

// In pieces: a result may be larger than what may wait for a slow reader.
static bool tell_result(struct stream *s)
{
    struct http_request *r = s->call->r;
    if (!s->result_begun) {
        char id[64], begin[128];
        s->status = ALL_TOLD;
        write_id(s, id, sizeof id);
        int n = snprintf(begin, sizeof begin, "id: %s\nevent: result\ndata: ", id);
        int e = http_stream_write(r, begin, (size_t)n);
        s->result_begun = e >= 0;
        if (!sent(s, e)) {
            return false;
        }
    }
    const struct api_call *c = s->call;
    while (s->json_told < c->shared_len) {
        if (!may_go_on(s)) {
            return false;
        }
        size_t left = c->shared_len - s->json_told;
        size_t n = left < RESULT_PIECE ? left : RESULT_PIECE;
        int e = http_stream_write(r, c->shared + s->json_told, n);
        s->json_told += e >= 0 ? n : 0;
        if (!sent(s, e)) {
            return false;
        }
    }
    return http_stream_write(r, "\n\n", 2) >= 0;
}

static void tell_end(struct stream *s)
{
    yyjson_val *status = yyjson_obj_get(yyjson_doc_get_root(s->doc), "status");
    int last = STATUS_COMPLETED;
    while (last < STATUS_COUNT - 1 && !yyjson_equals_str(status, status_names[last])) {
        last++;
    }
    if (!s->result_begun && (!tell_text(s, &s->heads[0], "stdout") ||
                             !tell_text(s, &s->heads[1], "stderr") || !tell_status(s, last))) {
        return;
    }
    if (tell_result(s)) {
        http_stream_end(s->call->r);
    }
}

static void tell(struct stream *s)
{
    struct jobs_view v;
    if (s->full) {
        return;
    }
    s->pieces = 0;
    if (s->doc) {
        tell_end(s);
        return;
    }
    if (!s->watch.job) {
        return;
    }
    jobs_view(&s->watch, &v);
    (void)(tell_status(s, (int)v.status) &&
           tell_head(s, &s->heads[0], buf_text(v.out), v.out->len, false) &&
           tell_head(s, &s->heads[1], buf_text(v.err), v.err->len, false));
}

// ---- The job's side ----------------------------------------------------------------------------

static void changed(struct jobs_watch *w) { tell_soon(w->ctx); }

// Text and parsed, for as long as the reader takes. False: too much is held for readers already.
static bool hold_result(struct stream *s, const char *json, size_t len)
{
    return http_hold(s->call->r, len) == 0 && api_call_share(s->call, json, len);
}

static void parse_result(struct api_call *c)
{
    struct stream *s = c->ctx;
    s->parsed = yyjson_read(c->shared, c->shared_len, YYJSON_READ_NUMBER_AS_RAW);
}

static void result_parsed(struct api_call *c)
{
    struct stream *s = c->ctx;
    s->doc = s->parsed;
    s->heads[0].found = s->heads[1].found = false; // other bytes now: the text itself
    if (!s->doc) {
        http_abort(s->call->r); // no memory: the reader comes again
        return;
    }
    tell_soon(s);
}

static void take_result(struct stream *s)
{
    s->unread = true;
    tell_soon(s);
}

// Of those in line the first ones, and whoever has more to be told stands behind all others again.
static void tell_next(struct loop_timer *t)
{
    struct api *a = t->ctx;
    struct stream *s;
    const uint64_t until = clock_now_ns() + TELL_MS * NS_PER_MS;
    while ((s = a->events.first) && clock_now_ns() < until) {
        leave_line(s);
        if (s->unread) {
            s->unread = false;
            api_work(s->call, s->call->shared_len, parse_result, result_parsed);
        } else {
            tell(s);
        }
    }
    if (s && !t->due_ns) {
        loop_timer_set(a->with.loop, t, 0);
    }
}

void api_events_init(struct api *a) { a->events.turn = LOOP_TIMER_INIT(tell_next, a); }

static void ended(struct jobs_watch *w, const struct result *r, const char *json, size_t len)
{
    struct stream *s = w->ctx;
    (void)r;
    if (hold_result(s, json, len)) {
        take_result(s);
    } else {
        http_abort(s->call->r); // the reader comes again
    }
}

// ---- The reader's side -------------------------------------------------------------------------

static void room(struct http_request *r)
{
    struct stream *s = ((struct api_call *)http_ctx(r))->ctx;
    s->full = false;
    tell_soon(s);
}

static void gone(struct api_call *c) { http_abort(c->r); }

static void end(struct api_call *c)
{
    struct stream *s = c->ctx;
    jobs_leave(c->with->jobs, &s->watch);
    leave_line(s);
    yyjson_doc_free(s->parsed);
    free(s);
}

static void begin(struct stream *s)
{
    struct api_call *c = s->call;
    c->status = 200;
    http_stream_on_room(c->r, room);
    if (http_sse_begin(c->r)) { // HEAD
        http_stream_end(c->r);
    }
}

static void got(void *ctx, const char *json, size_t len, int status)
{
    struct api_call *c = ctx;
    struct stream *s = c->ctx;
    if (c->over) {
        // nobody is there
    } else if (json && !hold_result(s, json, len)) {
        api_fail_busy(c);
    } else if (json) {
        begin(s);
        take_result(s);
    } else if (status < 0) {
        api_fail_no_record(c);
    } else {
        api_fail_no_job(c);
    }
    api_call_release(c);
}

// False: the call has failed, or is answered.
static bool take_last_id(struct stream *s)
{
    const char *id;
    int status = NONE_YET;
    unsigned long long out = 0, err = 0;
    char rest;
    int given = http_field_value(s->call->r, "last-event-id", &id);
    if (given == 0) {
        return true;
    }
    if (given < 0 || strlen(id) > 48 ||
        sscanf(id, "%d.%llu.%llu%c", &status, &out, &err, &rest) != 3 || status < NONE_YET ||
        status > ALL_TOLD) {
        api_fail(s->call, API_VALIDATION, "Last-Event-ID: must be the id of an event of this job");
        return false;
    }
    if (status == ALL_TOLD) { // it has had everything: this ends a browser's asking again
        s->call->status = 204;
        http_reply(s->call->r, 204, NULL, NULL, 0);
        return false;
    }
    s->status = status;
    s->heads[0].told = out;
    s->heads[1].told = err;
    return true;
}

static void get_events(struct api_call *c)
{
    struct stream *s = calloc(1, sizeof *s);
    if (!s) {
        api_fail(c, API_INTERNAL, "no memory");
        return;
    }
    *s = (struct stream){
        .call = c, .heads = {{.event = "stdout"}, {.event = "stderr"}}, .status = NONE_YET};
    s->watch = (struct jobs_watch){.changed = changed, .ended = ended, .ctx = s};
    c->ctx = s;
    c->gone = gone;
    c->end = end;
    if (!take_last_id(s)) {
        return;
    }
    if (jobs_watch(c->with->jobs, c->team, c->segment[0], &s->watch)) {
        api_call_hold(c);
        jobs_get(c->with->jobs, c->team, c->segment[0], got, c);
        return;
    }
    begin(s);
    tell_soon(s);
}

static const struct api_route routes[] = {
    {.method = HTTP_M_GET,
     .path = "/api/v1/sandbox/jobs/{id}/events",
     .who = API_TEAM,
     .type = "text/event-stream",
     .headers = "Last-Event-ID",
     .handle = get_events,
     .summary = "A job's status, output and result as they come (server-sent events)"},
};

const struct api_subject api_events = {"events", "A job as it goes on.", routes, ARRAY_LEN(routes)};
