#include "serve/jobs_inner.h"

#include "base/clock.h"
#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t chain_of(const char *id) { return hash_bytes(id, strlen(id)) % TABLE_CHAINS; }

// What a job takes of the service's memory while it waits.
static uint64_t bytes_of(const struct job *job)
{
    uint64_t bytes = job->code_len + job->params_len + job->stdin_len;
    for (size_t i = 0; i < job->n_files; i++) {
        bytes += job->files[i].content_len;
    }
    return bytes;
}

static void set_kind(struct task *t, const struct job *job)
{
    t->kind = job->kind == JOB_COMMAND ? LANGUAGE_NONE : (int)job->language;
    t->timeout_ms = (uint64_t)job->limits.value[LIMIT_TIMEOUT];
}

struct task *task_new(struct jobs *j, const char *team, struct job *job)
{
    struct task *t = calloc(1, sizeof *t);
    if (!t) {
        job_done(job);
        return NULL;
    }
    t->jobs = j;
    t->job = *job;
    *job = (struct job){.stdin_fd = -1};
    t->loaded = true;
    snprintf(t->id, sizeof t->id, "%s", t->job.id);
    t->team = strdup(team);
    t->session = t->job.session[0] ? strdup(t->job.session) : NULL;
    set_kind(t, &t->job);
    t->submitted_ms = clock_wall_ms();
    t->held_bytes = bytes_of(&t->job);
    j->held_bytes += t->held_bytes;
    struct task **first = &j->chains[chain_of(t->id)];
    t->next = *first;
    *first = t;
    j->n_tasks++;
    t->share = t->team ? shares_hold(j->config.shares, t->team) : NULL;
    t->told = told_new();
    if (!t->told || !t->share || (t->job.session[0] && !t->session)) {
        task_free(t);
        return NULL;
    }
    return t;
}

void task_holds(struct task *t, uint64_t bytes)
{
    if (bytes > t->held_bytes) {
        t->jobs->held_bytes += bytes - t->held_bytes;
        t->held_bytes = bytes;
    }
}

void task_drop_job(struct task *t)
{
    t->jobs->held_bytes -= t->held_bytes;
    t->held_bytes = 0;
    if (t->loaded) {
        job_done(&t->job);
        t->loaded = false;
    }
}

void task_free(struct task *t)
{
    for (struct task **p = &t->jobs->chains[chain_of(t->id)]; *p; p = &(*p)->next) {
        if (*p == t) {
            *p = t->next;
            break;
        }
    }
    t->jobs->n_tasks--;
    task_drop_job(t);
    share_release(t->share);
    free(t->team);
    free(t->session);
    free(t->verdict_text);
    jobs_result_release(t->told);
    shared_release(t->json);
    shared_release(t->written);
    shared_release(t->request);
    free(t);
}

struct task *task_find(const struct jobs *j, const char *team, const char *id)
{
    struct task *t = j->chains[chain_of(id)];
    while (t && strcmp(t->id, id) != 0) {
        t = t->next;
    }
    return t && (!team || !strcmp(t->team, team)) ? t : NULL;
}

struct task *task_next(const struct jobs *j, const struct task *t)
{
    if (t && t->next) {
        return t->next;
    }
    for (size_t i = t ? chain_of(t->id) + 1 : 0; i < TABLE_CHAINS; i++) {
        if (j->chains[i]) {
            return j->chains[i];
        }
    }
    return NULL;
}

// Its needs are cut to what there is in all: a job that is larger runs alone.
static void set_needs(struct task *t, const struct job *job)
{
    const struct lower_staged nothing = {0, 0};
    struct lowered plan;
    uint64_t *needs = t->entry.needs;
    lower_job(job, &t->jobs->config.pipeline->host, &nothing, &plan);
    bool tmpfs = plan.start.workspace_kind == PLAN_WORKSPACE_TMPFS && !t->session;
    uint64_t memory = plan.start.limits.memory_bytes;
    needs[QUEUE_UIDS] = t->session ? 0 : 1;
    needs[QUEUE_MEMORY_BYTES] = memory < t->jobs->memory_bytes ? memory : t->jobs->memory_bytes;
    needs[QUEUE_DISK_BYTES] = tmpfs ? 0 : plan.workspace_bytes;
}

int task_enqueue(struct task *t, struct queue_refusal *ret)
{
    uint64_t now = clock_now_ns(), wait_ms = t->jobs->config.limits.queue_timeout_ms;
    set_needs(t, &t->job);
    t->entry.ctx = t;
    t->entry.team = t->team;
    t->entry.session = t->session;
    t->entry.wait_deadline_ns = wait_ms ? now + wait_ms * NS_PER_MS : 0;
    return queue_add(t->jobs->queue, &t->entry, now, ret);
}

void task_learn(struct task *t, const struct job *job)
{
    set_kind(t, job);
    set_needs(t, job);
}
