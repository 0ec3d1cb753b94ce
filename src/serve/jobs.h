// jobs.h: jobs from acceptance to the last reader: queue, slots, pipelines, results, and whoever
// waits. One job is one row in the store, and while it waits or runs one struct here.
//
// Waiting calls are notified, nothing polls. A job that was accepted (jobs_accept) is durable
// before the caller hears of it and outlives the service; one whose caller waits (jobs_run) is
// cancelled when that caller leaves, and is recorded after the answer.
//
// What is short (a uid, memory, disk) is waited for: a job never fails for it. Jobs in the queue of
// an older start run; those that it had begun ended as worker_lost, and are not begun again.
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
struct shares;
struct work_pool;

// What may change while the service runs (SIGHUP).
struct jobs_limits {
    struct queue_limits queue; // slots: SANDBOX_WORKER_CONCURRENCY
    uint64_t queue_timeout_ms; // SANDBOX_QUEUE_TIMEOUT_SECONDS; 0: none
    uint64_t memory_bytes;     // all running jobs together; 0: what the machine has
    uint64_t tool_timeout_ms;  // STREAM_TOOL_TIMEOUT_CODE; of calls from then on
    int64_t result_ttl_ms;     // SANDBOX_RESULT_TTL_SECONDS
    bool disabled;             // SANDBOX_RUNTIME_ENABLED=false: every job is refused
};

#define JOBS_DISABLED_TEXT "SANDBOX_RUNTIME_ENABLED is false: every job is refused"

struct jobs_config {
    struct loop *loop;
    struct runner *runner;
    const struct pipeline_config *pipeline;
    struct store *store;
    struct sessions *sessions;
    struct artifacts *artifacts;
    struct shares *shares;
    struct work_pool *pool;
    // A sandbox failed for a reason of its own; may be NULL. Not what a job that never began, or
    // artifacts that could not be kept, ended by.
    void (*doubt)(void *ctx, const char *why);
    void *doubt_ctx;
    struct log *log;
    struct jobs_limits limits;
};

// Takes up the jobs that the store still has as queued. 0 or -errno.
int jobs_new(const struct jobs_config *c, struct jobs **ret);
// What this host allows of a job, for lower_check_host().
const struct lower_host *jobs_host(const struct jobs *j);
// 0, or -EINVAL: then the old ones stay.
int jobs_change(struct jobs *j, const struct jobs_limits *limits);
// Nothing new is accepted or started; `drained` comes from the loop when nothing runs any more and
// the store has answered. What still runs after limit_ms is cancelled, and so is what waits for a
// slot with a caller; other queued jobs stay for the next start.
void jobs_drain(struct jobs *j, uint64_t limit_ms, void (*drained)(void *ctx), void *ctx);
// The same when the launcher is gone, and every sandbox with it: what still runs ends at once, as
// WORKER_LOST, wherever it was.
void jobs_lose(struct jobs *j, void (*drained)(void *ctx), void *ctx);
// After the store was closed, which calls what jobs_free() would take away. NULL is harmless.
void jobs_free(struct jobs *j);

enum jobs_refusal {
    JOBS_TEAM_FULL = 1, // 429, with `queue`
    JOBS_FULL,          // 429, with `queue`
    JOBS_HEAVY,         // 429, with the wait in `queue`: those that wait hold too much memory
    JOBS_NO_SHARE,      // 429: as much is kept of the team as it may have (shares.h)
    JOBS_CLOSED,        // 503: the service ends, or its store is broken
    JOBS_DISABLED,      // 503: jobs_limits.disabled
    JOBS_CONFLICT,      // the caller's key has been used for another job
    JOBS_NO_SESSION,    // never existed
    JOBS_SESSION_GONE,  // expired or deleted
};

struct jobs_submission {
    const char *team;
    struct job job;      // checked, descriptors bound; taken over, on failure too
    const char *request; // an accepted job's, as JSON that job_parse() takes: for the row
    size_t request_len;
    const char *request_hash; // SHA-256 of it, in hexadecimal; where there is a caller_key
    const char *caller_key;   // Idempotency-Key, or NULL; of accepted jobs
    // A waiting call of an agent's or a saved tool: it ends jobs_limits.tool_timeout_ms from here
    // on at the latest, wherever the job is, its wait in the queue included. Others are answered 5
    // s after the job's own limit, counted from its start.
    bool tool_call;
    const char *entry; // for log and metrics: "execute-code", "jobs"; a literal
    const char *trace; // trace id (32 hex digits) or NULL
};

// Someone who looks at a job, in their own struct. Callbacks come from the loop, never from within
// a call; after `ended` nothing follows and the watch is free.
struct jobs_watch {
    void (*changed)(struct jobs_watch *w); // status or output; may be NULL
    // r: the result while it is in memory, or NULL (it came from the store); json: NULL only where
    // there was no memory for it. Either may be held beyond the call: jobs_result_hold(),
    // shared_hold() (base/shared.h).
    void (*ended)(struct jobs_watch *w, const struct result *r, const char *json, size_t len);
    void *ctx;
    // inner
    void *job;
    struct jobs_watch *next;
    bool waits; // its leaving cancels the job
};

