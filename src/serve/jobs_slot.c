// jobs_slot.c: who runs. The queue says who is next; a slot is a state of a task.
#include "serve/jobs_inner.h"

#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    RETRY_MS = 500,              // when something is short and nothing of ours will give it back
    LOAD_HERE_BYTES = 128 << 10, // a longer request is parsed on a thread
    // A job that has not found memory so often in a row, while nothing else of ours ran that might
    // have given some back, cannot begin at all.
    MEMORY_TRIES = 5,
};

// ---- The loop's next turn ----------------------------------------------------------------------

void jobs_soon(struct task *t, unsigned what)
{
    struct jobs *j = t->jobs;
    if (!t->soon) {
        t->next_soon = NULL;
        *j->soon_end = t;
        j->soon_end = &t->next_soon;
    }
    t->soon |= what;
    jobs_pump_soon(j);
}

void jobs_pump_soon(struct jobs *j)
{
    if (!j->soon.due_ns) {
        loop_timer_set(j->config.loop, &j->soon, 0);
    }
}

// It waits again, on the disk, too: else the next start would tell of it as begun and lost.
static void record_put_back(const struct task *t)
{
    struct store_write w = {.kind = STORE_JOB_BACK, .lazy = true};
    w.job.id = store_text_of(t->id);
    store_write(t->jobs->config.store, &w, NULL, NULL);
}

static void put_back(struct task *t)
{
    struct jobs *j = t->jobs;
    t->at = TASK_WAITING;
    t->status = STATUS_QUEUED;
    t->started_ms = 0;
    if (t->accepted) {
        record_put_back(t);
    }
    j->stats.put_back++;
    queue_put_back(j->queue, &t->entry);
    if (t->verdict != REASON_OK) { // it was stopped when its pipeline had given it up already
        task_stop(t, t->verdict, t->verdict_text);
    } else if (j->closed && !t->accepted) {
        task_stop(t, REASON_CANCELLED, JOBS_STOPPING_TEXT);
    } else {
        loop_timer_set(j->config.loop, &j->retry, RETRY_MS * NS_PER_MS);
    }
}

static void let_session_go(struct task *t, int64_t disk_bytes)
{
    if (t->leased) {
        if (disk_bytes >= 0) {
            uint64_t entries;
            const bool more = pipeline_entries(t->pipeline, &entries);
            sessions_counted(&t->lease, entries, more);
        }
        t->leased = false;
        sessions_release(t->jobs->config.sessions, &t->lease, disk_bytes);
    }
}

// The slot is free again.
static void reap(struct task *t, bool again)
{
    struct jobs *j = t->jobs;
    const struct result *r = t->pipeline ? pipeline_result(t->pipeline) : NULL;
    let_session_go(t, !r || again                ? SESSIONS_UNCHANGED
                      : r->usage.disk_bytes >= 0 ? r->usage.disk_bytes
                                                 : SESSIONS_MEASURE);
    pipeline_free(t->pipeline);
    t->pipeline = NULL;
    if (again) {
        if (!t->tool_timeout_ms) { // its caller's time begins with the start
            loop_timer_clear(j->config.loop, &t->caller);
        }
        put_back(t);
        return;
    }
    loop_timer_clear(j->config.loop, &t->caller);
    if (t->entry.state == QUEUE_RUNNING) {
        queue_finish(j->queue, &t->entry, clock_now_ns());
    }
    memset(j->lacking, 0, sizeof j->lacking);
    t->reaped = true;
}

static void do_soon(struct task *t, unsigned what)
{
    if (what & TASK_TELL) {
        for (struct jobs_watch *w = t->watches, *next; w; w = next) {
            next = w->next;
            if (w->changed) {
                w->changed(w);
            }
        }
    }
    if (what & TASK_END) {
        task_end_unstarted(t);
    }
    if (what & TASK_REAP) {
        reap(t, what & TASK_PUT_BACK);
    }
    task_forget_if_done(t);
}

// ---- Begin -------------------------------------------------------------------------------------

static void on_status(void *ctx, enum job_status status)
{
    struct task *t = ctx;
    struct jobs *j = t->jobs;
    t->status = status;
    if (t->accepted && status > STATUS_PREPARING) { // where the list sees it; nobody waits for it
        struct store_write w = {.kind = STORE_JOB_STATUS, .lazy = true};
        w.job.id = store_text_of(t->id);
        w.job.status = status;
        w.job.started_ms = t->started_ms;
        w.job.epoch = j->epoch;
        store_write(j->config.store, &w, NULL, NULL);
    }
    task_changed(t);
}

