// execute.c: a snippet that is run while its caller waits.
#include "api/job_call.h"
#include "api/route.h"
#include "api/schema.h"

#include "base/fd.h"

#include <stdlib.h>
#include <string.h>

struct execute {
    struct jobs_watch watch;
    struct api_call *call;
    const struct result *result; // once it has ended
};

static void write_answer(struct api_call *c, struct buf *data)
{
    const struct execute *x = c->ctx;
    result_write_answer(data, x->result);
}

static void ended(struct jobs_watch *w, const struct result *r, const char *json, size_t len)
{
    struct execute *x = w->ctx;
    (void)json, (void)len;
    x->result = r;
    jobs_result_hold(r);
    api_reply_written(x->call, 200, jobs_result_bytes(r), write_answer);
}

// Who waited is gone: so is the reason to run it.
static void gone(struct api_call *c)
{
    struct execute *x = c->ctx;
    jobs_leave(c->with->jobs, &x->watch);
    http_abort(c->r);
}

static void end(struct api_call *c)
{
    struct execute *x = c->ctx;
    jobs_leave(c->with->jobs, &x->watch);
    jobs_result_release(x->result);
    free(x);
}

static void execute_code(struct api_call *c)
{
    struct jobs_submission s = {.team = c->team, .entry = "execute-code", .trace = c->trace};
    struct queue_refusal queue = {0};
    char id[37];
    if (job_call_take_waiting(c, &s.job)) {
        return;
    }
    struct execute *x = calloc(1, sizeof *x);
    if (!x) {
        job_done(&s.job);
        api_fail(c, API_INTERNAL, "no memory");
        return;
    }
    x->call = c;
    x->watch = (struct jobs_watch){.ended = ended, .ctx = x};
    c->ctx = x;
    c->gone = gone;
    c->end = end;
    int e = jobs_run(c->with->jobs, &s, &x->watch, id, &queue);
    if (e) {
        job_call_refuse(c, e, &queue);
    }
}

static const struct api_route routes[] = {
    {.method = HTTP_M_POST,
     .path = "/api/v1/tools/execute-code",
     .who = API_TEAM,
     .body = API_JSON,
     .job = true,
     .max_bytes = JOB_MAX_JSON_BYTES,
     .request = &schema_execute_code,
     .example = "{\"language\": \"python\", \"code\": \"return params[\\\"n\\\"] * 7\", "
                "\"params\": {\"n\": 6}, \"timeout\": 10}",
     .response = &schema_execute_answer,
     .handle = execute_code,
     .summary = "Run a snippet and wait for its result"},
};

const struct api_subject api_execute = {"execution", "Code that runs while its caller waits.",
                                        routes, ARRAY_LEN(routes)};
