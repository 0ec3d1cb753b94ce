#include "workspace/path.h"

#include "base/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int path_open(int dir, const char *path, int flags, mode_t mode)
{
    // openat2 refuses flags that mean nothing together with O_PATH, where open(2) ignores them
    int added =
        flags & O_PATH ? O_NOFOLLOW | O_CLOEXEC : O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | added),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    for (int tries = 0;; tries++) {
        long fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
        // EAGAIN: a rename somewhere raced with the walk, and ".." could not be vouched for
        if (fd >= 0 || errno != EAGAIN || tries == 16) {
            return fd < 0 ? -errno : (int)fd;
        }
    }
}

// One component down. Descriptor or -errno.
static int enter(int dir, const char *name, int make, uid_t uid)
{
    if (make && mkdirat(dir, name, 0755) == 0) {
        if (fchownat(dir, name, uid, uid, AT_SYMLINK_NOFOLLOW)) {
            return -errno;
        }
    } else if (make && errno != EEXIST) {
        return -errno;
    }
    return path_open(dir, name, O_PATH | O_DIRECTORY, 0);
}

int path_open_parent(int dir, const char *path, int make, uid_t uid, const char **ret_name)
{
    AUTO_CLOSE int at = path_open(dir, ".", O_PATH | O_DIRECTORY, 0);
    const char *rest = path;
    for (const char *slash; at >= 0 && (slash = strchr(rest, '/')); rest = slash + 1) {
        char name[NAME_MAX + 1];
        size_t len = (size_t)(slash - rest);
        if (len == 0 || len >= sizeof name) {
            return len ? -ENAMETOOLONG : -EINVAL;
        }
        memcpy(name, rest, len);
        name[len] = '\0';
        int next = enter(at, name, make, uid);
        fd_close(at);
        at = next;
    }
    if (at < 0) {
        return at;
    }
    if (!*rest) {
        return -EINVAL;
    }
    *ret_name = rest;
    return fd_take(&at);
}
