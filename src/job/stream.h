// stream.h: one of a job's two output pipes on the loop, read into an output (output.h).
#ifndef ISLE_JOB_STREAM_H
#define ISLE_JOB_STREAM_H

#include "io/loop.h"
#include "job/output.h"

struct stream {
    struct loop *loop;
    struct loop_watch watch;
    int fd; // our end; -1: closed
    struct output out;
    char *chunk; // shared with the other stream
    void (*live)(void *ctx, struct stream *s, const char *data, size_t len);
    void *ctx;
};

enum { STREAM_CHUNK_BYTES = 64 * 1024 };

// Makes the pipe. *ret_theirs (the job's end) is the caller's. 0 or -errno. `kept`, `chunk`
// (STREAM_CHUNK_BYTES) and live are the caller's.
int stream_open(struct stream *s, struct loop *loop, struct buf *kept, char *chunk,
                int *ret_theirs);
// Stops reading, or goes on.
void stream_hold(struct stream *s, bool hold);
// Nobody writes any more: takes what is left in the pipe, without waiting for its end (somebody
// outside may hold a copy), hands out the rest and closes.
void stream_drain(struct stream *s);
void stream_close(struct stream *s); // harmless on a zeroed one with fd -1

#endif
