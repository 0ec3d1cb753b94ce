// walk.h: how much a tree takes, counted by descriptor, a bounded number of entries at a time, so
// that the event loop goes on. The tree may change meanwhile: the figure is then some mixture of
// before and after, never an escape (nothing is followed, nothing is opened but folders).
#ifndef ISLE_WORKSPACE_WALK_H
#define ISLE_WORKSPACE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What was read of a level's listing is kept while the walk is below it: 2 MB in all for a tree as
// deep as that. Read anew after each subfolder, a folder of many would cost a buffer for each.
enum { WALK_MAX_DEPTH = 256, WALK_CHUNK_BYTES = 8 * 1024 };

struct walk {
    uint64_t bytes;   // allocated, of everything below (a file of n links counts 1/n at each)
    uint64_t entries; // below the root
    bool blind;       // something could not be counted: deeper than WALK_MAX_DEPTH, or unreadable
    // inner
    struct walk_level {
        int fd;
        size_t at, len; // of the chunk: what has not been looked at
        _Alignas(uint64_t) char chunk[WALK_CHUNK_BYTES]; // one getdents64(2) buffer
    } * levels;
    size_t depth; // levels open; 0: not begun, or done
};

// Begins at `root` (kept by the caller). 0 or -errno.
int walk_begin(struct walk *w, int root);
// Counts up to about max_entries more. 1: done, 0: call again.
int walk_step(struct walk *w, uint64_t max_entries);
// Releases; harmless at any time on a zeroed or finished one. The figures stay.
void walk_end(struct walk *w);

#endif
