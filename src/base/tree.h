// tree.h: removal of folder trees that hostile programs filled: any depth, any names, any modes.
//
// By descriptor, never by path; follows no link, leaves no file system and enters no mount (openat2
// with RESOLVE_NO_XDEV). Memory and descriptors are bounded whatever the tree looks like. Needs
// CAP_DAC_OVERRIDE (folders of mode 000) and CAP_FOWNER (sticky folders) where others own the tree.
// No process may be able to write in the tree any more: else the work may never end.
#ifndef ISLE_BASE_TREE_H
#define ISLE_BASE_TREE_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>

// Folders down to this depth are walked with one descriptor each. What lies deeper is moved up to
// the top and found there later, so a chain of 100000 folders costs 6250 renames, and an ordinary
// tree none.
enum { TREE_MAX_DEPTH = 16 };

// A removal that is done in pieces, so that an event loop goes on meanwhile. 4.5 KB.
struct tree_removal {
    int error; // of the current pass over the top folder: the answer once tree_step() gives 1
    // inner
    DIR *dir[TREE_MAX_DEPTH];                // [0]: the folder to empty
    char name[TREE_MAX_DEPTH][NAME_MAX + 1]; // of dir[i] in dir[i - 1]
    bool progress[TREE_MAX_DEPTH];           // something went since the last rewind of dir[i]
    int depth;                               // 0: not begun, or done
    unsigned serial;                         // of the names given to what was moved up
};

// Removes everything in the folder `dir` (kept open by the caller; O_PATH will do), not itself.
// Goes on past entries that cannot be removed. 0, or -errno of one of those (-EBUSY: a mount).
int tree_empty(int dir);

// Removes the entry `name` of `dir`, whatever it is. 0 also if there is none; -errno as above.
int tree_remove_at(int dir, const char *name);

// The same as tree_empty(), in pieces. 0 or -errno (then there is nothing to end).
int tree_begin(struct tree_removal *r, int dir);
// Handles at most about max_entries entries (each one system call or two). 1: done, r->error is as
// tree_empty() answers; 0: call again.
int tree_step(struct tree_removal *r, unsigned max_entries);
// Releases; what is not removed yet stays. Harmless on a zeroed or finished one.
void tree_end(struct tree_removal *r);

#endif
