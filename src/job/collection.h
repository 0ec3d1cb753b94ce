// collection.h: the files a job was asked to leave, on their way to its sink, piece by piece. A
// folder becomes a zip, made outside of the workspace.
//
// An artifact comes whole or not at all: what is missing, refused or over a cap fails the job by
// name, and the others still reach their owner. In the job's order, so that which ones fit does not
// depend on anything else. A file that is written to while it is read is refused: its content was
// nobody's. What a folder has of such files is as zip.h says.
#ifndef ISLE_JOB_COLLECTION_H
#define ISLE_JOB_COLLECTION_H

#include "job/stream.h"

#include "codec/sha256.h"
#include "workspace/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COLLECTION_MAX_ENTRIES = 10000 }; // of one folder

struct job;             // model/job.h
struct job_sink;        // job/pipeline.h
struct pipeline_config; // job/pipeline.h: the caps
struct result;          // model/result.h
struct work_pool;       // io/work.h
struct zip;             // workspace/zip.h

// All pointers and the workspace are the caller's and must outlive it.
struct collection {
    const struct pipeline_config *config;
    const struct job_sink *sink;
    const struct job *job;
    struct result *result; // its artifacts grow; a refused one gives it its verdict
    char *chunk;           // STREAM_CHUNK_BYTES, for what is read
    int workspace;         // descriptor of the folder they lie in
    uint32_t uid;          // whose they must be
    // Hears of each that is refused, not of the first alone; may be NULL.
    void (*refused)(void *ctx, const char *path, const char *why);
    void *refused_ctx;
    // Who closes what may be large, where the steps are made on the loop; else NULL.
    struct work_pool *pool;
    uint64_t owner; // of that work

    // its own
    size_t next;              // of job->artifacts
    int fd;                   // the one that is being sent; -1: none
    struct files_file opened; // that one, as it was; an archive: fd -1
    uint64_t left_bytes;      // of that one
    uint64_t announced_bytes; // of all so far
    struct sha256 sha;        // of what was sent of it
    struct zip *zip;          // the archive that is being made of a folder
    int folder, list, spool;  // that folder; the archive's directory; what is written of it
    uint64_t zip_bytes;
    bool packed;        // a piece of the archive was made, and what came of it not looked at:
    ssize_t packed_len; // as zip_next() says
};

// The parts that must not be 0 at first.
#define COLLECTION_NONE                                                                            \
    .workspace = -1, .fd = -1, .opened = {.fd = -1}, .folder = -1, .list = -1, .spool = -1

// Before the first step: room for every artifact in result->artifacts. 0 or -ENOMEM.
int collection_begin(struct collection *c);
// Opens the next artifact, or makes or sends one piece of the open one: a few ms of work at most.
// Each missing or refused artifact but the first is passed over in silence (but `refused`): the
// first verdict stays, and what there is still reaches its owner. False: that was the last step, as
// none is left or one broke off half-way.
bool collection_step(struct collection *c);
// Is the next step to make a piece of an archive, which may take its time? Then collection_pack()
// makes it: on any thread, as it touches nothing but the collection's own, and a step has to
// follow. True: it could go on at once.
bool collection_packs(const struct collection *c);
bool collection_pack(struct collection *c);
// Closes what is open. Harmless where nothing is (COLLECTION_NONE).
void collection_end(struct collection *c);

#endif
