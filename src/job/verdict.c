#include "job/verdict.h"

#include "base/clock.h"
#include "base/fd.h"
#include "plan/steps.h"
#include "runtime/runtime.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define MB (UINT64_C(1) << 20)

enum {
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    LATE_MS = 250, // a busy service may be that late
};

const char *verdict_seconds(int64_t ms, char *text, size_t size)
{
    int n = snprintf(text, size, "%lld.%03lld", (long long)(ms / 1000), (long long)(ms % 1000));
    while (n > 2 && text[n - 1] == '0' && text[n - 2] != '.') {
        n--;
    }
    snprintf(text + n, size - (size_t)n, "s");
    return text;
}

static int64_t figure(uint64_t value, uint64_t unit)
{
    return value == PLAN_UNKNOWN ? RESULT_UNKNOWN : (int64_t)((value + unit / 2) / unit);
}

static void take_figures(struct result *r, const struct plan_record *end)
{
    r->usage.cpu_ms = figure(end->cpu_ns, NS_PER_MS);
    r->usage.memory_peak_bytes = figure(end->memory_peak_bytes, 1);
    r->usage.pids_peak = figure(end->pids_peak, 1);
    uint64_t from = end->marks_ns[PLAN_T_EXEC], to = end->marks_ns[PLAN_T_REPORT];
    if (from && to >= from) {
        r->usage.wall_ms = (int64_t)((to - from + NS_PER_MS / 2) / NS_PER_MS);
    }
}

// A command that cannot be started is its owner's mistake, as in a shell. True when it was that.
static bool not_a_program(struct result *r, const struct job *j, const struct plan_record *end)
{
    if (plan_step_kind(end->step) != PLAN_KIND_PROGRAM || j->kind != JOB_COMMAND) {
        return false;
    }
    bool missing = end->error == ENOENT || end->error == ENOTDIR;
    r->exit_code = missing ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
    result_fail(r, REASON_ERROR, STAGE_EXECUTION, "%.200s: %s", j->argv[0],
                missing ? "command not found" : strerror(end->error));
    return true;
}

// The sandbox failed: never the program's fault, but for the two things that it names itself.
void verdict_launch(struct result *r, const struct job *j, const struct plan_record *end)
{
    static const int shortages[] = {ENOMEM, EMFILE, ENFILE, EAGAIN, ENOSPC, EIO, ETIMEDOUT};
    if (not_a_program(r, j, end)) {
        return;
    }
    if (plan_step_kind(end->step) == PLAN_KIND_CHDIR) {
        result_fail(r, REASON_ERROR, STAGE_PREPARATION, "cwd: %.200s: %s", j->cwd,
                    strerror(end->error));
        return;
    }
    if (end->error == EPIPE) {
        result_fail(r, REASON_WORKER_LOST, STAGE_EXECUTION,
                    "the sandbox was lost: its launcher is gone");
        return;
    }
    if (plan_step_kind(end->step) == PLAN_KIND_AFTER) {
        result_fail(r, REASON_INTERNAL, STAGE_EXECUTION, "the sandbox was lost: %s",
                    strerror(end->error));
        return;
    }
    enum reason reason = REASON_ISOLATION_UNAVAILABLE;
    for (size_t i = 0; i < ARRAY_LEN(shortages); i++) {
        if (end->error == shortages[i]) {
            reason = REASON_INTERNAL;
        }
    }
    result_fail(r, reason, STAGE_PREPARATION, "the sandbox could not be set up: step %s: %s",
                plan_step_name(end->step), strerror(end->error));
}

static void limit_hit(struct result *r, const struct job *j, uint32_t flags)
{
    char text[32];
    if (flags & PLAN_HIT_MEMORY) {
        result_fail(r, REASON_MEMORY_LIMIT, STAGE_EXECUTION, "Memory limit reached (%lld MB)",
                    (long long)j->limits.value[LIMIT_MEMORY]);
    } else if (flags & PLAN_HIT_CPU) {
        result_fail(r, REASON_CPU_LIMIT, STAGE_EXECUTION, "CPU time limit reached (%s)",
                    verdict_seconds(j->limits.value[LIMIT_CPU], text, sizeof text));
    }
}

