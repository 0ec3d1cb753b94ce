// jobs.c: jobs that are accepted, and run whatever becomes of their caller.
#include "api/job_call.h"
#include "api/page.h"
#include "api/route.h"

#include "base/clock.h"
#include "base/fd.h"
#include "codec/json_out.h"
#include "io/loop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// ---- Submit ------------------------------------------------------------------------------------

struct submit {
    struct api_call *call;
    struct jobs_watch watch;
    struct loop_timer timer;
    int64_t wait_s;
    char id[37];
};

static void submit_end(struct api_call *c)
{
    struct submit *s = c->ctx;
    jobs_leave(c->with->jobs, &s->watch);
    loop_timer_clear(c->with->loop, &s->timer);
    free(s);
}

static void submit_gone(struct api_call *c) { http_abort(c->r); }

static void answer_accepted(struct api_call *c, enum job_status status)
{
    const struct submit *s = c->ctx;
    struct buf data = BUF_INIT(256);
    json_begin(&data, NULL, '{');
    json_put_text(&data, "job_id", s->id);
    json_put_text(&data, "status", status_names[status]);
    json_end(&data, '}');
    api_reply(c, 202, &data);
}

// Who does not wait is told the status alone; else 200 once it has ended, 202 before.
static void got(void *ctx, const char *json, size_t len, int status)
{
    struct api_call *c = ctx;
    const struct submit *s = c->ctx;
    if (!json) {
        api_fail_no_record(c);
    } else if (s->wait_s == 0) {
        answer_accepted(c, (enum job_status)status);
    } else {
        api_reply_shared(c, status >= STATUS_COMPLETED ? 200 : 202, json, len);
    }
    api_call_release(c);
}

static void answer_as_it_is(struct submit *s)
{
    struct api_call *c = s->call;
    api_call_hold(c);
    jobs_get(c->with->jobs, c->team, s->id, got, c);
}

static void waited_enough(struct loop_timer *t)
{
    struct submit *s = t->ctx;
    jobs_leave(s->call->with->jobs, &s->watch);
    answer_as_it_is(s);
}

static void ended(struct jobs_watch *w, const struct result *r, const char *json, size_t len)
{
    struct submit *s = w->ctx;
    (void)r;
    loop_timer_clear(s->call->with->loop, &s->timer);
    api_reply_shared(s->call, 200, json, len);
}

// `same`: of an earlier call with the same key, which may have ended.
static void answer_or_wait(struct submit *s, bool same)
{
    struct api_call *c = s->call;
    char location[80];
    snprintf(location, sizeof location, "/api/v1/sandbox/jobs/%s", s->id);
    http_set(c->r, "Location", location);
    if (s->wait_s == 0 && !same) {
        answer_accepted(c, STATUS_QUEUED);
    } else if (s->wait_s && jobs_watch(c->with->jobs, c->team, s->id, &s->watch) == 0) {
        loop_timer_set(c->with->loop, &s->timer, (uint64_t)s->wait_s * NS_PER_S);
    } else {
        answer_as_it_is(s);
    }
}

static void accepted(void *ctx, const struct jobs_accepted *a)
{
    struct api_call *c = ctx;
    struct submit *s = c->ctx;
    memcpy(s->id, a->id, sizeof s->id);
    if (a->error) {
        job_call_refuse(c, a->error, &a->queue);
    } else if (!c->over) { // else the job runs all the same
        answer_or_wait(s, a->same);
    }
    api_call_release(c);
}

static void submit_job(struct api_call *c)
{
    struct jobs_submission order = {.team = c->team,
                                    .request = c->body,
                                    .request_len = c->body_len,
                                    .request_hash = c->body_hash,
                                    .caller_key = c->idempotency_key,
                                    .entry = "jobs",
                                    .trace = c->trace};
    if (job_call_take(c, &order.job)) {
        return;
    }
    struct submit *s = calloc(1, sizeof *s);
    if (!s) {
        job_done(&order.job);
        api_fail(c, API_INTERNAL, "no memory");
        return;
    }
    *s = (struct submit){.call = c, .wait_s = api_query_number(c, "wait", 0)};
    s->watch = (struct jobs_watch){.ended = ended, .ctx = s};
    s->timer = LOOP_TIMER_INIT(waited_enough, s);
    c->ctx = s;
    c->gone = submit_gone;
    c->end = submit_end;
    api_call_hold(c);
    jobs_accept(c->with->jobs, &order, accepted, c);
}

// ---- Get ---------------------------------------------------------------------------------------

static void got_job(void *ctx, const char *json, size_t len, int status)
{
    struct api_call *c = ctx;
    if (json) {
        api_reply_shared(c, 200, json, len);
    } else if (status < 0) {
        api_fail_no_record(c);
    } else {
        api_fail_no_job(c);
    }
    api_call_release(c);
}

