#include "serve/ready.h"

#include "base/clock.h"
#include "base/fd.h"
#include "codec/json_out.h"
#include "doctor/selftest.h"
#include "io/loop.h"
#include "log/log.h"
#include "plan/seat.h"
#include "store/store.h"
#include "workspace/disk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PAUSE_FIRST_MS = 1000, PAUSE_MOST_MS = 60 * 1000, WHY_MAX = 400 };

enum state {
    UNTRIED, // the self-test runs, or is to be run again
    READY,
    DOUBTED, // a small job runs, or is to be run
    NEVER,
};

struct ready {
    struct ready_config with;
    enum state state;
    char why[WHY_MAX];
    const char *disabled; // a literal, or NULL
    uint32_t downgrades;
    struct selftest *test;
    struct pipeline *job;
    struct job_sink sink;
    struct loop_timer next; // the next trial; also what frees an ended one
    uint64_t pause_ms;
    // for /readyz
    uint64_t trials;
    int64_t tried_ms;
    uint64_t began_ns, took_ms;
};

static void set_why(struct ready *r, const char *why)
{
    snprintf(r->why, sizeof r->why, "%s", why);
}

static void set_state(struct ready *r, enum state state, const char *why)
{
    const bool was = r->state == READY, now = state == READY;
    if (r->state == NEVER) {
        return;
    }
    r->state = state;
    set_why(r, why);
    if (now) {
        log_say(r->with.log, LOG_INFO, "ready", LOG_I("trial_ms", (int64_t)r->took_ms));
    } else {
        log_say(r->with.log, LOG_WARNING, "not ready", LOG_T("why", why));
    }
    if (was != now && r->with.changed) {
        r->with.changed(r->with.ctx, now);
    }
}

static void drop_trial(struct ready *r)
{
    selftest_free(r->test);
    pipeline_free(r->job);
    r->test = NULL;
    r->job = NULL;
}

// ---- Trials -------------------------------------------------------------------------------------

static void trial_begins(struct ready *r)
{
    r->trials++;
    r->tried_ms = clock_wall_ms();
    r->began_ns = clock_now_ns();
}

static void trial_ends(struct ready *r) { r->took_ms = (clock_now_ns() - r->began_ns) / NS_PER_MS; }

static void again_later(struct ready *r)
{
    if (r->state == NEVER) {
        return;
    }
    loop_timer_set(r->with.loop, &r->next, r->pause_ms * NS_PER_MS);
    r->pause_ms = 2 * r->pause_ms < PAUSE_MOST_MS ? 2 * r->pause_ms : PAUSE_MOST_MS;
}

static void succeed(struct ready *r)
{
    r->pause_ms = PAUSE_FIRST_MS;
    set_state(r, READY, "");
}

static void fail(struct ready *r, const char *why)
{
    set_state(r, r->state == READY ? DOUBTED : r->state, why);
    again_later(r);
}

static const struct selftest_item *first_with(const struct selftest *t,
                                              enum selftest_verdict verdict)
{
    const struct selftest_item *items = selftest_items(t);
    for (size_t i = 0; i < SELFTEST_N; i++) {
        if (items[i].verdict == verdict) {
            return &items[i];
        }
    }
    return NULL;
}

static void test_done(void *ctx)
{
    struct ready *r = ctx;
    char why[WHY_MAX];
    trial_ends(r);
    r->downgrades |= selftest_downgrades(r->test);
    const struct selftest_item *escaped = first_with(r->test, SELFTEST_ESCAPED),
                               *broken = first_with(r->test, SELFTEST_BROKEN);
    const struct selftest_item *bad = escaped ? escaped : broken;
    if (bad) {
        snprintf(why, sizeof why, "self-test %s (%s): %s: %s", bad->name, bad->what,
                 selftest_verdict_names[bad->verdict], bad->detail);
    }
    const bool through = escaped != NULL, failed = bad != NULL;
    drop_trial(r);
    if (through) { // nothing that a later try could take back
        log_say(r->with.log, LOG_ERROR, "not isolated", LOG_T("why", why));
        ready_never(r, why);
    } else if (failed) {
        fail(r, why);
    } else {
        succeed(r);
    }
}

static void small_done(void *ctx, struct result *result)
{
    struct ready *r = ctx;
    char why[WHY_MAX];
    trial_ends(r);
    const bool good = result->reason == REASON_OK;
    snprintf(why, sizeof why, "trial run: %s: %s", reason_names[result->reason],
             result->error ? result->error : "");
    if (good) {
        succeed(r);
        loop_timer_set(r->with.loop, &r->next, 0); // the pipeline may not be freed in its own call
    } else {
        fail(r, why);
    }
}

