// jobs_wait.c: what jobs wait for: how much there is of it, what is told of it, and how long.
#include "serve/jobs_inner.h"

#include "base/clock.h"
#include "log/log.h"
#include "workspace/disk.h"
#include "workspace/uids.h"

#include <stdio.h>

enum { CALM_MS = 2000 }; // so long nothing is short before it is said to be over

// ---- How much there is -------------------------------------------------------------------------

static uint64_t free_disk(const struct jobs *j)
{
    uint64_t left = UINT64_MAX; // when nobody knows the job itself will say
    disk_left(j->config.pipeline->workspace_root, &left);
    return left;
}

// One job may always run, whatever it asks for, unless there is nothing at all.
void jobs_look_at_resources(struct jobs *j)
{
    struct queue_stats s;
    queue_stats(j->queue, &s);
    queue_set_teams(j->queue, shares_teams(j->config.shares));
    uint64_t have[QUEUE_RESOURCES] = {
        [QUEUE_UIDS] = s.used[QUEUE_UIDS] + uids_left(j->config.pipeline->uids),
        [QUEUE_MEMORY_BYTES] = j->memory_bytes,
        [QUEUE_DISK_BYTES] = free_disk(j),
    };
    if (s.running == 0 && have[QUEUE_DISK_BYTES] > 0) {
        have[QUEUE_DISK_BYTES] = UINT64_MAX;
    }
    for (int r = 0; r < QUEUE_RESOURCES; r++) {
        queue_set_capacity(j->queue, (enum queue_resource)r, j->lacking[r] ? s.used[r] : have[r]);
    }
}

// ---- In words ----------------------------------------------------------------------------------

static const struct {
    const char *name, *text;
} waits[QUEUE_WAITS] = {
    [QUEUE_FOR_SLOT] = {"slot", "for a free worker (SANDBOX_WORKER_CONCURRENCY)"},
    [QUEUE_FOR_RELEASE] = {"store", "for its record in the store"},
    [QUEUE_FOR_SESSION] = {"session", "for an earlier job of its session"},
    [QUEUE_FOR_SHARE] = {"share", "for a worker that is not kept for other teams "
                                  "(SANDBOX_WORKER_CONCURRENCY, SANDBOX_TEAM_CONCURRENCY)"},
    [QUEUE_FOR_TEAM] = {"team", "for another job of its team to end (SANDBOX_TEAM_CONCURRENCY)"},
    [QUEUE_FOR_RESOURCE + QUEUE_UIDS] = {"uid", "for a user id of its own"},
    [QUEUE_FOR_RESOURCE +
        QUEUE_MEMORY_BYTES] = {"memory",
                               "for memory or processes of the host (SANDBOX_INSTANCE_MEMORY_MB, "
                               "SANDBOX_INSTANCE_PIDS)"},
    [QUEUE_FOR_RESOURCE +
        QUEUE_DISK_BYTES] = {"disk",
                             "for room on the disk of the data folder (SANDBOX_WORKSPACE_ROOT)"},
};

// A store that takes no records keeps every job waiting, those without a need of disk by memory.
static enum queue_wait cause(const struct jobs *j, enum queue_wait why)
{
    const enum queue_wait memory = QUEUE_FOR_RESOURCE + (enum queue_wait)QUEUE_MEMORY_BYTES,
                          disk = QUEUE_FOR_RESOURCE + (enum queue_wait)QUEUE_DISK_BYTES;
    const bool both = j->lacking[QUEUE_MEMORY_BYTES] && j->lacking[QUEUE_DISK_BYTES];
    return why == memory && both ? disk : why;
}

const char *task_waits_for(const struct task *t)
{
    jobs_look_at_resources(t->jobs);
    return waits[cause(t->jobs, queue_why(t->jobs->queue, &t->entry))].text;
}

// ---- How long ----------------------------------------------------------------------------------

static void expire(struct task *t, enum queue_wait why)
{
    const unsigned long long s = (t->entry.wait_deadline_ns - t->entry.since_ns) / NS_PER_S;
    char text[240];
    if (why == QUEUE_FOR_SLOT) {
        snprintf(text, sizeof text,
                 "No worker was free within %llu s: the job waited, and was never started", s);
    } else {
        snprintf(text, sizeof text, "The job waited %llu s %s, and was never started", s,
                 waits[cause(t->jobs, why)].text);
    }
    task_set_verdict(t, REASON_QUEUE_TIMEOUT, STAGE_QUEUE, text);
    if (t->at == TASK_WAITING) { // else its row is on its way, and it ends after that
        jobs_soon(t, TASK_END | TASK_REAP);
    }
}

void jobs_expire(struct jobs *j, uint64_t now_ns)
{
    const uint64_t due_ns = queue_deadline_ns(j->queue);
    enum queue_wait why;
    if (!due_ns || due_ns > now_ns) {
        return;
    }
    jobs_look_at_resources(j);
    for (struct queue_entry *e; (e = queue_expired(j->queue, now_ns, &why));) {
        expire(e->ctx, why);
    }
}

// ---- In the log --------------------------------------------------------------------------------

static void is_calm(struct loop_timer *timer)
{
    struct jobs *j = timer->ctx;
    j->short_of = QUEUE_FOR_SLOT;
    log_say(j->config.log, LOG_INFO, "jobs wait no more");
}

// What the host has too little of: to wait for one's turn, team or session is nothing to tell.
static enum queue_wait short_of(const struct jobs *j)
{
    enum queue_resource r;
    for (int i = 0; i < QUEUE_RESOURCES; i++) {
        if (j->lacking[i]) {
            return cause(j, QUEUE_FOR_RESOURCE + (enum queue_wait)i);
        }
    }
    return queue_is_short(j->queue, &r) ? QUEUE_FOR_RESOURCE + (enum queue_wait)r : QUEUE_FOR_SLOT;
}

void jobs_tell_short(struct jobs *j, bool may_start)
{
    const enum queue_wait what = may_start ? short_of(j) : QUEUE_FOR_SLOT;
    if (what == QUEUE_FOR_SLOT) {
        if (j->short_of != QUEUE_FOR_SLOT && !j->calm.due_ns) {
            loop_timer_set(j->config.loop, &j->calm, CALM_MS * NS_PER_MS);
        }
        return;
    }
    loop_timer_clear(j->config.loop, &j->calm);
    if (what != j->short_of) {
        struct queue_stats s;
        queue_stats(j->queue, &s);
        j->short_of = what;
        log_say(j->config.log, LOG_WARNING, "jobs wait", LOG_T("for", waits[what].name),
                LOG_I("waiting", s.waiting), LOG_I("running", s.running));
    }
}

void jobs_waits_init(struct jobs *j) { j->calm = LOOP_TIMER_INIT(is_calm, j); }
