#include "job/pipeline.h"

#include "base/clock.h"
#include "base/fd.h"
#include "io/loop.h"
#include "io/pump.h"
#include "job/collection.h"
#include "job/guest.h"
#include "job/runner.h"
#include "job/sets.h"
#include "job/stream.h"
#include "job/verdict.h"
#include "job/wrapped.h"
#include "plan/args.h"
#include "runtime/runtime.h"
#include "workspace/disk.h"
#include "workspace/folder.h"
#include "workspace/stage.h"
#include "workspace/uids.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { TIMEOUT_GRACE_MS = 2000, CANCEL_GRACE_MS = 500, PATIENCE_MS = 60000 };

enum state { PREPARING, EXECUTING, COLLECTING, DONE };

struct pipeline {
    struct loop *loop;
    struct runner *runner;
    const struct pipeline_config *config;
    const struct job_sink *sink;
    struct job job;
    struct result result;
    enum state state;
    bool held;
    // the workspace
    struct lowered plan;
    uint32_t uid;   // of the workspace, in plans
    uint32_t owner; // of its files: the same, or inner root where there is no other id
    bool has_tmpfs, has_folder, was_ready;
    bool lost;     // the launcher is: processes of the job may live a moment longer
    int workspace; // -1: none yet
    struct disk disk;
    struct sets sets;
    // the sandbox
    struct runner_call call; // PLAN_TMPFS, then PLAN_START
    uint32_t id;             // 0: not running (yet)
    uint64_t executed_at_ns; // 0: not yet
    bool stopping;           // TERM is on its way; KILL follows by kill_timer
    uint64_t stop_grace_ms;
    struct loop_timer begin, time_limit, kill_timer, disk_timer, patience;
    struct stream out, err;
    struct pump input;
    struct guest guest;

    // what it leaves
    struct collection collection;

    char chunk[STREAM_CHUNK_BYTES];
};

static void install(struct pipeline *p);
static void execute(struct pipeline *p);
static void collect(struct pipeline *p);
static void go_on(void *ctx);
static void finish(struct pipeline *p);

// ---- Prepare: a workspace with the job's files in it ------------------------------------------

static void give_up(struct pipeline *p, enum reason reason, const char *what, int error)
{
    result_fail(&p->result, reason, STAGE_PREPARATION, "%s: %s", what, strerror(-error));
    finish(p);
}

static void prepared(struct pipeline *p)
{
    struct stage_error error;
    bool folder = p->has_folder;
    int e = folder ? disk_begin(&p->disk, p->workspace, p->plan.workspace_bytes,
                                p->plan.workspace_inodes)
                   : 0;
    if (e) {
        give_up(p, REASON_INTERNAL, "the workspace cannot be measured", e);
        return;
    }
    e = p->was_ready ? 0 : stage_make_folders(p->workspace, p->owner);
    if (e) {
        give_up(p, REASON_INTERNAL, "the workspace cannot be made", e);
        return;
    }
    e = stage_files(p->workspace, &p->job, p->owner, p->plan.workspace_bytes, &error);
    if (e) {
        verdict_staging(&p->result, e, error.text);
        finish(p);
        return;
    }
    p->result.prepare_completed_at = clock_wall_ms();
    install(p);
}

static void tmpfs_made(struct runner_call *c, const struct plan_record *rec, int fd)
{
    struct pipeline *p = c->ctx;
    if (rec->error || fd < 0) {
        fd_close(fd);
        give_up(p, REASON_INTERNAL, "the workspace cannot be made",
                rec->error ? -rec->error : -EIO);
        return;
    }
    p->has_tmpfs = true;
    p->plan.start.workspace_no = rec->id;
    p->workspace = fd;
    if (p->result.reason != REASON_OK) { // cancelled while it was made
        finish(p);
        return;
    }
    prepared(p);
}

// The instance's first may be there: made by its front, which had nothing to do at the start.
static void make_folder(struct pipeline *p)
{
    struct plan_request *q = &p->plan.start;
    const char *ready = p->config->ready_workspace;
    int root = p->config->workspace_root, e = 0;
    p->workspace = ready ? folder_open_ready(root, ready, p->owner) : -1;
    p->was_ready = p->workspace >= 0;
    snprintf(q->workspace, sizeof q->workspace, "%s%s", p->was_ready ? "" : "once/",
             p->was_ready ? ready : p->job.id);
    if (!p->was_ready) {
        e = folder_make(root, q->workspace, p->owner, &p->workspace);
    }
    p->has_folder = e == 0;
    if (e) {
        give_up(p, REASON_INTERNAL, "the workspace cannot be made", e);
    } else {
        prepared(p);
    }
}

