// memory.h: what the tools of one session remember between calls: which lines of which version of a
// file were shown, and registers. Bounded, and small enough to be kept with the session.
#ifndef ISLE_AGENT_MEMORY_H
#define ISLE_AGENT_MEMORY_H

#include "agent/text.h"
#include "base/buf.h"

enum {
    MEMORY_VIEWS_MAX = 64,      // versions of files; the one unused for longest goes first
    MEMORY_LINES_MAX = 1 << 16, // of one view
    MEMORY_TOTAL_MAX = 1 << 17, // lines of all views
    MEMORY_CONTEXT = 2,         // lines before and behind a shown one that are known, too
    MEMORY_REGISTERS_MAX = 16,
    MEMORY_REGISTER_NAME_MAX = 32,
    MEMORY_REGISTER_BYTES_MAX = 4 << 20, // of all registers
    MEMORY_PATH_MAX = 4096,
};

struct memory_line {
    uint32_t number;
    uint32_t hash; // text_line_hash()
    bool shown;    // false: known as context only
};

struct memory_view { // one version of one file
    char *path;
    uint64_t hash; // text's
    char tag[TEXT_TAG_SIZE];
    uint32_t count;            // lines of the file
    struct memory_line *lines; // ascending
    uint32_t n;
};

struct memory_register { // lines, each ended by LF
    char name[MEMORY_REGISTER_NAME_MAX + 1];
    char *data;
    uint32_t len;
};

struct agent_memory {                           // {0} is an empty one
    struct memory_view views[MEMORY_VIEWS_MAX]; // the last used is the last
    uint32_t n;
    struct memory_register registers[MEMORY_REGISTERS_MAX];
    uint32_t registers_n;
};

void memory_done(struct agent_memory *m);

// The lines numbers[0..n), ascending, of this version of `path` were shown. More than
// MEMORY_LINES_MAX: the last ones are remembered. hashes: NULL, or text_line_hash() of each line,
// as far as it is known (else 0). 0, -EINVAL (path too long) or -ENOMEM.
int memory_show(struct agent_memory *m, const char *path, const struct text *t,
                const uint32_t *numbers, const uint32_t *hashes, size_t n);
// The last used version of path with this tag; NULL: none.
const struct memory_view *memory_find(const struct agent_memory *m, const char *path,
                                      const char *tag);
// The line, if it is known; NULL: it is not.
const struct memory_line *memory_line(const struct memory_view *v, uint32_t number);

// NULL: it is empty.
const struct memory_register *memory_register(const struct agent_memory *m, const char *name);
// data (malloc'ed) is the memory's from here on. 0; -ENOSPC: no more registers or bytes, nothing is
// changed and data stays the caller's.
int memory_set_register(struct agent_memory *m, const char *name, char *data, uint32_t len);

// As bytes, for the session's store; and back. 0, -ENOMEM or -EMSGSIZE; -EBADMSG for what
// memory_write() did not write, with *ret_m untouched.
int memory_write(const struct agent_memory *m, struct buf *out);
int memory_read(const char *data, size_t len, struct agent_memory *ret_m);

#endif
