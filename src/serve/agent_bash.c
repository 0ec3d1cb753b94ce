// agent_bash.c: the bash tool: a job of the session, its output made fit for a model.
#include "serve/agent_calls.h"

#include "agent/clean.h"
#include "agent/shell.h"
#include "base/fd.h"
#include "codec/json.h"
#include "codec/json_out.h"
#include "codec/utf8.h"
#include "io/work.h"
#include "model/lower.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    WORD_MAX = 120 << 10,    // of JOB_MAX_ARGV_BYTES, which has two more words
    KEPT_KIB = 1024,         // of each stream: the end of a long output is what tells why it failed
    SHOWN_BYTES = 256 << 10, // of each stream, of a command that went well
    HERE_BYTES = 32 << 10,   // a longer command, and more output, is a thread's
    ANSWER_BYTES = 64 << 20,
};

struct bash {
    const struct agents_config *with;
    struct agent_call *call; // NULL: nobody waits any more
    struct jobs_watch watch;
    char id[37];

    // All that follows is a thread's while `work` is queued.
    struct work work;
    yyjson_doc *doc; // of arguments
    yyjson_val *arguments;
    char session[37];
    struct buf command; // as it runs
    bool rewritten;
    struct job job;
    int prepared;
    struct agent_refusal why;
    const struct result *result; // held, once it has ended
    const char *error;           // for the model; NULL: none
    struct buf answer;
};

static void bash_free(struct bash *b)
{
    yyjson_doc_free(b->doc);
    job_done(&b->job);
    jobs_result_release(b->result);
    buf_free(&b->command);
    buf_free(&b->answer);
    free(b);
}

// ---- The answer --------------------------------------------------------------------------------

static void put_number(struct buf *out, const char *key, bool known, int64_t value)
{
    if (known) {
        json_put_int(out, key, value);
    } else {
        json_put_text(out, key, NULL);
    }
}

// One stream, cleaned; *ret_cut: there was more. What is left out at the end is told in it.
static int put_stream(struct bash *b, const char *key, const struct buf *raw, bool *ret_cut)
{
    AUTO_BUF struct buf text = BUF_INIT(ANSWER_BYTES);
    struct clean_told told;
    const bool failed = b->result->reason != REASON_OK;
    int e = clean_output(buf_text(raw), raw->len, failed, &text, &told);
    if (e) {
        return e;
    }
    if (!failed && text.len > SHOWN_BYTES) {
        size_t all = text.len;
        text.len = utf8_cut(text.data, SHOWN_BYTES);
        *ret_cut = true;
        buf_printf(&text, "\n[%zu of %zu bytes left out; write to a file and read its parts]",
                   all - text.len, all);
    }
    json_put_bytes(&b->answer, key, buf_text(&text), text.len);
    return text.error;
}

// Its result is there.
static int put_ended(struct bash *b)
{
    const struct result *r = b->result;
    struct buf *out = &b->answer;
    int64_t duration_ms = result_duration_ms(r);
    bool cut = r->truncated_stdout || r->truncated_stderr;
    int e = put_stream(b, "stdout", &r->out, &cut);
    e = e ? e : put_stream(b, "stderr", &r->err, &cut);
    put_number(out, "exit_code", r->signal <= 0 && r->exit_code >= 0, r->exit_code);
    put_number(out, "signal", r->signal > 0, r->signal);
    json_put_bool(out, "timed_out",
                  r->reason == REASON_TIMEOUT || r->reason == REASON_CALLER_TIMEOUT);
    json_put_text(out, "reason", reason_names[r->reason]);
    json_put_bool(out, "truncated", cut);
    put_number(out, "duration_ms", duration_ms >= 0, duration_ms);
    json_put_text(out, "job_id", b->id);
    return e;
}

static void put_not_run(struct buf *out)
{
    json_put_text(out, "stdout", "");
    json_put_text(out, "stderr", "");
    json_put_text(out, "exit_code", NULL);
    json_put_text(out, "signal", NULL);
    json_put_bool(out, "timed_out", false);
    json_put_text(out, "reason", NULL);
    json_put_bool(out, "truncated", false);
    json_put_text(out, "duration_ms", NULL);
    json_put_text(out, "job_id", NULL);
}

static void write_answer(struct bash *b)
{
    struct buf *out = &b->answer;
    int e = 0;
    json_begin(out, NULL, '{');
    json_put_bool(out, "success", b->result && b->result->reason == REASON_OK);
    json_put_text(out, "error", b->error);
    if (b->result) {
        e = put_ended(b);
    } else {
        put_not_run(out);
    }
    json_put_text(out, "command", b->result && b->rewritten ? buf_text(&b->command) : NULL);
    json_end(out, '}');
    out->error = e && !out->error ? e : out->error;
}

// `answer` is written. The call's struct is its owner's again.
static void tell(struct bash *b)
{
    struct agent_call *c = b->call;
    struct buf answer = b->answer;
    b->answer = BUF_INIT(0);
    bash_free(b);
    if (!c) {
        buf_free(&answer);
        return;
    }
    c->inner = NULL;
    if (answer.error) {
        int e = answer.error;
        buf_free(&answer);
        c->refused(c, e, strerror(-e));
    } else {
        c->answered(c, &answer);
    }
}

// Nothing ran: b->why is for the model.
static void refuse(struct bash *b)
{
    b->error = b->why.text;
    write_answer(b);
    tell(b);
}

// ---- Its job -----------------------------------------------------------------------------------

static void clean(struct work *w) { write_answer(w->ctx); }

static void cleaned(struct work *w) { tell(w->ctx); }

