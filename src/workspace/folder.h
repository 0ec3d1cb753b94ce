// folder.h: a workspace that is a folder below the workspace root: NAME (the service's) holds `w`
// (the workspace, its uid's own). The outer one keeps a stranger with the same uid from the inner
// one's name, and has room for what belongs to a workspace without being in it.
#ifndef ISLE_WORKSPACE_FOLDER_H
#define ISLE_WORKSPACE_FOLDER_H

#include <sys/types.h>

// Makes NAME ("once/r1") and NAME/w below root. *ret is NAME/w, opened. 0 or -errno; nothing is
// left behind on failure.
int folder_make(int root, const char *name, uid_t uid, int *ret);
// Removes NAME and all below it, which nobody uses any more. 0 or -errno.
int folder_remove(int root, const char *name);

#endif
