// workflow_check.c: what is wrong with a code node, as far as can be said without running it: the
// request is held against its declarations here, and the code is read by its language's own parser,
// in a sandbox.
#include "api/schema.h"
#include "api/workflow.h"

#include "base/fd.h"
#include "codec/json.h"
#include "codec/json_out.h"
#include "model/refuse.h"

#include <errno.h>
#include <string.h>

enum {
    VERDICT_BYTES = 256 << 10,
    MESSAGE_BYTES = 1000,
};

static void put_fault(struct buf *out, const char *field, size_t field_len, const char *message,
                      size_t message_len, int64_t line)
{
    json_begin(out, NULL, '{');
    json_put_bytes(out, "field", field, field_len);
    json_put_bytes(out, "message", message, message_len);
    if (line > 0) {
        json_put_int(out, "line", line);
    } else {
        json_put_text(out, "line", NULL);
    }
    json_end(out, '}');
}

// Lines "FIELD\tWHAT" as elements of an array.
static void put_lines(struct buf *out, const struct buf *lines)
{
    const char *at = buf_text(lines), *end = at + lines->len;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        const char *tab = memchr(at, '\t', (size_t)(stop - at));
        const char *message = tab ? tab + 1 : at;
        put_fault(out, tab ? at : "body", tab ? (size_t)(tab - at) : 4, message,
                  (size_t)(stop - message), 0);
        at = stop + (stop < end);
    }
}

// What can be said of the inputs and the outputs, whatever else is wrong.
static int check_parts(yyjson_val *root, struct buf *out)
{
    AUTO_BUF struct buf params = BUF_INIT(JOB_MAX_PARAMS_BYTES), declared = BUF_INIT(VERDICT_BYTES);
    AUTO_BUF struct buf faults = BUF_INIT(WORKFLOW_FAULTS_BYTES), more = faults;
    int e = workflow_inputs(yyjson_obj_get(root, "inputs"), false, &params, &faults);
    if (e == -EMSGSIZE) {
        buf_printf(&faults, "inputs\tabove the maximum of %d bytes", JOB_MAX_PARAMS_BYTES);
        e = 0;
    }
    e = e == -EINVAL ? 0 : e;
    put_lines(out, &faults);
    if (!e) {
        e = workflow_outputs(yyjson_obj_get(root, "outputs"), &declared, &more);
        e = e == -EINVAL ? 0 : e;
    }
    put_lines(out, &more);
    return e;
}

// The job that reads the code, if there is any that can be read.
static void make_job(struct api_call *c, yyjson_val *root)
{
    AUTO_BUF struct buf text = BUF_INIT(JOB_MAX_JSON_BYTES);
    yyjson_val *language = yyjson_obj_get(root, "language"), *code = yyjson_obj_get(root, "code");
    bool known = yyjson_equals_str(language, "python") || yyjson_equals_str(language, "javascript");
    if (!known || !yyjson_is_str(code) || yyjson_get_len(code) > JOB_MAX_CODE_BYTES) {
        return;
    }
    buf_puts(&text, "{\"language\":");
    json_write(&text, language);
    buf_puts(&text, ",\"code\":");
    json_write(&text, code);
    buf_putc(&text, '}');
    c->job_error =
        text.error ? -ENOMEM : job_parse(buf_text(&text), text.len, 0, &c->job, &c->job_why);
    c->job.entry = JOB_ENTRY_CHECK;
}

static void put_why(struct buf *out, const struct job_error *why)
{
    const char *what = job_error_what(why);
    put_fault(out, why->field, strlen(why->field), what, strlen(what), 0);
}

// What the host allows changes with the settings, on the loop's thread. The job that reads the code
// has limits of its own.
static void check_host(struct api_call *c)
{
    struct job node = {.limits = c->job.limits};
    struct job_error why;
    if (lower_check_host(&node, jobs_host(c->with->jobs), &why)) {
        put_why(&c->kept, &why);
    }
    limits_init(&c->job.limits);
}