// The launcher's clock has the last word: a service that was busy or stuck when time was up is no
// reason to have more of it.
static void time_was_up(struct result *r, const struct job *j, const struct plan_record *end)
{
    char text[32];
    if (end->marks_ns[PLAN_T_REPORT] &&
        r->usage.wall_ms > j->limits.value[LIMIT_TIMEOUT] + LATE_MS) {
        result_fail(r, REASON_TIMEOUT, STAGE_EXECUTION, "Execution timeout (%s)",
                    verdict_seconds(j->limits.value[LIMIT_TIMEOUT], text, sizeof text));
    }
}

// V8 ends itself by SIGABRT at its heap limit, which isle put below the job's memory limit so that
// its message is readable. The kernel's figure decides, not the message: enough memory was used.
static bool heap_used_up(const struct result *r, const struct job *j, const struct plan_record *end)
{
    uint64_t heap = (uint64_t)runtime_heap_mb(j->limits.value[LIMIT_MEMORY]) * MB;
    return r->signal == SIGABRT && j->kind == JOB_SNIPPET && j->language == LANGUAGE_JAVASCRIPT &&
           end->memory_peak_bytes != PLAN_UNKNOWN && end->memory_peak_bytes >= heap;
}

static void ended_by_signal(struct result *r, const struct job *j, const struct plan_record *end)
{
    if (heap_used_up(r, j, end)) {
        result_fail(r, REASON_MEMORY_LIMIT, STAGE_EXECUTION,
                    "Memory limit reached (JavaScript heap, %lld of %lld MB)",
                    (long long)runtime_heap_mb(j->limits.value[LIMIT_MEMORY]),
                    (long long)j->limits.value[LIMIT_MEMORY]);
        return;
    }
    const char *name = sigabbrev_np(r->signal), *what = sigdescr_np(r->signal);
    if (name) {
        result_fail(r, REASON_ERROR, STAGE_EXECUTION, "Ended by signal %d (SIG%s: %s)", r->signal,
                    name, what);
    } else {
        result_fail(r, REASON_ERROR, STAGE_EXECUTION, "Ended by signal %d", r->signal);
    }
}

