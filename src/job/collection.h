// collection.h: the files a job was asked to leave, on their way to its sink, piece by piece.
#ifndef ISLE_JOB_COLLECTION_H
#define ISLE_JOB_COLLECTION_H

#include "job/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job;             // model/job.h
struct job_sink;        // job/pipeline.h
struct pipeline_config; // job/pipeline.h: the caps
struct result;          // model/result.h

// All pointers and the workspace are the caller's and must outlive it.
struct collection {
    const struct pipeline_config *config;
    const struct job_sink *sink;
    const struct job *job;
    struct result *result; // its artifacts grow; a refused one gives it its verdict
    char *chunk;           // STREAM_CHUNK_BYTES, for what is read
    int workspace;         // descriptor of the folder they lie in
    uint32_t uid;          // whose they must be

    // its own
    size_t next;              // of job->artifacts
    int fd;                   // the one that is being sent; -1: none
    uint64_t left_bytes;      // of that one
    uint64_t announced_bytes; // of all so far
};

// Before the first step: room for every artifact in result->artifacts. 0 or -ENOMEM.
int collection_begin(struct collection *c);
// Opens the next artifact or sends one piece of the open one. Each missing or refused artifact but
// the first is passed over in silence: the first verdict stays, and what there is still reaches its
// owner. False: that was the last step, as none is left or one broke off half-way.
bool collection_step(struct collection *c);
// Closes what is open. Harmless where nothing is (fd -1).
void collection_end(struct collection *c);

#endif
