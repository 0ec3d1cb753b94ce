// template.c: the launcher's own tree, and in it the model of every job's root: all of it but what
// each job must have of its own (/proc, /tmp, /dev/shm, /workspace, /packages/N). A sandbox begins
// in a mount namespace that holds the model alone, and copies it: what is made here costs a job
// nothing.
#include "base/fd.h"
#include "kernel/mount.h"
#include "launcher/launcher.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

// The working directory at first has what host root made (seat.h); below `new` grows the tree.

static const uint64_t read_only = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
static const uint64_t inert =
    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSYMFOLLOW;

static const struct {
    const char *path;
    mode_t mode;
} folders[] = {
    {"new/proc", 0755}, {"new/ws", 0700}, {"new/cache", 0700}, {"new/t", 0700}, {"new/jail", 0755},
};

static const struct {
    const char *path;
    mode_t mode;
} jail_folders[] = {
    {"new/jail/usr", 0755},        {"new/jail/etc", 0755},        {"new/jail/dev", 0755},
    {"new/jail/proc", 0755},       {"new/jail/tmp", 0755},        {"new/jail/tmp/folder", 0555},
    {"new/jail/workspace", 0755},  {"new/jail/packages", 0755},   {"new/jail/packages/0", 0755},
    {"new/jail/packages/1", 0755}, {"new/jail/packages/2", 0755}, {"new/jail/packages/3", 0755},
    {"new/jail/packages/4", 0755}, {"new/jail/packages/5", 0755}, {"new/jail/packages/6", 0755},
    {"new/jail/packages/7", 0755},
};

static const struct {
    const char *to, *path;
} links[] = {
    {"usr/bin", "new/jail/bin"},
    {"usr/sbin", "new/jail/sbin"},
    {"usr/lib", "new/jail/lib"},
    {"usr/lib64", "new/jail/lib64"},
    {"/dev/shm/code", "new/jail/code"},        // snippets: made there by the guest
    {"/proc/self/fd/3", "new/jail/script.sh"}, // shell scripts: a sealed memfd
    {"/usr/share/zoneinfo/Etc/UTC", "new/jail/etc/localtime"},
    {"../usr/lib/os-release", "new/jail/etc/os-release"},
    {"../proc/self/mounts", "new/jail/etc/mtab"},
};

static const char hosts_text[] = "127.0.0.1 localhost %s\n::1 localhost ip6-localhost %s\n";

// "%s" is the host name.
static const struct {
    const char *path, *text;
} texts[] = {
    {"new/jail/etc/passwd", "root:x:0:0:root:/:/usr/sbin/nologin\n"
                            "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
                            "sandbox:x:1000:1000:sandbox:/workspace:/bin/bash\n"},
    {"new/jail/etc/group", "root:x:0:\nnogroup:x:65534:\nsandbox:x:1000:\n"},
    {"new/jail/etc/nsswitch.conf",
     "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"},
    {"new/jail/etc/hosts", hosts_text},
    {"new/jail/etc/hostname", "%s\n"},
    {"new/jail/etc/timezone", "Etc/UTC\n"},
    {"new/jail/etc/profile", "# isle makes the whole environment of a job\n"},
    {"new/jail/tmp/empty", ""},
    {"new/jail/tmp/boot_id", "00000000-0000-4000-8000-000000000000\n"},
};

// Of the runtime root, where it has them: files are copied (a mount costs every job), trees bound.
static const char *const copies[] = {"ld.so.cache", "matplotlibrc", "mime.types",
                                     "services",    "protocols",    "magic"};
static const char *const trees[] = {"ssl", "alternatives", "fonts"};

static int make_text(const char *path, const char *format, const char *hostname)
{
    char text[512];
    size_t len = 0;
    // no text here is that long
    for (const char *p = format; *p && len < sizeof text - SEAT_HOSTNAME_MAX; p++) {
        if (*p == '%') { // "%s"
            len += (size_t)snprintf(text + len, sizeof text - len, "%s", hostname);
            p++;
        } else {
            text[len++] = *p;
        }
    }
    AUTO_CLOSE int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    return fd < 0 ? -errno : fd_write_all(fd, text, len);
}