static void on_output(void *ctx, bool is_stderr, const char *data, size_t len)
{
    (void)is_stderr, (void)data, (void)len;
    task_changed(ctx);
}

static int on_artifact(void *ctx, const struct result_artifact *a, uint32_t mode)
{
    (void)a, (void)mode;
    return artifacts_begin(&((struct task *)ctx)->writer);
}

static int on_artifact_data(void *ctx, const char *data, size_t len)
{
    return artifacts_add(&((struct task *)ctx)->writer, data, len);
}

static void keep_artifacts(struct work *w)
{
    struct task *t = w->ctx;
    t->keep_error = artifacts_commit(&t->writer);
}

// The pipeline is ours, and nobody else writes to its result any more.
static struct result *result_of(const struct task *t)
{
    return (struct result *)(uintptr_t)pipeline_result(t->pipeline);
}

static void run_ended(struct task *t)
{
    artifacts_drop(&t->writer);
    task_ended(t, result_of(t));
    jobs_soon(t, TASK_REAP);
}

static void write_result(struct work *w)
{
    struct task *t = w->ctx;
    task_write_end(t, result_of(t));
}

static void result_written(struct work *w) { run_ended(w->ctx); }

// Artifacts, and then what is written of the result, each on a thread where it takes its time.
static bool keep_on_thread(struct task *t, void (*run)(struct work *w),
                           void (*done)(struct work *w))
{
    t->at = TASK_KEEPING;
    t->keep = (struct work){.run = run, .done = done, .ctx = t, .owner = work_owner(t->team)};
    return work_queue(t->jobs->config.pool, &t->keep) == 0;
}

static void write_and_end(struct task *t)
{
    if (jobs_result_bytes(result_of(t)) <= WRITE_HERE_BYTES ||
        !keep_on_thread(t, write_result, result_written)) {
        run_ended(t);
    }
}

static void artifacts_kept(struct work *w)
{
    struct task *t = w->ctx;
    if (t->keep_error) {
        result_not_stored(result_of(t), t->keep_error);
    }
    write_and_end(t);
}

static void on_done(void *ctx, struct result *r)
{
    struct task *t = ctx;
    if (r->n_artifacts == 0) {
        write_and_end(t);
    } else if (!keep_on_thread(t, keep_artifacts, artifacts_kept)) { // then here
        keep_artifacts(&t->keep);
        artifacts_kept(&t->keep);
    }
}

// It is put back into the queue until there is more.
static void lacks(struct task *t, enum queue_resource r) { t->jobs->lacking[r] = true; }

static bool others_run(const struct task *t)
{
    const struct jobs *j = t->jobs;
    const struct task *o = task_next(j, NULL);
    while (o && (o == t || !o->pipeline || !pipeline_began(o->pipeline))) {
        o = task_next(j, o);
    }
    return o != NULL;
}

static bool on_lacking(void *ctx, enum pipeline_lack lack, struct job *job)
{
    static const enum queue_resource of[] = {[PIPELINE_NO_UID] = QUEUE_UIDS,
                                             [PIPELINE_NO_DISK] = QUEUE_DISK_BYTES,
                                             [PIPELINE_NO_MEMORY] = QUEUE_MEMORY_BYTES};
    struct task *t = ctx;
    if (lack == PIPELINE_NO_MEMORY) {
        t->tries = others_run(t) ? 0 : t->tries + 1;
        if (t->tries > MEMORY_TRIES) {
            return false;
        }
    }
    t->job = *job;
    t->loaded = true;
    lacks(t, of[lack]);
    jobs_soon(t, TASK_REAP | TASK_PUT_BACK);
    return true;
}

static void run(struct task *t)
{
    struct jobs *j = t->jobs;
    const struct jobs_config *c = &j->config;
    struct pipeline_place place = {
        .queued_ms = t->submitted_ms, .pool = c->pool, .owner = work_owner(t->team)};
    t->at = TASK_RUNNING;
    t->started_ms = clock_wall_ms();
    if (t->leased) {
        place.workspace = t->lease.workspace;
        place.fd = t->lease.files.root;
        place.uid = t->lease.uid;
        sessions_takes(&t->lease, &place.bytes, &place.entries);
    }
    artifacts_writer_init(&t->writer, c->artifacts, t->share, t->id);
    t->sink = (struct job_sink){.ctx = t,
                                .output = on_output,
                                .artifact = on_artifact,
                                .artifact_data = on_artifact_data,
                                .done = on_done,
                                .status = on_status,
                                .lacking = on_lacking};
    j->held_bytes -= t->held_bytes;
    t->held_bytes = 0;
    t->loaded = false;
    if (pipeline_start(c->loop, c->runner, c->pipeline, &t->job, &t->sink, &t->pipeline)) {
        task_set_verdict(t, REASON_INTERNAL, STAGE_PREPARATION, "no memory");
        jobs_soon(t, TASK_END | TASK_REAP);
        return;
    }
    pipeline_set_place(t->pipeline, &place);
    task_caller_waits(t, true);
}

