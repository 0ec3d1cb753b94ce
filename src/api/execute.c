// execute.c: a snippet that is run while its caller waits.
#include "api/route.h"
#include "api/schema.h"
#include "api/submit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAX_BYTES = 256 << 20 };

struct execute {
    struct jobs_watch watch;
    struct api_call *call;
};

static void ended(struct jobs_watch *w, const struct result *r, const char *json, size_t len)
{
    struct execute *x = w->ctx;
    struct buf data = BUF_INIT(ANSWER_MAX_BYTES);
    (void)json, (void)len;
    if (result_write_answer(&data, r)) {
        buf_free(&data);
        api_fail(x->call, API_INTERNAL, "no memory for the answer");
        return;
    }
    api_reply(x->call, 200, &data);
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
    free(x);
}

// "command" may name the interpreter that the language means anyway.
static bool check_command(struct api_call *c, yyjson_val *body)
{
    static const char *const names[] = {"python", "python3", "javascript", "node", "nodejs"};
    yyjson_val *command = yyjson_obj_get(body, "command");
    size_t n = yyjson_arr_size(command);
    if (n == 0) {
        return true;
    }
    const char *language = yyjson_get_str(yyjson_obj_get(body, "language"));
    bool python = language && strcmp(language, "python") == 0;
    for (size_t i = 0; n == 1 && i < sizeof names / sizeof *names; i++) {
        if (yyjson_equals_str(yyjson_arr_get_first(command), names[i]) && python == (i < 2)) {
            return true;
        }
    }
    api_fail(c, API_VALIDATION, "command: must be the interpreter of the language alone: %s",
             python ? "python or python3" : "javascript, node or nodejs");
    return false;
}

// As job_parse() has it: `timeout` is a limit, and what is not the job's own is left out.
static char *as_job(yyjson_doc *body, size_t *ret_len)
{
    static const char *const others[] = {"timeout",
                                         "command",
                                         "session_id",
                                         "python_packages",
                                         "js_packages",
                                         "python_package_index_url",
                                         "node_package_registry_url"};
    yyjson_mut_doc *doc = yyjson_doc_mut_copy(body, NULL);
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    yyjson_mut_val *limits = yyjson_mut_obj_get(root, "limits");
    yyjson_mut_val *timeout = yyjson_mut_obj_get(root, "timeout");
    if (!limits || yyjson_mut_is_null(limits)) {
        yyjson_mut_obj_remove_key(root, "limits");
        limits = yyjson_mut_obj_add_obj(doc, root, "limits");
    }
    yyjson_mut_val *given = yyjson_mut_obj_get(limits, "timeout_seconds");
    if (timeout && !yyjson_mut_is_null(timeout) && (!given || yyjson_mut_is_null(given))) {
        yyjson_mut_obj_remove_key(limits, "timeout_seconds");
        yyjson_mut_obj_add_val(doc, limits, "timeout_seconds",
                               yyjson_mut_val_mut_copy(doc, timeout));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        yyjson_mut_obj_remove_key(root, others[i]);
    }
    char *text = yyjson_mut_write(doc, YYJSON_WRITE_NOFLAG, ret_len);
    yyjson_mut_doc_free(doc);
    return text;
}

static int parse(struct api_call *c, struct job *ret)
{
    size_t len = 0;
    char *text = as_job(c->json, &len);
    if (!text) {
        api_fail(c, API_INTERNAL, "no memory");
        return -ENOMEM;
    }
    int e = submit_parse(c, text, len, ret);
    free(text);
    if (e) {
        return e;
    }
    const int64_t most_ms = JOB_MAX_EXECUTE_SECONDS * INT64_C(1000);
    if (ret->limits.value[LIMIT_TIMEOUT] > most_ms) {
        api_fail(c, API_VALIDATION, "limits.timeout_seconds: above the maximum of %d s here",
                 JOB_MAX_EXECUTE_SECONDS);
        job_done(ret);
        return -EINVAL;
    }
    return 0;
}

static void execute_code(struct api_call *c)
{
    struct jobs_submission s = {
        .team = c->team, .session = submit_session(c), .entry = "execute-code", .trace = c->trace};
    struct queue_refusal queue = {0};
    char id[37];
    if (!check_command(c, yyjson_doc_get_root(c->json)) || parse(c, &s.job)) {
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
        submit_refuse(c, e, &queue);
    }
}

static const struct api_route routes[] = {
    {.method = HTTP_M_POST,
     .path = "/api/v1/tools/execute-code",
     .who = API_TEAM,
     .body = API_JSON,
     .max_bytes = SUBMIT_MAX_BYTES,
     .request = &schema_execute_code,
     .response = &schema_execute_answer,
     .handle = execute_code,
     .summary = "Run a snippet and wait for its result"},
};

const struct api_subject api_execute = {"execution", "Code that runs while its caller waits.",
                                        routes, sizeof routes / sizeof *routes};