// Appends a file, where there is one.
static int copy_to(const char *from, const char *to)
{
    AUTO_CLOSE int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (in < 0) {
        return errno == ENOENT ? 0 : -errno;
    }
    AUTO_CLOSE int out = open(to, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (out < 0 || lseek(out, 0, SEEK_END) < 0) { // sendfile takes no O_APPEND
        return -errno;
    }
    for (;;) {
        ssize_t n = sendfile(out, in, NULL, 1 << 20);
        if (n <= 0) {
            return n < 0 ? -errno : 0;
        }
    }
}

static int copy_file(const char *name)
{
    char from[64], to[64];
    snprintf(from, sizeof from, "rt/etc/%s", name);
    snprintf(to, sizeof to, "new/jail/etc/%s", name);
    return copy_to(from, to);
}

static int bind_tree(const char *name)
{
    char from[64], to[64];
    struct stat st = {0};
    snprintf(from, sizeof from, "rt/etc/%s", name);
    snprintf(to, sizeof to, "new/jail/etc/%s", name);
    if (lstat(from, &st) || !S_ISDIR(st.st_mode)) {
        return 0; // this root has none
    }
    if (mkdir(to, 0755)) {
        return -errno;
    }
    return mount_bind(AT_FDCWD, from, to, read_only, AT_RECURSIVE);
}

static int new_tmpfs(const char *path, const char *options)
{
    return mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) ? -errno : 0;
}

