// tree.h: removal of folder trees that hostile programs filled: any depth, any names, any modes.
//
// By descriptor, never by path; follows no link, leaves no file system and enters no mount (openat2
// with RESOLVE_NO_XDEV). Memory and descriptors are bounded whatever the tree looks like. Needs
// CAP_DAC_OVERRIDE (folders of mode 000) and CAP_FOWNER (sticky folders) where others own the tree.
// No process may be able to write in the tree any more: else the work may never end.
#ifndef ISLE_BASE_TREE_H
#define ISLE_BASE_TREE_H

// Removes everything in the folder `dir` (kept open by the caller; O_PATH will do), not itself.
// Goes on past entries that cannot be removed. 0, or -errno of one of those (-EBUSY: a mount).
int tree_empty(int dir);

// Removes the entry `name` of `dir`, whatever it is. 0 also if there is none; -errno as above.
int tree_remove_at(int dir, const char *name);

#endif
