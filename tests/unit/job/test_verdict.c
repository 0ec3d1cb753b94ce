// The end of a sandbox becomes a reason: one row per way to end.
#include "base/fd.h"
#include "codec/json_out.h"
#include "job/verdict.h"
#include "plan/steps.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define EXIT(n) ((n) << 8)
#define MB (UINT64_C(1) << 20)

struct row {
    const char *name;
    enum job_kind kind;
    struct plan_record end;
    enum guest_verdict guest;
    const char *said; // value or error of the guest
    enum reason before, reason;
    const char *error;
    int exit_code, signal;
    const char *value;
};

static const struct row rows[] = {
    {"snippet ok",
     JOB_SNIPPET,
     {.status = 0},
     GUEST_RESULT,
     "[1]",
     0,
     REASON_OK,
     NULL,
     0,
     0,
     "[1]"},
    {"snippet raises",
     JOB_SNIPPET,
     {.status = EXIT(1)},
     GUEST_ERROR,
     "E: m",
     0,
     REASON_ERROR,
     "E: m",
     1,
     0,
     NULL},
    {"snippet without a word",
     JOB_SNIPPET,
     {.status = 0},
     GUEST_SILENT,
     NULL,
     0,
     REASON_ERROR,
     "The program exited without a result",
     0,
     0,
     NULL},
    {"snippet exits 3",
     JOB_SNIPPET,
     {.status = EXIT(3)},
     GUEST_SILENT,
     NULL,
     0,
     REASON_ERROR,
     "Exit code 3",
     3,
     0,
     NULL},
    {"result, then exit 3",
     JOB_SNIPPET,
     {.status = EXIT(3)},
     GUEST_RESULT,
     "1",
     0,
     REASON_ERROR,
     "Exit code 3",
     3,
     0,
     NULL},
    {"malformed wins over exit 0",
     JOB_SNIPPET,
     {.status = 0},
     GUEST_MALFORMED,
     "malformed result",
     0,
     REASON_ERROR,
     "malformed result",
     0,
     0,
     NULL},
    {"too large",
     JOB_SNIPPET,
     {.status = EXIT(1)},
     GUEST_TOO_LARGE,
     "x",
     0,
     REASON_RESULT_TOO_LARGE,
     "The result has 9000000 bytes or more, above the maximum of 8388608",
     1,
     0,
     NULL},
    {"signal",
     JOB_COMMAND,
     {.status = SIGSEGV},
     GUEST_SILENT,
     NULL,
     0,
     REASON_ERROR,
     "Ended by signal 11 (SIGSEGV: Segmentation fault)",
     -1,
     11,
     NULL},
    {"signal with core bit",
     JOB_COMMAND,
     {.status = SIGABRT | 0x80},
     GUEST_SILENT,
     NULL,
     0,
     REASON_ERROR,
     "Ended by signal 6 (SIGABRT: Aborted)",
     -1,
     6,
     NULL},
    {"real-time signal",
     JOB_COMMAND,
     {.status = 40},
     GUEST_SILENT,
     NULL,
     0,
     REASON_ERROR,
     "Ended by signal 40",
     -1,
     40,
     NULL},
    {"signal after a result",
     JOB_SNIPPET,
     {.status = SIGKILL},
     GUEST_RESULT,
     "1",
     0,
     REASON_ERROR,
     "Ended by signal 9 (SIGKILL: Killed)",
     -1,
     9,
     NULL},
    {"137 is no memory limit",
     JOB_COMMAND,
     {.status = EXIT(137)},
     GUEST_SILENT,
     NULL,
     0,
     REASON_ERROR,
     "Exit code 137",
     137,
     0,
     "\"out\""},
    {"memory",
     JOB_COMMAND,
     {.status = -1, .flags = PLAN_HIT_MEMORY},
     GUEST_SILENT,
     NULL,
     0,
     REASON_MEMORY_LIMIT,
     "Memory limit reached (64 MB)",
     -1,
     9,
     NULL},
    {"memory, main process survived",
     JOB_COMMAND,
     {.status = 0, .flags = PLAN_HIT_MEMORY},
     GUEST_SILENT,
     NULL,
     0,
     REASON_MEMORY_LIMIT,
     "Memory limit reached (64 MB)",
     0,
     0,
     NULL},
    {"memory while it was set up",
     JOB_COMMAND,
     {.status = -1, .error = ECHILD, .step = PLAN_STEP_end, .flags = PLAN_HIT_MEMORY},
     GUEST_SILENT,
     NULL,
     0,
     REASON_MEMORY_LIMIT,
     "Memory limit reached (64 MB)",
     -1,
     0,
     NULL},
    {"cpu",
     JOB_COMMAND,
     {.status = -1, .flags = PLAN_HIT_CPU},
     GUEST_SILENT,
     NULL,
     0,
     REASON_CPU_LIMIT,
     "CPU time limit reached (1.5s)",
     -1,
     9,
     NULL},
    {"timeout, then exit 0",
     JOB_SNIPPET,
     {.status = 0},
     GUEST_RESULT,
     "1",
     REASON_TIMEOUT,
     REASON_TIMEOUT,
     "first",
     0,
     0,
     NULL},
    {"timeout, then memory",
     JOB_COMMAND,
     {.status = -1, .flags = PLAN_HIT_MEMORY | PLAN_KILLED},
     GUEST_SILENT,
     NULL,
     REASON_TIMEOUT,
     REASON_TIMEOUT,
     "first",
     -1,
     9,
     NULL},
    {"cancelled, KILL",
     JOB_COMMAND,
     {.status = -1, .flags = PLAN_KILLED},
     GUEST_SILENT,
     NULL,
     REASON_CANCELLED,
     REASON_CANCELLED,
     "first",
     -1,
     9,
     NULL},
    {"no such folder",
     JOB_COMMAND,
     {.status = -1, .error = ENOENT, .step = PLAN_STEP_chdir},
     GUEST_SILENT,
     NULL,
     0,
     REASON_ERROR,
     "cwd: /workspace/d: No such file or directory",
     -1,
     0,
     NULL},
    {"no such program",
     JOB_COMMAND,
     {.status = -1, .error = ENOENT, .step = PLAN_STEP_exec},
     GUEST_SILENT,
     NULL,
     0,
     REASON_ERROR,
     "prog: command not found",
     127,
     0,
     NULL},
    {"no program",
     JOB_COMMAND,
     {.status = -1, .error = EACCES, .step = PLAN_STEP_exec},
     GUEST_SILENT,
     NULL,
     0,
     REASON_ERROR,
     "prog: Permission denied",
     126,
     0,
     NULL},
    {"no interpreter",
     JOB_SNIPPET,
     {.status = -1, .error = ENOENT, .step = PLAN_STEP_exec},
     GUEST_SILENT,
     NULL,
     0,
     REASON_ISOLATION_UNAVAILABLE,
     "the sandbox could not be set up: step exec: No such file or directory",
     -1,
     0,
     NULL},
    {"not allowed",
     JOB_COMMAND,
     {.status = -1, .error = EPERM, .step = PLAN_STEP_user_namespace},
     GUEST_SILENT,
     NULL,
     0,
     REASON_ISOLATION_UNAVAILABLE,
     "the sandbox could not be set up: step user_namespace: Operation not permitted",
     -1,
     0,
     NULL},
    {"no memory of the host's",
     JOB_COMMAND,
     {.status = -1, .error = ENOMEM, .step = PLAN_STEP_clone},
     GUEST_SILENT,
     NULL,
     0,
     REASON_INTERNAL,
     "the sandbox could not be set up: step clone: Cannot allocate memory",
     -1,
     0,
     NULL},
    {"shim lost",
     JOB_COMMAND,
     {.status = -1, .error = ECHILD, .step = PLAN_STEP_end},
     GUEST_SILENT,
     NULL,
     0,
     REASON_INTERNAL,
     "the sandbox was lost: No child processes",
     -1,
     0,
     NULL},
    {"launcher lost",
     JOB_COMMAND,
     {.status = -1, .error = EPIPE},
     GUEST_SILENT,
     NULL,
     0,
     REASON_WORKER_LOST,
     "the sandbox was lost: its launcher is gone",
     -1,
     0,
     NULL},
    {"no status",
     JOB_COMMAND,
     {.status = -1},
     GUEST_SILENT,
     NULL,
     0,
     REASON_INTERNAL,
     "the sandbox ended without a status",
     -1,
     0,
     NULL},
    {"late, and nobody had noticed",
     JOB_COMMAND,
     {.status = 0, .marks_ns = {[PLAN_T_EXEC] = 1, [PLAN_T_REPORT] = UINT64_C(31000000000)}},
     0,
     NULL,
     0,
     REASON_TIMEOUT,
     "Execution timeout (30.0s)",
     0,
     0,
     NULL},
    {"just in time",
     JOB_COMMAND,
     {.status = 0, .marks_ns = {[PLAN_T_EXEC] = 1, [PLAN_T_REPORT] = UINT64_C(30100000000)}},
     0,
     NULL,
     0,
     REASON_OK,
     NULL,
     0,
     0,
     "\"out\""},
};

