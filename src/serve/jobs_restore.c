// jobs_restore.c: jobs that an older start accepted and did not begin. They have their places in
// the queue at once; what each needs stands in its request, which is read after that, one in a turn
// of the loop, a long one on a thread. It is let go again until the job's turn comes.
#include "serve/jobs_inner.h"

#include "base/fd.h"
#include "log/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    PAGE_ROWS = 200,
    READ_HERE_BYTES = 128 << 10, // a longer request is parsed on a thread
    GROWTH = 64,
};

struct restoring {
    struct jobs *jobs;
    struct loop_timer next;
    char (*ids)[37]; // in their order
    size_t n, room, at;
    // the one that is read: a thread's while `work` is queued
    struct work work;
    char *request; // shared
    size_t request_len;
    struct job job;
    struct job_error why;
    int error;
};

// ---- Places in the queue -----------------------------------------------------------------------

static int remember(struct restoring *s, const char *id)
{
    if (s->n == s->room) {
        void *more = reallocarray(s->ids, s->room + GROWTH, sizeof *s->ids);
        if (!more) {
            return -ENOMEM;
        }
        s->ids = more;
        s->room += GROWTH;
    }
    snprintf(s->ids[s->n++], sizeof *s->ids, "%s", id);
    return 0;
}

static int take_place(struct restoring *s, const struct store_job *row)
{
    struct jobs *j = s->jobs;
    struct job job = {.stdin_fd = -1};
    AUTO_FREE char *team = row->team.data ? strndup(row->team.data, row->team.len) : NULL;
    limits_init(&job.limits);
    if (row->id.len >= sizeof job.id || row->session.len >= sizeof job.session) {
        // written by nobody here; no reason not to serve
        log_say(j->config.log, LOG_ERROR, "queued job left out: its id is none");
        return 0;
    }
    snprintf(job.id, sizeof job.id, "%.*s", (int)row->id.len, row->id.data);
    if (row->session.data) {
        snprintf(job.session, sizeof job.session, "%.*s", (int)row->session.len, row->session.data);
    }
    struct task *t = team ? task_new(j, team, &job) : NULL;
    if (!t) {
        return -ENOMEM;
    }
    t->accepted = t->entry.accepted = t->entry.held = true;
    t->entry_name = "restart";
    t->submitted_ms = row->submitted_ms;
    t->at = TASK_WAITING;
    int e = task_enqueue(t, NULL);
    task_drop_job(t);
    if (e) {
        task_free(t);
        return e < 0 ? e : -EAGAIN;
    }
    return remember(s, t->id);
}

struct page {
    struct restoring *of;
    unsigned rows;
    int error;
    char last[STORE_ID_MAX + 1];
};

static void on_row(void *ctx, const struct store_record *r)
{
    struct page *p = ctx;
    p->rows++;
    snprintf(p->last, sizeof p->last, "%.*s", (int)r->job.id.len, r->job.id.data);
    if (!p->error) {
        p->error = take_place(p->of, &r->job);
    }
}

static void on_end(void *ctx, int error)
{
    struct page *p = ctx;
    p->error = p->error ? p->error : error;
}

// ---- Requests ----------------------------------------------------------------------------------

// NULL: it has been cancelled, or has ended, meanwhile.
static struct task *current(const struct restoring *s)
{
    struct task *t = task_find(s->jobs, NULL, s->ids[s->at]);
    return t && t->at == TASK_WAITING && t->entry.held ? t : NULL;
}

static void parse(struct work *w)
{
    struct restoring *s = w->ctx;
    s->error = job_parse(s->request ? s->request : "", s->request_len, 0, &s->job, &s->why);
}

static void drop_request(struct restoring *s)
{
    shared_release(s->request);
    s->request = NULL;
    job_done(&s->job);
    s->job = (struct job){.stdin_fd = -1};
}

static void parsed(struct work *w)
{
    struct restoring *s = w->ctx;
    struct task *t = current(s);
    if (t && !s->error) {
        task_learn(t, &s->job);
    }
    if (t) {
        queue_release(&t->entry);
        jobs_pump_soon(s->jobs);
    }
    if (t && s->error) { // an older version took what this one does not
        task_stop(t, s->error == -ENOMEM ? REASON_INTERNAL : REASON_POLICY,
                  s->why.text[0] ? s->why.text : strerror(-s->error));
    }
    drop_request(s);
    s->at++;
    loop_timer_set(s->jobs->config.loop, &s->next, 0);
}

static void on_request(void *ctx, const struct store_record *r)
{
    struct restoring *s = ctx;
    s->request = store_take_text(r, &r->job.request);
    s->request_len = s->request ? r->job.request.len : 0;
}

static void on_request_end(void *ctx, int error)
{
    struct restoring *s = ctx;
    struct task *t = current(s);
    if (error == -ESHUTDOWN) {
        drop_request(s);
        return;
    }
    if (error && t) { // its turn will tell
        queue_release(&t->entry);
        jobs_pump_soon(s->jobs);
    }
    s->why = (struct job_error){.text = ""};
    s->error = 0;
    s->work = (struct work){
        .run = parse, .done = parsed, .ctx = s, .owner = work_owner(t ? t->team : NULL)};
    if (s->request_len <= READ_HERE_BYTES || work_queue(s->jobs->config.pool, &s->work)) {
        parse(&s->work);
        parsed(&s->work);
    }
}

static void read_next(struct loop_timer *timer)
{
    struct restoring *s = timer->ctx;
    while (s->at < s->n && !current(s)) {
        s->at++;
    }
    if (s->at == s->n) {
        jobs_restore_end(s->jobs);
        return;
    }
    struct store_query q = {.kind = STORE_GET_JOB, .id = store_text_of(s->ids[s->at])};
    store_read(s->jobs->config.store, &q, &(struct store_reader){on_request, on_request_end, s});
}

int jobs_restore(struct jobs *j)
{
    struct restoring *s = calloc(1, sizeof *s);
    if (!s) {
        return -ENOMEM;
    }
    *s = (struct restoring){.jobs = j, .job = {.stdin_fd = -1}};
    s->next = LOOP_TIMER_INIT(read_next, s);
    j->restoring = s;
    struct page p = {.of = s};
    do {
        struct store_query q = {.kind = STORE_LIST_QUEUED, .limit = PAGE_ROWS};
        if (p.last[0]) {
            q.cursor = store_text_of(p.last);
        }
        p.rows = 0;
        store_read(j->config.store, &q, &(struct store_reader){on_row, on_end, &p});
    } while (!p.error && p.rows == PAGE_ROWS);
    loop_timer_set(j->config.loop, &s->next, 0);
    return p.error;
}

void jobs_restore_end(struct jobs *j)
{
    struct restoring *s = j->restoring;
    if (s) {
        loop_timer_clear(j->config.loop, &s->next);
        drop_request(s);
        free(s->ids);
        free(s);
        j->restoring = NULL;
    }
}
