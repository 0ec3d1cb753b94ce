#include "serve/jobs_inner.h"

#include "base/clock.h"
#include "base/fd.h"
#include "log/log.h"
#include "workspace/disk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

enum {
    MACHINE_PER_CENT = 90, // of its memory, for all jobs together
    HELD_RETRY_S = 1,
    STORED_ALWAYS_BYTES = 64 << 10, // of a request, as long as there is any room
};
// What jobs that wait with a caller may hold of the service's own memory; those of one team no more
// than is left for the others.
#define HELD_MAX_BYTES (UINT64_C(256) << 20)

// ---- Begin and end -----------------------------------------------------------------------------

static uint64_t memory_of(const struct jobs_limits *l)
{
    struct sysinfo s;
    if (l->memory_bytes) {
        return l->memory_bytes;
    }
    return sysinfo(&s) ? UINT64_MAX : (uint64_t)s.totalram * s.mem_unit / 100 * MACHINE_PER_CENT;
}

int jobs_new(const struct jobs_config *c, struct jobs **ret)
{
    struct store_stats st;
    struct jobs *j = calloc(1, sizeof *j);
    if (!j) {
        return -ENOMEM;
    }
    j->config = *c;
    j->memory_bytes = memory_of(&c->limits);
    store_stats(c->store, &st);
    j->epoch = st.epoch;
    jobs_slots_init(j);
    jobs_waits_init(j);
    int e = queue_new(&c->limits.queue, &j->queue);
    e = e ? e : jobs_restore(j);
    if (e) {
        jobs_free(j);
        return e;
    }
    jobs_sweep_init(j);
    jobs_pump_soon(j);
    *ret = j;
    return 0;
}

const struct lower_host *jobs_host(const struct jobs *j) { return &j->config.pipeline->host; }

int jobs_change(struct jobs *j, const struct jobs_limits *limits)
{
    int e = queue_set_limits(j->queue, &limits->queue);
    if (!e) {
        j->config.limits = *limits;
        j->memory_bytes = memory_of(limits);
        loop_timer_set(j->config.loop, &j->sweep_due, 0); // the results' time may be shorter
        jobs_pump_soon(j);
    }
    return e;
}

void jobs_look_if_drained(struct jobs *j)
{
    struct queue_stats q;
    if (!j->drained) {
        return;
    }
    queue_stats(j->queue, &q);
    if (q.running > 0 || j->n_tasks > q.waiting || j->sweeping) {
        return; // something runs, or its row is on its way
    }
    void (*drained)(void *ctx) = j->drained;
    j->drained = NULL;
    loop_timer_clear(j->config.loop, &j->drain);
    drained(j->drained_ctx);
}

static void drain_is_over(struct loop_timer *timer)
{
    struct jobs *j = timer->ctx;
    for (struct task *t = task_next(j, NULL); t; t = task_next(j, t)) {
        if (t->at == TASK_RUNNING || t->at == TASK_CLAIMED || t->gathering) {
            task_stop(t, j->lost ? REASON_WORKER_LOST : REASON_CANCELLED,
                      j->lost ? "the sandbox was lost: its launcher is gone" : JOBS_STOPPING_TEXT);
        }
    }
}

void jobs_drain(struct jobs *j, uint64_t limit_ms, void (*drained)(void *ctx), void *ctx)
{
    j->closed = true;
    j->drained = drained;
    j->drained_ctx = ctx;
    queue_set_mode(j->queue, QUEUE_STOPPED);
    loop_timer_clear(j->config.loop, &j->retry);
    loop_timer_clear(j->config.loop, &j->calm);
    loop_timer_clear(j->config.loop, &j->sweep_due);
    for (struct task *t = task_next(j, NULL); t; t = task_next(j, t)) {
        if (t->at == TASK_WAITING && !t->accepted) {
            task_stop(t, REASON_CANCELLED, JOBS_STOPPING_TEXT);
        }
    }
    j->drain = LOOP_TIMER_INIT(drain_is_over, j);
    loop_timer_set(j->config.loop, &j->drain, limit_ms * NS_PER_MS);
    jobs_pump_soon(j);
}

void jobs_lose(struct jobs *j, void (*drained)(void *ctx), void *ctx)
{
    j->lost = true;
    jobs_drain(j, 0, drained, ctx);
}

