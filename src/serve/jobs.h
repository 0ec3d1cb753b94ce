// jobs.h: jobs from acceptance to the last reader: queue, slots, pipelines, results, and whoever
// waits. One job is one row in the store, and while it waits or runs one struct here.
//
// Waiting calls are notified, nothing polls. A job that was accepted (jobs_accept) is durable
// before the caller hears of it and outlives the service; one whose caller waits (jobs_run) is
// cancelled when that caller leaves, and is recorded after the answer.
#ifndef ISLE_SERVE_JOBS_H
#define ISLE_SERVE_JOBS_H

#include "job/pipeline.h"
#include "queue/queue.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct artifacts;
struct jobs;
struct log;
struct runner;
struct sessions;

// What may change while the service runs (SIGHUP).
struct jobs_limits {
    struct queue_limits queue; // slots: SANDBOX_WORKER_CONCURRENCY
    uint64_t queue_timeout_ms; // SANDBOX_QUEUE_TIMEOUT_SECONDS; 0: none
    uint64_t memory_bytes;     // all running jobs together; 0: not bounded
    int64_t result_ttl_ms;     // SANDBOX_RESULT_TTL_SECONDS
};

struct jobs_config {
    struct loop *loop;
    struct runner *runner;
    const struct pipeline_config *pipeline;
    struct store *store;
    struct sessions *sessions;
    struct artifacts *artifacts;
    struct log *log;
    struct jobs_limits limits;
};

// Takes up the jobs that the store still has as queued. 0 or -errno.
int jobs_new(const struct jobs_config *c, struct jobs **ret);
void jobs_change(struct jobs *j, const struct jobs_limits *limits);
// Nothing new is accepted or started; `drained` comes when nothing runs any more, at the latest
// after limit_ms, when the rest is cancelled. Queued jobs stay for the next start.
void jobs_drain(struct jobs *j, uint64_t limit_ms, void (*drained)(void *ctx), void *ctx);
void jobs_free(struct jobs *j);

enum jobs_refusal {
    JOBS_TEAM_FULL = 1, // 429, with `queue`
    JOBS_FULL,          // 429, with `queue`
    JOBS_CLOSED,        // 503: the service ends, or its store is broken
    JOBS_CONFLICT,      // the caller's key has been used for another job
    JOBS_NO_SESSION,    // never existed
    JOBS_SESSION_GONE,  // expired or deleted
};

struct jobs_submission {
    const char *team;
    struct job job;      // checked, descriptors bound; taken over, on failure too
    const char *request; // the request as JSON that job_parse() takes, for the row
    size_t request_len;
    const char *session;    // id, or NULL
    const char *caller_key; // Idempotency-Key, or NULL
    uint64_t caller_ms;     // waiting calls: answered so long after the job's start at the latest;
                            // 0: its own time limit and 5 s
    const char *entry;      // for log and metrics: "execute-code", "jobs"
    const char *trace;      // trace id (32 hex digits) or NULL
};

// Someone who looks at a job, in their own struct. Callbacks come from the loop, never from within
// a call; after `ended` nothing follows and the watch is free.
struct jobs_watch {
    void (*changed)(struct jobs_watch *w); // status or output; may be NULL
    // r: the result while it is in memory, or NULL (it came from the store); json: always.
    void (*ended)(struct jobs_watch *w, const struct result *r, const char *json, size_t len);
    void *ctx;
    // inner
    void *job;
    struct jobs_watch *next;
    bool waits; // its leaving cancels the job
};

// A waiting call: 0, a refusal (*ret_queue filled for FULL), or -errno.
int jobs_run(struct jobs *j, struct jobs_submission *s, struct jobs_watch *w, char ret_id[37],
             struct queue_refusal *ret_queue);
// An accepted job: `accepted` comes once, when it is durable or cannot be: error 0, a refusal, or
// -errno. With the same caller's key and body as before: id of that job, `same` true.
struct jobs_accepted {
    int error;
    bool same;
    char id[37];
    struct queue_refusal queue;
};
int jobs_accept(struct jobs *j, struct jobs_submission *s,
                void (*accepted)(void *ctx, const struct jobs_accepted *a), void *ctx);
// Ends a watch before its `ended`. Cancels the job of a jobs_run() watch.
void jobs_leave(struct jobs *j, struct jobs_watch *w);
// Watches a job of the team that waits or runs. 0; -ENOENT: no such job here (the store may know
// it).
int jobs_watch(struct jobs *j, const char *team, const char *id, struct jobs_watch *w);

// The job's SandboxResult as it is now: `got` comes once with its JSON; NULL: no such job.
void jobs_get(struct jobs *j, const char *team, const char *id,
              void (*got)(void *ctx, const char *json, size_t len, enum job_status status),
              void *ctx);
// Cancels what waits or runs; harmless for what has ended. 0, or -ENOENT.
int jobs_cancel(struct jobs *j, const char *team, const char *id);
// Cancels all jobs of a session.
void jobs_cancel_session(struct jobs *j, const char *session);

#endif
