// execute.c: one sandbox, from START to END.
#include "job/stages.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "io/loop.h"
#include "job/verdict.h"
#include "job/wrapped.h"
#include "plan/args.h"
#include "plan/steps.h"
#include "runtime/runtime.h"

#include <signal.h>
#include <string.h>

enum { TIMEOUT_GRACE_MS = 2000, PATIENCE_MS = 60000 };

static void send_live(void *ctx, struct stream *s, const char *data, size_t len)
{
    struct pipeline *p = ctx;
    if (p->sink->output) {
        p->sink->output(p->sink->ctx, s == &p->err, data, len);
    }
}

void execute_stop(struct pipeline *p, uint64_t grace_ms)
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
    execute_stop(p, TIMEOUT_GRACE_MS);
}

static void look_at_disk(struct loop_timer *t) { tree_look(t->ctx); }

void execute_disk_says(struct pipeline *p, int verdict)
{
    if (!p->id) { // it has ended meanwhile
        return;
    }
    if (verdict > DISK_FINE) {
        verdict_disk(&p->result, &p->job, (enum disk_verdict)verdict, &p->disk);
        kill_sandbox(p);
        return;
    }
    loop_timer_set(p->loop, &p->disk_timer, DISK_LOOK_MS * NS_PER_MS);
}

static void running(struct pipeline *p, const struct plan_record *rec)
{
    p->id = rec->id;
    p->executed_at_ns = clock_now_ns();
    fallback_drop(&p->fallback);
    loop_timer_clear(p->loop, &p->patience);
    p->result.isolation.isolated = true;
    p->result.isolation.downgrades |= rec->downgrades;
    loop_timer_set(p->loop, &p->time_limit,
                   (uint64_t)p->job.limits.value[LIMIT_TIMEOUT] * NS_PER_MS);
    if (p->plan.start.workspace_kind == PLAN_WORKSPACE_FOLDER) {
        loop_timer_set(p->loop, &p->disk_timer, DISK_LOOK_MS * NS_PER_MS);
    }
    if (p->stopping) { // it was cancelled while it was being born
        runner_signal(p->runner, p->id, SIGTERM);
        loop_timer_set(p->loop, &p->kill_timer, p->stop_grace_ms * NS_PER_MS);
    }
}

// For want of something that comes back, or as the sandbox that was prepared ahead had been killed,
// and may it be tried again? Standard input may have been read already.
static bool never_began(const struct pipeline *p, const struct plan_record *rec)
{
    const bool killed =
        rec->error == ECHILD || (rec->error == ENOENT && rec->step == PLAN_STEP_check);
    const bool comes_back = (killed && p->plan.start.id && p->sink->lacking) ||
                            rec->error == ENOSPC || error_is_shortage(-rec->error);
    return comes_back && !p->executed_at_ns && !p->had_input &&
           plan_step_kind(rec->step) != PLAN_KIND_PROGRAM && !(rec->flags & PLAN_HIT_MEMORY);
}

static void check_value(struct work *w) { guest_check(&((struct pipeline *)w->ctx)->guest); }

