// pipeline.c: the story of a job. Four stages, each in a file of its own, and the rules by which
// one follows another.
#include "job/stages.h"

#include "base/clock.h"
#include "base/fd.h"

#include <stdio.h>
#include <string.h>

enum { CANCEL_GRACE_MS = 500 };

static const struct {
    void (*begin)(struct pipeline *p);
    bool after_failure; // also when the job has its verdict: it may have left something
} stages[AT_END] = {
    [AT_PREPARE] = {stage_prepare, false}, // a workspace with the job's files in it
    [AT_INSTALL] = {stage_install, false}, // the packages that it asks for
    [AT_EXECUTE] = {stage_execute, false}, // one sandbox, from START to END
    [AT_COLLECT] = {stage_collect, true},  // what it used, and the files it was asked to leave
};

static void finish(struct pipeline *p);

void pipeline_next(struct pipeline *p)
{
    enum stage_at next = p->at + 1;
    bool well = p->result.reason == REASON_OK;
    // what has not been executed has left nothing
    if (next < AT_END && (well || (stages[next].after_failure && p->at == AT_EXECUTE))) {
        p->at = next;
        stages[next].begin(p);
    } else {
        finish(p);
    }
}

void pipeline_tell(struct pipeline *p, enum job_status status)
{
    p->result.status = status;
    if (p->sink->status) {
        p->sink->status(p->sink->ctx, status);
    }
}

void pipeline_give_up(struct pipeline *p, enum reason reason, const char *what, int error)
{
    const bool lost = error == -EPIPE;
    result_fail(&p->result, lost ? REASON_WORKER_LOST : reason, STAGE_PREPARATION, "%s: %s", what,
                lost ? "the launcher is gone" : strerror(-error));
    finish(p);
}

// Everything goes back, and then it goes on. What the launcher holds is dropped by it before
// whatever it is asked next.
static void release(struct pipeline *p, void (*then)(struct pipeline *p))
{
    runner_forget(p->runner, &p->call);
    loop_timer_clear(p->loop, &p->begin);
    loop_timer_clear(p->loop, &p->collect_timer);
    execute_undo(p);
    sets_drop(&p->sets);
    collection_end(&p->collection);
    prepare_undo(p, then);
}

// A one-shot workspace is gone before its job's end is told.
static void tell_end(struct pipeline *p)
{
    p->result.completed_at = clock_wall_ms();
    p->result.under_way = false;
    if (p->sink->done) {
        p->sink->done(p->sink->ctx, &p->result);
    }
}

static void finish(struct pipeline *p)
{
    if (p->result.collect_started_at) {
        p->result.collect_completed_at = clock_wall_ms();
    }
    p->at = AT_END;
    if (p->sink->collected && p->sink->collected(p->sink->ctx)) {
        p->has_tmpfs = p->has_folder = false;
    }
    release(p, tell_end);
}

// All of it has been given back: whoever can wait takes the job, or it ends. So it does if it was
// stopped meanwhile.
static void offer(struct pipeline *p)
{
    struct job job = p->job;
    p->offers = false;
    if (p->unwanted) {
        finish(p);
        return;
    }
    if (!p->sink->lacking(p->sink->ctx, p->lack, &job)) {
        pipeline_give_up(p, REASON_INTERNAL, p->lack_what, p->lack_error);
        return;
    }
    p->job = (struct job){.stdin_fd = -1};
}

void pipeline_lacks(struct pipeline *p, enum pipeline_lack lack, const char *what, int error)
{
    if (p->result.reason != REASON_OK || !p->sink->lacking) {
        pipeline_give_up(p, REASON_INTERNAL, what, error);
        return;
    }
    p->at = AT_END;
    p->offers = true;
    p->lack = lack;
    p->lack_what = what;
    p->lack_error = error;
    release(p, offer);
}

static void begin(struct loop_timer *t)
{
    struct pipeline *p = t->ctx;
    stages[AT_PREPARE].begin(p);
}

