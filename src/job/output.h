// output.h: one output stream of a job: the head is kept up to a limit, the rest is drained and
// counted, so that a job never blocks on a reader that has enough.
#ifndef ISLE_JOB_OUTPUT_H
#define ISLE_JOB_OUTPUT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output {
    struct buf *kept; // the head; its bound is the limit. Not owned
    size_t given;     // bytes of it that were handed out live
    uint64_t total;   // bytes that came
    bool full;        // the head ends here: what comes is counted only
};

void output_init(struct output *o, struct buf *kept);

// Takes what was read. *ret and *ret_len (the live piece, into kept; maybe empty) end on a
// character border: bytes that may be the begin of a character wait for the next call. Invalid
// bytes pass. 0, or -ENOMEM: then the stream counts as full.
int output_add(struct output *o, const char *data, size_t len, const char **ret, size_t *ret_len);

// The end: what was held back comes out, unless the head was cut there.
void output_end(struct output *o, const char **ret, size_t *ret_len);

bool output_truncated(const struct output *o);

#endif
