// pump.h: one descriptor into a pipe, with back-pressure: how a job gets its standard input. The
// job never holds the user's own descriptor: through it, it could write to the file, seek in it, or
// control the terminal.
#ifndef ISLE_IO_PUMP_H
#define ISLE_IO_PUMP_H

#include "io/loop.h"

#include <stddef.h>

struct pump {
    struct loop *loop;
    struct loop_watch source, sink;
    int from, to;       // owned; -1 once done
    bool always_ready;  // `from` is a file: read when the pipe has room
    char *chunk;        // what was read and not yet written
    size_t len, offset; // of it
};

// Begins to copy `from` to `to`, a pipe's end that is O_NONBLOCK; owns both from here on, also on
// failure. At the end of `from` closes both. `from` keeps its flags: it may be shared with others,
// such as the user's shell. 0 or -errno.
int pump_start(struct pump *p, struct loop *loop, int from, int to);
// The same through a pipe of its own: *ret is the reader's end, which another uid may open anew
// through /proc (as /dev/stdin is). Owns `from`, also on failure. 0 or -errno.
int pump_pipe(struct pump *p, struct loop *loop, int from, int *ret);
// Stops and releases; harmless when done, or never started (zeroed).
void pump_stop(struct pump *p);

#endif
