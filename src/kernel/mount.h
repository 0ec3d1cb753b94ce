// mount.h: mounts by descriptor (open_tree(2), move_mount(2), mount_setattr(2), pivot_root(2)).
// Async-signal-safe. 0 or a descriptor, or -errno.
#ifndef ISLE_KERNEL_MOUNT_H
#define ISLE_KERNEL_MOUNT_H

#include "kernel/sys.h"

#include <linux/mount.h>
#include <sys/mount.h>

#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x00200000
#endif

// A detached clone of the mount at `path` below `dir` ("" with AT_EMPTY_PATH: of dir itself).
// flags: AT_RECURSIVE, AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW.
static inline int mount_clone(int dir, const char *path, unsigned flags)
{
    return sys_result(
        syscall(SYS_open_tree, dir, path, flags | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

// Puts a detached mount at `to` below `dir` (links are not followed).
static inline int mount_attach(int mount, int dir, const char *to)
{
    return sys_result(syscall(SYS_move_mount, mount, "", dir, to, MOVE_MOUNT_F_EMPTY_PATH));
}

// MOUNT_ATTR_* of the mount that the descriptor is on. flags: AT_RECURSIVE.
static inline int mount_set(int mount, uint64_t set, uint64_t clear, unsigned flags)
{
    struct mount_attr a = {.attr_set = set, .attr_clr = clear};
    return sys_result(syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH | flags, &a, sizeof a));
}

// A clone of `from` with more attributes, at `to` (below `dir` both). flags: AT_RECURSIVE.
int mount_bind(int dir, const char *from, const char *to, uint64_t set, unsigned flags);

// A tmpfs attached nowhere. 0 for size or inodes would mean unlimited and is refused (-EINVAL).
// Descriptor or -errno.
int mount_tmpfs_new(uint64_t size_bytes, uint64_t inodes, uint32_t mode, uint32_t uid);

// The working folder, a mount point, becomes the root of this mount namespace; the old tree goes.
int mount_pivot(void);

// No mount made from here on reaches another mount namespace, or comes from one.
int mount_make_private(void);

#endif
