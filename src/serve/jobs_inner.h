// jobs_inner.h: what the parts of jobs.h share. Inside serve/jobs*.c only.
//
//   jobs.c          in: the calls of jobs.h     jobs_table.c    found by id; made and freed
//   jobs_slot.c     who runs: queue, pipelines  jobs_end.c      results, watches, rows, log
//   jobs_restore.c  what an older start left    jobs_sweep.c    results that were kept long enough
//   jobs_stats.c    for /metrics                jobs_collect.c  jobs that only leave files
//   jobs_caller.c   how long its caller waits   jobs_told.c     results on their way to readers
//   jobs_wait.c     what they wait for
#ifndef ISLE_SERVE_JOBS_INNER_H
#define ISLE_SERVE_JOBS_INNER_H

#include "serve/jobs.h"

#include "base/shared.h"
#include "io/loop.h"
#include "io/work.h"
#include "serve/artifacts.h"
#include "serve/sessions.h"
#include "serve/shares.h"
#include "store/sweep.h"

#define JOBS_STOPPING_TEXT "Cancelled: the service is being stopped"

enum task_at {
    TASK_SUBMITTED, // its row is on its way to the disk; it has its place in the queue
    TASK_WAITING,
    TASK_CLAIMED, // its turn: the store is told that it begins, and its request is read
    TASK_RUNNING,
    TASK_KEEPING, // it is over; its artifacts or, when it was accepted, its row are on their way
    TASK_ENDED,   // everybody has been told
};

// What is to be done with a task in the loop's next turn.
enum task_soon {
    TASK_TELL = 1,     // its watches hear of a change
    TASK_END = 2,      // it ends unstarted, by its verdict
    TASK_REAP = 4,     // its pipeline is over
    TASK_PUT_BACK = 8, // with REAP: it waits again
};

struct task {
    struct jobs *jobs;
    struct task *next;      // in the table's chain
    struct task *next_soon; // in jobs.soon_first's list, while `soon` is not 0
    unsigned soon;
    char id[37];
    char *team, *session; // session NULL: none
    struct share *share;  // of the team
    const char *entry_name;
    char trace[33];
    bool accepted;
    enum task_at at;
    struct queue_entry entry;
    int kind; // for jobs_stats: enum language
    int64_t submitted_ms, started_ms, ended_ms;
    uint64_t timeout_ms;
    uint64_t tool_timeout_ms; // from its submission on; 0: no call of a tool
    uint64_t held_bytes;      // of `job`, while it waits

    struct job job;
    bool loaded;      // `job` is there; an accepted one's is read again when its turn comes
    struct work load; // ... on a thread, if it is long
    char *request;    // shared
    size_t request_len;
    int load_error;
    struct job_error load_why;
    struct pipeline *pipeline;
    struct job_sink sink;
    struct session_lease lease;
    bool leased;
    unsigned tries; // in a row that ended for want of memory while no other job ran
    struct artifacts_writer writer;
    struct gathering *gathering; // of jobs_collect(), while files are read; else NULL
    struct work keep;            // artifacts and, of a long result, its JSON, on a thread
    int keep_error;
    char *written;
    size_t written_len;
    struct loop_timer caller; // of one whose caller waits: from its submission or its start on

    enum reason verdict; // it shall end so: REASON_OK: not known
    enum stage verdict_stage;
    char *verdict_text;
    enum job_status status;
    struct result *told; // what `ended` is told; held
    char *json;          // once it has ended; shared
    size_t json_len;
    bool reaped, recorded; // both: it is freed
    unsigned record_tries;
    struct loop_timer record_again;
    struct jobs_watch *watches;

    // jobs_accept()
    void (*on_accepted)(void *ctx, const struct jobs_accepted *a);
    void *accepted_ctx;
};

enum {
    TABLE_CHAINS = 4096,
    RESULT_MAX_BYTES = 256 << 20, // of a result's JSON in memory
    WRITE_HERE_BYTES = 128 << 10, // a longer result is made JSON on a thread
};

