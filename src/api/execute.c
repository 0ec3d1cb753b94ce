// execute.c: a snippet that is run while its caller waits.
#include "api/job_call.h"
#include "api/route.h"
#include "api/schema.h"

#include "base/fd.h"

static void write_answer(struct api_call *c, struct buf *data)
{
    const struct job_wait *w = c->ctx;
    result_write_answer(data, w->result);
}

static void ended(struct jobs_watch *w, const struct result *r, const char *json, size_t len)
{
    (void)json, (void)len;
    job_call_reply(w, r, jobs_result_bytes(r), write_answer);
}

static void execute_code(struct api_call *c)
{
    struct jobs_submission s = {.team = c->team, .entry = "execute-code", .trace = c->trace};
    if (job_call_take_waiting(c, &s.job) == 0) {
        job_call_run(c, &s, ended);
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
