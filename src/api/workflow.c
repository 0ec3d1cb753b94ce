// workflow.c: the code node of a workflow: main is called with the inputs, and what it returns is
// held against what is declared.
#include "api/workflow.h"
#include "api/route.h"
#include "api/schema.h"

#include "base/fd.h"
#include "base/hash.h"
#include "codec/json.h"
#include "codec/json_out.h"
#include "tools/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HERE_BYTES = 128 << 10 }; // of a value, which is looked at on the loop

// Who waited is gone: so is the reason to run it.
static void gone(struct api_call *c)
{
    struct workflow *w = c->ctx;
    jobs_leave(c->with->jobs, &w->watch);
    http_abort(c->r);
}

static void end(struct api_call *c)
{
    struct workflow *w = c->ctx;
    jobs_leave(c->with->jobs, &w->watch);
    buf_free(&w->value);
    buf_free(&w->outputs);
    buf_free(&w->undeclared);
    buf_free(&w->faults);
    buf_free(&w->rest);
    free(w);
}

void workflow_start(struct api_call *c, struct jobs_submission *s, workflow_ended *ended)
{
    struct queue_refusal queue = {0};
    char id[37];
    struct workflow *w = calloc(1, sizeof *w);
    if (!w) {
        job_done(&s->job);
        api_fail(c, API_INTERNAL, "no memory");
        return;
    }
    *w = (struct workflow){
        .watch = {.ended = ended, .ctx = w},
        .call = c,
        .value = BUF_INIT(JOB_CALL_ANSWER_MAX),
        .outputs = BUF_INIT(JOB_CALL_ANSWER_MAX),
        .undeclared = BUF_INIT(JOB_CALL_ANSWER_MAX),
        .faults = BUF_INIT(WORKFLOW_FAULTS_BYTES),
        .rest = BUF_INIT(JOB_CALL_ANSWER_MAX),
    };
    c->ctx = w;
    c->gone = gone;
    c->end = end;
    int e = jobs_run(c->with->jobs, s, &w->watch, id, &queue);
    if (e) {
        job_call_refuse(c, e, &queue);
    }
}

// ---- Its end.

static void answer(struct workflow *w, enum reason reason, const char *error)
{
    struct buf data = BUF_INIT(JOB_CALL_ANSWER_MAX);
    bool success = reason == REASON_OK;
    json_begin(&data, NULL, '{');
    json_put_json(&data, "outputs", success ? buf_text(&w->outputs) : NULL);
    json_put_text(&data, "error", error);
    json_put_bool(&data, "success", success);
    json_put_text(&data, "reason", reason_names[reason]);
    json_put_json(&data, "undeclared", success ? buf_text(&w->undeclared) : "[]");
    buf_putc(&data, ',');
    buf_add(&data, w->rest.data + 1, w->rest.len - 1); // an object, which goes on here
    if (data.error || w->rest.error) {
        buf_free(&data);
        api_fail(w->call, API_INTERNAL, "no memory for the answer");
        return;
    }
    api_reply(w->call, 200, &data);
}

// On whichever thread.
static void hold_against(struct work *work)
{
    struct workflow *w = work->ctx;
    struct json_error ignored;
    yyjson_doc *value = json_parse(w->value.data, w->value.len, &ignored);
    yyjson_doc *declared = json_parse_envelope(w->call->kept.data, w->call->kept.len, &ignored);
    w->error = value && declared
                   ? node_outputs(yyjson_doc_get_root(declared), yyjson_doc_get_root(value),
                                  &w->outputs, &w->undeclared, &w->faults)
                   : -ENOMEM;
    yyjson_doc_free(value);
    yyjson_doc_free(declared);
}

static void tell(struct workflow *w)
{
    AUTO_BUF struct buf text = BUF_INIT(2 * WORKFLOW_FAULTS_BYTES);
    if (w->error && w->error != -EINVAL) {
        api_fail(w->call, API_INTERNAL, "no memory for the answer");
        return;
    }
    workflow_join(&text, &w->faults);
    answer(w, w->error ? REASON_ERROR : REASON_OK, w->error ? buf_text(&text) : NULL);
}

static void was_held(struct work *work)
{
    struct workflow *w = work->ctx;
    struct api_call *c = w->call;
    if (!c->over) {
        tell(w);
    }
    api_call_release(c);
}