static void ended(struct jobs_watch *w, const struct result *r, const char *json, size_t len)
{
    struct bash *b = w->ctx;
    (void)json, (void)len;
    jobs_result_hold(r);
    b->result = r;
    b->error = r->error;
    b->work =
        (struct work){.run = clean, .done = cleaned, .ctx = b, .owner = work_owner(b->call->team)};
    if (r->out.len + r->err.len <= HERE_BYTES || work_queue(b->with->pool, &b->work)) {
        clean(&b->work);
        cleaned(&b->work);
    }
}

// As of a shell that is given the command: it is "bash" in messages, and the signal that ends the
// last program is told. What is too long for that is a script.
static void put_command(struct buf *json, const struct buf *command)
{
    const char *const words[] = {"bash", "-c", buf_text(command), NULL};
    if (command->len <= WORD_MAX) {
        json_put_texts(json, "command", words);
    } else {
        json_put_text(json, "language", language_names[LANGUAGE_BASH]);
        json_put_text(json, "code", buf_text(command));
    }
}

// As a job of any other caller, so that the same is checked. 0, or -EINVAL with *ret_why, or
// another -errno.
static int make_job(const struct bash *b, struct job *ret, struct job_error *ret_why)
{
    yyjson_val *cwd = yyjson_obj_get(b->arguments, "cwd");
    AUTO_BUF struct buf json = BUF_INIT(8 * JOB_MAX_CODE_BYTES);
    int64_t timeout_s;
    json_begin(&json, NULL, '{');
    put_command(&json, &b->command);
    json_put_text(&json, "session_id", b->session);
    if (yyjson_is_str(cwd)) {
        json_put_bytes(&json, "cwd", yyjson_get_str(cwd), yyjson_get_len(cwd));
    }
    json_begin(&json, "limits", '{');
    if (json_int(yyjson_obj_get(b->arguments, "timeout"), &timeout_s) == 0) {
        json_put_int(&json, "timeout_seconds", timeout_s);
    }
    json_put_int(&json, "max_stdout_kb", KEPT_KIB);
    json_put_int(&json, "max_stderr_kb", KEPT_KIB);
    json_end(&json, '}');
    json_end(&json, '}');
    return json.error ? json.error : job_parse(buf_text(&json), json.len, 0, ret, ret_why);
}

// 0, AGENT_REFUSED with b->why, or -errno.
static int prepare(struct bash *b)
{
    yyjson_val *command = yyjson_obj_get(b->arguments, "command");
    const char *text = yyjson_get_str(command);
    size_t len = yyjson_get_len(command);
    struct job_error why;
    if (!text || memchr(text, '\0', len)) {
        return agent_refuse(&b->why, "command: must be a text without NUL");
    }
    int e = shell_rewrite(text, len, &b->command, &b->rewritten, &b->why);
    e = e ? e : make_job(b, &b->job, &why);
    return e == -EINVAL ? agent_refuse(&b->why, "%s", why.text) : e;
}

static void submit(struct bash *b)
{
    struct agent_call *c = b->call;
    struct job_error why;
    int e = b->prepared;
    if (!e && lower_check_host(&b->job, jobs_host(b->with->jobs), &why)) {
        e = agent_refuse(&b->why, "%s", why.text);
    }
    if (e == AGENT_REFUSED) {
        refuse(b);
        return;
    }
    if (!e) {
        struct jobs_submission s = {.team = c->team,
                                    .job = b->job,
                                    .tool_call = true,
                                    .entry = "agent-bash",
                                    .trace = c->trace};
        b->job = (struct job){.stdin_fd = -1};
        e = jobs_run(b->with->jobs, &s, &b->watch, b->id, &c->queue);
    }
    if (e) {
        c->inner = NULL;
        bash_free(b);
        c->refused(c, e, e < 0 ? strerror(-e) : NULL);
    }
}

static void prepare_run(struct work *w)
{
    struct bash *b = w->ctx;
    b->prepared = prepare(b);
}

static void prepared(struct work *w)
{
    struct bash *b = w->ctx;
    if (b->call) {
        submit(b);
    } else {
        bash_free(b);
    }
}

void agent_bash_call(const struct agents_config *with, struct agent_call *c)
{
    struct bash *b = malloc(sizeof *b);
    if (!b) {
        c->refused(c, -ENOMEM, strerror(ENOMEM));
        return;
    }
    *b = (struct bash){.with = with,
                       .call = c,
                       .doc = c->doc,
                       .arguments = c->arguments,
                       .watch = {.ended = ended, .ctx = b},
                       .command = BUF_INIT(2 * JOB_MAX_CODE_BYTES),
                       .job = {.stdin_fd = -1},
                       .answer = BUF_INIT(ANSWER_BYTES)};
    snprintf(b->session, sizeof b->session, "%s", c->session);
    c->doc = NULL; // the caller may be gone while a thread reads it
    c->inner = b;
    b->work =
        (struct work){.run = prepare_run, .done = prepared, .ctx = b, .owner = work_owner(c->team)};
    size_t len = yyjson_get_len(yyjson_obj_get(b->arguments, "command"));
    if (len <= HERE_BYTES || work_queue(with->pool, &b->work)) {
        prepare_run(&b->work);
        prepared(&b->work);
    }
}

void agent_bash_leave(const struct agents_config *with, struct agent_call *c)
{
    struct bash *b = c->inner;
    if (!b) {
        return;
    }
    c->inner = NULL;
    b->call = NULL;
    jobs_leave(with->jobs, &b->watch);
    if (!b->work.queued) {
        bash_free(b);
    }
}
