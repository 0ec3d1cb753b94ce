// workflow.c: the code node of a workflow: main is called with the inputs, and what it returns is
// held against what is declared.
#include "api/workflow.h"
#include "api/route.h"
#include "api/schema.h"

#include "base/fd.h"
#include "codec/json.h"
#include "codec/json_out.h"
#include "tools/node.h"

#include <errno.h>
#include <string.h>

// ---- Its end.

static void put_answer(struct buf *out, const struct result *r, enum reason reason,
                       const char *error, const struct buf *outputs, const struct buf *undeclared)
{
    bool success = reason == REASON_OK;
    json_begin(out, NULL, '{');
    json_put_json(out, "outputs", success ? buf_text(outputs) : NULL);
    json_put_text(out, "error", error);
    result_put_logs(out, r);
    json_put_bool(out, "success", success);
    json_put_text(out, "reason", reason_names[reason]);
    json_put_text(out, "job_id", r->job_id);
    json_put_int(out, "duration_ms", result_duration_ms(r));
    json_put_json(out, "undeclared", success ? buf_text(undeclared) : "[]");
    json_put_bytes(out, "stderr", buf_text(&r->err), r->err.len);
    json_end(out, '}');
}

// The value against what is declared.
static int hold_against(struct api_call *c, const struct result *r, struct buf *outputs,
                        struct buf *undeclared, struct buf *faults)
{
    struct json_error ignored;
    const char *text = r->value ? r->value : "null";
    yyjson_doc *value = json_parse(text, r->value ? r->value_len : strlen(text), &ignored);
    yyjson_doc *declared = json_parse_envelope(c->kept.data, c->kept.len, &ignored);
    int e = value && declared
                ? node_outputs(yyjson_doc_get_root(declared), yyjson_doc_get_root(value), outputs,
                               undeclared, faults)
                : -ENOMEM;
    yyjson_doc_free(value);
    yyjson_doc_free(declared);
    return e;
}

static void write_answer(struct api_call *c, struct buf *data)
{
    const struct job_wait *w = c->ctx;
    const struct result *r = w->result;
    AUTO_BUF struct buf outputs = BUF_INIT(JOB_CALL_ANSWER_MAX), undeclared = outputs,
                        faults = BUF_INIT(WORKFLOW_FAULTS_BYTES),
                        error = BUF_INIT(2 * WORKFLOW_FAULTS_BYTES);
    if (r->reason != REASON_OK) {
        put_answer(data, r, r->reason, r->error, NULL, NULL);
        return;
    }
    int e = hold_against(c, r, &outputs, &undeclared, &faults);
    if (e && e != -EINVAL) {
        data->error = e;
        return;
    }
    workflow_join(&error, &faults);
    put_answer(data, r, e ? REASON_ERROR : REASON_OK, e ? buf_text(&error) : NULL, &outputs,
               &undeclared);
}

// So many bytes of what is declared cost, for each byte of value, as much as to write that byte.
enum { DECLARED_PER_BYTE = 64 };

static void node_ended(struct jobs_watch *w, const struct result *r, const char *json, size_t len)
{
    (void)json, (void)len;
    const struct job_wait *wait = w->ctx;
    // Each element may be held against each value of an enum.
    size_t compared = r->value_len * (wait->call->kept.len / DECLARED_PER_BYTE);
    job_call_reply(w, r, jobs_result_bytes(r) + compared, write_answer);
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
        job_call_run(c, &s, node_ended);
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
