// jobs_collect.c: jobs that run nothing: files of a session become artifacts, on a thread.
#include "serve/jobs_inner.h"

#include "base/clock.h"
#include "job/collection.h"
#include "workspace/names.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    FAULTS_BYTES = 8192,
    SHOWN_BYTES = 300, // of a path, in a fault
};
#define PIECE_NS                                                                                   \
    (50 * NS_PER_MS) // of a thread's time, before others of its tenants have their turn

// One on its way. While `work` is queued all of it is a thread's, but `unwanted`.
struct gathering {
    struct task *task;
    struct pipeline_config config; // as it was at the beginning
    struct job_sink sink;
    struct result result;
    struct collection collection;
    struct buf faults; // of every artifact that is refused
    struct work work;
    atomic_bool unwanted;
    bool more, committed;
    char chunk[STREAM_CHUNK_BYTES];
};

void gathering_free(struct gathering *g)
{
    if (g) {
        collection_end(&g->collection);
        result_done(&g->result);
        buf_free(&g->faults);
        free(g);
    }
}

void gathering_cancel(struct gathering *g) { atomic_store(&g->unwanted, true); }

// ---- On a thread -------------------------------------------------------------------------------

static int take(void *ctx, const struct result_artifact *a, uint32_t mode)
{
    (void)a, (void)mode;
    return artifacts_begin(&((struct gathering *)ctx)->task->writer);
}

static int take_data(void *ctx, const char *data, size_t len)
{
    return artifacts_add(&((struct gathering *)ctx)->task->writer, data, len);
}

static void add_fault(void *ctx, const char *path, const char *why)
{
    struct gathering *g = ctx;
    AUTO_BUF struct buf shown = BUF_INIT(4 * JOB_MAX_PATH);
    bool escaped;
    names_escape(&shown, path, strlen(path), "", &escaped);
    if (g->faults.len < FAULTS_BYTES / 2) {
        buf_printf(&g->faults, "%s%.*s: %s", g->faults.len ? "; " : "", SHOWN_BYTES,
                   buf_text(&shown), why);
    }
}

static void run_piece(struct work *w)
{
    struct gathering *g = w->ctx;
    const uint64_t until = clock_now_ns() + PIECE_NS;
    while (g->more && !atomic_load(&g->unwanted) && clock_now_ns() < until) {
        g->more = collection_step(&g->collection);
    }
    if (g->more || atomic_load(&g->unwanted) || g->result.reason != REASON_OK) {
        return;
    }
    int e = artifacts_commit(&g->task->writer);
    g->committed = e == 0;
    if (e) {
        result_not_stored(&g->result, e);
    }
}

// ---- On the loop -------------------------------------------------------------------------------

// All of them or none.
static void give_verdict(struct gathering *g)
{
    struct task *t = g->task;
    struct result *r = &g->result;
    if (g->faults.len) {
        free(r->error);
        r->error = strdup(buf_text(&g->faults));
    }
    if (!g->committed) {
        result_fail(r, t->verdict, STAGE_COLLECTION, "%s", t->verdict_text ? t->verdict_text : "");
    }
    if (r->reason == REASON_OK) {
        r->exit_code = 0;
        return;
    }
    while (r->n_artifacts > 0) {
        struct result_artifact *a = &r->artifacts[--r->n_artifacts];
        free(a->path);
        free(a->filename);
        free(a->description);
    }
}

static void end(struct gathering *g)
{
    struct task *t = g->task;
    struct result *r = &g->result;
    g->collection.pool = t->jobs->config.pool; // no thread's any more
    g->collection.owner = g->work.owner;
    collection_end(&g->collection);
    give_verdict(g);
    artifacts_drop(&t->writer);
    t->leased = false;
    sessions_release(t->jobs->config.sessions, &t->lease, SESSIONS_UNCHANGED);
    r->under_way = false;
    r->collect_completed_at = r->completed_at = clock_wall_ms();
    t->gathering = NULL;
    task_ended(t, r);
    gathering_free(g);
    t->reaped = true;
    task_forget_if_done(t);
}

static void piece_done(struct work *w)
{
    struct gathering *g = w->ctx;
    if (g->more && g->result.reason == REASON_OK && !atomic_load(&g->unwanted)) {
        int e = work_queue(g->task->jobs->config.pool, &g->work);
        if (e == 0) {
            return;
        }
        result_fail(&g->result, REASON_INTERNAL, STAGE_COLLECTION, "%s", strerror(-e));
    }
    end(g);
}

static int gathering_new(struct task *t, struct gathering **ret)
{
    struct gathering *g = malloc(sizeof *g);
    if (!g) {
        return -ENOMEM;
    }
    memset(g, 0, offsetof(struct gathering, chunk));
    g->task = t;
    g->config = *t->jobs->config.pipeline;
    g->more = true;
    g->faults = BUF_INIT(FAULTS_BYTES);
    g->sink = (struct job_sink){.ctx = g, .artifact = take, .artifact_data = take_data};
    g->collection = (struct collection){.config = &g->config,
                                        .sink = &g->sink,
                                        .job = &t->job,
                                        .result = &g->result,
                                        .chunk = g->chunk,
                                        .refused = add_fault,
                                        .refused_ctx = g,
                                        COLLECTION_NONE};
    g->collection.workspace = t->lease.files.root;
    g->collection.uid = t->lease.files.uid;
    g->work =
        (struct work){.run = run_piece, .done = piece_done, .ctx = g, .owner = work_owner(t->team)};
    task_result(t, &g->result);
    g->result.artifact_urls = g->config.artifact_urls;
    g->result.usage.stdout_bytes = g->result.usage.stderr_bytes = 0;
    g->result.collect_started_at = g->result.started_at;
    *ret = g;
    return collection_begin(&g->collection);
}

// The task has its session.
static int begin(struct task *t)
{
    artifacts_writer_init(&t->writer, t->jobs->config.artifacts, t->share, t->id);
    int e = gathering_new(t, &t->gathering);
    e = e ? e : work_queue(t->jobs->config.pool, &t->gathering->work);
    if (e) {
        gathering_free(t->gathering);
        t->gathering = NULL;
        t->leased = false;
        sessions_release(t->jobs->config.sessions, &t->lease, SESSIONS_UNCHANGED);
    }
    return e;
}

int jobs_collect(struct jobs *j, struct jobs_submission *s, struct jobs_watch *w, char ret_id[37])
{
    if (j->closed || j->config.limits.disabled) {
        job_done(&s->job);
        return j->closed ? JOBS_CLOSED : JOBS_DISABLED;
    }
    struct task *t = task_new(j, s->team, &s->job);
    if (!t) {
        return -ENOMEM;
    }
    t->at = TASK_KEEPING;
    t->status = STATUS_COLLECTING;
    t->started_ms = t->submitted_ms;
    t->entry_name = s->entry;
    snprintf(t->trace, sizeof t->trace, "%s", s->trace ? s->trace : "");
    int e = sessions_lease(j->config.sessions, t->team, t->job.session, &t->lease);
    t->leased = e == 0;
    e = e ? jobs_session_refusal(e) : begin(t);
    if (e) {
        task_free(t);
        return e;
    }
    t->tool_timeout_ms = s->tool_call ? j->config.limits.tool_timeout_ms : 0;
    w->waits = true;
    task_watch(t, w);
    task_caller_waits(t, false);
    memcpy(ret_id, t->id, sizeof t->id);
    return 0;
}
