// run_end.h: what `isle run` says when a job is over, here or on a service: its result, or one of
// our own where there is none, and the exit status that follows.
#ifndef ISLE_CLI_RUN_END_H
#define ISLE_CLI_RUN_END_H

#include "cli/outdir.h"
#include "cli/run_options.h"
#include "model/result.h"

struct run_end {
    const struct run_options *options;
    const struct job *job;
    const struct outdir *artifacts;
    const char *launcher;     // of a result of our own; NULL: not known
    const char *noexec;       // advice about a workspace in which nothing can be executed; or NULL
    bool line_open;           // the job's output did not end its line
    int out_error, err_error; // errno of the first failed write of its output
};

// A result of our own: the job has none of the service's. Exit status.
int run_end_own(const struct run_end *r, enum reason reason, const char *text);

// The service's, JSON of a SandboxResult. Exit status, or -EBADMSG when it is none (nothing was
// printed).
int run_end_print(const struct run_end *r, const struct buf *final);

// The exit status after all was said: output that could not be written is a failure even if the job
// was none.
int run_end_status(const struct run_end *r, int status);

// 0 to 2 are open, or else a file opened later would get such a number and the job's output with
// it.
void run_open_standard_streams(void);

#endif
