// `isle jobs`
#include "base/fd.h"
#include "base/text.h"
#include "client/client.h"
#include "client/ending.h"
#include "client/follow.h"
#include "client/print.h"
#include "codec/json.h"
#include "model/job.h"

#include <string.h>

#define JOBS "/sandbox/jobs"

static const struct print_column list_columns[] = {
    {"job", "job_id"},         {"status", "status"},          {"reason", "reason"},
    {"session", "session_id"}, {"submitted", "submitted_at"}, {"started", "started_at"},
    {"ended", "ended_at"},
};

static const struct print_column show_fields[] = {
    {"job", "job_id"},
    {"status", "status"},
    {"reason", "reason"},
    {"error", "error"},
    {"exit code", "exit_code"},
    {"signal", "signal"},
    {"result", "result"},
    {"queued", "metadata.queued_at"},
    {"started", "metadata.started_at"},
    {"ended", "metadata.completed_at"},
    {"wall ms", "usage.wall_ms"},
    {"CPU ms", "usage.cpu_ms"},
    {"memory bytes", "usage.memory_peak_bytes"},
    {"stdout bytes", "usage.stdout_bytes"},
    {"stderr bytes", "usage.stderr_bytes"},
    {"isolation", "isolation.level"},
};

static int tell_list(yyjson_val *data)
{
    return print_list(data, list_columns, ARRAY_LEN(list_columns));
}

static int tell_one(yyjson_val *data)
{
    return print_fields(stdout, data, show_fields, ARRAY_LEN(show_fields));
}

static int tell_id(yyjson_val *data) { return print_word(stdout, yyjson_obj_get(data, "job_id")); }

static int tell_nothing(yyjson_val *data)
{
    (void)data;
    return 0;
}

int jobs_list(struct client *c) { return client_list(c, JOBS, tell_list); }

int jobs_show(struct client *c)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    client_path(&path, JOBS "/%s", c->command.operands[0]);
    struct call call = CALL_INIT("GET", buf_text(&path));
    call.max_bytes = CALL_RESULT_MAX;
    return client_tell(c, &call, tell_one);
}

int jobs_cancel(struct client *c)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    client_path(&path, JOBS "/%s/cancel", c->command.operands[0]);
    struct call call = CALL_INIT("POST", buf_text(&path));
    return client_tell(c, &call, tell_nothing);
}

// Nobody reads what is printed any more, which the reader knows, or it cannot be written.
static int fail_follow(const struct follow *f, int error, const struct call_error *why)
{
    const int lost = f->out_error ? f->out_error : f->err_error;
    if (error != -ECANCELED) {
        return client_fail(f->c, error, why);
    }
    return lost == EPIPE ? (int)CLIENT_CANCELLED
                         : verb_complain("jobs", "output: %s", strerrordesc_np(lost));
}

// ---- isle jobs wait

int jobs_wait(struct client *c)
{
    bool json = c->command.options.json;
    struct follow f = {.c = c,
                       .out = json ? -1 : STDOUT_FILENO,
                       .err = json ? -1 : STDERR_FILENO,
                       .max_result = CALL_RESULT_MAX};
    struct call_error why;
    snprintf(f.id, sizeof f.id, "%s", c->command.operands[0]);
    int e = follow_job(&f, &why);
    int status = e ? fail_follow(&f, e, &why) : ending_print(c, &f.final, f.line_open);
    follow_done(&f);
    return status;
}

// ---- isle jobs events

// One event a line: with --json an object, else its name and its data. Both are the service's
// bytes: no control character reaches the reader.
static int tell_event(void *ctx, const struct sse_event *e)
{
    struct follow *f = ctx;
    struct json_error ignored;
    yyjson_doc *doc = json_parse_envelope(e->data, e->len, &ignored);
    if (!doc) {
        return -EPROTO;
    }
    AUTO_BUF struct buf text = BUF_INIT((size_t)2 * CALL_RESULT_MAX);
    int rc = json_write(&text, yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    AUTO_FREE char *data = rc ? NULL : buf_take(&text);
    AUTO_FREE char *name = strdup(e->name);
    if (!data || !name) {
        return rc ? rc : -ENOMEM;
    }
    text_no_controls(data);
    text_no_controls(name);
    bool plain = strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name);
    if (f->c->command.options.json) {
        printf("{\"event\":\"%s\",\"data\":%s}\n", plain ? name : "unknown", data);
    } else {
        printf("%s\t%s\n", name, data);
    }
    f->out_error = fflush(stdout) ? errno : 0;
    return f->out_error ? -ECANCELED : 0;
}

int jobs_events(struct client *c)
{
    struct follow f = {
        .c = c, .out = -1, .err = -1, .max_result = CALL_RESULT_MAX, .seen = tell_event, .ctx = &f};
    struct call_error why;
    snprintf(f.id, sizeof f.id, "%s", c->command.operands[0]);
    int e = follow_job(&f, &why);
    follow_done(&f);
    return e ? fail_follow(&f, e, &why) : 0;
}

// ---- isle jobs submit

// A job that has ended while it was waited for: its result as `isle run` tells it, with its output.
// Who does not wait is told the id alone, of a job that has ended long ago, too.
static int end_of_submission(struct client *c, yyjson_val *data)
{
    if (yyjson_is_str(yyjson_obj_get(data, "reason"))) {
        return ending_print_whole(c, data, false);
    }
    int e = c->command.options.json ? print_json(stdout, data) : tell_id(data);
    return client_printed(c, e);
}

int jobs_submit(struct client *c)
{
    const struct remote_options *o = &c->command.options;
    AUTO_BUF struct buf path = BUF_INIT(1 << 16), body = BUF_INIT(JOB_MAX_JSON_BYTES);
    char key[600];
    if (o->wait && !client_number(c, "--wait", o->wait)) {
        return CLI_REFUSED;
    }
    int status = client_read(c, c->command.operands[0], &body);
    if (status) {
        return status;
    }
    client_path(&path, JOBS);
    client_query(&path, "wait", o->wait);
    struct call call = CALL_INIT("POST", buf_text(&path));
    call.body = buf_text(&body);
    call.body_len = body.len;
    call.max_bytes = CALL_RESULT_MAX;
    call.silence_s = o->wait ? CALL_SILENCE_S + (unsigned)strtoul(o->wait, NULL, 10) % 100000 : 0;
    if (o->idempotency_key) {
        const size_t n = strlen(o->idempotency_key); // libcurl leaves a field without a value out
        if (n == 0 || n > 255 || strpbrk(o->idempotency_key, "\r\n")) {
            return verb_complain("jobs", "--idempotency-key: one line of 1 to 255 bytes");
        }
        snprintf(key, sizeof key, "Idempotency-Key: %s", o->idempotency_key);
        call.headers[0] = key;
    }
    yyjson_doc *doc;
    yyjson_val *data = client_ask(c, &call, &doc, &status);
    if (data) {
        status = end_of_submission(c, data);
        yyjson_doc_free(doc);
    }
    return status;
}