static void prepare(struct loop_timer *t)
{
    struct pipeline *p = t->ctx;
    struct stage_need need;
    struct stage_error error;
    p->result.prepare_started_at = clock_wall_ms();
    if (stage_measure(&p->job, &need, &error)) {
        result_fail(&p->result, REASON_ERROR, STAGE_PREPARATION, "%s", error.text);
        finish(p);
        return;
    }
    struct lower_staged staged = {need.bytes, need.inodes - 1};
    lower_job(&p->job, &p->config->host, &staged, &p->plan);
    p->uid = uids_take(p->config->uids);
    p->plan.start.uid = p->uid;
    p->owner = p->config->downgrades & PLAN_SINGLE_UID ? PLAN_UID_LAUNCHER : p->uid;
    if (!p->uid) {
        give_up(p, REASON_INTERNAL, "no uid is free", -EAGAIN);
        return;
    }
    if (p->plan.start.workspace_kind == PLAN_WORKSPACE_FOLDER) {
        make_folder(p);
        return;
    }
    p->call = RUNNER_CALL_INIT(tmpfs_made, p);
    int e = runner_tmpfs(p->runner, p->uid, p->plan.workspace_bytes, p->plan.workspace_inodes,
                         &p->call);
    if (e) {
        give_up(p, REASON_INTERNAL, "the workspace cannot be made", e);
    }
}

// ---- Install: package sets that are there already ----------------------------------------------

static void installed(void *ctx, int error)
{
    struct pipeline *p = ctx;
    if (error) {
        verdict_set(&p->result, p->job.package_sets[p->sets.n], error);
    }
    p->result.install_completed_at = clock_wall_ms();
    go_on(p);
}

static void install(struct pipeline *p)
{
    if (p->job.n_package_sets == 0) {
        execute(p);
        return;
    }
    p->result.install_started_at = clock_wall_ms();
    p->sets = SETS_INIT(p->runner, p->config->cache_root, &p->job, installed, p);
    p->sets.number = p->plan.start.sets;
    int e = sets_register(&p->sets);
    if (e) {
        installed(p, e);
    }
}

// ---- Execute: one sandbox, from START to END ----------------------------------------------------

static void send_live(void *ctx, struct stream *s, const char *data, size_t len)
{
    struct pipeline *p = ctx;
    if (p->sink->output) {
        p->sink->output(p->sink->ctx, s == &p->err, data, len);
    }
}

// TERM to every process now, KILL later. Before the program runs there is nothing to warn.
static void stop(struct pipeline *p, uint64_t grace_ms)
{
    if (p->stopping && grace_ms >= p->stop_grace_ms) {
        return;
    }
    bool again = p->stopping;
    p->stopping = true;
    p->stop_grace_ms = grace_ms;
    if (p->id) {
        if (!again) {
            runner_signal(p->runner, p->id, SIGTERM);
        }
        loop_timer_set(p->loop, &p->kill_timer, grace_ms * NS_PER_MS);
    }
}

// The launcher owes an answer from here on.
static void expect_answer(struct pipeline *p)
{
    uint64_t ms = p->config->launcher_patience_ms;
    loop_timer_set(p->loop, &p->patience, (ms ? ms : PATIENCE_MS) * NS_PER_MS);
}

static void kill_sandbox(struct pipeline *p)
{
    runner_kill(p->runner, p->id);
    expect_answer(p);
}

static void kill_now(struct loop_timer *t) { kill_sandbox(t->ctx); }

static void time_is_up(struct loop_timer *t)
{
    struct pipeline *p = t->ctx;
    char text[32];
    result_fail(&p->result, REASON_TIMEOUT, STAGE_EXECUTION, "Execution timeout (%s)",
                verdict_seconds(p->job.limits.value[LIMIT_TIMEOUT], text, sizeof text));
    stop(p, TIMEOUT_GRACE_MS);
}

