// jobs_told.c: results on their way to whoever asked: held while they are read, and a job as it is
// now as JSON, written on a thread where it is long.
#include "serve/jobs_inner.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARTIFACT_BYTES = 512 };

// ---- Results that are held ---------------------------------------------------------------------

struct told {
    size_t holds;
    struct result result;
};

static struct told *told_of(const struct result *r)
{
    return (struct told *)((uintptr_t)r - offsetof(struct told, result));
}

struct result *told_new(void)
{
    struct told *t = calloc(1, sizeof *t);
    if (!t) {
        return NULL;
    }
    t->holds = 1;
    return &t->result;
}

void told_take(struct result *to, struct result *from)
{
    *to = *from;
    from->value = from->error = from->isolation.fallback = NULL;
    from->value_is_output = false;
    from->out = BUF_INIT(from->out.max);
    from->err = BUF_INIT(from->err.max);
    from->artifacts = NULL;
    from->n_artifacts = 0;
}

static struct buf head_of(const struct buf *text, size_t max)
{
    struct buf b = BUF_INIT(text->max);
    buf_add(&b, text->data, text->len < max ? text->len : max);
    return b;
}

void told_copy(struct result *to, const struct result *from, size_t max)
{
    *to = *from;
    to->value = NULL;
    to->value_is_output = false;
    to->artifacts = NULL;
    to->n_artifacts = 0;
    to->error = from->error ? strdup(from->error) : NULL;
    to->isolation.fallback = from->isolation.fallback ? strdup(from->isolation.fallback) : NULL;
    to->out = head_of(&from->out, max);
    to->err = head_of(&from->err, max);
    to->truncated_stdout |= from->out.len > max;
    to->truncated_stderr |= from->err.len > max;
}

void jobs_result_hold(const struct result *r)
{
    if (r) {
        told_of(r)->holds++;
    }
}

void jobs_result_release(const struct result *r)
{
    struct told *t = r ? told_of(r) : NULL;
    if (t && --t->holds == 0) {
        result_done(&t->result);
        free(t);
    }
}

size_t jobs_result_bytes(const struct result *r)
{
    return r->out.len + r->err.len + r->value_len + r->n_artifacts * ARTIFACT_BYTES;
}

// ---- A job as it is now ------------------------------------------------------------------------

struct getting {
    struct jobs *jobs;
    void (*got)(void *ctx, const char *json, size_t len, int status);
    void *ctx;
    bool found;
    // on a thread
    struct work work;
    struct getting *next;
    struct result now;
    char *json;
    size_t len;
    int status;
};

static struct getting *getting_new(struct jobs *j,
                                   void (*got)(void *ctx, const char *json, size_t len, int status),
                                   void *ctx)
{
    struct getting *g = calloc(1, sizeof *g);
    if (g) {
        *g = (struct getting){.jobs = j, .got = got, .ctx = ctx};
    }
    return g;
}

static void write_now(struct work *w)
{
    struct getting *g = w->ctx;
    AUTO_BUF struct buf out = BUF_INIT(RESULT_MAX_BYTES);
    g->json = result_write(&out, &g->now) ? NULL : shared_of(buf_text(&out), out.len);
    g->len = out.len;
}

static void now_written(struct work *w)
{
    struct getting *g = w->ctx;
    struct getting **at = &g->jobs->gets;
    while (*at != g) {
        at = &(*at)->next;
    }
    *at = g->next;
    g->got(g->ctx, g->json, g->len, g->json ? g->status : -1);
    shared_release(g->json);
    result_done(&g->now);
    free(g);
}

void told_free_gets(struct jobs *j)
{
    while (j->gets) {
        now_written(&j->gets->work);
    }
}

static void get_now(struct getting *g, const struct task *t)
{
    struct result now;
    if (!task_now(t, &now)) {
        g->got(g->ctx, t->json, t->json_len, t->json ? (int)t->status : -1);
        free(g);
        return;
    }
    told_copy(&g->now, &now, SIZE_MAX);
    g->status = (int)t->status;
    g->work = (struct work){
        .run = write_now, .done = now_written, .ctx = g, .owner = work_owner(t->team)};
    g->next = g->jobs->gets;
    g->jobs->gets = g;
    if (jobs_result_bytes(&now) <= WRITE_HERE_BYTES || work_queue(g->jobs->config.pool, &g->work)) {
        write_now(&g->work);
        now_written(&g->work);
    }
}

static enum reason reason_of(const struct store_job *row)
{
    for (enum reason r = REASON_OK; r < REASON_COUNT; r++) {
        if (strlen(reason_names[r]) == row->reason.len &&
            memcmp(reason_names[r], row->reason.data, row->reason.len) == 0) {
            return r;
        }
    }
    return REASON_WORKER_LOST;
}

// A row without a result: it waits or runs elsewhere, its worker was lost, or there was no memory
// for the result.
static void write_row(struct buf *out, const struct store_job *row)
{
    struct result r;
    char id[37];
    snprintf(id, sizeof id, "%.*s", (int)row->id.len, row->id.data);
    result_init(&r, id, 0, 0);
    r.isolation.launcher = "unknown";
    r.isolation.start = "cold";
    r.isolation.network = "none";
    r.queued_at = row->submitted_ms;
    r.started_at = row->started_ms;
    r.completed_at = row->ended_ms;
    r.under_way = row->status < STATUS_COMPLETED;
    r.status = (enum job_status)row->status;
    if (!r.under_way) { // how much it had written, nobody knows any more
        r.usage.stdout_bytes = r.usage.stderr_bytes = RESULT_UNKNOWN;
        r.truncated_stdout = r.truncated_stderr = true;
        enum reason reason = reason_of(row);
        result_fail(&r, REASON_WORKER_LOST, reason == REASON_OK ? STAGE_NONE : STAGE_EXECUTION,
                    reason == REASON_WORKER_LOST
                        ? "The service ended while the job ran; it was not begun again"
                        : "The job has ended, and its result was lost");
        r.reason = reason;
    }
    result_write(out, &r);
    result_done(&r);
}

static void on_row(void *ctx, const struct store_record *r)
{
    struct getting *g = ctx;
    const struct store_job *row = &r->job;
    AUTO_BUF struct buf out = BUF_INIT(RESULT_MAX_BYTES);
    const bool ended = row->result.data && row->result.len;
    if (!ended) {
        write_row(&out, row);
    }
    char *json = ended ? store_take_text(r, &row->result) : shared_of(buf_text(&out), out.len);
    g->found = true;
    g->got(g->ctx, json, ended ? row->result.len : out.len, json ? (int)row->status : -1);
    shared_release(json);
}

static void on_row_end(void *ctx, int error)
{
    struct getting *g = ctx;
    if (!g->found) {
        g->got(g->ctx, NULL, 0, error < 0 ? -1 : 0);
    }
    free(g);
}

void jobs_get(struct jobs *j, const char *team, const char *id,
              void (*got)(void *ctx, const char *json, size_t len, int status), void *ctx)
{
    const struct task *t = task_find(j, team, id);
    struct getting *g = getting_new(j, got, ctx);
    if (!g) {
        got(ctx, NULL, 0, -1);
    } else if (t && t->at != TASK_SUBMITTED) {
        get_now(g, t);
    } else {
        struct store_query q = {
            .kind = STORE_GET_JOB, .id = store_text_of(id), .team = store_text_of(team)};
        store_read(j->config.store, &q, &(struct store_reader){on_row, on_row_end, g});
    }
}
