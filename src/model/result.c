#include "model/result.h"

#include "codec/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const reason_names[REASON_COUNT] = {
    [REASON_OK] = "ok",
    [REASON_ERROR] = "error",
    [REASON_TIMEOUT] = "timeout",
    [REASON_CPU_LIMIT] = "cpu_limit",
    [REASON_MEMORY_LIMIT] = "memory_limit",
    [REASON_DISK_LIMIT] = "disk_limit",
    [REASON_RESULT_TOO_LARGE] = "result_too_large",
    [REASON_ARTIFACT] = "artifact",
    [REASON_CANCELLED] = "cancelled",
    [REASON_POLICY] = "policy",
    [REASON_INSTALL_FAILED] = "install_failed",
    [REASON_QUEUE_TIMEOUT] = "queue_timeout",
    [REASON_CALLER_TIMEOUT] = "caller_timeout",
    [REASON_ISOLATION_UNAVAILABLE] = "isolation_unavailable",
    [REASON_WORKER_LOST] = "worker_lost",
    [REASON_INTERNAL] = "internal",
};

const char *const status_names[STATUS_COUNT] = {"queued",    "preparing", "running",  "collecting",
                                                "completed", "failed",    "cancelled"};

const char *const stage_names[STAGE_COUNT] = {"none",    "queue",     "preparation",
                                              "install", "execution", "collection"};

void result_init(struct result *r, const char *job_id, size_t stdout_max, size_t stderr_max)
{
    *r = (struct result){.exit_code = -1};
    snprintf(r->job_id, sizeof r->job_id, "%s", job_id);
    r->out = BUF_INIT(stdout_max);
    r->err = BUF_INIT(stderr_max);
    r->usage.wall_ms = r->usage.cpu_ms = r->usage.memory_peak_bytes = RESULT_UNKNOWN;
    r->usage.disk_bytes = r->usage.pids_peak = RESULT_UNKNOWN;
}

void result_done(struct result *r)
{
    free(r->value);
    free(r->error);
    free(r->isolation.fallback);
    buf_free(&r->out);
    buf_free(&r->err);
    for (size_t i = 0; i < r->n_artifacts; i++) {
        free(r->artifacts[i].path);
        free(r->artifacts[i].filename);
        free(r->artifacts[i].description);
    }
    free(r->artifacts);
    *r = (struct result){.exit_code = -1};
}

void result_fail(struct result *r, enum reason reason, enum stage stage, const char *format, ...)
{
    if (r->reason != REASON_OK) {
        return;
    }
    va_list args;
    va_start(args, format);
    free(r->error);
    if (vasprintf(&r->error, format, args) < 0) {
        r->error = NULL;
    }
    va_end(args);
    r->reason = reason;
    r->stage = stage;
}

enum job_status result_status(const struct result *r)
{
    return r->under_way                    ? r->status
           : r->reason == REASON_OK        ? STATUS_COMPLETED
           : r->reason == REASON_CANCELLED ? STATUS_CANCELLED
                                           : STATUS_FAILED;
}

#define OWN REASON_EXIT_OWN
#define SANDBOX REASON_EXIT_SANDBOX
const struct reason_spec reason_specs[REASON_COUNT] = {
    [REASON_OK] = {0, "it ended with exit status 0 and did what it was to do"},
    [REASON_ERROR] = {OWN, "the program's own failure: an exception, an exit status, a signal"},
    [REASON_TIMEOUT] = {124, "`timeout_seconds` were over"},
    [REASON_CPU_LIMIT] = {124, "`cpu_seconds` were used up"},
    [REASON_MEMORY_LIMIT] = {137, "`memory_mb` were used up, and the kernel killed it"},
    [REASON_DISK_LIMIT] = {SANDBOX, "`disk_mb` or the number of files went beyond its bound"},
    [REASON_RESULT_TOO_LARGE] = {OWN, "what a snippet returned is above the bound of results"},
    [REASON_ARTIFACT] = {OWN, "an artifact is missing, too large or no regular file, or there is "
                              "no room to keep it"},
    [REASON_CANCELLED] = {130, "a signal, or whoever read the output left"},
    [REASON_POLICY] = {SANDBOX, NULL},
    [REASON_INSTALL_FAILED] = {SANDBOX,
                               "a package set is not there, or not as it has to be: nothing ran"},
    [REASON_QUEUE_TIMEOUT] = {SANDBOX, NULL},
    [REASON_CALLER_TIMEOUT] = {SANDBOX, NULL},
    [REASON_ISOLATION_UNAVAILABLE] = {SANDBOX, "this host cannot isolate it: nothing ran"},
    [REASON_WORKER_LOST] = {SANDBOX,
                            "what held the sandbox was killed: how far the program came is "
                            "not known"},
    [REASON_INTERNAL] = {SANDBOX, "the sandbox failed, not the program"},
};

int result_exit_status(const struct result *r)
{
    int status = reason_specs[r->reason].exit;
    if (status != REASON_EXIT_OWN) {
        return status;
    }
    if (r->signal > 0) {
        return 128 + r->signal;
    }
    return r->exit_code > 0 ? r->exit_code : 1;
}
