// read.h: lines as a model reads them: `LINE#TAG| text`, with notes in brackets on lines of their
// own behind them.
#ifndef ISLE_AGENT_READ_H
#define ISLE_AGENT_READ_H

#include "agent/memory.h"

enum {
    READ_MAX_CHARS = 200000,   // the default
    READ_MOST_CHARS = 4000000, // that one answer may have
    READ_SEARCH_MAX = 4096,    // bytes
};

struct read_request {
    const char *path;
    uint32_t start_line; // 0: 1
    uint32_t end_line;   // 0: the last; a larger one is the last, too
    const char *search;  // only lines that contain these bytes; NULL: all
    size_t search_len;
    uint32_t max_chars; // characters of the lines with their prefixes; 0: READ_MAX_CHARS
};

struct read_result {
    uint32_t first, last;    // shown, whole or not; 0: none
    uint32_t shown, matched; // lines; matched: those that search was found in, shown or not
    uint32_t next;           // start_line to go on with; 0: nothing was left out
    bool cut;                // the last line is shown in part
};

// Appends to out and remembers in m what was shown whole. Bytes that are not UTF-8 are shown as
// U+FFFD, one for each maximal invalid part. 0, -ENOMEM or -EMSGSIZE; AGENT_REFUSED: a range that
// the file does not have, or a search that no line can contain.
int read_lines(const struct text *t, const struct read_request *r, struct agent_memory *m,
               struct buf *out, struct read_result *ret, struct agent_refusal *ret_why);

#endif
