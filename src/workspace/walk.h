// walk.h: how much a tree takes, counted by descriptor, a bounded number of entries at a time, so
// that the event loop goes on. The tree may change meanwhile: the figure is then some mixture of
// before and after, never an escape (nothing is followed, nothing is opened but folders).
#ifndef ISLE_WORKSPACE_WALK_H
#define ISLE_WORKSPACE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// So many of the innermost levels are open, and what was read of their listings is kept while the
// walk is below them: 2 MB in all. Of those above it is known how far they were read: they are
// opened again from below, as a tree may be as deep as there are inodes.
enum { WALK_OPEN = 256, WALK_CHUNK_BYTES = 8 * 1024 };

struct walk {
    uint64_t bytes;   // allocated, of everything below (a file of n links counts 1/n at each)
    uint64_t content; // of that what is within files' lengths: not what a file system takes beside
                      // it, which it may take only when it writes a file out
    uint64_t entries; // below the root
    bool blind;       // something could not be counted: unreadable, or moved meanwhile
    bool waits;       // it has come to a folder of more bytes than folder_max
    // The caller's to set: the listing of a longer folder is not read, where that is not 0. Of one
    // that had many names once, all blocks are read in one call, which waits for the disk.
    uint64_t folder_max;
    // inner
    struct walk_level {
        int fd;
        int64_t next;   // where its listing goes on behind the last entry that was looked at
        size_t at, len; // of the chunk: what has not been looked at
        _Alignas(uint64_t) char chunk[WALK_CHUNK_BYTES]; // one getdents64(2) buffer
    } * levels; // the one at depth n is levels[n % WALK_OPEN]
    struct walk_left {
        uint64_t dev, ino;
        int64_t next;
    } * left;         // the levels that were closed: left[0] to left[first - 1]
    size_t left_room; // of `left`
    size_t first;     // level that is open
    size_t depth;     // levels; 0: not begun, or done
};

// Begins at `root` (kept by the caller). 0 or -errno.
int walk_begin(struct walk *w, int root);
// Counts up to about max_entries more. 1: done, 0: call again, with another folder_max if it waits.
int walk_step(struct walk *w, uint64_t max_entries);
// Releases; harmless at any time on a zeroed or finished one. The figures stay.
void walk_end(struct walk *w);

#endif