static void node_ended(struct jobs_watch *watch, const struct result *r, const char *json,
                       size_t len)
{
    struct workflow *w = watch->ctx;
    struct api_call *c = w->call;
    (void)json, (void)len;
    json_begin(&w->rest, NULL, '{');
    result_put_logs(&w->rest, r);
    json_put_text(&w->rest, "job_id", r->job_id);
    json_put_int(&w->rest, "duration_ms", result_duration_ms(r));
    json_put_bytes(&w->rest, "stderr", buf_text(&r->err), r->err.len);
    json_end(&w->rest, '}');
    if (r->reason != REASON_OK) {
        answer(w, r->reason, r->error);
        return;
    }
    if (buf_add(&w->value, r->value ? r->value : "null", r->value ? r->value_len : 4)) {
        api_fail(c, API_INTERNAL, "no memory for the answer");
        return;
    }
    w->work = (struct work){.run = hold_against,
                            .done = was_held,
                            .ctx = w,
                            .owner = hash_bytes(c->team, strlen(c->team))};
    if (w->value.len > HERE_BYTES && work_queue(c->with->pool, &w->work) == 0) {
        api_call_hold(c);
        return;
    }
    hold_against(&w->work);
    tell(w);
}

// ---- Its beginning.

static void refuse(struct api_call *c, int e, const struct buf *faults)
{
    if (e == -EMSGSIZE) {
        c->verdict = API_TOO_LARGE;
        buf_printf(&c->faults, "inputs: above the maximum of %d bytes", JOB_MAX_PARAMS_BYTES);
    } else if (e == -EINVAL) {
        c->verdict = API_VALIDATION;
        workflow_join(&c->faults, faults);
    } else {
        c->verdict = API_INTERNAL;
        buf_puts(&c->faults, "no memory");
    }
}

// On whichever thread: all faults at once.
static void read_node(struct api_call *c)
{
    yyjson_val *root = yyjson_doc_get_root(c->json);
    AUTO_BUF struct buf params = BUF_INIT(JOB_MAX_PARAMS_BYTES);
    AUTO_BUF struct buf faults = BUF_INIT(WORKFLOW_FAULTS_BYTES), more = faults;
    c->kept = BUF_INIT(2 * NODE_DECLARED_BYTES);
    int e = workflow_inputs(yyjson_obj_get(root, "inputs"), true, &params, &faults);
    int e_outputs = workflow_outputs(yyjson_obj_get(root, "outputs"), &c->kept, &more);
    if (more.len > 0) {
        buf_puts(&faults, faults.len > 0 ? "\n" : "");
        buf_add(&faults, more.data, more.len);
    }
    e = e && e != -EINVAL ? e : e_outputs ? e_outputs : e;
    if (e) {
        refuse(c, e, &faults);
    } else {
        c->job_error = workflow_job(root, &params, &c->job, &c->job_why);
    }
}

static void run_node(struct api_call *c)
{
    struct jobs_submission s = {.team = c->team, .entry = "code-node", .trace = c->trace};
    if (job_call_take_waiting(c, &s.job) == 0) {
        workflow_start(c, &s, node_ended);
    }
}

#define PATH "/api/v1/workflow/code-node"
#define EXAMPLE                                                                                    \
    "{\"language\": \"python\", \"code\": \"def main(inputs):\\n    return {\\\"total\\\": "       \
    "sum(inputs[\\\"prices\\\"])}\", \"inputs\": {\"prices\": [1, 2, 4]}, \"outputs\": "           \
    "[{\"name\": \"total\", \"type\": \"number\"}], \"timeout\": 10}"

static const struct api_route routes[] = {
    {.method = HTTP_M_POST,
     .path = PATH,
     .who = API_TEAM,
     .body = API_JSON,
     .read = read_node,
     .max_bytes = JOB_MAX_JSON_BYTES,
     .request = &schema_code_node,
     .example = EXAMPLE,
     .response = &schema_code_node_answer,
     .handle = run_node,
     .summary = "Call a code node's main and check what it returns"},
    {.method = HTTP_M_POST,
     .path = PATH ":validate",
     .who = API_TEAM,
     .body = API_JSON,
     .read = workflow_check_read,
     .max_bytes = JOB_MAX_JSON_BYTES,
     .request = &schema_code_node_check,
     .example = EXAMPLE,
     .response = &schema_code_node_verdict,
     .handle = workflow_check,
     .summary = "What is wrong with a code node, without running it"},
};

const struct api_subject api_workflow = {"workflow", "The code node of a workflow.", routes,
                                         ARRAY_LEN(routes)};
