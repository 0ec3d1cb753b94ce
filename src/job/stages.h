// stages.h: what the stages of a job share: the job on its way, and how one stage hands it to the
// next. Inside job/ only. A stage is one file; which comes when stands in pipeline.c.
#ifndef ISLE_JOB_STAGES_H
#define ISLE_JOB_STAGES_H

#include "io/pump.h"
#include "io/work.h"
#include "job/collection.h"
#include "job/fallback.h"
#include "job/guest.h"
#include "job/pipeline.h"
#include "job/runner.h"
#include "job/sets.h"
#include "job/stream.h"
#include "workspace/disk.h"
#include "workspace/stage.h"

#include <stdbool.h>
#include <stdint.h>

enum stage_at { AT_PREPARE, AT_INSTALL, AT_EXECUTE, AT_COLLECT, AT_END };

struct pipeline {
    struct loop *loop;
    struct runner *runner;
    const struct pipeline_config *config;
    const struct job_sink *sink;
    struct pipeline_place place;
    struct job job;
    struct result result;
    enum stage_at at;
    bool held;
    bool unwanted;           // cancelled: nobody wants what is left of it
    bool offers;             // it never began, for want of `lack`, and that is about to be told
    enum pipeline_lack lack; // and as a text
    const char *lack_what;
    int lack_error;
    struct loop_timer begin;

    // prepare.c: the workspace
    struct lowered plan;
    uint32_t uid;   // of the workspace, in plans
    uint32_t owner; // of its files: the same, or inner root where there is no other id
    bool has_tmpfs, has_folder, was_ready;
    uint64_t staged_bytes; // of all input files, in whole pages
    int workspace;         // -1: none yet
    int measured; // the folder that `disk` counts: a session's, with its /tmp; -1: `workspace`
    struct disk disk;
    bool much_to_stage; // files, folders or bytes, or perhaps to replace
    struct stage_rest stage_rest;
    struct stage_error staging;
    void (*undone)(struct pipeline *p); // what waits until it is given back
    struct runner_call call;            // PLAN_TMPFS, then PLAN_START
    // install.c
    struct sets sets;
    // execute.c: the sandbox
    uint32_t id;             // 0: not running (yet)
    uint64_t executed_at_ns; // 0: not yet
    bool had_input;          // it is being read, and cannot be had again
    bool stopping;           // TERM is on its way; KILL follows by kill_timer
    bool lost;               // the launcher is: processes of the job may live a moment longer
    uint64_t stop_grace_ms;
    struct loop_timer time_limit, kill_timer, disk_timer, patience;
    struct fallback fallback;
    struct stream out, err;
    struct pump input;
    struct guest guest;
    struct work check; // of a long result, once it has ended
    struct plan_record end;
    // tree.c: what is done to the workspace's tree, here or on a thread
    struct work tree_work; // while it is queued, `disk`, `removal` or the archive is the thread's
    int tree_verdict;      // of the last piece: an enum disk_verdict or -errno
    bool tree_is_small;    // it was counted at once, and has no blocks
    struct tree_removal *removal;          // NULL: none under way
    void (*tree_then)(struct pipeline *p); // what waits for the tree
    struct loop_timer remove_again;
    // collect.c
    struct collection collection;
    struct loop_timer collect_timer;

    char chunk[STREAM_CHUNK_BYTES];
};

// Each begins its stage, and ends in pipeline_next() once, at once or later.
void stage_prepare(struct pipeline *p);
void stage_install(struct pipeline *p);
void stage_execute(struct pipeline *p);
void stage_collect(struct pipeline *p);

// The stage is over, well or not: the next one that its verdict allows begins, or the job ends.
void pipeline_next(struct pipeline *p);
// For a reason of isle's own: "WHAT: why", and the job's next.
void pipeline_give_up(struct pipeline *p, enum reason reason, const char *what, int error);
// Something is short and nothing has begun: the job goes back to whoever can wait with it, or ends
// as above.
void pipeline_lacks(struct pipeline *p, enum pipeline_lack lack, const char *what, int error);
void pipeline_tell(struct pipeline *p, enum job_status status);

// prepare.c
// Gives the workspace back: closed, and gone where it was the job's alone. Then what is called.
void prepare_undo(struct pipeline *p, void (*then)(struct pipeline *p));

// execute.c
void execute_init(struct pipeline *p);
// TERM to every process now, KILL grace_ms later. Before the program runs there is nothing to warn.
void execute_stop(struct pipeline *p, uint64_t grace_ms);
void execute_undo(struct pipeline *p);
// What a look at the disk of a running job said.
void execute_disk_says(struct pipeline *p, int verdict);

// tree.c
// As p->tree_work. True: it will be done on a thread. The caller's to do else.
bool tree_hand_over(struct pipeline *p, void (*run)(struct work *w), void (*done)(struct work *w));
// The job's files are put into the workspace: p->tree_verdict and p->staging say how it ended.
void tree_stage(struct pipeline *p, void (*then)(struct pipeline *p));
// What is there before the job begins is counted: disk_first(). p->tree_verdict says how it ended.
void tree_count(struct pipeline *p, void (*then)(struct pipeline *p));
// One look; what it says reaches execute_disk_says(), at once or later.
void tree_look(struct pipeline *p);
// The whole tree is counted: p->disk is right, and p->tree_verdict says how it ended.
void tree_settle(struct pipeline *p, void (*then)(struct pipeline *p));
// The job's folder goes, *then* is called; a failure is the result's.
void tree_remove(struct pipeline *p, void (*then)(struct pipeline *p));
void tree_init(struct pipeline *p);
// Lets go of what is under way. What is not removed yet stays.
void tree_drop(struct pipeline *p);

// collect.c
// As far as the sink takes it; ends the stage when all is sent.
void collect_more(struct pipeline *p);

#endif
