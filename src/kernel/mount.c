#include "kernel/mount.h"

#include <stddef.h>

int mount_bind(int dir, const char *from, const char *to, uint64_t set, unsigned flags)
{
    int fd = mount_clone(dir, from, flags);
    if (fd < 0) {
        return fd;
    }
    int e = set ? mount_set(fd, set, 0, flags) : 0;
    if (!e) {
        e = mount_attach(fd, dir, to);
    }
    close(fd);
    return e;
}

int mount_pivot(void)
{
    // Both names are the same folder: the old root is then stacked below the new one, without a
    // place for it inside (pivot_root(2), "pivot_root(".", ".")").
    int e = sys_pivot_root(".", ".");
    if (e) {
        return e;
    }
    return umount2(".", MNT_DETACH) || chdir("/") ? -errno : 0;
}

int mount_make_private(void)
{
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ? -errno : 0;
}
