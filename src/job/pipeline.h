// pipeline.h: what a job goes through: prepare -> install -> execute -> collect. Read
// job/pipeline.c from top to bottom: the stages stand there in that order.
//
// The pipeline declares what it needs of others (struct runner, struct job_sink); who provides it
// depends on the program: `isle run` today, isled later.
#ifndef ISLE_JOB_PIPELINE_H
#define ISLE_JOB_PIPELINE_H

#include "model/job.h"
#include "model/lower.h"
#include "model/result.h"

struct loop;     // io/loop.h
struct runner;   // job/runner.h: the launcher's socket and what is in flight on it
struct uids;     // workspace/uids.h
struct pipeline; // one job on its way

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
                 struct result *r); // the last call; r stays the pipeline's until it returns
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
    uint32_t ahead_network; // enum plan_network of the sandbox that is parked, if there is one
    uint32_t downgrades;    // enum plan_downgrade bits, for the result
    const char *tz;         // TZ inside
    const char *launcher;   // its name, for the result
    const char *bwrap;      // path and version, for messages; NULL with another launcher
};

// Takes over *job (the caller's struct is emptied), on failure too. The result comes through
// sink->done, from the loop, never from within this call. config and sink stay the caller's and
// must outlive the pipeline. 0 or -errno.
int pipeline_start(struct loop *loop, struct runner *runner, const struct pipeline_config *config,
                   struct job *job, const struct job_sink *sink, struct pipeline **ret);
// TERM, KILL after 0.5 s; reason cancelled. Idempotent; harmless once done.
void pipeline_cancel(struct pipeline *p);
// Back-pressure: while held, the job's output is not read and artifacts are not sent; time limits
// and the end of the job go on.
void pipeline_hold(struct pipeline *p, bool hold);
void pipeline_free(struct pipeline *p);

#endif