static void snippet_ended(struct result *r, struct guest *g)
{
    if (g->verdict == GUEST_TOO_LARGE) {
        result_fail(r, REASON_RESULT_TOO_LARGE, STAGE_EXECUTION,
                    "The result has %u bytes or more, above the maximum of %zu", g->announced,
                    frame_bound(FRAME_FROM_GUEST, FRAME_RESULT));
    } else if (g->verdict == GUEST_MALFORMED || g->verdict == GUEST_ERROR) {
        result_fail(r, REASON_ERROR, STAGE_EXECUTION, "%s",
                    g->error ? g->error : "The program failed");
    } else if (r->exit_code > 0) {
        result_fail(r, REASON_ERROR, STAGE_EXECUTION, "Exit code %d", r->exit_code);
    } else if (g->verdict == GUEST_SILENT) {
        result_fail(r, REASON_ERROR, STAGE_EXECUTION, "The program exited without a result");
    } else if (r->reason == REASON_OK) {
        r->value = g->value;
        r->value_len = g->value_len;
        g->value = NULL;
    }
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The result of a command or script: its output without the white space around it.
static void command_ended(struct result *r)
{
    if (r->exit_code > 0) {
        result_fail(r, REASON_ERROR, STAGE_EXECUTION, "Exit code %d", r->exit_code);
    }
    const char *from = buf_text(&r->out), *to = from + r->out.len;
    while (from < to && is_space(*from)) {
        from++;
    }
    while (to > from && is_space(to[-1])) {
        to--;
    }
    if (from == to || (r->reason != REASON_OK && r->reason != REASON_ERROR)) {
        return;
    }
    r->value_is_output = true;
    r->value_at = (size_t)(from - buf_text(&r->out));
    r->value_len = (size_t)(to - from);
}

void verdict_end(struct result *r, const struct job *j, const struct plan_record *end,
                 struct guest *g)
{
    take_figures(r, end);
    limit_hit(r, j, end->flags); // also in mid-launch: a limit that is too small to start
    time_was_up(r, j, end);
    if (end->error) {
        verdict_launch(r, j, end);
        return;
    }
    if (end->status == -1 && (end->flags & (PLAN_KILLED | PLAN_HIT_MEMORY | PLAN_HIT_CPU))) {
        r->signal = SIGKILL; // all of it at once, the shim that reports included
        result_fail(r, REASON_ERROR, STAGE_EXECUTION, "Ended by signal %d (SIGKILL)", r->signal);
        return;
    }
    if (end->status == -1) {
        result_fail(r, REASON_INTERNAL, STAGE_EXECUTION, "the sandbox ended without a status");
        return;
    }
    r->signal = WIFSIGNALED(end->status) ? WTERMSIG(end->status) : 0;
    r->exit_code = WIFEXITED(end->status) ? WEXITSTATUS(end->status) : -1;
    if (r->signal) {
        if (g->verdict == GUEST_TOO_LARGE) { // first things first: the result was the cause
            snippet_ended(r, g);
        }
        ended_by_signal(r, j, end);
    } else if (j->kind == JOB_SNIPPET) {
        snippet_ended(r, g);
    } else {
        command_ended(r);
    }
}

void verdict_staging(struct result *r, int error, const char *text)
{
    bool owners = error == -EISDIR || error == -ENOTDIR || error == -ELOOP ||
                  error == -EXDEV; // a target where something else is
    enum reason reason = error == -ENOSPC ? REASON_DISK_LIMIT
                         : owners         ? REASON_ERROR
                                          : REASON_INTERNAL;
    result_fail(r, reason, STAGE_PREPARATION, "%s", text);
}

void verdict_set(struct result *r, const char *name, int error)
{
    const char *why = strerrordesc_np(-error);
    if (error == -ENOENT || error == -ENOTDIR || error == -ELOOP) {
        why = "there is no such folder in SANDBOX_PACKAGES_ROOT";
    } else if (error == -EACCES) {
        why = "its folder in SANDBOX_PACKAGES_ROOT is not readable by all";
    } else if (error == -EPERM) {
        why = "its folder must belong to the owner of SANDBOX_PACKAGES_ROOT, and nobody else may "
              "write to it";
    }
    result_fail(r, error == -EPIPE ? REASON_INTERNAL : REASON_INSTALL_FAILED, STAGE_INSTALL,
                "package set %s: %s", name, why);
}

void verdict_disk(struct result *r, const struct job *j, enum disk_verdict verdict,
                  const struct disk *d)
{
    const char *above = disk_began_above(d)
                            ? ": there was more when the job began, so it may only become less"
                            : "";
    switch (verdict) {
    case DISK_FINE:
    case DISK_MORE:
        break;
    case DISK_OVER:
        result_fail(r, REASON_DISK_LIMIT, STAGE_EXECUTION, "Disk limit reached (%lld MB)%s",
                    (long long)j->limits.value[LIMIT_DISK], above);
        break;
    case DISK_FILES:
        result_fail(r, REASON_DISK_LIMIT, STAGE_EXECUTION,
                    "Disk limit reached (%llu files and folders)%s",
                    (unsigned long long)d->max_entries, above);
        break;
    case DISK_FLOOR:
        result_fail(r, REASON_DISK_LIMIT, STAGE_EXECUTION,
                    "Disk limit reached: the host has hardly any space left");
        break;
    }
}
