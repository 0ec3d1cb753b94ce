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

// The caller's bound. First the job is cancelled, which ends it at once; should it not end, the
// caller has its answer a moment later all the same.
static void caller_is_due(struct loop_timer *timer)
{
    struct task *t = timer->ctx;
    struct jobs *j = t->jobs;
    char text[240] = "The job did not end in its time, and was given up";
    if (t->tool_timeout_ms) {
        size_t len = (size_t)snprintf(text, sizeof text, "Tool call timeout (%llus)",
                                      (unsigned long long)(t->tool_timeout_ms / 1000));
        if (t->entry.state == QUEUE_WAITING) { // else it reads as if its program took that long
            snprintf(text + len, sizeof text - len, ": it waited %s, and was never started",
                     task_waits_for(t));
        }
    }
    if (t->verdict == REASON_OK) {
        task_stop(t, REASON_CALLER_TIMEOUT, text);
        task_set_verdict(t, REASON_CALLER_TIMEOUT, STAGE_EXECUTION, text);
        loop_timer_set(j->config.loop, &t->caller, ANSWER_GRACE_MS * NS_PER_MS);
        return;
    }
    if (!t->pipeline && !t->gathering) { // it ends in the loop's next turn
        return;
    }
    struct result *now = told_new();
    AUTO_BUF struct buf json = BUF_INIT(RESULT_MAX_BYTES);
    if (!now) {
        return;
    }
    if (t->pipeline) {
        told_copy(now, pipeline_result(t->pipeline), HURRIED_BYTES);
    } else { // its result is a thread's
        task_result(t, now);
        result_fail(now, t->verdict, t->verdict_stage, "%s",
                    t->verdict_text ? t->verdict_text : "");
    }
    now->under_way = false;
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

void task_caller_waits(struct task *t, bool started)
{
    const bool from_start = !t->tool_timeout_ms;
    uint64_t ms = from_start ? t->timeout_ms + CALLER_MS - ANSWER_GRACE_MS : t->tool_timeout_ms;
    if (!t->accepted && started == from_start) {
        t->caller = LOOP_TIMER_INIT(caller_is_due, t);
        loop_timer_set(t->jobs->config.loop, &t->caller, ms * NS_PER_MS);
    }
}
