// send.h: a job of `isle run` as a service takes it: what travels as descriptors on one host
// travels as base64 to another.
#ifndef ISLE_CLIENT_SEND_H
#define ISLE_CLIENT_SEND_H

#include "cli/run_job.h"
#include "client/call.h"

enum { SEND_MAX_BYTES = JOB_MAX_JSON_BYTES };

// Appends the job's JSON with the content of its files and standard input, read to their ends, and
// the session. `out` is bounded by SEND_MAX_BYTES. 0, or -errno with *ret_error.
int send_write(struct buf *out, const struct run_job *job, const char *session,
               struct call_error *ret_error);

#endif