static void get_job(struct api_call *c)
{
    api_call_hold(c);
    jobs_get(c->with->jobs, c->team, c->segment[0], got_job, c);
}

// ---- List --------------------------------------------------------------------------------------

// -1: any.
static int status_of(const char *text)
{
    int i = text ? STATUS_COUNT - 1 : -1;
    while (i >= 0 && strcmp(text, status_names[i]) != 0) {
        i--;
    }
    return i;
}

static void on_row(void *ctx, const struct store_record *r)
{
    struct api_call *c = ctx;
    struct store_job j = r->job;
    struct buf *out = api_page_row(c, j.id, 0);
    if (!out) {
        return;
    }
    char id[STORE_ID_MAX + 1];
    snprintf(id, sizeof id, "%.*s", (int)j.id.len, j.id.data);
    jobs_row_now(c->with->jobs, id, &j);
    int wanted = status_of(api_query(c, "status"));
    if (wanted >= 0 && (int)j.status != wanted) { // since its row was written
        return;
    }
    json_begin(out, NULL, '{');
    json_put_bytes(out, "job_id", j.id.data, j.id.len);
    json_put_text(out, "status", status_names[j.status]);
    json_put_bytes(out, "reason", j.reason.data, j.reason.len);
    json_put_bytes(out, "session_id", j.session.data, j.session.len);
    json_put_time(out, "submitted_at", j.submitted_ms);
    json_put_time(out, "started_at", j.started_ms);
    json_put_time(out, "ended_at", j.ended_ms);
    json_end(out, '}');
}

static void list_jobs(struct api_call *c)
{
    struct api_page *p = api_page_begin(c, SCHEMA_FORM_ID, API_LIST_LIMIT);
    if (!p) {
        return;
    }
    struct store_query q = {.kind = STORE_LIST_JOBS,
                            .team = store_text_of(c->team),
                            .cursor = store_text_of(p->cursor),
                            .status = status_of(api_query(c, "status")),
                            .limit = p->limit};
    store_read(c->with->store, &q, &(struct store_reader){on_row, api_page_ended, c, &p->enough});
}

// ---- Cancel ------------------------------------------------------------------------------------

static void answer_cancelled(struct api_call *c)
{
    struct buf data = BUF_INIT(256);
    json_begin(&data, NULL, '{');
    json_put_text(&data, "job_id", c->segment[0]);
    json_end(&data, '}');
    api_reply(c, 200, &data);
}

static void got_ended(void *ctx, const char *json, size_t len, int status)
{
    struct api_call *c = ctx;
    (void)len;
    if (json) {
        answer_cancelled(c);
    } else if (status < 0) {
        api_fail_no_record(c);
    } else {
        api_fail_no_job(c);
    }
    api_call_release(c);
}

static void cancel_job(struct api_call *c)
{
    if (jobs_cancel(c->with->jobs, c->team, c->segment[0]) == 0) {
        answer_cancelled(c);
    } else { // it has ended, or there is none
        api_call_hold(c);
        jobs_get(c->with->jobs, c->team, c->segment[0], got_ended, c);
    }
}

static const struct api_route routes[] = {
    {.method = HTTP_M_POST,
     .path = "/api/v1/sandbox/jobs",
     .who = API_TEAM,
     .body = API_JSON,
     .job = true,
     .max_bytes = JOB_MAX_JSON_BYTES,
     .request = &schema_sandbox_job,
     .example = "{\"command\": [\"sh\", \"-c\", \"date > now\"], \"artifacts\": [\"now\"], "
                "\"limits\": {\"timeout_seconds\": 10, \"memory_mb\": 128}}",
     .response = &schema_job_accepted,
     .success = 202,
     .also = &schema_sandbox_result,
     .headers = "Idempotency-Key",
     .handle = submit_job,
     .summary = "Hand in a job, which runs whatever becomes of its caller",
     .query = "wait"},
    {.method = HTTP_M_GET,
     .path = "/api/v1/sandbox/jobs",
     .who = API_TEAM,
     .response = &schema_job_list,
     .handle = list_jobs,
     .summary = "List jobs, newest first",
     .query = "status limit cursor"},
    {.method = HTTP_M_GET,
     .path = "/api/v1/sandbox/jobs/{id}",
     .who = API_TEAM,
     .response = &schema_sandbox_result,
     .handle = get_job,
     .summary = "A job as it is now"},
    {.method = HTTP_M_POST,
     .path = "/api/v1/sandbox/jobs/{id}/cancel",
     .who = API_TEAM,
     .response = &schema_job_cancelled,
     .handle = cancel_job,
     .summary = "Cancel a job"},
};

const struct api_subject api_jobs = {"jobs", "Jobs that are queued, stored and run.", routes,
                                     ARRAY_LEN(routes)};