static void same(const char *name, const char *what, const char *a, const char *b)
{
    if ((a == NULL) != (b == NULL) || (a && strcmp(a, b) != 0)) {
        fail_msg("%s: %s is %s, not %s", name, what, a ? a : "NULL", b ? b : "NULL");
    }
}

static void check(const struct row *row)
{
    char name[] = "prog", cwd[] = "/workspace/d";
    char *argv[] = {name, NULL};
    struct job j = {.kind = row->kind, .language = LANGUAGE_PYTHON, .argv = argv, .cwd = cwd};
    limits_init(&j.limits);
    j.limits.value[LIMIT_MEMORY] = 64;
    j.limits.value[LIMIT_CPU] = 1500;
    struct guest g = {.fd = -1, .verdict = row->guest, .announced = 9000000};
    if (row->said && row->guest == GUEST_RESULT) {
        g.value = strdup(row->said);
        g.value_len = strlen(row->said);
    } else if (row->said) {
        g.error = strdup(row->said);
    }
    struct result r;
    result_init(&r, "id", 100, 100);
    buf_puts(&r.out, row->signal || row->exit_code < 0 ? "" : " out\n");
    if (row->before) {
        result_fail(&r, row->before, STAGE_EXECUTION, "first");
    }
    verdict_end(&r, &j, &row->end, &g);
    same(row->name, "reason", reason_names[r.reason], reason_names[row->reason]);
    same(row->name, "error", r.error, row->error);
    AUTO_BUF struct buf value = BUF_INIT(100);
    if (r.value_is_output) {
        json_put_bytes(&value, NULL, r.out.data + r.value_at, r.value_len);
    } else if (r.value) {
        buf_puts(&value, r.value);
    }
    same(row->name, "value", value.data, row->value);
    if (r.exit_code != row->exit_code || r.signal != row->signal) {
        fail_msg("%s: exit code %d, signal %d", row->name, r.exit_code, r.signal);
    }
    free(g.value);
    free(g.error);
    result_done(&r);
}

