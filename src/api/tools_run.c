// tools_run.c: a saved tool that is run while its caller waits. The tool is read for the caller's
// team; its definition and the arguments become a job, on a thread where they are long.
#include "api/functions.h"
#include "api/job_call.h"
#include "api/route.h"
#include "api/schema.h"

#include "base/fd.h"
#include "codec/json.h"
#include "codec/json_out.h"
#include "log/log.h"
#include "store/store.h"
#include "tools/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HERE_BYTES = 128 << 10, // of a definition and arguments together, on the loop
    RETRY_SECONDS = 5,
};

struct tool_run {
    struct api_call *call; // NULL: it is over, and the thread is left alone with this
    struct jobs_watch watch;
    struct work work;
    // of the tool
    char id[STORE_ID_MAX + 1], name[TOOL_NAME_MAX + 1];
    int64_t version, permission;
    const struct result *result; // held from the job's end until the answer is written
    bool enabled;
    unsigned found;
    struct buf body;
    // of the request
    yyjson_doc *json;
    yyjson_val *arguments;
    const char *session;
    int64_t timeout_ms;
    // what became of them
    struct job job;
    int error;
    bool unsound; // the tool, so that the faults are its own
    struct buf faults;
    struct job_error why;
};

static void run_free(struct tool_run *x)
{
    buf_free(&x->body);
    buf_free(&x->faults);
    job_done(&x->job);
    yyjson_doc_free(x->json);
    jobs_result_release(x->result);
    free(x);
}

// ---- The answer

// On whichever thread.
static void write_answer(struct api_call *c, struct buf *data)
{
    const struct tool_run *x = c->ctx;
    if (result_write_answer(data, x->result) == 0) {
        data->len--; // its bracket
        json_begin(data, "tool", '{');
        json_put_text(data, "id", x->id);
        json_put_text(data, "name", x->name);
        json_put_int(data, "version", x->version);
        json_end(data, '}');
        json_end(data, '}');
    }
}

static void ended(struct jobs_watch *w, const struct result *r, const char *json, size_t len)
{
    struct tool_run *x = w->ctx;
    (void)json, (void)len;
    jobs_result_hold(r);
    x->result = r;
    api_reply_written(x->call, 200, jobs_result_bytes(r), write_answer);
}

// Who waited is gone: so is the reason to run it.
static void gone(struct api_call *c)
{
    struct tool_run *x = c->ctx;
    jobs_leave(c->with->jobs, &x->watch);
    http_abort(c->r);
}

static void written(struct api_call *c)
{
    struct tool_run *x = c->ctx;
    jobs_result_release(x->result);
    x->result = NULL;
}

static void end(struct api_call *c)
{
    struct tool_run *x = c->ctx;
    jobs_leave(c->with->jobs, &x->watch);
    x->call = NULL;
    if (!x->work.queued) {
        run_free(x);
    }
}

// ---- The job

// What is wrong with the tool is not what its caller has sent.
static void fail_tool(struct tool_run *x)
{
    api_fail(x->call, API_VALIDATION, "tool %s: code_config.%s", x->name, x->why.text);
}

static void start(struct tool_run *x)
{
    struct api_call *c = x->call;
    struct queue_refusal queue = {0};
    char id[37];
    int e = lower_check_host(&x->job, jobs_host(c->with->jobs), &x->why);
    if (e) {
        fail_tool(x);
        return;
    }
    struct jobs_submission s = {.team = c->team,
                                .job = x->job,
                                .tool_call = true,
                                .entry = "tools-execute",
                                .trace = c->trace};
    x->job = (struct job){.stdin_fd = -1};
    x->watch = (struct jobs_watch){.ended = ended, .ctx = x};
    e = jobs_run(c->with->jobs, &s, &x->watch, id, &queue);
    if (e) {
        job_call_refuse(c, e, &queue);
        return;
    }
    log_say(c->with->log, LOG_INFO, "tool called", LOG_T("tool", x->id), LOG_T("name", x->name),
            LOG_I("version", x->version), LOG_T("job", id), LOG_T("team", c->team),
            LOG_T("trace", c->trace));
}

// On whichever thread: touches nothing but its own.
static void prepare(struct work *w)
{
    struct tool_run *x = w->ctx;
    struct json_error bad;
    struct tool t;
    struct buf params = BUF_INIT(JOB_MAX_PARAMS_BYTES);
    yyjson_doc *doc = json_parse_envelope(buf_text(&x->body), x->body.len, &bad);
    if (!doc) {
        x->error = -EIO;
        return;
    }
    x->error = tool_parse(NULL, yyjson_doc_get_root(doc), &t, &x->faults);
    x->unsound = x->error != 0;
    yyjson_doc_free(doc);
    x->error = x->error ? x->error : tool_arguments(&t, x->arguments, &params, &x->faults);
    if (!x->error) {
        x->error = tool_job(&t, &params, x->timeout_ms, x->session, &x->job, &x->why);
    }
    tool_done(&t);
    buf_free(&params);
}

static void prepared(struct work *w)
{
    struct tool_run *x = w->ctx;
    if (!x->call) {
        run_free(x);
    } else if (!x->error) {
        start(x);
    } else if (x->faults.len && x->unsound) {
        api_fail(x->call, API_VALIDATION, "tool %s is not sound any more, save it again: %s",
                 x->name, buf_text(&x->faults));
    } else if (x->faults.len) {
        api_fail(x->call, x->error == -EMSGSIZE ? API_TOO_LARGE : API_VALIDATION, "%s",
                 buf_text(&x->faults));
    } else if (x->error == -EINVAL) {
        fail_tool(x);
    } else {
        api_fail_system(x->call, "the tool cannot be read", x->error);
    }
}

