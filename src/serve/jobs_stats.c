#include "serve/jobs_inner.h"

#include "base/clock.h"
#include "job/runner.h"
#include "plan/plan.h"

const uint32_t jobs_bucket_ms[JOBS_BUCKETS] = {1,   2,    5,    10,   20,    50,    100,    200,
                                               500, 1000, 2000, 5000, 10000, 30000, 120000, 600000};
const char *const jobs_stage_names[JOBS_STAGES] = {[JOBS_QUEUE] = "queue",
                                                   [JOBS_PREPARE] = "prepare",
                                                   [JOBS_INSTALL] = "install",
                                                   [JOBS_EXECUTE] = "execute",
                                                   [JOBS_COLLECT] = "collect"};
_Static_assert((int)JOBS_KINDS == (int)LANGUAGE_COUNT, "a kind per language, and commands");
const char *const jobs_kind_names[JOBS_KINDS] = {[LANGUAGE_NONE] = "command",
                                                 [LANGUAGE_PYTHON] = "python",
                                                 [LANGUAGE_JAVASCRIPT] = "javascript",
                                                 [LANGUAGE_BASH] = "bash"};

static void count(struct jobs_histogram *h, int64_t from, int64_t to)
{
    if (!from) {
        return; // that stage never began
    }
    uint64_t ms = to > from ? (uint64_t)(to - from) : 0;
    unsigned i = 0;
    while (i < JOBS_BUCKETS && ms > jobs_bucket_ms[i]) {
        i++;
    }
    h->count[i]++;
    h->sum_ms += ms;
}

static int64_t end_of(const struct result *r, int64_t end) { return end ? end : r->completed_at; }

// A job that never had a pipeline (its row, its session's folder, its request) says nothing of
// sandboxes, and neither does what was to be kept of one that has run.
bool task_sandbox_failed(const struct task *t, const struct result *r)
{
    return r->reason == REASON_ISOLATION_UNAVAILABLE ||
           (r->reason == REASON_INTERNAL && t->pipeline && r->stage != STAGE_COLLECTION);
}

void jobs_count_ended(struct jobs *j, const struct task *t, const struct result *r)
{
    struct jobs_histogram *h = j->stats.stages;
    j->stats.ended[t->kind][r->reason]++;
    j->stats.sandbox_failures += task_sandbox_failed(t, r);
    j->stats.unisolated += r->isolation.isolated && (r->isolation.downgrades & PLAN_NO_ISOLATION);
    j->stats.fallbacks += r->isolation.fallback != NULL;
    count(&h[JOBS_QUEUE], r->queued_at, end_of(r, r->started_at));
    count(&h[JOBS_PREPARE], r->prepare_started_at, end_of(r, r->prepare_completed_at));
    count(&h[JOBS_INSTALL], r->install_started_at, end_of(r, r->install_completed_at));
    count(&h[JOBS_EXECUTE], r->execute_started_at, end_of(r, r->execute_completed_at));
    count(&h[JOBS_COLLECT], r->collect_started_at, end_of(r, r->collect_completed_at));
}

void jobs_stats(const struct jobs *j, struct jobs_stats *ret)
{
    struct queue_stats q;
    struct runner_stats sandboxes;
    uint64_t now = clock_now_ns();
    queue_stats(j->queue, &q);
    *ret = j->stats;
    runner_stats(j->config.runner, &sandboxes);
    ret->warm = sandboxes.hits;
    ret->cold = sandboxes.misses;
    ret->waiting = q.waiting;
    ret->running = q.running;
    ret->slots = j->config.limits.queue.slots;
    ret->oldest_ms =
        q.oldest_since_ns && now > q.oldest_since_ns ? (now - q.oldest_since_ns) / NS_PER_MS : 0;
    ret->memory_used = q.used[QUEUE_MEMORY_BYTES];
    ret->memory_capacity = j->memory_bytes;
}
