// jobs_end.c: the end of a job: its result, who hears of it, its row, its line in the log.
#include "serve/jobs_inner.h"

#include "base/clock.h"
#include "codec/utf8.h"
#include "log/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    CUT_BYTES = 1 << 20,    // of each text, where a result is more than the store takes
    RECORD_AGAIN_MS = 1000, // a store that did not take a result is asked again, each time later
    RECORD_AGAIN_MOST = 64,
};

void task_set_verdict(struct task *t, enum reason reason, enum stage stage, const char *text)
{
    if (t->verdict == REASON_OK) {
        t->verdict = reason;
        t->verdict_stage = stage;
        t->verdict_text = strdup(text);
    }
}

void task_changed(struct task *t)
{
    if (t->watches) {
        jobs_soon(t, TASK_TELL);
    }
}

// ---- The result --------------------------------------------------------------------------------

void result_not_stored(struct result *r, int error)
{
    const bool full = error == -ENOSPC || error == -EDQUOT;
    result_fail(r, full ? REASON_ARTIFACT : REASON_INTERNAL, STAGE_COLLECTION,
                "the artifacts cannot be stored: %s", strerror(-error));
}

// Of a job that has no pipeline (yet, or any more).
void task_result(const struct task *t, struct result *ret)
{
    const struct pipeline_config *c = t->jobs->config.pipeline;
    result_init(ret, t->id, 0, 0);
    ret->under_way = true;
    ret->status = t->status;
    ret->isolation.launcher = c->launcher;
    ret->isolation.start = "cold";
    ret->isolation.network = "none";
    ret->isolation.downgrades = c->downgrades;
    ret->queued_at = t->submitted_ms;
    ret->started_at = t->started_ms;
}

bool task_now(const struct task *t, struct result *ret)
{
    if (t->json) {
        return false;
    }
    if (!t->pipeline) {
        task_result(t, ret);
        return true;
    }
    *ret = *pipeline_result(t->pipeline);
    if (!ret->under_way) { // its artifacts, or its row, are on their way
        ret->under_way = true;
        ret->status = t->status;
    }
    ret->value = NULL;
    ret->value_is_output = false;
    ret->artifacts = NULL;
    ret->n_artifacts = 0;
    return true;
}

// ---- The log -----------------------------------------------------------------------------------

static int64_t span_ms(int64_t from, int64_t to) { return from && to > from ? to - from : 0; }

static void log_ended(const struct task *t, const struct result *r)
{
    char lost[256] = "";
    size_t len = 0;
    for (size_t i = 0; i < n_downgrades && len < sizeof lost; i++) {
        if (r->isolation.downgrades & downgrades[i].bit) {
            len += (size_t)snprintf(lost + len, sizeof lost - len, "%s%s", len ? "," : "",
                                    downgrades[i].name);
        }
    }
    const enum log_level level = r->isolation.fallback ? LOG_WARNING : LOG_INFO;
    log_say(t->jobs->config.log, level, "job ended", LOG_T("job", t->id), LOG_T("team", t->team),
            LOG_T("entry", t->entry_name), LOG_T("trace", t->trace[0] ? t->trace : NULL),
            LOG_T("session", t->session), LOG_T("language", jobs_kind_names[t->kind]),
            LOG_T("reason", reason_names[r->reason]), LOG_I("exit", r->exit_code),
            LOG_I("signal", r->signal), LOG_I("queue_ms", span_ms(r->queued_at, r->started_at)),
            LOG_I("prepare_ms", span_ms(r->prepare_started_at, r->prepare_completed_at)),
            LOG_I("execute_ms", span_ms(r->execute_started_at, r->execute_completed_at)),
            LOG_I("total_ms", span_ms(r->queued_at, r->completed_at)),
            LOG_I("cpu_ms", r->usage.cpu_ms), LOG_I("memory_bytes", r->usage.memory_peak_bytes),
            LOG_T("downgrades", lost[0] ? lost : NULL), LOG_T("fallback", r->isolation.fallback));
}

// ---- Its row -----------------------------------------------------------------------------------

static void record(struct task *t);

static void tell_ended(struct task *t, const struct result *r)
{
    t->at = TASK_ENDED;
    while (t->watches) {
        struct jobs_watch *w = t->watches;
        t->watches = w->next;
        w->job = NULL;
        w->ended(w, r, t->json, t->json_len);
    }
}

static void record_again(struct loop_timer *timer) { record(timer->ctx); }