static void refuse(struct task *t, enum reason reason, const char *text)
{
    task_set_verdict(t, reason, STAGE_PREPARATION, text);
    jobs_soon(t, TASK_END | TASK_REAP);
}

// Its team had room when the job was accepted; those before it may have taken all of that.
static bool has_share(struct task *t)
{
    char text[SHARES_TEXT];
    if (share_room(t->share) > 0) {
        return true;
    }
    refuse(t, REASON_POLICY, shares_refuse(t->jobs->config.shares, t->team, text));
    return false;
}

// There may be enough of it later.
static bool is_short(int e) { return e == SESSIONS_NO_DISK || error_is_shortage(e); }

// Its turn, its row and its request are there.
static void enter(struct task *t)
{
    if (t->verdict != REASON_OK) {
        jobs_soon(t, TASK_END | TASK_REAP);
        return;
    }
    if (t->jobs->config.limits.disabled) { // it was accepted before that
        refuse(t, REASON_POLICY, JOBS_DISABLED_TEXT);
        return;
    }
    if (t->session && !has_share(t)) { // what it writes would be kept
        return;
    }
    if (t->session) {
        int e = sessions_lease(t->jobs->config.sessions, t->team, t->session, &t->lease);
        if (e == SESSIONS_MISSING || e == SESSIONS_EXPIRED) {
            refuse(t, REASON_POLICY, "the session has expired or was deleted while the job waited");
            return;
        }
        if (e && !is_short(e)) {
            char text[160];
            snprintf(text, sizeof text, "the session's folder cannot be used: %s",
                     e < 0 ? strerror(-e) : "its user id is taken");
            refuse(t, REASON_INTERNAL, text);
            return;
        }
        if (e) {
            lacks(t, e == SESSIONS_NO_DISK ? QUEUE_DISK_BYTES : QUEUE_MEMORY_BYTES);
            jobs_soon(t, TASK_REAP | TASK_PUT_BACK);
            return;
        }
        t->leased = true;
    }
    run(t);
}

// On a thread or the loop. What the job was accepted for is its row's; t->job is nobody else's yet.
static void parse_request(struct work *w)
{
    struct task *t = w->ctx;
    t->load_error =
        job_parse(t->request ? t->request : "", t->request_len, 0, &t->job, &t->load_why);
    job_bind(&t->job, NULL, 0);
}

static void drop_request(struct task *t)
{
    shared_release(t->request);
    t->request = NULL;
}

static void request_parsed(struct work *w)
{
    struct task *t = w->ctx;
    int e = t->load_error;
    e = e ? e : lower_check_host(&t->job, &t->jobs->config.pipeline->host, &t->load_why);
    drop_request(t);
    snprintf(t->job.id, sizeof t->job.id, "%s", t->id);
    if (e) {
        task_set_verdict(t, e == -EINVAL ? REASON_POLICY : REASON_INTERNAL, STAGE_PREPARATION,
                         e == -EINVAL ? t->load_why.text : strerror(-e));
    }
    enter(t);
}

static void on_request(void *ctx, const struct store_record *r)
{
    struct task *t = ctx;
    const struct store_text *request = &r->job.request;
    t->request = store_take_text(r, request);
    t->request_len = request->len;
    if (!t->request) {
        task_set_verdict(t, REASON_INTERNAL, STAGE_PREPARATION, "no memory for its request");
    }
}

static void on_request_end(void *ctx, int error)
{
    struct task *t = ctx;
    if (error) {
        task_set_verdict(t, REASON_INTERNAL, STAGE_PREPARATION,
                         error < 0 ? strerror(-error) : "its record is gone");
    }
    if (t->verdict != REASON_OK) {
        drop_request(t);
        enter(t);
        return;
    }
    t->load = (struct work){
        .run = parse_request, .done = request_parsed, .ctx = t, .owner = work_owner(t->team)};
    t->job = (struct job){.stdin_fd = -1};
    t->loaded = true; // to be freed, whatever becomes of it
    if (t->request_len <= LOAD_HERE_BYTES || work_queue(t->jobs->config.pool, &t->load)) {
        parse_request(&t->load);
        request_parsed(&t->load);
    }
}

