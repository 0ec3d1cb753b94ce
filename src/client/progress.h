// progress.h: how far a long transfer is, on a line of a terminal that is rewritten.
#ifndef ISLE_CLIENT_PROGRESS_H
#define ISLE_CLIENT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *name; // of the user's; NULL: never shown
    int64_t total;    // bytes; -1: not known
    uint64_t next_ns; // when it is to be written again
    bool shown;
};

// `name` is shown without control characters. Nothing is shown within the first second, nor where
// standard error is no terminal.
void progress_begin(struct progress *p, const char *name, int64_t total);
void progress_move(struct progress *p, int64_t bytes);
void progress_end(struct progress *p); // clears the line

#endif
