// outdir.h: artifacts written into --output-dir with the user's own rights. The names come from the
// service, which parses tenants' bytes: they are believed only where the user asked for them.
#ifndef ISLE_CLI_OUTDIR_H
#define ISLE_CLI_OUTDIR_H

#include "model/job.h"

#include <stddef.h>
#include <stdint.h>

struct outdir {
    int dir; // -1: artifacts are only listed
    const struct job *job;
    // the one being written
    int folder, file;
    char temporary[32];
    char *name;
    uint64_t left;
    char error[320]; // the first failure; nothing is written after it
};

// path NULL: nothing is written. Makes the folder when only its last part is missing. `job` must
// outlive it. 0 or -errno, also when the artifacts could not be written there.
int outdir_open(struct outdir *o, const char *path, const struct job *job);
void outdir_done(struct outdir *o); // removes what is not whole

// Begins the artifact `name` (as in the job's list) of `size` bytes; writes its next bytes. The
// last byte gives it its name: a reader never sees half of one. Files are never executable.
// Existing files are replaced, links never followed, folders made. Failures stand in o->error.
void outdir_begin(struct outdir *o, const char *name, uint64_t size);
void outdir_write(struct outdir *o, const char *data, size_t len);

#endif