// A waiting call: 0, a refusal (with *ret_queue for the 429s), or -errno.
int jobs_run(struct jobs *j, struct jobs_submission *s, struct jobs_watch *w, char ret_id[37],
             struct queue_refusal *ret_queue);
// A waiting call whose job runs nothing: files of its session become its artifacts, as those of
// jobs do, but all or none; the error then names every one that is refused. The job has a session,
// artifacts and their bounds; its command is never looked at. It waits neither for a slot nor for
// jobs of its session, and is found, listed, counted, logged and kept like any other. 0, a refusal,
// or -errno.
int jobs_collect(struct jobs *j, struct jobs_submission *s, struct jobs_watch *w, char ret_id[37]);
// An accepted job: `accepted` comes once, when it is durable or cannot be, possibly before this
// returns: error 0, a refusal, or -errno. With the same caller's key and request as before: id of
// that job, `same` true.
struct jobs_accepted {
    int error;
    bool same;
    char id[37];
    struct queue_refusal queue;
};
void jobs_accept(struct jobs *j, struct jobs_submission *s,
                 void (*accepted)(void *ctx, const struct jobs_accepted *a), void *ctx);
// Ends a watch before its `ended`. Cancels the job of a jobs_run() watch. Harmless on one that
// watches nothing.
void jobs_leave(struct jobs *j, struct jobs_watch *w);
// Watches a job of the team that has not ended. 0; -ENOENT: no such job here (the store may know
// it).
int jobs_watch(struct jobs *j, const char *team, const char *id, struct jobs_watch *w);

// What a watched job has said so far: the kept heads, raw bytes. Valid until the loop's next turn.
struct jobs_view {
    enum job_status status;
    const struct buf *out, *err;
};
void jobs_view(const struct jobs_watch *w, struct jobs_view *ret);

// The job's SandboxResult as it is now: `got` comes once with its JSON, which may be held
// (base/shared.h), possibly before this returns; NULL: no such job. An error of the store is its
// status -1 with NULL. A long one is written and read on threads.
void jobs_get(struct jobs *j, const char *team, const char *id,
              void (*got)(void *ctx, const char *json, size_t len, int status), void *ctx);
// A result as `ended` has it: as long as it is held it stays as it is, and any thread may read it.
// To be held and released on the loop's thread. NULL is harmless.
void jobs_result_hold(const struct result *r);
void jobs_result_release(const struct result *r);
// About how many bytes it has as JSON, at least.
size_t jobs_result_bytes(const struct result *r);
// Brings a row of the list up to now, where memory is ahead of it: status and times, and the reason
// of a job whose end the store has not taken yet.
void jobs_row_now(const struct jobs *j, const char *id, struct store_job *row);
// Cancels what waits or runs; harmless for what is about to end. 0, or -ENOENT: not here (it has
// ended, or there is none).
int jobs_cancel(struct jobs *j, const char *team, const char *id);
// Cancels all jobs of a session.
void jobs_cancel_session(struct jobs *j, const char *session);

// For /metrics, since the start.
enum { JOBS_BUCKETS = 16 };
struct jobs_histogram {
    uint64_t count[JOBS_BUCKETS + 1]; // the last: above all bounds
    uint64_t sum_ms;
};
extern const uint32_t jobs_bucket_ms[JOBS_BUCKETS]; // upper bounds, inclusive
enum jobs_stage { JOBS_QUEUE, JOBS_PREPARE, JOBS_INSTALL, JOBS_EXECUTE, JOBS_COLLECT, JOBS_STAGES };
extern const char *const jobs_stage_names[JOBS_STAGES];
enum { JOBS_KINDS = 4 }; // enum language; that of a command is "command"
extern const char *const jobs_kind_names[JOBS_KINDS];
struct jobs_stats {
    uint64_t ended[JOBS_KINDS][REASON_COUNT];
    struct jobs_histogram stages[JOBS_STAGES];
    uint64_t accepted, refused; // refused: 429 of the queue's; shares.h counts its own
    uint64_t sandbox_failures;  // the sandbox itself failed, as jobs_config.doubt has it
    uint64_t unisolated;        // ran without a sandbox
    uint64_t fallbacks;         // of these, as theirs had failed
    uint64_t put_back;          // times that one was to begin, and something was short
    uint64_t warm, cold;        // sandboxes that were there when they were asked for; that were not
    uint64_t lost_results;      // that the store did not take
    uint32_t waiting, running, slots;
    uint64_t oldest_ms; // how long the oldest of those that wait has
    uint64_t memory_used, memory_capacity;
};
void jobs_stats(const struct jobs *j, struct jobs_stats *ret);

#endif
