// jobs_restore.c: jobs that an older start accepted and did not begin.
#include "serve/jobs_inner.h"

#include "base/fd.h"
#include "log/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PAGE_ROWS = 50 };

struct restoring {
    struct jobs *jobs;
    unsigned rows;
    int error;
    char last[STORE_ID_MAX + 1];
};

static char *copy(const struct store_text *t) { return t->data ? strndup(t->data, t->len) : NULL; }

// Its request is parsed for what the job needs, and let go: it is read again when its turn comes.
static int restore(struct jobs *j, const struct store_job *row)
{
    AUTO_FREE char *team = copy(&row->team);
    struct job_error error = {.text = ""};
    struct job job;
    int e =
        job_parse(row->request.data ? row->request.data : "", row->request.len, 0, &job, &error);
    if (e) {
        job_done(&job);
        job = (struct job){.stdin_fd = -1};
        limits_init(&job.limits);
    }
    if (row->id.len >= sizeof job.id || !team) {
        job_done(&job);
        if (team) { // written by nobody here; no reason not to serve
            log_say(j->config.log, LOG_ERROR, "queued job left out: its id is none");
        }
        return team ? 0 : -ENOMEM;
    }
    snprintf(job.id, sizeof job.id, "%.*s", (int)row->id.len, row->id.data);
    struct task *t = task_new(j, team, &job);
    if (!t) {
        return -ENOMEM;
    }
    t->accepted = t->entry.accepted = true;
    t->entry_name = "restart";
    t->submitted_ms = row->submitted_ms;
    t->at = TASK_WAITING;
    int added = task_enqueue(t, NULL);
    task_drop_job(t);
    if (added) {
        task_free(t);
        return added < 0 ? added : -EAGAIN;
    }
    if (e) { // an older version took what this one does not
        task_stop(t, e == -ENOMEM ? REASON_INTERNAL : REASON_POLICY,
                  error.text[0] ? error.text : strerror(-e));
    }
    return 0;
}

static void on_row(void *ctx, const struct store_record *r)
{
    struct restoring *s = ctx;
    s->rows++;
    snprintf(s->last, sizeof s->last, "%.*s", (int)r->job.id.len, r->job.id.data);
    if (!s->error) {
        s->error = restore(s->jobs, &r->job);
    }
}

static void on_end(void *ctx, int error)
{
    struct restoring *s = ctx;
    s->error = s->error ? s->error : error;
}

int jobs_restore(struct jobs *j)
{
    struct restoring s = {.jobs = j};
    do {
        struct store_query q = {.kind = STORE_LIST_QUEUED, .limit = PAGE_ROWS};
        if (s.last[0]) {
            q.cursor = store_text_of(s.last);
        }
        s.rows = 0;
        store_read(j->config.store, &q, &(struct store_reader){on_row, on_end, &s});
    } while (!s.error && s.rows == PAGE_ROWS);
    return s.error;
}
