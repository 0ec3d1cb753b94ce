// pipeline.h: what a job goes through: prepare -> install -> execute -> collect. Read
// job/pipeline.c first: the table of the stages and the rules between them stand there; each stage
// is a file of its own.
//
// The pipeline declares what it needs of others (struct runner, struct job_sink); who provides it
// depends on the program: `isle run`, isled.
#ifndef ISLE_JOB_PIPELINE_H
#define ISLE_JOB_PIPELINE_H

#include "model/job.h"
#include "model/lower.h"
#include "model/result.h"

struct loop;     // io/loop.h
struct runner;   // job/runner.h: the launcher's socket and what is in flight on it
struct uids;     // workspace/uids.h
struct pipeline; // one job on its way

// What is short when a job cannot even begin.
enum pipeline_lack { PIPELINE_NO_UID = 1, PIPELINE_NO_DISK, PIPELINE_NO_MEMORY };

// Where a job's live output, artifacts and end go. Every function may be NULL. They run on the
// loop, and may call pipeline_hold() and pipeline_cancel(), but not pipeline_free().
struct job_sink {
    void *ctx;
    void (*output)(void *ctx, bool is_stderr, const char *data,
                   size_t len); // within the limits, on character borders
    // One artifact: begin with its record and permission bits, then data, in order. Returns 0, or
    // -errno to fail the job.
    int (*artifact)(void *ctx, const struct result_artifact *a, uint32_t mode);
    int (*artifact_data)(void *ctx, const char *data, size_t len);
    // The job's files are collected: nothing is asked of the launcher for it any more. True: the
    // launcher ends now and takes what is left of one-shot workspaces along.
    bool (*collected)(void *ctx);
    void (*done)(void *ctx,
                 struct result *r); // the last call; r stays the pipeline's until it is freed
    // PREPARING, RUNNING, COLLECTING (only where there is something to collect), as they begin.
    void (*status)(void *ctx, enum job_status status);
    // Nothing of the job has begun, for want of something that comes back. True: *job is the
    // sink's, to be started again, and this was the last call. False, or NULL: it ends as
    // `internal`.
    bool (*lacking)(void *ctx, enum pipeline_lack lack, struct job *job);
};

// A session's workspace, and since when the job has waited. Zeroed: a one-shot workspace, and now.
struct pipeline_place {
    const char *workspace; // "kept/ID"; NULL: none. The caller's, as the descriptor is
    int fd;                // of its files
    uint32_t uid;
    int64_t bytes, entries; // what it takes, as last measured; -1: not known
    int64_t queued_ms;      // 0: now
    struct work_pool *pool; // for what would hold the loop; NULL: it may be held
    uint64_t owner;         // of the work there (io/work.h)
};

struct pipeline_config {
    int workspace_root;          // as PLAN_READY gave it
    int cache_root;              // likewise; -1: no package sets
    const char *ready_workspace; // folder that may be there for uid PLAN_UID_WORKSPACE_0; or NULL
    int null;                    // /dev/null, opened for reading and writing
    struct uids *uids;           // of the instance
    struct lower_host host;
    // How long a launcher that lives may owe an answer before the job ends as `internal`; 0: a
    // minute. Far above what a slow host needs: a launch, or the end of a killed sandbox.
    uint64_t launcher_patience_ms;
    uint64_t artifact_max_bytes, artifacts_max_bytes; // per file, all of a job
    uint32_t ahead_network;    // enum plan_network of the sandbox that is parked, if there is one
    uint32_t downgrades;       // enum plan_downgrade bits, for the result
    const char *tz;            // TZ inside
    const char *python;        // runs Python snippets, as jobs see it; NULL or "": the usual one
    const char *launcher;      // its name, for the result
    const struct zip_ops *zip; // workspace/zip.h: folders become archives; NULL: they are refused
    const char *artifact_urls; // of the result; NULL: artifacts have none
    const char *bwrap;         // path and version, for messages; NULL with another launcher
    bool fallback;             // SANDBOX_LEGACY_FALLBACK_ENABLED, and the launcher was told so
};

// Jobs of this config find a sandbox made ahead, where they come one by one: runner.h. There is a
// processor for it while fewer jobs run than there are processors.
void pipeline_keep_ahead(const struct pipeline_config *config, struct runner *runner);

// Takes over *job (the caller's struct is emptied), on failure too. The result comes through
// sink->done, from the loop, never from within this call. config and sink stay the caller's and
// must outlive the pipeline. 0 or -errno.
int pipeline_start(struct loop *loop, struct runner *runner, const struct pipeline_config *config,
                   struct job *job, const struct job_sink *sink, struct pipeline **ret);
// Between pipeline_start() and the loop's next turn.
void pipeline_set_place(struct pipeline *p, const struct pipeline_place *place);
// As it is now (under_way until `done`); valid as long as the pipeline.
const struct result *pipeline_result(const struct pipeline *p);
// Its program has begun: from there on it holds what a sandbox takes, until it is freed.
bool pipeline_began(const struct pipeline *p);
// Where it has result.usage.disk_bytes: files and folders of its folder. True: there are more, and
// more bytes, as the limit was reached before all was counted.
bool pipeline_entries(const struct pipeline *p, uint64_t *ret_entries);
// TERM, KILL after 0.5 s; the verdict is `reason` unless there is one. Idempotent; harmless once
// done.
void pipeline_stop(struct pipeline *p, enum reason reason, const char *text);
void pipeline_cancel(struct pipeline *p); // "Cancelled"
// Back-pressure: while held, the job's output is not read and artifacts are not sent; time limits
// and the end of the job go on.
void pipeline_hold(struct pipeline *p, bool hold);
void pipeline_free(struct pipeline *p);

#endif