static int start_job(struct ready *r)
{
    static const char text[] = "{\"command\":[\"/bin/true\"],\"limits\":{\"timeout_seconds\":20}}";
    struct job job;
    struct job_error error;
    int e = job_parse(text, sizeof text - 1, 0, &job, &error);
    r->sink = (struct job_sink){.ctx = r, .done = small_done};
    return e ? e
             : pipeline_start(r->with.loop, r->with.runner, r->with.pipeline, &job, &r->sink,
                              &r->job);
}

// Where nothing isolates there is nothing to attack.
static bool isolates(const struct ready *r)
{
    return strcmp(r->with.pipeline->launcher, seat_launcher_names[SEAT_NONE]) != 0;
}

static void try_now(struct ready *r)
{
    drop_trial(r);
    trial_begins(r);
    int e = r->state == UNTRIED && isolates(r)
                ? selftest_start(r->with.loop, r->with.runner, r->with.pipeline, "{}", test_done, r,
                                 &r->test)
                : start_job(r);
    if (e) {
        fail(r, strerror(-e));
    }
}

static void next_fires(struct loop_timer *t)
{
    struct ready *r = t->ctx;
    if (r->state == READY) {
        drop_trial(r);
    } else {
        try_now(r);
    }
}

// ---- The interface ------------------------------------------------------------------------------

int ready_new(const struct ready_config *config, struct ready **ret)
{
    struct ready *r = calloc(1, sizeof *r);
    if (!r) {
        return -ENOMEM;
    }
    *r = (struct ready){
        .with = *config, .downgrades = config->pipeline->downgrades, .pause_ms = PAUSE_FIRST_MS};
    r->next = LOOP_TIMER_INIT(next_fires, r);
    set_why(r, "starting: the self-test is under way");
    loop_timer_set(config->loop, &r->next, 0);
    *ret = r;
    return 0;
}

void ready_free(struct ready *r)
{
    if (r) {
        loop_timer_clear(r->with.loop, &r->next);
        drop_trial(r);
        free(r);
    }
}

static int store_error(const struct ready *r)
{
    struct store_stats stats;
    store_stats(r->with.store, &stats);
    return stats.error;
}

// Asked each time: there is nothing to be told by when somebody else makes room.
static bool disk_is_full(const struct ready *r)
{
    return disk_at_floor(r->with.pipeline->workspace_root);
}

bool ready_now(const struct ready *r)
{
    return r->state == READY && !r->disabled && !store_error(r) && !disk_is_full(r);
}

// Not `changed`: the service is up, and whoever waits for its start need not wait for an operator.
void ready_disable(struct ready *r, const char *why) { r->disabled = why; }

const char *ready_why(const struct ready *r)
{
    if (r->disabled) {
        return r->disabled;
    }
    if (r->state == READY && store_error(r)) {
        return store_error(r) == -ESTALE ? "the store's file was removed or replaced"
                                         : "the store cannot write (disk full or failing?)";
    }
    if (r->state == READY && disk_is_full(r)) {
        return "no room in the data folder: jobs wait";
    }
    return r->why;
}

uint32_t ready_downgrades(const struct ready *r) { return r->downgrades; }

void ready_doubt(struct ready *r, const char *why)
{
    if (r->state == READY) {
        set_state(r, DOUBTED, why);
        loop_timer_set(r->with.loop, &r->next, 0); // not from within a job's end
    }
}

void ready_never(struct ready *r, const char *why)
{
    const bool was = r->state == READY;
    if (r->state == NEVER) {
        return;
    }
    r->state = NEVER;
    set_why(r, why);
    loop_timer_clear(r->with.loop, &r->next);
    if (was && r->with.changed) {
        r->with.changed(r->with.ctx, false);
    }
}

int ready_write(const struct ready *r, struct buf *out)
{
    const bool now = ready_now(r);
    json_begin(out, NULL, '{');
    json_put_bool(out, "ready", now);
    json_put_text(out, "why", now ? NULL : ready_why(r));
    downgrades_write(out, "downgrades", r->downgrades);
    json_begin(out, "trial", '{');
    json_put_time(out, "at", r->tried_ms);
    json_put_int(out, "took_ms", (int64_t)r->took_ms);
    json_put_int(out, "runs", (int64_t)r->trials);
    json_end(out, '}');
    json_end(out, '}');
    return out->error;
}
