// clean.h: a command's output made fit for a model.
//
//   - escape sequences and control characters go; backspaces take what they took
//   - of a line that was drawn again and again (CR) its last state stays
//   - runs of 3 or more blank lines and of 4 or more equal ones become one and a note
//   - on failure, of more than 60 lines the first 20 and the last 40 stay, and of a line of more
//     than 4000 bytes its ends
//   - bytes that are not UTF-8 become U+FFFD
// Runs inside JSON stay: a text that begins on a line of its own with { or [ and is one JSON value,
// or the beginning of one that was cut off. Notes stand in brackets on lines of their own.
#ifndef ISLE_AGENT_CLEAN_H
#define ISLE_AGENT_CLEAN_H

#include "base/buf.h"

#include <stdbool.h>

enum {
    CLEAN_BLANK_RUN = 3,
    CLEAN_EQUAL_RUN = 4,
    CLEAN_HEAD_LINES = 20,
    CLEAN_TAIL_LINES = 40,
    CLEAN_LINE_BYTES = 4000,
    CLEAN_LINE_HEAD_BYTES = 2000,
    CLEAN_LINE_TAIL_BYTES = 1000,
};

struct clean_told {
    size_t bytes, lines;           // as it came
    size_t bytes_kept, lines_kept; // with the notes
};

// Appends to out. 0, -ENOMEM or -EMSGSIZE. Time is linear in len.
int clean_output(const char *data, size_t len, bool failed, struct buf *out,
                 struct clean_told *ret);

#endif
