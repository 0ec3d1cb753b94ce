// listing.h: what is in a folder of a workspace, one entry at a time, so that the caller bounds
// entries and time; goes on later, also in another process, from a cursor. In the order of the file
// system. While programs change the tree, an entry may be missed or told twice; nothing is
// followed. However deep it is, three folders are open at most between two entries.
#ifndef ISLE_WORKSPACE_LISTING_H
#define ISLE_WORKSPACE_LISTING_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

// Folders below these are told, but not entered: a cursor must fit into an address.
enum { LISTING_MAX_DEPTH = 64, LISTING_MAX_PATH = 1024, LISTING_MAX_CURSOR = 8192 };

struct listing_entry {
    const char *path;    // below the listed folder, raw bytes (names.h makes text of it)
    const char *name;    // its last component
    int folder;          // where the name is; not the caller's
    struct stat st;      // of the entry itself
    bool entered, unfit; // a folder: its entries follow; too deep or unreadable: they do not
};

struct listing {
    bool cut; // some folder was not entered though it was to be
    // inner
    bool recursive;
    struct listing_level {
        int fd;          // -1: it is opened again when its turn comes
        int64_t offset;  // where it goes on
        size_t path_len; // of path that names it
    } levels[LISTING_MAX_DEPTH];
    int depth;
    char path[LISTING_MAX_PATH + 258];
    char *chunk; // of the deepest folder's listing, from at to end
    size_t at, end;
};

// Begins with `folder` (not kept). cursor: NULL, or what listing_cursor() gave. 0; -EINVAL: not a
// cursor; -errno. Nothing is to be ended after a failure.
int listing_begin(struct listing *l, int folder, bool recursive, const char *cursor);
// 1: *ret is the next one, valid until the next call; 0: no more; -errno. Costs a few µs.
int listing_next(struct listing *l, struct listing_entry *ret);
// Appends where listing_next() would go on, before it has answered 0: letters, digits and ".:_/-%".
// 0 or the buffer's error.
int listing_cursor(const struct listing *l, struct buf *out);
void listing_end(struct listing *l); // harmless on a zeroed or ended one

#endif