void jobs_free(struct jobs *j)
{
    if (!j) {
        return;
    }
    struct loop_timer *timers[] = {&j->soon, &j->deadline,  &j->retry,
                                   &j->calm, &j->sweep_due, &j->drain};
    for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
        loop_timer_clear(j->config.loop, timers[i]);
    }
    told_free_gets(j);
    jobs_restore_end(j);
    for (struct task *t = task_next(j, NULL); t; t = task_next(j, NULL)) {
        loop_timer_clear(j->config.loop, &t->caller);
        loop_timer_clear(j->config.loop, &t->record_again);
        pipeline_free(t->pipeline);
        gathering_free(t->gathering);
        if (t->leased) {
            sessions_release(j->config.sessions, &t->lease, SESSIONS_MEASURE);
        }
        task_free(t);
    }
    queue_free(j->queue);
    free(j);
}

// ---- In ----------------------------------------------------------------------------------------

int jobs_session_refusal(int error)
{
    return error == SESSIONS_MISSING   ? JOBS_NO_SESSION
           : error == SESSIONS_EXPIRED ? JOBS_SESSION_GONE
           : error == SESSIONS_NO_DISK ? -ENOSPC
           : error > 0                 ? -EAGAIN
                                       : error;
}

static int check_session(struct jobs *j, const char *team, const char *session)
{
    struct session_lease l;
    if (!session[0]) {
        return 0;
    }
    int e = sessions_lease(j->config.sessions, team, session, &l);
    if (e == 0) {
        sessions_release(j->config.sessions, &l, SESSIONS_UNCHANGED);
    }
    e = e > 0 ? jobs_session_refusal(e) : 0;
    return e > 0 ? e : 0; // what is short is waited for
}

static bool holds_too_much(const struct jobs *j, const char *team)
{
    uint64_t own = 0;
    if (j->held_bytes <= HELD_MAX_BYTES / 2 || j->held_bytes > HELD_MAX_BYTES) {
        return j->held_bytes > HELD_MAX_BYTES;
    }
    for (const struct task *t = task_next(j, NULL); t; t = task_next(j, t)) {
        own += strcmp(t->team, team) == 0 ? t->held_bytes : 0;
    }
    return own > HELD_MAX_BYTES - j->held_bytes;
}

// For a request that is to be kept: the last of the disk is for how jobs end.
static bool has_room(const struct jobs *j, size_t request_len)
{
    return request_len <= STORED_ALWAYS_BYTES ||
           disk_takes_record(j->config.pipeline->workspace_root, request_len);
}

// A task in the queue, or what is in the way of it.
static int take_in(struct jobs *j, struct jobs_submission *s, bool accepted, struct task **ret,
                   struct queue_refusal *ret_queue)
{
    int e = j->closed                   ? JOBS_CLOSED
            : j->config.limits.disabled ? JOBS_DISABLED
                                        : check_session(j, s->team, s->job.session);
    e = e || !accepted || has_room(j, s->request_len) ? e : -ENOSPC;
    if (!e && holds_too_much(j, s->team)) {
        *ret_queue = (struct queue_refusal){.retry_after_s = HELD_RETRY_S};
        j->stats.refused++;
        e = JOBS_HEAVY;
    }
    if (e) {
        job_done(&s->job);
        return e;
    }
    struct task *t = task_new(j, s->team, &s->job);
    if (!t) {
        return -ENOMEM;
    }
    if (accepted) {
        task_holds(t, s->request_len); // with the store, until its row is there
    }
    t->accepted = t->entry.held = accepted;
    t->at = accepted ? TASK_SUBMITTED : TASK_WAITING;
    t->entry_name = s->entry;
    snprintf(t->trace, sizeof t->trace, "%s", s->trace ? s->trace : "");
    t->tool_timeout_ms = s->tool_call ? j->config.limits.tool_timeout_ms : 0;
    if (share_room(t->share) == 0) { // whatever it leaves would be kept
        task_free(t);
        return JOBS_NO_SHARE;
    }
    e = task_enqueue(t, ret_queue);
    if (e) {
        j->stats.refused += e == QUEUE_TEAM_FULL || e == QUEUE_FULL;
        task_free(t);
        return e == QUEUE_TEAM_FULL  ? JOBS_TEAM_FULL
               : e == QUEUE_FULL     ? JOBS_FULL
               : e == QUEUE_NOT_OPEN ? JOBS_CLOSED
                                     : e;
    }
    *ret = t;
    return 0;
}

void task_watch(struct task *t, struct jobs_watch *w)
{
    w->job = t;
    w->next = t->watches;
    t->watches = w;
}

int jobs_run(struct jobs *j, struct jobs_submission *s, struct jobs_watch *w, char ret_id[37],
             struct queue_refusal *ret_queue)
{
    struct task *t;
    int e = take_in(j, s, false, &t, ret_queue);
    if (e) {
        return e;
    }
    w->waits = true;
    task_watch(t, w);
    task_caller_waits(t, false);
    memcpy(ret_id, t->id, sizeof t->id);
    jobs_pump_soon(j);
    return 0;
}