struct jobs {
    struct jobs_config config;
    struct queue *queue;
    struct task *chains[TABLE_CHAINS];
    size_t n_tasks;
    uint64_t held_bytes;
    struct task *soon_first, **soon_end;
    struct loop_timer soon, deadline, retry;
    bool lacking[QUEUE_RESOURCES]; // until something ends, or `retry`
    enum queue_wait short_of;      // what the log was told that jobs wait for; FOR_SLOT: nothing
    struct loop_timer calm;        // ... until it is told that they do not any more
    uint64_t memory_bytes;
    int64_t epoch;
    bool closed; // nothing new is taken in, or begins
    bool lost;   // the launcher is gone
    struct loop_timer drain;
    void (*drained)(void *ctx);
    void *drained_ctx;
    struct store_sweep sweep;
    struct loop_timer sweep_due;
    bool sweeping;
    struct jobs_stats stats;
    struct getting *gets; // that a thread writes
    struct restoring *restoring;
};

// jobs_table.c
// The job is taken over, also when there is no memory (NULL).
struct task *task_new(struct jobs *j, const char *team, struct job *job);
void task_free(struct task *t); // out of the table; nothing of it may be under way
struct task *task_find(const struct jobs *j, const char *team, const char *id); // team NULL: any
// Puts a task that holds its job into the queue, with what it needs. 0, a refusal, or -errno.
int task_enqueue(struct task *t, struct queue_refusal *ret);
void task_holds(struct task *t, uint64_t bytes); // so many at least, until task_drop_job()
void task_drop_job(struct task *t);
// What its request says of a task that does not hold it, and is held in the queue.
void task_learn(struct task *t, const struct job *job);
struct task *task_next(const struct jobs *j, const struct task *t); // t NULL: the first of all

// jobs.c
void task_watch(struct task *t, struct jobs_watch *w);
int jobs_session_refusal(int error); // of sessions_lease(), in words of jobs.h

// jobs_slot.c
void jobs_soon(struct task *t, unsigned what);
void jobs_pump_soon(struct jobs *j);
void jobs_slots_init(struct jobs *j);
// Ends a job that waits or runs, by that verdict unless it has one.
void task_stop(struct task *t, enum reason reason, const char *text);

// jobs_wait.c
void jobs_waits_init(struct jobs *j);
// Tells the queue what there is now.
void jobs_look_at_resources(struct jobs *j);
// "for ...": of one that waits in the queue.
const char *task_waits_for(const struct task *t);
// Those whose time in the queue is over end, and say what they waited for.
void jobs_expire(struct jobs *j, uint64_t now_ns);
// A line in the log when jobs begin to wait for something that the host has too little of, and one
// when that is over. may_start: some wait, and slots are free.
void jobs_tell_short(struct jobs *j, bool may_start);

// jobs_collect.c
void gathering_free(struct gathering *g); // NULL is harmless; no thread may have it
void gathering_cancel(struct gathering *g);

// jobs_caller.c
// It was taken in, or has its slot: from one of these on its caller's time is counted, if one
// waits.
void task_caller_waits(struct task *t, bool started);

// jobs_end.c
// It has ended: r is its result. With JSON that was written before, or without.
void task_write_end(struct task *t, const struct result *r); // on any thread: into `written`
void task_ended(struct task *t, struct result *r);           // r is emptied but for its figures
// Its artifacts were whole, and could not be kept. On any thread.
void result_not_stored(struct result *r, int error);
// What there is to say of a job that has no pipeline.
void task_result(const struct task *t, struct result *ret);
// It ends without having run, by its verdict.
void task_end_unstarted(struct task *t);
void task_set_verdict(struct task *t, enum reason reason, enum stage stage, const char *text);
void task_changed(struct task *t);
// Its result as it is now. False: it has ended, and `json` has it.
bool task_now(const struct task *t, struct result *ret);
// Pipeline and row are both done with.
void task_forget_if_done(struct task *t);
void jobs_look_if_drained(struct jobs *j);

// jobs_told.c
struct result *told_new(void); // empty, held once; NULL: no memory
// Moves what r owns; its figures stay in both.
void told_take(struct result *told, struct result *r);
// A copy of figures, error and the first `max` bytes of each text.
void told_copy(struct result *told, const struct result *r, size_t max);
void told_free_gets(struct jobs *j); // those that no thread will end any more

// jobs_restore.c
int jobs_restore(struct jobs *j);
void jobs_restore_end(struct jobs *j); // no thread may have a request; harmless twice
// jobs_sweep.c
void jobs_sweep_init(struct jobs *j);
void jobs_sweep_expect(struct jobs *j); // something ended

// jobs_stats.c
void jobs_count_ended(struct jobs *j, const struct task *t, const struct result *r);
// For a reason of the sandbox's own, whatever the program did.
bool task_sandbox_failed(const struct task *t, const struct result *r);

#endif