static void look_at_disk(struct loop_timer *t)
{
    struct pipeline *p = t->ctx;
    int verdict = disk_look(&p->disk);
    if (verdict > DISK_FINE) {
        verdict_disk(&p->result, &p->job, (enum disk_verdict)verdict, p->plan.workspace_inodes);
        kill_sandbox(p);
        return;
    }
    loop_timer_set(p->loop, &p->disk_timer, DISK_LOOK_MS * NS_PER_MS);
}

static void running(struct pipeline *p, const struct plan_record *rec)
{
    p->id = rec->id;
    p->executed_at_ns = clock_now_ns();
    loop_timer_clear(p->loop, &p->patience);
    p->result.isolation.isolated = true;
    p->result.isolation.downgrades |= rec->downgrades;
    loop_timer_set(p->loop, &p->time_limit,
                   (uint64_t)p->job.limits.value[LIMIT_TIMEOUT] * NS_PER_MS);
    if (p->has_folder) {
        loop_timer_set(p->loop, &p->disk_timer, DISK_LOOK_MS * NS_PER_MS);
    }
    if (p->stopping) { // it was cancelled while it was being born
        runner_signal(p->runner, p->id, SIGTERM);
        loop_timer_set(p->loop, &p->kill_timer, p->stop_grace_ms * NS_PER_MS);
    }
}

static void ended(struct pipeline *p, const struct plan_record *rec)
{
    p->id = 0;
    p->lost = rec->error == EPIPE;
    loop_timer_clear(p->loop, &p->time_limit);
    loop_timer_clear(p->loop, &p->kill_timer);
    loop_timer_clear(p->loop, &p->disk_timer);
    loop_timer_clear(p->loop, &p->patience);
    if (p->executed_at_ns) {
        p->result.usage.wall_ms =
            (int64_t)((clock_now_ns() - p->executed_at_ns + NS_PER_MS / 2) / NS_PER_MS);
    }
    p->result.execute_completed_at = clock_wall_ms();
    // The launcher has killed and reaped whatever the job left behind, so the pipes hold the last
    // of it: their end is never waited for.
    pump_stop(&p->input);
    stream_drain(&p->out);
    stream_drain(&p->err);
    guest_drain(&p->guest);
    p->result.isolation.isolated = p->executed_at_ns != 0;
    p->result.truncated_stdout = output_truncated(&p->out.out);
    p->result.truncated_stderr = output_truncated(&p->err.out);
    p->result.usage.stdout_bytes = (int64_t)p->out.out.total;
    p->result.usage.stderr_bytes = (int64_t)p->err.out.total;
    verdict_end(&p->result, &p->job, rec, &p->guest);
    collect(p);
}

static void sandbox_says(struct runner_call *c, const struct plan_record *rec, int fd)
{
    struct pipeline *p = c->ctx;
    AUTO_CLOSE int said = fd;
    if (rec->op == PLAN_EXECUTED) {
        running(p, rec);
    } else if (rec->op == PLAN_END) {
        wrapped_failed(&p->result, p->config->bwrap, rec, said);
        ended(p, rec);
    }
}

// A launcher that lives but does not answer, START or KILL: its sandboxes end with it, and it with
// the service, or by the front, which kills what is left.
static void answer_is_missing(struct loop_timer *t)
{
    struct pipeline *p = t->ctx;
    struct plan_record nothing = RUNNER_LOST_RECORD;
    result_fail(&p->result, REASON_INTERNAL, STAGE_EXECUTION, "the launcher does not answer");
    runner_forget(p->runner, &p->call);
    ended(p, &nothing);
}

// Descriptor 3 of the job, if it has one.
static int open_fd3(struct pipeline *p, enum runtime_fd3 kind, int *ret)
{
    int e = 0;
    p->plan.start.has_frames = kind != RUNTIME_FD3_NONE;
    if (kind == RUNTIME_FD3_FRAMES) {
        e = guest_open(&p->guest, p->loop, &p->job, ret);
    } else if (kind == RUNTIME_FD3_SCRIPT) {
        // bash opens it again through /proc: memfds are 0777, whoever owns them
        *ret = fd_sealed("script.sh", p->job.code, p->job.code_len);
        e = *ret < 0 ? *ret : 0;
    }
    return e;
}

