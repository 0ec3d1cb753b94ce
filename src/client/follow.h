// follow.h: a job's events until its result, over as many connections as it takes: what was written
// is not written again.
#ifndef ISLE_CLIENT_FOLLOW_H
#define ISLE_CLIENT_FOLLOW_H

#include "client/client.h"
#include "client/sse.h"

struct follow {
    // in
    struct client *c;
    char id[64];       // of the job
    int out, err;      // where its output goes; -1: nowhere
    bool cancels;      // a signal, or a reader of the output that leaves, cancels the job; else it
                       // ends only the following
    size_t max_result; // bytes
    // Every event as it is, before it is acted upon; NULL: none. Not 0 ends it.
    int (*seen)(void *ctx, const struct sse_event *e);
    void *ctx;
    // out
    struct buf final;         // JSON of the SandboxResult
    bool cancelled;           // the job was asked to end
    bool line_open;           // the last byte written to `out` was no newline
    int out_error, err_error; // errno of the first failed write
    // inner
    struct sse sse;
    char last[128];   // id of the last event
    uint64_t next[2]; // how far stdout, stderr have come, in bytes
    unsigned signals;
    bool ended, progress;
};

// 0: `final` is there. -EINTR: cancelled, or (without `cancels`) no longer wanted; -ECANCELED:
// without `cancels`, what came could not be written; else -errno with *ret_error. follow_done()
// either way.
int follow_job(struct follow *f, struct call_error *ret_error);
void follow_done(struct follow *f);

#endif