static void every_way_to_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check(&rows[i]);
    }
}

static void a_full_heap_is_a_memory_limit_only_when_it_was_full(void **state)
{
    (void)state;
    const struct {
        enum language language;
        uint64_t peak;
        enum reason reason;
    } table[] = {
        {LANGUAGE_JAVASCRIPT, 200 * MB, REASON_MEMORY_LIMIT},
        {LANGUAGE_JAVASCRIPT, 60 * MB, REASON_ERROR}, // process.abort()
        {LANGUAGE_JAVASCRIPT, PLAN_UNKNOWN, REASON_ERROR},
        {LANGUAGE_PYTHON, 200 * MB, REASON_ERROR},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct job j = {.kind = JOB_SNIPPET, .language = table[i].language};
        limits_init(&j.limits);
        j.limits.value[LIMIT_MEMORY] = 256;
        struct plan_record end = {.status = SIGABRT, .memory_peak_bytes = table[i].peak};
        struct guest g = {.fd = -1};
        struct result r;
        result_init(&r, "id", 100, 100);
        verdict_end(&r, &j, &end, &g);
        assert_int_equal(r.reason, table[i].reason);
        assert_int_equal(r.signal, SIGABRT);
        result_done(&r);
    }
}

static void figures_that_are_unknown_stay_unknown(void **state)
{
    (void)state;
    struct job j = {.kind = JOB_COMMAND};
    limits_init(&j.limits);
    struct plan_record end = {.cpu_ns = PLAN_UNKNOWN,
                              .memory_peak_bytes = PLAN_UNKNOWN,
                              .pids_peak = 3,
                              .marks_ns = {[PLAN_T_EXEC] = 1000000, [PLAN_T_REPORT] = 8600000}};
    struct guest g = {.fd = -1};
    struct result r;
    result_init(&r, "id", 100, 100);
    verdict_end(&r, &j, &end, &g);
    assert_int_equal(r.usage.cpu_ms, RESULT_UNKNOWN);
    assert_int_equal(r.usage.memory_peak_bytes, RESULT_UNKNOWN);
    assert_int_equal(r.usage.pids_peak, 3);
    assert_int_equal(r.usage.wall_ms, 8);
    result_done(&r);
}

static void seconds_as_people_write_them(void **state)
{
    (void)state;
    const struct {
        int64_t ms;
        const char *text;
    } table[] = {{2000, "2.0s"}, {2500, "2.5s"},     {250, "0.25s"},
                 {1, "0.001s"},  {600000, "600.0s"}, {1010, "1.01s"}};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char text[32];
        assert_string_equal(verdict_seconds(table[i].ms, text, sizeof text), table[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_to_end),
        cmocka_unit_test(a_full_heap_is_a_memory_limit_only_when_it_was_full),
        cmocka_unit_test(figures_that_are_unknown_stay_unknown),
        cmocka_unit_test(seconds_as_people_write_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