// Everything the sandbox is given, made and sent in one go; our copies of its ends are closed.
static int start(struct pipeline *p)
{
    struct runtime_start with;
    AUTO_CLOSE int in = -1, out = -1, err = -1, fd3 = -1, args = -1;
    int e = runtime_begin(&with, &p->job, p->config->tz);
    if (e) {
        return e;
    }
    args = args_pack(with.argv, with.env, p->job.cwd);
    enum runtime_fd3 kind = with.fd3;
    runtime_done(&with);
    if (args < 0) {
        return args;
    }
    if (p->job.stdin_fd >= 0) {
        e = pump_pipe(&p->input, p->loop, fd_take(&p->job.stdin_fd), &in);
    }
    e = e ? e : open_fd3(p, kind, &fd3);
    e = e ? e : stream_open(&p->out, p->loop, &p->result.out, p->chunk, &out);
    e = e ? e : stream_open(&p->err, p->loop, &p->result.err, p->chunk, &err);
    if (e) {
        return e;
    }
    const int fds[PLAN_N_START_FDS] = {
        [PLAN_FD_STDIN] = in >= 0 ? in : p->config->null,
        [PLAN_FD_STDOUT] = out,
        [PLAN_FD_STDERR] = err,
        [PLAN_FD_FRAMES] = fd3 >= 0 ? fd3 : p->config->null,
        [PLAN_FD_ARGS] = args,
    };
    p->call = RUNNER_CALL_INIT(sandbox_says, p);
    expect_answer(p);
    return runner_send(p->runner, &p->plan.start, fds, PLAN_N_START_FDS, &p->call);
}

// A sandbox that was prepared ahead, where there is one; else START makes it whole.
static void execute(struct pipeline *p)
{
    bool fits = p->plan.start.network == p->config->ahead_network;
    int e = fits ? runner_take_parked(p->runner, &p->plan.start.id, go_on, p) : 0;
    if (e == -EAGAIN) {
        return;
    }
    p->state = EXECUTING;
    p->result.execute_started_at = clock_wall_ms();
    e = start(p);
    if (e) {
        give_up(p, REASON_INTERNAL, "the sandbox cannot be asked for", e);
    }
}

static void go_on(void *ctx)
{
    struct pipeline *p = ctx;
    if (p->result.reason == REASON_OK) {
        execute(p);
    } else { // cancelled meanwhile
        finish(p);
    }
}

// ---- Collect: the files the job was asked to leave ----------------------------------------------

static void measure_workspace(struct pipeline *p)
{
    if (!p->has_folder) {
        p->result.usage.disk_bytes = disk_of_tmpfs(p->workspace);
        return;
    }
    int verdict = disk_settle(&p->disk);
    if (verdict >= 0) {
        p->result.usage.disk_bytes = (int64_t)p->disk.used_bytes;
        verdict_disk(&p->result, &p->job, (enum disk_verdict)verdict, p->plan.workspace_inodes);
    }
}

// As far as the sink takes it.
static void collect_more(struct pipeline *p)
{
    bool more = true;
    while (more && !p->held && p->result.reason != REASON_CANCELLED) {
        more = collection_step(&p->collection);
    }
    if (!p->held || p->result.reason == REASON_CANCELLED) {
        finish(p);
    }
}

static void collect(struct pipeline *p)
{
    p->state = COLLECTING;
    if (p->executed_at_ns) {
        measure_workspace(p);
    }
    if (!p->executed_at_ns || p->job.n_artifacts == 0) {
        finish(p);
        return;
    }
    p->result.collect_started_at = clock_wall_ms();
    p->collection.workspace = p->workspace;
    p->collection.uid = p->owner;
    if (collection_begin(&p->collection)) {
        result_fail(&p->result, REASON_INTERNAL, STAGE_COLLECTION, "no memory");
        finish(p);
        return;
    }
    collect_more(p);
}

// ---- The end ------------------------------------------------------------------------------------

// Gives everything back. What the launcher holds is dropped by it before whatever it is asked next.
static void release(struct pipeline *p)
{
    runner_forget(p->runner, &p->call);
    runner_leave_parked(p->runner, p);
    struct loop_timer *timers[] = {&p->begin, &p->time_limit, &p->kill_timer, &p->disk_timer,
                                   &p->patience};
    for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
        loop_timer_clear(p->loop, timers[i]);
    }
    sets_drop(&p->sets);
    pump_stop(&p->input);
    stream_close(&p->out);
    stream_close(&p->err);
    guest_done(&p->guest);
    disk_end(&p->disk);
    collection_end(&p->collection);
    p->workspace = fd_close(p->workspace);
    if (p->has_tmpfs) {
        runner_tmpfs_drop(p->runner, p->plan.start.workspace_no);
        p->has_tmpfs = false;
    }
    if (p->has_folder && !p->lost) { // else the instance's folder goes as a whole, by the front
        int e = folder_remove(p->config->workspace_root, p->plan.start.workspace);
        if (e) {
            result_fail(&p->result, REASON_INTERNAL, STAGE_COLLECTION,
                        "the workspace cannot be removed: %s", strerror(-e));
        }
    }
    p->has_folder = false;
    uids_give(p->config->uids, p->uid);
    p->uid = 0;
}

