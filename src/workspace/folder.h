// folder.h: a workspace that is a folder below the workspace root: NAME (the service's) holds `w`
// (the workspace, its uid's own). The outer one keeps a stranger with the same uid from the inner
// one's name, and has room for what belongs to a workspace without being in it.
#ifndef ISLE_WORKSPACE_FOLDER_H
#define ISLE_WORKSPACE_FOLDER_H

#include <sys/types.h>

// Makes NAME ("once/r1") and NAME/w below root. *ret is NAME/w, opened. 0 or -errno; nothing is
// left behind on failure.
int folder_make(int root, const char *name, uid_t uid, int *ret);
// Makes `name` in `once` before there is a service, by host root: all but the files of a job that
// will have `uid`, both as the host sees them; the outer folder is given to `service`. 0 or -errno,
// then nothing is left.
int folder_make_ready(int once, const char *name, uid_t service, uid_t uid);
// Opens NAME/w as it was made ready, if it was and is uid's. A descriptor or -errno.
int folder_open_ready(int root, const char *name, uid_t uid);

// Removes NAME and all below it, which nobody uses any more. 0 or -errno.
int folder_remove(int root, const char *name);

#endif
