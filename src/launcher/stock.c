// stock.c: what jobs are given of the disk: workspaces by name, tmpfs workspaces, package sets.
// Every mount a job gets of them is made here, from a descriptor that was opened beneath one of the
// launcher's own mounts.
#include "base/fd.h"
#include "kernel/mount.h"
#include "kernel/sys.h"
#include "launcher/launcher.h"

#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>

void stock_init(struct launcher *l)
{
    for (int i = 0; i < PLAN_MAX_TMPFS; i++) {
        l->tmpfs[i].fd = -1;
    }
    for (int i = 0; i < PLAN_MAX_SETS; i++) {
        l->set[i] = -1;
    }
}

// A mount of its own for the folder `fd` is on. The launcher's own mount of the root is inert; the
// job may execute and link what is there. A host's noexec that is locked stays (start/child.c).
// Descriptor or -errno.
static int new_mount(int fd, uint64_t set)
{
    AUTO_CLOSE int m = mount_clone(fd, "", AT_EMPTY_PATH);
    if (m < 0) {
        return m;
    }
    const uint64_t all = set | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    int e = mount_set(m, all, MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSYMFOLLOW, 0);
    e = e == -EPERM ? mount_set(m, all, MOUNT_ATTR_NOSYMFOLLOW, 0) : e;
    return e ? e : fd_take(&m);
}

static int workspace_mount(int fd) { return new_mount(fd, 0); }

// NAME/part beneath the workspace root: a folder that belongs to the workspace's uid.
static int folder_mount(struct launcher *l, const struct plan_request *q, char part)
{
    char path[PLAN_NAME_MAX + 2];
    struct stat st;
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                      RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    snprintf(path, sizeof path, "%.*s/%c", PLAN_NAME_MAX - 1, q->workspace, part);
    AUTO_CLOSE int fd = sys_result(syscall(SYS_openat2, l->ws, path, &how, sizeof how));
    if (fd < 0) {
        return fd;
    }
    if (fstat(fd, &st)) {
        return -errno;
    }
    if (st.st_uid != launcher_uid(l, q->uid)) {
        return -EPERM;
    }
    return workspace_mount(fd);
}

int stock_tmp_folder(struct launcher *l, const struct plan_request *q)
{
    return folder_mount(l, q, 't');
}

static void tmpfs_path(char path[24], uint32_t number) { snprintf(path, 24, "/t/%u", number); }

static int tmpfs_mount(struct launcher *l, const struct plan_request *q)
{
    struct tmpfs *t = &l->tmpfs[q->workspace_no];
    char path[24];
    if (t->fd < 0 || t->uid != q->uid) {
        return -EPERM;
    }
    int m = workspace_mount(t->fd);
    if (m != -EINVAL || t->attached) {
        return m;
    }
    // before Linux 6.15 only an attached mount can be cloned
    tmpfs_path(path, q->workspace_no);
    if (mkdir(path, 0700) && errno != EEXIST) {
        return -errno;
    }
    int e = mount_attach(t->fd, AT_FDCWD, path);
    if (e) {
        return e;
    }
    t->attached = true;
    return workspace_mount(t->fd);
}

int stock_workspace(struct launcher *l, const struct plan_request *q)
{
    return q->workspace_kind == PLAN_WORKSPACE_TMPFS ? tmpfs_mount(l, q) : folder_mount(l, q, 'w');
}

int stock_tmpfs_add(struct launcher *l, const struct plan_request *q, int *ret_fd)
{
    int number = 0;
    while (number < PLAN_MAX_TMPFS && l->tmpfs[number].fd >= 0) {
        number++;
    }
    if (number == PLAN_MAX_TMPFS) {
        return -EAGAIN;
    }
    int fd = mount_tmpfs_new(q->size_bytes, q->size_inodes, 0700, launcher_uid(l, q->uid));
    if (fd < 0) {
        return fd;
    }
    l->tmpfs[number] = (struct tmpfs){.fd = fd, .uid = q->uid};
    *ret_fd = fd;
    return number;
}

int stock_tmpfs_drop(struct launcher *l, uint32_t number)
{
    struct tmpfs *t = &l->tmpfs[number];
    char path[24];
    if (t->fd < 0) {
        return -ENOENT;
    }
    if (t->attached) {
        tmpfs_path(path, number);
        umount2(path, MNT_DETACH);
        rmdir(path);
    }
    t->fd = fd_close(t->fd);
    return 0;
}

int stock_set(struct launcher *l, uint32_t number)
{
    if (l->set[number] < 0) {
        return -ENOENT;
    }
    return new_mount(l->set[number], MOUNT_ATTR_RDONLY);
}

// A set counts only if it was opened beneath the launcher's own mount of the cache root, whose id
// tells so without a path and without a race; if it belongs to whom the cache belongs; and if
// nobody else may write to it. (Owners outside the instance's uid range all look alike from here;
// then neither service nor jobs can own or write anything in the cache.)
int stock_set_add(struct launcher *l, int fd)
{
    struct statx s, root;
    int number = 0;
    if (l->cache < 0) {
        return -ENOENT;
    }
    const unsigned want = STATX_BASIC_STATS | STATX_MNT_ID;
    if (statx(fd, "", AT_EMPTY_PATH, want, &s) || statx(l->cache, "", AT_EMPTY_PATH, want, &root)) {
        return -errno;
    }
    bool beneath = s.stx_mnt_id == l->cache_mount && s.stx_ino != root.stx_ino;
    if (!beneath || !S_ISDIR(s.stx_mode) || s.stx_uid != l->cache_uid || (s.stx_mode & 022)) {
        return -EPERM;
    }
    // where the service opened it as its owner, or by a capability, jobs still could not
    if ((s.stx_mode & 05) != 05) {
        return -EACCES;
    }
    while (number < PLAN_MAX_SETS && l->set[number] >= 0) {
        number++;
    }
    if (number == PLAN_MAX_SETS) {
        return -EAGAIN;
    }
    int kept = fcntl(fd, F_DUPFD_CLOEXEC, SEAT_FD_END);
    if (kept < 0) {
        return -errno;
    }
    l->set[number] = kept;
    return number;
}

int stock_set_drop(struct launcher *l, uint32_t number)
{
    if (l->set[number] < 0) {
        return -ENOENT;
    }
    l->set[number] = fd_close(l->set[number]);
    return 0;
}