static void on_recorded(void *ctx, const struct store_outcome *o)
{
    struct task *t = ctx;
    struct jobs *j = t->jobs;
    if (t->at != TASK_ENDED) {
        tell_ended(t, NULL);
    }
    if (o->error < 0 && t->accepted && !j->closed && o->error != -ESHUTDOWN) {
        uint64_t wait = ++t->record_tries;
        t->record_again = LOOP_TIMER_INIT(record_again, t);
        loop_timer_set(j->config.loop, &t->record_again,
                       (wait < RECORD_AGAIN_MOST ? wait : RECORD_AGAIN_MOST) * RECORD_AGAIN_MS *
                           NS_PER_MS);
        return;
    }
    if (o->error < 0) {
        j->stats.lost_results++;
        log_say(j->config.log, LOG_ERROR, "result not stored", LOG_T("job", t->id),
                LOG_T("error", strerror(-o->error)));
    } else {
        jobs_sweep_expect(j);
    }
    t->recorded = true;
    task_forget_if_done(t);
}

// An accepted job's end, or the whole record of one whose caller has had the answer.
static void record(struct task *t)
{
    struct jobs *j = t->jobs;
    struct store_write w = {
        .kind = t->accepted ? STORE_JOB_END : STORE_JOB_RECORD, .lazy = !t->accepted, .lent = true};
    w.job.id = store_text_of(t->id);
    w.job.team = store_text_of(t->team);
    w.job.session = store_text_of(t->session);
    w.job.status = t->status;
    w.job.reason = store_text_of(reason_names[t->verdict]);
    w.job.submitted_ms = t->submitted_ms;
    w.job.started_ms = t->started_ms;
    w.job.ended_ms = t->ended_ms;
    w.job.result = (struct store_text){t->json ? t->json : "", t->json_len};
    w.job.epoch = j->epoch;
    int e = store_write(j->config.store, &w, on_recorded, t);
    if (e) {
        const struct store_outcome failed = {.error = e};
        on_recorded(t, &failed);
    }
}

void task_forget_if_done(struct task *t)
{
    struct jobs *j = t->jobs;
    if (t->reaped && t->recorded && !t->soon) {
        task_free(t);
        jobs_look_if_drained(j);
    }
}

static void cut(struct buf *text, bool *truncated)
{
    if (text->len > CUT_BYTES) {
        text->len = utf8_cut(text->data, CUT_BYTES);
        *truncated = true;
    }
}

// As JSON, at most what the store takes: control characters take six bytes each, and a command's
// result is its output once more. A caller that waits has all of it.
void task_write_end(struct task *t, const struct result *r)
{
    AUTO_BUF struct buf json = BUF_INIT(RESULT_MAX_BYTES);
    if (result_write(&json, r) || json.len > STORE_BODY_MAX) {
        struct result less = *r;
        less.value = NULL;
        less.value_is_output = false;
        cut(&less.out, &less.truncated_stdout);
        cut(&less.err, &less.truncated_stderr);
        buf_free(&json);
        json = BUF_INIT(RESULT_MAX_BYTES);
        result_write(&json, &less);
    }
    if (!json.error) {
        t->written_len = json.len;
        t->written = shared_of(buf_text(&json), json.len);
    }
}

void task_ended(struct task *t, struct result *r)
{
    struct jobs *j = t->jobs;
    loop_timer_clear(j->config.loop, &t->caller);
    if (!t->written) {
        task_write_end(t, r);
    }
    t->json = t->written;
    t->json_len = t->json ? t->written_len : 0;
    t->written = NULL;
    t->status = result_status(r);
    t->verdict = r->reason;
    t->ended_ms = r->completed_at ? r->completed_at : clock_wall_ms();
    jobs_count_ended(j, t, r);
    log_ended(t, r);
    if (j->config.doubt && task_sandbox_failed(t, r)) {
        j->config.doubt(j->config.doubt_ctx, r->error ? r->error : reason_names[r->reason]);
    }
    t->at = TASK_KEEPING; // of an accepted one it is told when it is durable
    if (!t->accepted) {
        told_take(t->told, r);
        tell_ended(t, t->told);
        jobs_result_release(t->told); // the texts are not the record's
        t->told = NULL;
    }
    record(t);
}

void task_end_unstarted(struct task *t)
{
    struct result r;
    task_result(t, &r);
    r.under_way = false;
    r.completed_at = clock_wall_ms();
    result_fail(&r, t->verdict, t->verdict_stage, "%s", t->verdict_text ? t->verdict_text : "");
    task_drop_job(t);
    task_ended(t, &r);
    result_done(&r);
}
