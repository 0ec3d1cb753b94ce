// jobs_caller.c: how long the caller of a job waits.
#include "serve/jobs_inner.h"

#include "base/clock.h"

#include <stdio.h>

enum {
    CALLER_MS = 5000, // beyond a job's own limit its caller waits no longer
    // From a caller's bound back: a job that is cancelled then has ended by it. That of a tool is
    // cancelled at the bound, and answered so much later at the latest.
    ANSWER_GRACE_MS = 600,
    HURRIED_BYTES = 1 << 20, // of each text, in an answer that does not wait for the job's end
};

static void why_over(const struct task *t, char *text, size_t size)
{
    if (!t->tool_timeout_ms) {
        snprintf(text, size, "The job did not end in its time, and was given up");
        return;
    }
    size_t len = (size_t)snprintf(text, size, "Tool call timeout (%llus)",
                                  (unsigned long long)(t->tool_timeout_ms / 1000));
    if (t->entry.state == QUEUE_WAITING) { // else it reads as if its program took that long
        snprintf(text + len, size - len, ": it waited %s, and was never started",
                 task_waits_for(t));
    }
}

// What there is of it so far; NULL: no memory.
static struct result *result_now(const struct task *t)
{
    struct result *now = told_new();
    if (!now) {
        return NULL;
    }
    if (t->pipeline) {
        told_copy(now, pipeline_result(t->pipeline), HURRIED_BYTES);
    } else { // its result is a thread's
        task_result(t, now);
        result_fail(now, t->verdict, t->verdict_stage, "%s",
                    t->verdict_text ? t->verdict_text : "");
    }
    now->under_way = false;
    return now;
}

static void answer_now(struct task *t)
{
    AUTO_BUF struct buf json = BUF_INIT(RESULT_MAX_BYTES);
    struct result *now = result_now(t);
    if (!now) {
        return;
    }
    char *written = now->reason == REASON_OK || result_write(&json, now)
                        ? NULL
                        : shared_of(buf_text(&json), json.len);
    while (written && t->watches) {
        struct jobs_watch *w = t->watches;
        t->watches = w->next;
        w->job = NULL;
        w->ended(w, now, written, json.len);
    }
    shared_release(written);
    jobs_result_release(now);
}

// The caller's bound. First the job is cancelled, which ends it at once; should it not end, the
// caller has its answer a moment later all the same.
static void caller_is_due(struct loop_timer *timer)
{
    struct task *t = timer->ctx;
    char text[240];
    if (t->verdict == REASON_OK) {
        why_over(t, text, sizeof text);
        task_stop(t, REASON_CALLER_TIMEOUT, text);
        task_set_verdict(t, REASON_CALLER_TIMEOUT, STAGE_EXECUTION, text);
        loop_timer_set(t->jobs->config.loop, &t->caller, ANSWER_GRACE_MS * NS_PER_MS);
    } else if (t->pipeline || t->gathering) { // else it ends in the loop's next turn
        answer_now(t);
    }
}

void task_caller_waits(struct task *t, bool started)
{
    const bool from_start = !t->tool_timeout_ms;
    uint64_t ms = from_start ? t->timeout_ms + CALLER_MS - ANSWER_GRACE_MS : t->tool_timeout_ms;
    if (!t->accepted && started == from_start) {
        t->caller = LOOP_TIMER_INIT(caller_is_due, t);
        loop_timer_set(t->jobs->config.loop, &t->caller, ms * NS_PER_MS);
    }
}
