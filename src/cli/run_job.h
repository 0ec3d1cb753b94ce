// run_job.h: from options to a checked job: the JSON that goes to the service, and the descriptors
// that go with it. Everything of the user's is opened here, with the user's own rights.
#ifndef ISLE_CLI_RUN_JOB_H
#define ISLE_CLI_RUN_JOB_H

#include "base/buf.h"
#include "cli/run_options.h"
#include "model/job.h"
#include "model/lower.h"

struct run_job {
    struct buf json;
    int *fds; // n_fds, owned: standard input first, if given, then the files
    size_t n_fds;
    uint64_t staged_bytes; // of the files, in whole pages
    struct job job;        // as the service will understand the JSON; no descriptors bound
};

struct run_error {
    char text[640]; // what is wrong, naming option or field, value and bound
};

// `host` NULL: of another host, which will check it. 0 or -errno with *ret_error. run_job_done()
// either way.
int run_job_build(const struct run_options *o, const struct lower_host *host, struct run_job *ret,
                  struct run_error *ret_error);
void run_job_done(struct run_job *j);

#endif
