// What Bubblewrap is started in: a small tree with its program and what that needs of libraries,
// the runtime root's or the host's, and empty folders for the rest (plan/bwrap.h, plan/seat.h). The
// host's files below /home, /root, /var and so on are not in it.
#include "base/fd.h"
#include "kernel/mount.h"
#include "plan/plan.h"
#include "start/internal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

static int bind(const char *from, const char *to, unsigned flags)
{
    AUTO_CLOSE int fd = mount_clone(AT_FDCWD, from, flags);
    int e = fd < 0
                ? fd
                : mount_set(fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, flags);
    return e ? e : mount_attach(fd, AT_FDCWD, to);
}

static int make_file(const char *path)
{
    AUTO_CLOSE int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    return fd < 0 ? -errno : 0;
}

// A folder of the host's, or the link that it is. What this host lacks is no error.
static int host_folder(const char *name)
{
    char from[32], to[32], link[PATH_MAX];
    struct stat st;
    snprintf(from, sizeof from, "/%s", name);
    snprintf(to, sizeof to, "bw/%s", name);
    if (lstat(from, &st)) {
        return 0;
    }
    ssize_t n = readlink(from, link, sizeof link - 1);
    if (n > 0) {
        link[n] = '\0';
        return symlink(link, to) ? -errno : 0;
    }
    return mkdir(to, 0755) ? -errno : bind(from, to, AT_RECURSIVE);
}

static int host_libraries(const char *program)
{
    // the last two: systems that keep everything there
    static const char *const names[] = {"usr",   "bin",   "sbin", "lib",
                                        "lib64", "lib32", "nix",  "gnu"};
    static const char cache[] = "etc/ld.so.cache";
    int e = 0;
    for (size_t i = 0; i < ARRAY_LEN(names) && !e; i++) {
        e = host_folder(names[i]);
    }
    if (!e && mkdir("bw/etc", 0755)) {
        e = -errno;
    }
    if (!e && !access("/etc/ld.so.cache", F_OK)) {
        char to[32];
        snprintf(to, sizeof to, "bw/%s", cache);
        e = make_file(to);
        e = e ? e : bind("/etc/ld.so.cache", to, 0);
    }
    e = e ? e : make_file("bw/bwrap");
    return e ? e : bind(program, "bw/bwrap", 0);
}

static int runtime_libraries(void)
{
    static const char *const links[][2] = {{"jail/usr", "bw/usr"},       {"usr/bin", "bw/bin"},
                                           {"usr/sbin", "bw/sbin"},      {"usr/lib", "bw/lib"},
                                           {"usr/lib64", "bw/lib64"},    {"jail/etc", "bw/etc"},
                                           {"usr/bin/bwrap", "bw/bwrap"}};
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        if (symlink(links[i][0], links[i][1])) {
            return -errno;
        }
    }
    return 0;
}

int child_bwrap(struct start *s)
{
    static const char *const dirs[] = {"bw/proc",          "bw/jail",        "bw/tmp",
                                       "bw/job",           "bw/job/shm",     "bw/job/tmp",
                                       "bw/job/workspace", "bw/job/packages"};
    const struct seat_config *seat = &s->record.seat;
    char path[32];
    if (seat->launcher != SEAT_BWRAP) {
        return 0;
    }
    int e = mkdir("bw", 0755) || mount("tmpfs", "bw", "tmpfs", MS_NOSUID | MS_NODEV,
                                       "size=64k,nr_inodes=64,mode=755")
                ? -errno
                : 0;
    for (size_t i = 0; i < ARRAY_LEN(dirs) && !e; i++) {
        e = mkdir(dirs[i], 0755) ? -errno : 0;
    }
    for (unsigned i = 0; i < PLAN_SETS_PER_JOB && !e; i++) {
        snprintf(path, sizeof path, "bw/job/packages/%u", i);
        e = mkdir(path, 0755) ? -errno : 0;
    }
    if (!e && symlink("jail/dev", "bw/dev")) {
        e = -errno;
    }
    if (!e) {
        e = s->config->bwrap->is_runtimes ? runtime_libraries()
                                          : host_libraries(s->config->bwrap->path);
    }
    AUTO_CLOSE int tree = e ? -1 : open("bw", O_PATH | O_DIRECTORY | O_CLOEXEC);
    e = e ? e : mount_set(tree, MOUNT_ATTR_RDONLY, 0, 0);
    return e ? start_fail(s, e, "tree for Bubblewrap %s", seat->bwrap_path) : 0;
}