static void go_on(struct tool_run *x)
{
    struct api_call *c = x->call;
    x->work =
        (struct work){.run = prepare, .done = prepared, .ctx = x, .owner = work_owner(c->team)};
    if (x->body.len + c->body_len <= HERE_BYTES || work_queue(c->with->pool, &x->work)) {
        prepare(&x->work);
        prepared(&x->work);
    }
}

// ---- The tool

static const char *text_of(const struct tool_run *x, const char *name)
{
    return yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(x->json), name));
}

static void on_row(void *ctx, const struct store_record *r)
{
    struct tool_run *x = ctx;
    const struct store_tool *t = &r->tool;
    if (x->found++) {
        return;
    }
    snprintf(x->id, sizeof x->id, "%.*s", (int)t->id.len, t->id.data);
    snprintf(x->name, sizeof x->name, "%.*s", (int)t->name.len, t->name.data);
    x->version = t->version;
    x->permission = t->permission;
    x->enabled = t->enabled;
    buf_add(&x->body, t->body.data, t->body.len);
}

// A model calls built-in tools by name, too: whoever passes its calls on is told where they go.
static void fail_missing(struct tool_run *x)
{
    const char *name = text_of(x, "name");
    const char *built_in = name ? tool_builtin_of(name) : NULL;
    if (built_in) {
        bool snippet = strncmp(built_in, "run_", 4) == 0;
        api_fail(x->call, API_NOT_FOUND, "name: %s is built in: POST %s%s", built_in,
                 snippet ? "/api/v1/tools/execute-code" : "/api/v1/sandbox/sessions/{id}/tools/",
                 snippet ? "" : built_in);
        return;
    }
    api_fail(x->call, API_NOT_FOUND, "tool: there is none of this %s that this team may use",
             name ? "name" : "id");
}

static void on_end(void *ctx, int error)
{
    struct tool_run *x = ctx;
    struct api_call *c = x->call;
    if (c->over) { // its caller did not wait for it
    } else if (error < 0 || x->body.error) {
        api_fail_later(c, API_UNAVAILABLE, RETRY_SECONDS, "the store of the tools: %s",
                       strerrordesc_np(error < 0 ? -error : -x->body.error));
    } else if (error || !x->found) {
        fail_missing(x);
    } else if (x->found > 1) {
        api_fail(c, API_VALIDATION,
                 "name: several tools of this name are shared with this team; tool_id says which");
    } else if (x->permission == STORE_MAY_READ) {
        api_fail(c, API_FORBIDDEN,
                 "tool: %s is shared with this team as read_only; to run it takes read_execute",
                 x->name);
    } else if (!x->enabled) {
        api_fail(c, API_FORBIDDEN, "tool: %s is disabled (is_enabled is false)", x->name);
    } else {
        go_on(x);
    }
    api_call_release(c);
}

// ---- The request

static struct tool_run *take_request(struct api_call *c)
{
    struct tool_run *x = calloc(1, sizeof *x);
    int64_t seconds = 0;
    if (!x) {
        api_fail(c, API_INTERNAL, "no memory");
        return NULL;
    }
    x->call = c;
    x->body = BUF_INIT(STORE_TOOL_MAX);
    x->faults = BUF_INIT(TOOL_FAULTS_BYTES);
    x->job = (struct job){.stdin_fd = -1};
    x->json = c->json;
    c->json = NULL;
    c->ctx = x;
    c->gone = gone;
    c->written = written;
    c->end = end;
    yyjson_val *root = yyjson_doc_get_root(x->json);
    x->arguments = yyjson_obj_get(root, "arguments");
    x->session = text_of(x, "session_id");
    json_int(yyjson_obj_get(root, "timeout"), &seconds);
    x->timeout_ms = seconds * 1000;
    return x;
}

static void execute_tool(struct api_call *c)
{
    struct tool_run *x = take_request(c);
    if (!x) {
        return;
    }
    const char *name = text_of(x, "name"), *id = text_of(x, "tool_id");
    if (!name == !id) {
        api_fail(c, API_VALIDATION, "name: %s",
                 id ? "may not be given together with tool_id" : "is missing: this or tool_id");
        return;
    }
    const struct store_query q = {.kind = id ? STORE_GET_TOOL : STORE_FIND_TOOL,
                                  .id = store_text_of(id),
                                  .name = store_text_of(name),
                                  .team = store_text_of(c->team),
                                  .limit = 2};
    api_call_hold(c);
    store_read(c->with->store, &q, &(struct store_reader){on_row, on_end, x});
}

static const struct api_route routes[] = {
    {.method = HTTP_M_POST,
     .path = "/api/v1/tools/execute",
     .who = API_TEAM,
     .body = API_JSON,
     .max_bytes = JOB_MAX_JSON_BYTES,
     .request = &schema_tool_execute,
     .example = "{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}",
     .response = &schema_tool_answer,
     .handle = execute_tool,
     .summary = "Run a saved tool and wait for its result"},
    {.method = HTTP_M_GET,
     .path = "/api/v1/tools/schemas",
     .who = API_TEAM,
     .query = "format shared",
     .response = &schema_function_list,
     .handle = functions_list,
     .summary = "What a model may call: the built-in tools and the team's enabled ones"},
};

const struct api_subject api_tool_calls = {
    "tool calls",
    "Tools for models: described, and saved ones run while their caller waits, for "
    "STREAM_TOOL_TIMEOUT_CODE seconds at most.",
    routes, ARRAY_LEN(routes)};