// On whichever thread. kept: the faults so far, an array that is not ended.
void workflow_check_read(struct api_call *c)
{
    yyjson_val *root = yyjson_doc_get_root(c->json);
    AUTO_BUF struct buf faults = BUF_INIT(WORKFLOW_FAULTS_BYTES);
    struct job job = {.stdin_fd = -1};
    struct job_error why;
    c->kept = BUF_INIT(VERDICT_BYTES);
    buf_putc(&c->kept, '[');
    bool sound = schema_check_lines(&schema_code_node, root, &faults) == SCHEMA_SOUND;
    put_lines(&c->kept, &faults);
    int e = check_parts(root, &c->kept);
    if (sound && !e && workflow_job(root, NULL, &job, &why)) {
        put_why(&c->kept, &why);
    } else if (sound && job.limits.value[LIMIT_TIMEOUT] > JOB_MAX_EXECUTE_SECONDS * INT64_C(1000)) {
        static const char field[] = "limits.timeout_seconds";
        char text[64];
        int n =
            snprintf(text, sizeof text, "above the maximum of %d s here", JOB_MAX_EXECUTE_SECONDS);
        put_fault(&c->kept, field, sizeof field - 1, text, (size_t)n, 0);
    }
    const struct limits limits = job.limits;
    job_done(&job);
    make_job(c, root);
    if (sound && !e) {
        c->job.limits = limits; // until check_host() has seen them
    }
    if (e || c->kept.error) {
        c->verdict = API_INTERNAL;
        buf_puts(&c->faults, "no memory");
    }
}

static void answer(struct api_call *c)
{
    struct buf data = BUF_INIT(2 * VERDICT_BYTES);
    bool valid = c->kept.len == 1;
    buf_putc(&c->kept, ']');
    json_begin(&data, NULL, '{');
    json_put_bool(&data, "valid", valid);
    json_put_json(&data, "errors", buf_text(&c->kept));
    json_end(&data, '}');
    if (data.error || c->kept.error) {
        buf_free(&data);
        api_fail(c, API_INTERNAL, "no memory for the answer");
        return;
    }
    api_reply(c, 200, &data);
}

// {"errors": [{"message", "line"}]} of the guest, which is held for nothing more than text.
static bool put_guest(struct buf *out, const struct result *r)
{
    struct json_error ignored;
    yyjson_doc *doc = r->value ? json_parse(r->value, r->value_len, &ignored) : NULL;
    yyjson_val *errors = yyjson_obj_get(yyjson_doc_get_root(doc), "errors"), *error;
    size_t i, n;
    bool read = yyjson_is_arr(errors);
    yyjson_arr_foreach(errors, i, n, error)
    {
        yyjson_val *message = yyjson_obj_get(error, "message");
        const char *text = yyjson_is_str(message) ? yyjson_get_str(message) : "is wrong";
        int64_t line = 0;
        (void)json_int(yyjson_obj_get(error, "line"), &line);
        put_fault(out, "code", 4, text, strnlen(text, MESSAGE_BYTES), line);
    }
    yyjson_doc_free(doc);
    return read;
}

static void checked(struct jobs_watch *watch, const struct result *r, const char *json, size_t len)
{
    // What the code itself may bring about: it would in the node, too.
    static const bool of_code[REASON_COUNT] = {
        [REASON_ERROR] = true,
        [REASON_TIMEOUT] = true,
        [REASON_CPU_LIMIT] = true,
        [REASON_MEMORY_LIMIT] = true,
    };
    struct api_call *c = ((struct job_wait *)watch->ctx)->call;
    (void)json, (void)len;
    if (r->reason == REASON_OK && put_guest(&c->kept, r)) {
        answer(c);
    } else if (of_code[r->reason]) {
        AUTO_BUF struct buf text = BUF_INIT(4096);
        buf_printf(&text, "cannot be read: %.1000s", r->error ? r->error : reason_names[r->reason]);
        put_fault(&c->kept, "code", 4, buf_text(&text), text.len, 0);
        answer(c);
    } else {
        api_fail_later(c, API_UNAVAILABLE, 5, "the code could not be read: %s",
                       r->error ? r->error : reason_names[r->reason]);
    }
}

void workflow_check(struct api_call *c)
{
    struct jobs_submission s = {.team = c->team, .entry = "code-node-check", .trace = c->trace};
    if (!c->job.code && !c->job_error) {
        answer(c);
        return;
    }
    check_host(c);
    if (job_call_take(c, &s.job) == 0) {
        job_call_run(c, &s, checked);
    }
}