static int make_own_tree(const char **ret_what)
{
    *ret_what = "new (tmpfs)";
    int e = new_tmpfs("new", "size=64k,nr_inodes=1024,mode=755");
    for (size_t i = 0; i < ARRAY_LEN(folders) && !e; i++) {
        *ret_what = folders[i].path;
        e = mkdir(folders[i].path, folders[i].mode) ? -errno : 0;
    }
    const struct {
        const char *from, *to;
        uint64_t set;
        bool optional;
    } binds[] = {
        // fully visible: it is what allows a job's own (mount_too_revealing())
        {"proc", "new/proc", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, false},
        {"ws", "new/ws", inert, false},
        {"cache", "new/cache", inert, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(binds) && !e; i++) {
        *ret_what = binds[i].from;
        e = mount_bind(AT_FDCWD, binds[i].from, binds[i].to, binds[i].set, 0);
        e = e == -ENOENT && binds[i].optional ? 0 : e;
    }
    return e;
}

// Host root left copies of the host's files in net/ (start/child.c); `to` may grow by its own
// lines.
static int copy_network(const char *name, const char *to)
{
    char from[32];
    snprintf(from, sizeof from, "net/%s", name);
    return copy_to(from, to);
}

// resolv.conf's place is made for all jobs: without the host's network it is empty.
static int make_network_files(const struct seat_config *config, const char **ret_what)
{
    *ret_what = "new/jail/tmp/net";
    if (!config->allow_host_network) {
        return 0;
    }
    if (mkdir("new/jail/" TEMPLATE_NETWORK, 0755)) {
        return -errno;
    }
    int e = make_text("new/jail/etc/resolv.conf", "", "");
    e = e ? e : make_text("new/jail/" TEMPLATE_NETWORK "hosts", hosts_text, config->hostname);
    e = e ? e : copy_network("hosts", "new/jail/" TEMPLATE_NETWORK "hosts");
    e = e ? e : copy_network("resolv.conf", "new/jail/" TEMPLATE_NETWORK "resolv.conf");
    return e ? e : copy_network("ca", "new/jail/" TEMPLATE_NETWORK "ca");
}

static int make_jail_files(const struct seat_config *config, const char **ret_what)
{
    int e = 0;
    for (size_t i = 0; i < ARRAY_LEN(jail_folders) && !e; i++) {
        *ret_what = jail_folders[i].path;
        e = mkdir(jail_folders[i].path, jail_folders[i].mode) ? -errno : 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(links) && !e; i++) {
        *ret_what = links[i].path;
        e = symlink(links[i].to, links[i].path) ? -errno : 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(texts) && !e; i++) {
        *ret_what = texts[i].path;
        e = make_text(texts[i].path, texts[i].text, config->hostname);
    }
    for (size_t i = 0; i < ARRAY_LEN(copies) && !e; i++) {
        *ret_what = copies[i];
        e = copy_file(copies[i]);
    }
    return e ? e : make_network_files(config, ret_what);
}

static int make_jail(const struct seat_config *config, const char **ret_what)
{
    *ret_what = "jail (tmpfs)";
    int e = new_tmpfs("new/jail", "size=4m,nr_inodes=256,mode=755");
    e = e ? e : make_jail_files(config, ret_what);
    for (size_t i = 0; i < ARRAY_LEN(trees) && !e; i++) {
        *ret_what = trees[i];
        e = bind_tree(trees[i]);
    }
    const struct {
        const char *from, *to;
        uint64_t set;
        unsigned flags;
    } binds[] = {
        {"rt/usr", "new/jail/usr", read_only, AT_RECURSIVE},
        {"guest", "new/jail/usr/lib/isle", read_only, 0},
        // device nodes: not NODEV. An account has bound each of them.
        {"dev", "new/jail/dev", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
         AT_RECURSIVE},
    };
    for (size_t i = 0; i < ARRAY_LEN(binds) && !e; i++) {
        *ret_what = binds[i].to;
        e = mount_bind(AT_FDCWD, binds[i].from, binds[i].to, binds[i].set, binds[i].flags);
    }
    if (e) {
        return e;
    }
    *ret_what = "jail (read-only)";
    AUTO_CLOSE int jail = open("new/jail", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return jail < 0 ? -errno : mount_set(jail, read_only, 0, 0);
}

// What Bubblewrap is started in: its program and libraries, which start/ put there, the model, and
// a full /proc, as it must be able to mount another.
static int make_bwrap_tree(const char **ret_what)
{
    static const char *const made[] = {"new/bw/proc", "new/bw/jail"};
    *ret_what = "bw";
    int e = mkdir("new/bw", 0755) ? -errno : mount_bind(AT_FDCWD, "bw", "new/bw", 0, AT_RECURSIVE);
    for (size_t i = 0; i < ARRAY_LEN(made) && !e; i++) {
        *ret_what = made[i];
        e = mount_bind(AT_FDCWD, i ? "new/jail" : "proc", made[i],
                       i ? 0 : MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
                       i ? AT_RECURSIVE : 0);
    }
    return e;
}

// The model with a /proc of isle's own processes' namespace, in which others' are hidden: covered
// here, once, as all jobs without namespaces share it.
static int make_plain_tree(const char **ret_what)
{
    char path[64];
    *ret_what = "plain";
    int e = mkdir("new/plain", 0755)
                ? -errno
                : mount_bind(AT_FDCWD, "new/jail", "new/plain", 0, AT_RECURSIVE);
    *ret_what = "plain (proc)";
    e = e ? e
          : mount_bind(AT_FDCWD, "sproc", "new/plain/proc",
                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, 0);
    for (size_t i = 0; i < proc_n_masks && !e; i++) {
        snprintf(path, sizeof path, "new/plain/proc/%s", proc_masks[i].path);
        const char *cover = proc_masks[i].is_folder ? "new/plain/" TEMPLATE_MASK "folder"
                                                    : "new/plain/" TEMPLATE_MASK "empty";
        e = mount(cover, path, NULL, MS_BIND, NULL) && errno != ENOENT ? -errno : 0;
    }
    e = e ? e
          : mount_bind(AT_FDCWD, "new/plain/" TEMPLATE_MASK "boot_id",
                       "new/plain/proc/sys/kernel/random/boot_id", 0, 0);
    AUTO_CLOSE int proc = open("new/plain/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (!e && proc < 0) {
        e = -errno;
    }
    return e ? e : mount_set(proc, MOUNT_ATTR_RDONLY, 0, 0);
}

int template_build(const struct seat_config *config, const char **ret_what)
{
    *ret_what = "unshare";
    if (unshare(CLONE_NEWNS)) {
        return -errno;
    }
    *ret_what = "private mounts";
    int e = mount_make_private();
    e = e ? e : make_own_tree(ret_what);
    e = e ? e : make_jail(config, ret_what);
    if (!e && config->launcher == SEAT_BWRAP) {
        e = make_bwrap_tree(ret_what);
    }
    if (!e && config->allow_plain) {
        e = make_plain_tree(ret_what);
    }
    if (e) {
        return e;
    }
    *ret_what = "pivot_root";
    return chdir("new") ? -errno : mount_pivot();
}

// A copy of this mount namespace becomes the template and nothing else: what begins in it has no
// old root to get rid of, which would cost each sandbox a grace period of the kernel.
int template_namespace(int proc, const char *folder)
{
    AUTO_CLOSE int own = openat(proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (own < 0 || unshare(CLONE_NEWNS) || chdir(folder)) {
        return -errno;
    }
    int e = mount_pivot();
    AUTO_CLOSE int made = e ? -1 : openat(proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (!e && made < 0) {
        e = -errno;
    }
    if (setns(own, CLONE_NEWNS)) { // and back
        e = -errno;
    }
    return e ? e : fd_take(&made);
}
