// session.h: the front's talk with the service: the job goes out, output and artifacts come in
// live, the result comes last. Nothing here blocks for good: a reader that does not read holds the
// job up, never Ctrl-C.
#ifndef ISLE_CLI_SESSION_H
#define ISLE_CLI_SESSION_H

#include "cli/outdir.h"
#include "cli/run_job.h"

#include <stdbool.h>

enum session_end {
    SESSION_FINAL,     // the result is there
    SESSION_LOST,      // the service ended without one, or sent what it may not
    SESSION_CANCELLED, // a second Ctrl-C: nobody waits for the result any more
};

struct session {
    // in
    int service;  // STREAM socket
    int signals;  // signalfd of what ends the job; -1: none
    int out, err; // where the job's output goes; -1: nowhere
    struct outdir *artifacts;
    // out
    struct buf final;         // JSON of the SandboxResult
    bool cancelled;           // a signal came, or a reader of the output went away
    bool line_open;           // the last byte written to `out` was no newline
    int out_error, err_error; // errno of the first failed write
};

// 0 and *ret_end, or -errno. session_done() either way; descriptors stay the caller's.
int session_run(struct session *s, const struct run_job *job, enum session_end *ret_end);
void session_done(struct session *s);

#endif
