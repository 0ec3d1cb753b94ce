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
    buf_free(&r->out);
    buf_free(&r->err);
    for (size_t i = 0; i < r->n_artifacts; i++) {
        free(r->artifacts[i].path);
        free(r->artifacts[i].filename);
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
    return r->reason == REASON_OK          ? STATUS_COMPLETED
           : r->reason == REASON_CANCELLED ? STATUS_CANCELLED
                                           : STATUS_FAILED;
}

enum { OWN = -1, SANDBOX_FAILED = 125 };

// OWN: the job ended by itself, and its own status is the answer.
static const int exit_of_reason[REASON_COUNT] = {
    [REASON_OK] = 0,
    [REASON_ERROR] = OWN,
    [REASON_TIMEOUT] = 124,
    [REASON_CPU_LIMIT] = 124,
    [REASON_MEMORY_LIMIT] = 137,
    [REASON_DISK_LIMIT] = SANDBOX_FAILED,
    [REASON_RESULT_TOO_LARGE] = OWN,
    [REASON_ARTIFACT] = OWN,
    [REASON_CANCELLED] = 130,
    [REASON_POLICY] = SANDBOX_FAILED,
    [REASON_INSTALL_FAILED] = SANDBOX_FAILED,
    [REASON_QUEUE_TIMEOUT] = SANDBOX_FAILED,
    [REASON_CALLER_TIMEOUT] = SANDBOX_FAILED,
    [REASON_ISOLATION_UNAVAILABLE] = SANDBOX_FAILED,
    [REASON_WORKER_LOST] = SANDBOX_FAILED,
    [REASON_INTERNAL] = SANDBOX_FAILED,
};

int result_exit_status(const struct result *r)
{
    int status = exit_of_reason[r->reason];
    if (status != OWN) {
        return status;
    }
    if (r->signal > 0) {
        return 128 + r->signal;
    }
    return r->exit_code > 0 ? r->exit_code : 1;
}