static void judge(struct work *w)
{
    struct pipeline *p = w->ctx;
    guest_judge(&p->guest);
    verdict_end(&p->result, &p->job, &p->end, &p->guest);
    pipeline_next(p);
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
    if (never_began(p, rec)) {
        pipeline_lacks(p, PIPELINE_NO_MEMORY, "the sandbox could not be set up", -rec->error);
        return;
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
    p->end = *rec;
    p->check = (struct work){.run = check_value, .done = judge, .ctx = p};
    if (!p->guest.unchecked) {
        judge(&p->check);
    } else if (!p->place.pool || work_queue(p->place.pool, &p->check)) {
        check_value(&p->check);
        judge(&p->check);
    }
}

static void sandbox_says(struct runner_call *c, const struct plan_record *rec, int fd);

// The same program in the same workspace, with all that was sent to it so far, without a sandbox.
static bool try_without_sandbox(struct pipeline *p, const struct plan_record *rec, int said)
{
    if (!fallback_is_open(&p->fallback) || p->stopping ||
        !fallback_take(&p->result, &p->job, rec, p->config->bwrap, said)) {
        return false;
    }
    p->id = p->plan.start.id = 0;
    p->plan.start.plain = 1;
    p->call = RUNNER_CALL_INIT(sandbox_says, p);
    expect_answer(p);
    int e = runner_send(p->runner, &p->plan.start, p->fallback.fds, PLAN_N_START_FDS, &p->call);
    fallback_drop(&p->fallback);
    if (e) {
        fallback_untake(&p->result, p->config->launcher);
    }
    return e == 0;
}

static void sandbox_says(struct runner_call *c, const struct plan_record *rec, int fd)
{
    struct pipeline *p = c->ctx;
    AUTO_CLOSE int said = fd;
    if (rec->op == PLAN_EXECUTED) {
        running(p, rec);
    } else if (rec->op == PLAN_END && !try_without_sandbox(p, rec, said)) {
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
    int e = runtime_begin(&with, &p->job, p->config->tz, p->config->python);
    if (e) {
        return e;
    }
    args = args_pack(with.argv, with.env, p->job.cwd);
    enum runtime_fd3 kind = with.fd3;
    runtime_done(&with);
    if (args < 0) {
        return args;
    }
    if (p->job.stdin_data) {
        p->job.stdin_fd = fd_sealed("stdin", p->job.stdin_data, p->job.stdin_len);
        e = p->job.stdin_fd < 0 ? p->job.stdin_fd : 0;
    }
    bool input = p->job.stdin_fd >= 0;
    p->had_input = input && !p->job.stdin_data; // bytes of the job's own can be given again
    if (input) {
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
    if (p->config->fallback) {
        e = fallback_keep(&p->fallback, fds);
        if (e) {
            return e;
        }
    }
    p->call = RUNNER_CALL_INIT(sandbox_says, p);
    expect_answer(p);
    return runner_send(p->runner, &p->plan.start, fds, PLAN_N_START_FDS, &p->call);
}

void pipeline_keep_ahead(const struct pipeline_config *config, struct runner *runner)
{
    uint32_t cpus = config->host.cpus_percent / 100;
    runner_keep_parked(runner, config->ahead_network, cpus > 2 ? cpus : 2);
}

static void parked_ready(void *ctx);

// A sandbox that was prepared ahead, where there is one; else START makes it whole.
void stage_execute(struct pipeline *p)
{
    bool fits = p->plan.start.network == p->config->ahead_network;
    int e = fits ? runner_take_parked(p->runner, &p->plan.start.id, parked_ready, p) : 0;
    if (e == -EAGAIN) {
        return;
    }
    p->result.execute_started_at = clock_wall_ms();
    pipeline_tell(p, STATUS_RUNNING);
    e = start(p);
    if (e && p->plan.start.id) { // it was taken, so that nobody else ends it
        runner_kill(p->runner, p->plan.start.id);
    }
    if (error_is_shortage(e)) {
        pipeline_lacks(p, PIPELINE_NO_MEMORY, "the sandbox cannot be asked for", e);
    } else if (e) {
        pipeline_give_up(p, REASON_INTERNAL, "the sandbox cannot be asked for", e);
    }
}

static void parked_ready(void *ctx)
{
    struct pipeline *p = ctx;
    if (p->result.reason == REASON_OK) {
        stage_execute(p);
    } else { // cancelled meanwhile
        pipeline_next(p);
    }
}

void execute_init(struct pipeline *p)
{
    p->guest.fd = p->out.fd = p->err.fd = -1;
    fallback_init(&p->fallback);
    p->out.live = p->err.live = send_live;
    p->out.ctx = p->err.ctx = p;
    p->time_limit = LOOP_TIMER_INIT(time_is_up, p);
    p->kill_timer = LOOP_TIMER_INIT(kill_now, p);
    p->disk_timer = LOOP_TIMER_INIT(look_at_disk, p);
    p->patience = LOOP_TIMER_INIT(answer_is_missing, p);
}

void execute_undo(struct pipeline *p)
{
    struct loop_timer *timers[] = {&p->time_limit, &p->kill_timer, &p->disk_timer, &p->patience};
    runner_leave_parked(p->runner, p);
    for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
        loop_timer_clear(p->loop, timers[i]);
    }
    fallback_drop(&p->fallback);
    pump_stop(&p->input);
    stream_close(&p->out);
    stream_close(&p->err);
    guest_done(&p->guest);
}