// Its row is there, or not, or there was one before it.
static void on_submitted(void *ctx, const struct store_outcome *o)
{
    struct task *t = ctx;
    struct jobs *j = t->jobs;
    struct jobs_accepted a = {.error = o->error};
    snprintf(a.id, sizeof a.id, "%s", t->id);
    task_drop_job(t);
    if (o->error == 0) {
        j->stats.accepted++;
        t->at = TASK_WAITING;
        queue_release(&t->entry);
        if (t->verdict != REASON_OK) { // it was cancelled, or its time in the queue was over
            queue_remove(j->queue, &t->entry);
            jobs_soon(t, TASK_END | TASK_REAP);
        }
        jobs_pump_soon(j);
    } else {
        if (o->error == STORE_SAME) {
            snprintf(a.id, sizeof a.id, "%.*s", (int)o->id_len, o->id);
            a.same = true;
            a.error = 0;
        }
        a.error = o->error == STORE_CONFLICT ? JOBS_CONFLICT : a.error;
        queue_remove(j->queue, &t->entry);
    }
    t->on_accepted(t->accepted_ctx, &a);
    if (o->error) {
        task_free(t);
        jobs_look_if_drained(j);
    }
}

void jobs_accept(struct jobs *j, struct jobs_submission *s,
                 void (*accepted)(void *ctx, const struct jobs_accepted *a), void *ctx)
{
    struct jobs_accepted a = {.error = 0};
    struct task *t;
    a.error = take_in(j, s, true, &t, &a.queue);
    if (a.error) {
        accepted(ctx, &a);
        return;
    }
    t->on_accepted = accepted;
    t->accepted_ctx = ctx;
    struct store_write w = {.kind = STORE_JOB_SUBMIT};
    w.job.id = store_text_of(t->id);
    w.job.team = store_text_of(t->team);
    w.job.session = store_text_of(t->session);
    w.job.request = (struct store_text){s->request, s->request_len};
    w.job.submitted_ms = t->submitted_ms;
    if (s->caller_key) {
        w.job.caller_key = store_text_of(s->caller_key);
        w.job.request_hash = store_text_of(s->request_hash);
    }
    int e = store_write(j->config.store, &w, on_submitted, t);
    if (e) {
        const struct store_outcome failed = {.error = e};
        on_submitted(t, &failed);
    }
}

// ---- Watching ----------------------------------------------------------------------------------

void jobs_leave(struct jobs *j, struct jobs_watch *w)
{
    struct task *t = w->job;
    (void)j;
    if (!t) {
        return;
    }
    for (struct jobs_watch **p = &t->watches; *p; p = &(*p)->next) {
        if (*p == w) {
            *p = w->next;
            break;
        }
    }
    w->job = NULL;
    if (w->waits) {
        task_stop(t, REASON_CANCELLED, "Cancelled: the caller has gone");
    }
}

int jobs_watch(struct jobs *j, const char *team, const char *id, struct jobs_watch *w)
{
    struct task *t = task_find(j, team, id);
    if (!t || t->at == TASK_ENDED || t->at == TASK_SUBMITTED) {
        return -ENOENT;
    }
    w->waits = false;
    task_watch(t, w);
    return 0;
}

void jobs_view(const struct jobs_watch *w, struct jobs_view *ret)
{
    static const struct buf empty = BUF_INIT(0);
    const struct task *t = w->job;
    const struct result *r = t->pipeline ? pipeline_result(t->pipeline) : NULL;
    *ret = (struct jobs_view){t->status, r ? &r->out : &empty, r ? &r->err : &empty};
}

// ---- Cancel ------------------------------------------------------------------------------------

void jobs_row_now(const struct jobs *j, const char *id, struct store_job *row)
{
    const struct task *t = task_find(j, NULL, id);
    if (!t) {
        return;
    }
    row->status = t->status;
    row->started_ms = t->started_ms; // 0 again, when it was put back
    if (t->status >= STATUS_COMPLETED) {
        row->reason = store_text_of(reason_names[t->verdict]);
        row->ended_ms = t->ended_ms;
    }
}

int jobs_cancel(struct jobs *j, const char *team, const char *id)
{
    struct task *t = task_find(j, team, id);
    if (!t || t->at == TASK_ENDED) {
        return -ENOENT;
    }
    task_stop(t, REASON_CANCELLED, "Cancelled");
    return 0;
}

void jobs_cancel_session(struct jobs *j, const char *session)
{
    for (struct task *t = task_next(j, NULL); t; t = task_next(j, t)) {
        if (t->session && !strcmp(t->session, session)) {
            task_stop(t, REASON_CANCELLED, "Cancelled: its session was deleted");
        }
    }
}
