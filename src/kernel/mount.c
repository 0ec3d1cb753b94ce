#include "kernel/mount.h"

#include "base/fd.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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

static int set_number(int fs, const char *key, bool octal, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, octal ? "%llo" : "%llu", (unsigned long long)value);
    return sys_result(syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, text, 0));
}

int mount_tmpfs_new(uint64_t size_bytes, uint64_t inodes, uint32_t mode, uint32_t uid)
{
    const struct {
        const char *key;
        bool octal;
        uint64_t value;
    } options[] = {{"size", false, size_bytes},
                   {"nr_inodes", false, inodes},
                   {"mode", true, mode},
                   {"uid", false, uid},
                   {"gid", false, uid}};
    if (size_bytes == 0 || inodes == 0) {
        return -EINVAL;
    }
    AUTO_CLOSE int fs = sys_result(syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC));
    if (fs < 0) {
        return fs;
    }
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        int e = set_number(fs, options[i].key, options[i].octal, options[i].value);
        if (e) {
            return e;
        }
    }
    if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0)) {
        return -errno;
    }
    return sys_result(syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
                              MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSYMFOLLOW));
}

// Where pivot_root(2) is refused (a container's system call filter): the new root is put on top of
// the old one, which then stays below it. Nothing leads there by path; who may unmount or chroot
// could get there, and no job may.
static int cover_root(void)
{
    return mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/") ? -errno : 0;
}

int mount_pivot(void)
{
    // Both names are the same folder: the old root is then stacked below the new one, without a
    // place for it inside (pivot_root(2), "pivot_root(".", ".")").
    int e = sys_pivot_root(".", ".");
    if (e) {
        return e == -EPERM || e == -ENOSYS ? cover_root() : e;
    }
    return umount2(".", MNT_DETACH) || chdir("/") ? -errno : 0;
}

int mount_make_private(void)
{
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ? -errno : 0;
}