static void init(struct pipeline *p)
{
    const struct pipeline_config *config = p->config;
    p->workspace = p->measured = -1;
    p->collection = (struct collection){.config = config,
                                        .sink = p->sink,
                                        .job = &p->job,
                                        .result = &p->result,
                                        .chunk = p->chunk,
                                        COLLECTION_NONE};
    execute_init(p);
    tree_init(p);
    p->begin = LOOP_TIMER_INIT(begin, p);
    result_init(&p->result, p->job.id, (size_t)p->job.limits.value[LIMIT_STDOUT] * 1024,
                (size_t)p->job.limits.value[LIMIT_STDERR] * 1024);
    p->result.under_way = true;
    p->result.status = STATUS_PREPARING;
    p->result.isolation.launcher = config->launcher;
    p->result.artifact_urls = config->artifact_urls;
    p->result.isolation.start = "cold";
    p->result.isolation.network = p->job.network == JOB_NETWORK_HOST ? "host" : "none";
    p->result.isolation.downgrades = config->downgrades;
    p->result.queued_at = p->result.started_at = clock_wall_ms();
}

int pipeline_start(struct loop *loop, struct runner *runner, const struct pipeline_config *config,
                   struct job *job, const struct job_sink *sink, struct pipeline **ret)
{
    struct pipeline *p = malloc(sizeof *p);
    if (!p) {
        job_done(job);
        return -ENOMEM;
    }
    memset(p, 0, offsetof(struct pipeline, chunk)); // the chunk's pages stay untouched
    p->loop = loop;
    p->runner = runner;
    p->config = config;
    p->sink = sink;
    p->job = *job;
    *job = (struct job){.stdin_fd = -1};
    init(p);
    loop_timer_set(loop, &p->begin, 0);
    *ret = p;
    return 0;
}

void pipeline_set_place(struct pipeline *p, const struct pipeline_place *place)
{
    p->place = *place;
    if (place->queued_ms) {
        p->result.queued_at = place->queued_ms;
    }
}

const struct result *pipeline_result(const struct pipeline *p) { return &p->result; }

bool pipeline_began(const struct pipeline *p) { return p->executed_at_ns != 0; }

bool pipeline_entries(const struct pipeline *p, uint64_t *ret_entries)
{
    *ret_entries = p->disk.used_entries;
    return p->disk.cut;
}

void pipeline_stop(struct pipeline *p, enum reason reason, const char *text)
{
    static const enum stage names[] = {STAGE_PREPARATION, STAGE_INSTALL, STAGE_EXECUTION,
                                       STAGE_COLLECTION, [AT_END] = STAGE_PREPARATION};
    if (p->at == AT_END && !p->offers) {
        return;
    }
    p->unwanted = true;
    result_fail(&p->result, reason, names[p->at], "%s", text);
    if (p->at == AT_EXECUTE) {
        execute_stop(p, CANCEL_GRACE_MS);
    } else if (p->tree_work.queued) { // it ends when that has come back
        return;
    } else if (p->at == AT_COLLECT || p->begin.due_ns) {
        // nobody wants what is left of it; while a tmpfs is being made, its answer ends the job
        finish(p);
    }
}

void pipeline_cancel(struct pipeline *p) { pipeline_stop(p, REASON_CANCELLED, "Cancelled"); }

void pipeline_hold(struct pipeline *p, bool hold)
{
    if (p->held == hold || p->at == AT_END) {
        return;
    }
    p->held = hold;
    stream_hold(&p->out, hold);
    stream_hold(&p->err, hold);
    if (!hold && p->at == AT_COLLECT) {
        collect_more(p);
    }
}

static void nothing_more(struct pipeline *p) { (void)p; }

void pipeline_free(struct pipeline *p)
{
    if (!p) {
        return;
    }
    p->place.pool = NULL;  // what is left is done here
    if (p->at != AT_END) { // a sandbox that still runs is the launcher's to end, by id
        if (p->id) {
            runner_kill(p->runner, p->id);
        }
        release(p, nothing_more);
    }
    loop_timer_clear(p->loop, &p->remove_again);
    tree_drop(p);
    job_done(&p->job);
    result_done(&p->result);
    free(p);
}