static void load(struct task *t)
{
    struct store_query q = {.kind = STORE_GET_JOB, .id = store_text_of(t->id)};
    store_read(t->jobs->config.store, &q, &(struct store_reader){on_request, on_request_end, t});
}

// From here on a crash ends the job as worker_lost: that it begins is on the disk before it does.
static void on_claimed(void *ctx, const struct store_outcome *o)
{
    struct task *t = ctx;
    if (o->error < 0) { // the disk is full, or broken: it has its place until that is over
        lacks(t, QUEUE_MEMORY_BYTES);
        lacks(t, QUEUE_DISK_BYTES);
        jobs_soon(t, TASK_REAP | TASK_PUT_BACK);
        return;
    }
    load(t);
}

static void claim(struct task *t)
{
    struct jobs *j = t->jobs;
    struct store_write w = {.kind = STORE_JOB_STATUS};
    w.job.id = store_text_of(t->id);
    w.job.status = STATUS_PREPARING;
    w.job.started_ms = clock_wall_ms();
    w.job.epoch = j->epoch;
    if (store_write(j->config.store, &w, on_claimed, t)) {
        const struct store_outcome failed = {.error = -EIO};
        on_claimed(t, &failed);
    }
}

static void begin(struct task *t)
{
    t->at = TASK_CLAIMED;
    if (t->accepted && !t->loaded) {
        claim(t);
    } else {
        enter(t);
    }
}

// ---- Next --------------------------------------------------------------------------------------

static void set_deadline(struct jobs *j, uint64_t now)
{
    uint64_t due = queue_deadline_ns(j->queue);
    if (due) {
        loop_timer_set(j->config.loop, &j->deadline, due > now ? due - now : 0);
    } else {
        loop_timer_clear(j->config.loop, &j->deadline);
    }
}

static void pump(struct jobs *j)
{
    uint64_t now = clock_now_ns();
    struct queue_entry *e = NULL;
    struct queue_stats s;
    jobs_expire(j, now);
    do {
        queue_stats(j->queue, &s);
        if (s.waiting == 0) {
            break;
        }
        jobs_look_at_resources(j);
        e = queue_next(j->queue, now);
        if (e) {
            begin(e->ctx);
        }
    } while (e);
    set_deadline(j, now);
    jobs_tell_short(j, s.waiting > 0 && s.running < j->config.limits.queue.slots && !j->closed);
    if (s.waiting > 0 && s.running == 0 && !j->closed && !j->retry.due_ns) {
        // nothing of ours will end and give back what is short
        loop_timer_set(j->config.loop, &j->retry, RETRY_MS * NS_PER_MS);
    }
    jobs_look_if_drained(j);
}

static void next_turn(struct loop_timer *timer)
{
    struct jobs *j = timer->ctx;
    struct task *t = j->soon_first;
    j->soon_first = NULL;
    j->soon_end = &j->soon_first;
    while (t) {
        struct task *next = t->next_soon;
        unsigned what = t->soon;
        t->soon = 0;
        do_soon(t, what);
        t = next;
    }
    pump(j);
}

static void deadline_is_due(struct loop_timer *timer) { pump(timer->ctx); }

static void try_again(struct loop_timer *timer)
{
    struct jobs *j = timer->ctx;
    jobs_expire(j, clock_now_ns()); // while it is known what was lacking
    memset(j->lacking, 0, sizeof j->lacking);
    pump(j);
}

void jobs_slots_init(struct jobs *j)
{
    j->soon = LOOP_TIMER_INIT(next_turn, j);
    j->deadline = LOOP_TIMER_INIT(deadline_is_due, j);
    j->retry = LOOP_TIMER_INIT(try_again, j);
    j->soon_end = &j->soon_first;
}

void task_stop(struct task *t, enum reason reason, const char *text)
{
    switch (t->at) {
    case TASK_SUBMITTED:
    case TASK_CLAIMED: // it ends when the store has answered
        task_set_verdict(t, reason, STAGE_QUEUE, text);
        break;
    case TASK_WAITING:
        queue_remove(t->jobs->queue, &t->entry);
        task_set_verdict(t, reason, STAGE_QUEUE, text);
        jobs_soon(t, TASK_END | TASK_REAP);
        break;
    case TASK_RUNNING:
        if (t->soon & TASK_PUT_BACK) {
            task_set_verdict(t, reason, STAGE_QUEUE, text);
        } else if (t->pipeline) {
            pipeline_stop(t->pipeline, reason, text);
        }
        break;
    case TASK_KEEPING:
        if (t->gathering) {
            task_set_verdict(t, reason, STAGE_COLLECTION, text);
            gathering_cancel(t->gathering);
        }
        break;
    case TASK_ENDED:
        break;
    }
}