static void finish(struct pipeline *p)
{
    if (p->result.collect_started_at) {
        p->result.collect_completed_at = clock_wall_ms();
    }
    p->state = DONE;
    if (p->sink->collected && p->sink->collected(p->sink->ctx)) {
        p->has_tmpfs = p->has_folder = false;
    }
    release(p);
    p->result.completed_at = clock_wall_ms();
    if (p->sink->done) {
        p->sink->done(p->sink->ctx, &p->result);
    }
}

int pipeline_start(struct loop *loop, struct runner *runner, const struct pipeline_config *config,
                   struct job *job, const struct job_sink *sink, struct pipeline **ret)
{
    struct pipeline *p = malloc(sizeof *p);
    if (!p) {
        job_done(job);
        return -ENOMEM;
    }
    memset(p, 0, offsetof(struct pipeline, chunk)); // the chunk's pages stay untouched
    p->loop = loop;
    p->runner = runner;
    p->config = config;
    p->sink = sink;
    p->job = *job;
    *job = (struct job){.stdin_fd = -1};
    p->workspace = -1;
    p->collection = (struct collection){.config = config,
                                        .sink = sink,
                                        .job = &p->job,
                                        .result = &p->result,
                                        .chunk = p->chunk,
                                        .workspace = -1,
                                        .fd = -1};
    p->guest.fd = p->out.fd = p->err.fd = -1;
    p->out.live = p->err.live = send_live;
    p->out.ctx = p->err.ctx = p;
    p->time_limit = LOOP_TIMER_INIT(time_is_up, p);
    p->kill_timer = LOOP_TIMER_INIT(kill_now, p);
    p->disk_timer = LOOP_TIMER_INIT(look_at_disk, p);
    p->patience = LOOP_TIMER_INIT(answer_is_missing, p);
    p->begin = LOOP_TIMER_INIT(prepare, p);
    result_init(&p->result, p->job.id, (size_t)p->job.limits.value[LIMIT_STDOUT] * 1024,
                (size_t)p->job.limits.value[LIMIT_STDERR] * 1024);
    p->result.isolation.launcher = config->launcher;
    p->result.isolation.start = "cold";
    p->result.isolation.network = p->job.network == JOB_NETWORK_HOST ? "host" : "none";
    p->result.isolation.downgrades = config->downgrades;
    p->result.queued_at = p->result.started_at = clock_wall_ms();
    loop_timer_set(loop, &p->begin, 0);
    *ret = p;
    return 0;
}

void pipeline_cancel(struct pipeline *p)
{
    if (p->state == DONE) {
        return;
    }
    enum stage stage = p->state == PREPARING   ? STAGE_PREPARATION
                       : p->state == EXECUTING ? STAGE_EXECUTION
                                               : STAGE_COLLECTION;
    result_fail(&p->result, REASON_CANCELLED, stage, "Cancelled");
    if (p->state == EXECUTING) {
        stop(p, CANCEL_GRACE_MS);
    } else if (p->state == COLLECTING || p->begin.due_ns) {
        // nobody wants what is left of it; while a tmpfs is being made, its answer ends the job
        finish(p);
    }
}

void pipeline_hold(struct pipeline *p, bool hold)
{
    if (p->held == hold || p->state == DONE) {
        return;
    }
    p->held = hold;
    stream_hold(&p->out, hold);
    stream_hold(&p->err, hold);
    if (!hold && p->state == COLLECTING) {
        collect_more(p);
    }
}

void pipeline_free(struct pipeline *p)
{
    if (!p) {
        return;
    }
    if (p->state != DONE) { // a sandbox that still runs is the launcher's to end, by id
        if (p->id) {
            runner_kill(p->runner, p->id);
        }
        release(p);
    }
    job_done(&p->job);
    result_done(&p->result);
    free(p);
}
