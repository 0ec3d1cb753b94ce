// result.h: the SandboxResult, one object everywhere.
#ifndef ISLE_MODEL_RESULT_H
#define ISLE_MODEL_RESULT_H

#include "base/buf.h"
#include "codec/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum reason {
    REASON_OK,
    REASON_ERROR, // the program's own
    REASON_TIMEOUT,
    REASON_CPU_LIMIT,
    REASON_MEMORY_LIMIT,
    REASON_DISK_LIMIT,
    REASON_RESULT_TOO_LARGE,
    REASON_ARTIFACT,
    REASON_CANCELLED,
    REASON_POLICY,
    REASON_INSTALL_FAILED,
    REASON_QUEUE_TIMEOUT,
    REASON_CALLER_TIMEOUT,
    REASON_ISOLATION_UNAVAILABLE,
    REASON_WORKER_LOST,
    REASON_INTERNAL,
    REASON_COUNT,
};
extern const char *const reason_names[REASON_COUNT];

enum { REASON_EXIT_OWN = -1, REASON_EXIT_SANDBOX = 125 };
struct reason_spec {
    int exit;         // status of `isle run`; OWN: the job ended by itself, and its own answers
    const char *when; // one phrase for docs; NULL: of what `isle run` alone cannot show
};
extern const struct reason_spec reason_specs[REASON_COUNT];

enum job_status {
    STATUS_QUEUED,
    STATUS_PREPARING,
    STATUS_RUNNING,
    STATUS_COLLECTING,
    STATUS_COMPLETED,
    STATUS_FAILED,
    STATUS_CANCELLED,
    STATUS_COUNT,
};
extern const char *const status_names[STATUS_COUNT];

enum stage {
    STAGE_NONE,
    STAGE_QUEUE,
    STAGE_PREPARATION,
    STAGE_INSTALL,
    STAGE_EXECUTION,
    STAGE_COLLECTION,
    STAGE_COUNT
};
extern const char *const stage_names[STAGE_COUNT];

#define RESULT_UNKNOWN (-1) // "could not be measured": null in JSON, never 0

struct result_artifact {
    char *path;        // relative to /workspace
    char *filename;    // its last part as text, with .zip for a folder; one of its own in a job
    char *description; // the job's own word for it, or NULL
    uint64_t size_bytes;
    char sha256[SHA256_HEX]; // of its content; "": not known
    bool folder;             // it was one, and is an archive now
    bool optional;
};

struct result {
    char job_id[37];
    bool under_way;         // not ended: `status` says how far it is, and there is no reason
    enum job_status status; // of one under way
    enum reason reason;
    enum stage stage; // where it failed; NONE when finished
    char *value;      // JSON text of the result, or NULL: null, or (a command) a part of `out`
    size_t value_len;
    bool value_is_output; // that many bytes of `out`, from `value_at`
    size_t value_at;
    char *error;         // one line for a person, or NULL
    int exit_code;       // -1: null (ended by a signal, or never ran)
    int signal;          // 0: null
    struct buf out, err; // the kept heads, raw bytes
    bool truncated_stdout, truncated_stderr;
    bool truncated_artifacts; // one was too big, or had too many files
    struct result_artifact *artifacts;
    size_t n_artifacts;
    const char *artifact_urls; // what stands before "JOB/artifacts/NAME"; NULL: they have none
    struct {
        int64_t wall_ms, cpu_ms, memory_peak_bytes, disk_bytes, pids_peak;
        int64_t stdout_bytes, stderr_bytes; // before truncation
    } usage;
    struct {
        bool isolated;        // false: nothing ran (level none)
        const char *launcher; // "native"; "none": without a sandbox
        const char *start;    // "cold"
        const char *network;  // "none"
        uint32_t downgrades;  // enum plan_downgrade bits; any: level degraded, NO_ISOLATION: none
        char *fallback;       // why it ran without a sandbox though it should have had one, or NULL
    } isolation;
    // Wall clock, ms since the epoch; 0: not reached.
    int64_t queued_at, started_at, prepare_started_at, prepare_completed_at, install_started_at,
        install_completed_at, execute_started_at, execute_completed_at, collect_started_at,
        collect_completed_at, completed_at;
};

void result_init(struct result *r, const char *job_id, size_t stdout_max, size_t stderr_max);
void result_done(struct result *r);
// Sets reason and error (printf) unless a reason other than ok is already set: the first verdict
// stays.
void result_fail(struct result *r, enum reason reason, enum stage stage, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Once it has ended derived, never stored: success <=> ok <=> completed.
enum job_status result_status(const struct result *r);
// Exit status of `isle run`: the job's own (1 if it exited 0 without success), 128+n by signal n,
// 124, 137, 130, 125.
int result_exit_status(const struct result *r);
// One line of JSON (no newline), keys in the order of docs/jobs.md. 0 or -errno.
int result_write(struct buf *out, const struct result *r);
// The same as direct execution answers it: {success, result, error, logs, artifacts, duration_ms,
// job_id, reason, exit_code, signal, stdout, stderr, truncated, usage, isolation}.
int result_write_answer(struct buf *out, const struct result *r);
// Appends where the service has one of r's artifacts: the name as one segment of a path. Nothing
// where r has no artifact_urls. 0 or the buffer's error.
int result_artifact_url(struct buf *out, const struct result *r, const struct result_artifact *a);
// `logs` of it: the output without its last line end, or null.
void result_put_logs(struct buf *out, const struct result *r);
// From queued to ended, or to now.
int64_t result_duration_ms(const struct result *r);

// The table of downgrades: name, what is lost, how to fix it.
struct downgrade {
    uint32_t bit;
    const char *name, *lost, *fix;
};
extern const struct downgrade downgrades[];
extern const size_t n_downgrades;
// The names of `bits` as a JSON array (codec/json_out.h).
void downgrades_write(struct buf *out, const char *key, uint32_t bits);

#endif
