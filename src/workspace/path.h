// path.h: files of a workspace, seen from the trusted side. Whatever lies in there was put there by
// a job: every name is resolved by openat2(2) beneath the workspace's descriptor, without following
// a link, without leaving the mount, and what was opened is looked at afterwards.
#ifndef ISLE_WORKSPACE_PATH_H
#define ISLE_WORKSPACE_PATH_H

#include <stdint.h>
#include <sys/types.h>

// Opens `path` (relative) beneath dir. O_NOFOLLOW, O_NONBLOCK (a FIFO must not hold us), O_NOCTTY
// and O_CLOEXEC are added to flags. Descriptor or -errno: -ELOOP (a symbolic link on the way or at
// the end), -EXDEV (leads outside: "..", an absolute path, another mount), -ENOENT ...
int path_open(int dir, const char *path, int flags, mode_t mode);

// Opens the folder that holds the last component of `path`, O_PATH. With make: missing folders are
// made 0755 and given to uid. *ret_name points into path. Descriptor or -errno.
int path_open_parent(int dir, const char *path, int make, uid_t uid, const char **ret_name);

#endif
