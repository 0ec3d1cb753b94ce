// agent_bash.c: the bash tool: a job of the session, its output made fit for a model.
#include "serve/agent_calls.h"

#include "agent/clean.h"
#include "agent/shell.h"
#include "base/fd.h"
#include "base/hash.h"
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
    // as it ended
    enum reason reason;
    int exit_code, signal;
    bool truncated;
    int64_t duration_ms;
    char *error;
    struct buf out, err, answer;
};

static void bash_free(struct bash *b)
{
    yyjson_doc_free(b->doc);
    job_done(&b->job);
    buf_free(&b->command);
    buf_free(&b->out);
    buf_free(&b->err);
    buf_free(&b->answer);
    free(b->error);
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

// One stream, cleaned. What is left out at the end is told in it.
static int put_stream(struct bash *b, const char *key, const struct buf *raw)
{
    AUTO_BUF struct buf text = BUF_INIT(ANSWER_BYTES);
    struct clean_told told;
    int e = clean_output(buf_text(raw), raw->len, b->reason != REASON_OK, &text, &told);
    if (e) {
        return e;
    }
    if (b->reason == REASON_OK && text.len > SHOWN_BYTES) {
        size_t all = text.len;
        text.len = utf8_cut(text.data, SHOWN_BYTES);
        b->truncated = true;
        buf_printf(&text, "\n[%zu of %zu bytes left out; write to a file and read its parts]",
                   all - text.len, all);
    }
    json_put_bytes(&b->answer, key, buf_text(&text), text.len);
    return text.error;
}

static void write_answer(struct bash *b)
{
    struct buf *out = &b->answer;
    const bool ran = b->id[0];
    json_begin(out, NULL, '{');
    json_put_bool(out, "success", ran && b->reason == REASON_OK);
    json_put_text(out, "error", b->error);
    int e = put_stream(b, "stdout", &b->out);
    e = e ? e : put_stream(b, "stderr", &b->err);
    put_number(out, "exit_code", ran && b->signal <= 0 && b->exit_code >= 0, b->exit_code);
    put_number(out, "signal", b->signal > 0, b->signal);
    json_put_bool(out, "timed_out",
                  b->reason == REASON_TIMEOUT || b->reason == REASON_CALLER_TIMEOUT);
    json_put_text(out, "reason", ran ? reason_names[b->reason] : NULL);
    json_put_bool(out, "truncated", b->truncated);
    put_number(out, "duration_ms", b->duration_ms >= 0, b->duration_ms);
    json_put_text(out, "job_id", ran ? b->id : NULL);
    json_put_text(out, "command", b->rewritten ? buf_text(&b->command) : NULL);
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

// Nothing ran: why is for the model.
static void refuse(struct bash *b, const char *why)
{
    b->error = strdup(why);
    b->rewritten = false;
    b->reason = REASON_ERROR;
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
    b->reason = r->reason;
    b->exit_code = r->exit_code;
    b->signal = r->signal;
    b->truncated = r->truncated_stdout || r->truncated_stderr;
    b->duration_ms = result_duration_ms(r);
    b->error = r->error ? strdup(r->error) : NULL;
    if (buf_add(&b->out, buf_text(&r->out), r->out.len) ||
        buf_add(&b->err, buf_text(&r->err), r->err.len)) {
        b->answer.error = -ENOMEM;
        tell(b);
        return;
    }
    b->work = (struct work){.run = clean,
                            .done = cleaned,
                            .ctx = b,
                            .owner = hash_bytes(b->call->team, strlen(b->call->team))};
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
    if (memchr(text, '\0', len)) {
        return agent_refuse(&b->why, "command: contains a NUL");
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
        refuse(b, b->why.text);
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
                       .out = BUF_INIT(KEPT_KIB * 1024),
                       .err = BUF_INIT(KEPT_KIB * 1024),
                       .answer = BUF_INIT(ANSWER_BYTES),
                       .exit_code = -1,
                       .duration_ms = -1};
    snprintf(b->session, sizeof b->session, "%s", c->session);
    c->doc = NULL; // the caller may be gone while a thread reads it
    c->inner = b;
    b->work = (struct work){.run = prepare_run,
                            .done = prepared,
                            .ctx = b,
                            .owner = hash_bytes(c->team, strlen(c->team))};
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
