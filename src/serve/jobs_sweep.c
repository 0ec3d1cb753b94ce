// jobs_sweep.c: results that were kept long enough go, a few at a time, with their artifacts. A
// timer is set only while there is something to wait for.
#include "serve/jobs_inner.h"

#include "base/clock.h"
#include "log/log.h"

#include <stdio.h>
#include <string.h>

enum {
    LEAST_PAUSE_MS = 60 * 1000,
    ERROR_PAUSE_MS = 600 * 1000,
    LONGEST_MS = 3600 * 1000, // the clock of the day may be set meanwhile
};

static void removing(void *ctx, const struct store_job *row)
{
    struct jobs *j = ctx;
    char id[37];
    if (row->id.len < sizeof id) {
        snprintf(id, sizeof id, "%.*s", (int)row->id.len, row->id.data);
        artifacts_remove(j->config.artifacts, id);
    }
}

static void oldest(void *ctx, const struct store_record *r) { *(int64_t *)ctx = r->job.ended_ms; }

static void oldest_end(void *ctx, int error) { (void)ctx, (void)error; }

// Until the oldest result is old enough; never, where there is none.
static void wait_for_next(struct jobs *j, int error)
{
    int64_t ended_ms = 0, pause_ms = ERROR_PAUSE_MS;
    if (!error) {
        struct store_query q = {.kind = STORE_LIST_ENDED, .before_ms = INT64_MAX, .limit = 1};
        store_read(j->config.store, &q, &(struct store_reader){oldest, oldest_end, &ended_ms});
        if (!ended_ms) {
            return;
        }
        pause_ms = ended_ms + j->config.limits.result_ttl_ms - clock_wall_ms();
    }
    int64_t least = j->config.limits.result_ttl_ms < LEAST_PAUSE_MS ? j->config.limits.result_ttl_ms
                                                                    : LEAST_PAUSE_MS;
    pause_ms = pause_ms < least ? least : pause_ms > LONGEST_MS ? LONGEST_MS : pause_ms;
    loop_timer_set(j->config.loop, &j->sweep_due, (uint64_t)pause_ms * NS_PER_MS);
}

static void swept(void *ctx, int error, uint64_t removed)
{
    struct jobs *j = ctx;
    j->sweeping = false;
    if (removed) {
        log_say(j->config.log, LOG_INFO, "results removed", LOG_I("jobs", (int64_t)removed));
    }
    if (j->closed) {
        jobs_look_if_drained(j);
    } else {
        wait_for_next(j, error);
    }
}

static void sweep(struct loop_timer *t)
{
    struct jobs *j = t->ctx;
    if (j->sweeping || j->closed) {
        return;
    }
    j->sweeping = true;
    j->sweep = (struct store_sweep){.store = j->config.store,
                                    .before_ms = clock_wall_ms() - j->config.limits.result_ttl_ms,
                                    .removing = removing,
                                    .done = swept,
                                    .ctx = j};
    store_sweep_start(&j->sweep);
}

void jobs_sweep_init(struct jobs *j)
{
    j->sweep_due = LOOP_TIMER_INIT(sweep, j);
    loop_timer_set(j->config.loop, &j->sweep_due, 0);
}

void jobs_sweep_expect(struct jobs *j)
{
    if (!j->sweep_due.due_ns && !j->sweeping && !j->closed) {
        loop_timer_set(j->config.loop, &j->sweep_due,
                       (uint64_t)j->config.limits.result_ttl_ms * NS_PER_MS);
    }
}
