// collect.c: what the job used, and the files that it was asked to leave.
#include "job/stages.h"

#include "base/clock.h"
#include "job/verdict.h"

enum {
    COLLECT_MS = 5, // of the collection, at once
    PACK_MS = 20,   // of an archive on a thread, then others have their turn there
};

static void pack(struct work *w)
{
    struct pipeline *p = w->ctx;
    const uint64_t until = clock_now_ns() + PACK_MS * NS_PER_MS;
    while (collection_pack(&p->collection) && clock_now_ns() < until) {
    }
}

static void packed(struct work *w)
{
    struct pipeline *p = w->ctx;
    if (p->unwanted) {
        pipeline_next(p);
    } else {
        collect_more(p);
    }
}

void collect_more(struct pipeline *p)
{
    bool more = true;
    if (p->tree_work.queued) { // it has not begun
        return;
    }
    uint64_t began = clock_now_ns();
    while (more && !p->held && !p->unwanted && clock_now_ns() - began < COLLECT_MS * NS_PER_MS) {
        if (collection_packs(&p->collection) && tree_hand_over(p, pack, packed)) {
            return;
        }
        more = collection_step(&p->collection);
    }
    if (p->at != AT_COLLECT || (p->held && !p->unwanted)) {
        return;
    }
    if (more && !p->unwanted) { // other jobs have their turn
        loop_timer_set(p->loop, &p->collect_timer, 0);
    } else {
        pipeline_next(p);
    }
}

static void go_on(struct loop_timer *t) { collect_more(t->ctx); }

static void collect(struct pipeline *p)
{
    if (!p->executed_at_ns || p->job.n_artifacts == 0) {
        pipeline_next(p);
        return;
    }
    p->result.collect_started_at = clock_wall_ms();
    pipeline_tell(p, STATUS_COLLECTING);
    if (p->at != AT_COLLECT) { // cancelled by whom it was told
        return;
    }
    p->collection.workspace = p->workspace;
    p->collection.uid = p->owner;
    p->collection.pool = p->place.pool;
    p->collection.owner = p->place.owner;
    p->collect_timer = LOOP_TIMER_INIT(go_on, p);
    if (collection_begin(&p->collection)) {
        result_fail(&p->result, REASON_INTERNAL, STAGE_COLLECTION, "no memory");
        pipeline_next(p);
        return;
    }
    collect_more(p);
}

static void measured(struct pipeline *p)
{
    if (p->tree_verdict >= 0) {
        p->result.usage.disk_bytes = (int64_t)p->disk.used_bytes;
        verdict_disk(&p->result, &p->job, (enum disk_verdict)p->tree_verdict, &p->disk);
    }
    collect(p);
}

void stage_collect(struct pipeline *p)
{
    bool folder = p->plan.start.workspace_kind == PLAN_WORKSPACE_FOLDER;
    if (p->executed_at_ns && folder) {
        tree_settle(p, measured);
        return;
    }
    if (p->executed_at_ns) {
        p->result.usage.disk_bytes = disk_of_tmpfs(p->workspace);
    }
    collect(p);
}
