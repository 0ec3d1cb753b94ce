// The front's child before it executes itself again: a copy of the front (single-threaded, so
// anything may be called), host root until the user namespace, inner root after. Reports by notes
// on the socket and never returns to the front's code.
#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"
#include "kernel/mount.h"
#include "kernel/sys.h"
#include "plan/plan.h"
#include "start/internal.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

_Noreturn void child_run(struct start *s)
{
    s->pidfd = fd_close(s->pidfd);
    s->front = fd_close(s->front); // the front's end: that the front is gone must show
    *s->error = (struct start_error){.step = ""};
    int e = start_run_steps(s, START_CHILD);
    struct start_note note = {.what = START_NOTE_FAILED, .error = e, .text = *s->error};
    send(*start_fd(s, INNER_FRONT), &note, sizeof note, MSG_NOSIGNAL);
    _exit(125);
}

// 0 and 1 are /dev/null. 2 is the front's; a terminal is opened anew for writing only: what is
// typed there is none of the service's business. (A file is not: its offset is shared with the
// front.)
static int std_fds(void)
{
    struct stat st;
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || fstat(2, &st)) {
        return -errno;
    }
    if (S_ISCHR(st.st_mode)) {
        AUTO_CLOSE int err = open("/proc/self/fd/2", O_WRONLY | O_NOCTTY | O_CLOEXEC);
        return dup2(err < 0 ? null : err, 2) < 0 ? -errno : 0;
    }
    return 0;
}

// The caller's resource limits are not the jobs': those have their own, which cannot be above what
// is inherited here. Only host root can raise a hard limit, and the one of processes is remembered
// by the user namespace. Best effort: a container's root may lack CAP_SYS_RESOURCE.
static void raise_limits(void)
{
    static const struct {
        __rlimit_resource_t resource;
        rlim_t soft, hard;
    } wanted[] = {
        {RLIMIT_NOFILE, 8192, 1 << 17}, // the service takes 1000 input files; a job up to 65536
        {RLIMIT_NPROC, RLIM_INFINITY, RLIM_INFINITY},
        {RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY},
        {RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY},
        {RLIMIT_DATA, RLIM_INFINITY, RLIM_INFINITY},
        {RLIMIT_CPU, RLIM_INFINITY, RLIM_INFINITY},
        {RLIMIT_STACK, 8 << 20, RLIM_INFINITY},
        {RLIMIT_MEMLOCK, 8 << 20, 8 << 20},
        {RLIMIT_CORE, 1, RLIM_INFINITY}, // 1: no core handler is run either (fs/coredump.c)
    };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        struct rlimit l;
        if (getrlimit(wanted[i].resource, &l)) {
            continue;
        }
        rlim_t hard = l.rlim_max;
        l.rlim_max = hard > wanted[i].hard ? hard : wanted[i].hard;
        l.rlim_cur = wanted[i].soft;
        if (setrlimit(wanted[i].resource, &l)) { // then as far as it goes
            l.rlim_max = hard;
            l.rlim_cur = wanted[i].soft < hard ? wanted[i].soft : hard;
            setrlimit(wanted[i].resource, &l);
        }
    }
}

int child_session(struct start *s)
{
    if (setsid() < 0) {
        return start_fail(s, -errno, "session");
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    raise_limits();
    int e = std_fds();
    if (e) {
        return start_fail(s, e, "/dev/null");
    }
    struct groups_made made = {.fd[GROUPS_V2] = -1};
    memcpy(made.fd, start_fd(s, CHILD_V1), sizeof(int) * SEAT_N_V1);
    e = groups_join_v1(&made);
    return e ? start_fail(s, e, "control groups isle/%u/service", s->instance) : 0;
}

// A clone of what stands at `path`, as jobs may have it: they execute what lies there, also where
// the host's own mount is noexec. Only host root can say so, and only here: for an account, and in
// the user namespace to come, that attribute is locked (EPERM), and stays. A descriptor or -errno.
static int clone_tree(struct start *s, const char *what, const char *path, uint64_t set,
                      unsigned flags)
{
    const uint64_t all = set | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    AUTO_CLOSE int fd = mount_clone(AT_FDCWD, path, flags);
    int e = fd < 0 ? fd : mount_set(fd, all, MOUNT_ATTR_NOEXEC, flags);
    e = e == -EPERM ? mount_set(fd, all, 0, flags) : e;
    return e ? start_fail(s, e, "%s %s", what, path) : fd_take(&fd);
}

static int mount_proc(struct start *s, const char *to, const char *options)
{
    const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (!mount("proc", to, "proc", flags, options)) {
        return 0;
    }
    return start_fail(s, -errno,
                      errno == EPERM
                          ? "proc (%s): what is masked in /proc here may not be seen anew "
                            "(container: --security-opt systempaths=unconfined)"
                          : "proc (%s)",
                      to);
}

static int attach(struct start *s, int mount, const char *to)
{
    int e = mount_attach(mount, AT_FDCWD, to);
    return e ? start_fail(s, e, "private mount %s", to) : 0;
}

// Some other folder is refused by its name here, not by a mount inside that fails later.
static int check_runtime(struct start *s)
{
    const char *root = s->config->runtime_root;
    char path[PATH_MAX];
    struct stat st;
    if (access(root, F_OK)) { // the most likely thing to be missing on a new machine
        return start_fail(
            s, -errno,
            "runtime root %s (./bootstrap, run by root, makes it; or set SANDBOX_RUNTIME_ROOT)",
            root);
    }
    snprintf(path, sizeof path, "%s/usr/lib/isle", root); // where jobs see the wrappers
    int e = lstat(path, &st) ? -errno : 0;
    e = e || S_ISDIR(st.st_mode) ? e : -ENOTDIR;
    return e ? start_fail(s, e,
                          "runtime root %s is not one (./bootstrap makes it; in an image: mkdir "
                          "/usr/lib/isle): usr/lib/isle",
                          root)
             : 0;
}

// A folder of the host that the instance needs. Opened by path before the folders here cover some.
struct tree {
    const char *what, *path, *to; // path NULL: this instance has none
    uint64_t set;
    unsigned flags;
};

static int clone_trees(struct start *s, const struct tree *trees, size_t n, int *ret)
{
    int e = 0;
    for (size_t i = 0; i < n && !e; i++) {
        const struct tree *t = &trees[i];
        ret[i] = t->path ? clone_tree(s, t->what, t->path, t->set, t->flags) : -1;
        e = t->path && ret[i] < 0 ? ret[i] : 0;
    }
    return e;
}

static int attach_trees(struct start *s, const struct tree *trees, size_t n, const int *fds)
{
    int e = 0;
    for (size_t i = 0; i < n && !e; i++) {
        if (fds[i] >= 0) { // that there is a folder says that there is such a thing
            e = mkdir(trees[i].to, 0755) ? start_fail(s, -errno, "folder %s", trees[i].to) : 0;
            e = e ? e : attach(s, fds[i], trees[i].to);
        }
    }
    return e;
}

// What nothing is opened for by path any more.
static int make_place(struct start *s)
{
    static const char *const dirs[] = {"proc", "sproc", "rt", "dev", "new"};
    const char *place = s->config->run_dir; // any folder will do: nobody else sees what is on it
    if (mount("tmpfs", place, "tmpfs", MS_NOSUID, "size=64k,nr_inodes=32,mode=755") ||
        chdir(place)) {
        return start_fail(s, -errno, "tmpfs on %s", place);
    }
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        if (mkdir(dirs[i], 0755)) {
            return start_fail(s, -errno, "folder %s", dirs[i]);
        }
    }
    return 0;
}

// To be freed; NULL without memory.
static char *path_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *path_of(const char *format, ...)
{
    char *path = NULL;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&path, format, args);
    va_end(args);
    return n < 0 ? NULL : path;
}

// The layout is that of plan/seat.h, and `sproc`: the service's own proc. The working folder it
// lies in survives the new namespace and the re-exec, so no path of the host need be walked inside.
int child_mounts(struct start *s)
{
    enum { N_TREES = 5 };
    const struct start_config *c = s->config;
    AUTO_FREE char *ws = path_of("%s/%s", c->data_dir, s->folder_name);
    AUTO_FREE char *usr = path_of("%s/usr", c->runtime_root);
    AUTO_FREE char *etc = path_of("%s/etc", c->runtime_root);
    int fds[N_TREES] = {-1, -1, -1, -1, -1};
    // of the runtime root only two folders: it may be a container's own, with much else in it
    const struct tree trees[N_TREES] = {
        {"runtime root", usr, "rt/usr", MOUNT_ATTR_RDONLY, AT_RECURSIVE},
        {"runtime root", etc, "rt/etc", MOUNT_ATTR_RDONLY, AT_RECURSIVE},
        {"guest folder", c->guest_dir, "guest", MOUNT_ATTR_RDONLY, 0},
        {"workspace root", ws, "ws", 0, 0},
        {"SANDBOX_PACKAGES_ROOT", c->cache_dir, "cache", MOUNT_ATTR_RDONLY, 0},
    };
    // an account's child was born in one
    if ((s->record.user == START_ROOT && unshare(CLONE_NEWNS)) || mount_make_private()) {
        return start_fail(s, -errno, "mount namespace");
    }
    int e = ws && usr && etc ? check_runtime(s) : start_fail(s, -ENOMEM, "paths");
    e = e ? e : clone_trees(s, trees, N_TREES, fds);
    e = e ? e : make_place(s);
    // A user namespace may mount a proc only where a fully visible one is: a container's is not.
    e = e ? e : mount_proc(s, "proc", NULL);
    // With the full one, a service with CAP_DAC_OVERRIDE could write the launcher's oom_score_adj.
    e = e ? e : mount_proc(s, "sproc", "hidepid=2");
    e = e ? e : attach_trees(s, trees, N_TREES, fds);
    for (size_t i = 0; i < N_TREES; i++) {
        fd_close(fds[i]);
    }
    return e;
}

// The host's /dev/null and the like, over a file: where there is no CAP_MKNOD. 0 or -1 with errno.
static int bind_node(const char *name)
{
    char from[32];
    if (!name) { // for gcc's -Wformat-truncation
        return -1;
    }
    snprintf(from, sizeof from, "/%s", name);
    AUTO_CLOSE int fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    return fd < 0 ? -1 : mount(from, name, NULL, MS_BIND, NULL);
}

int child_devices(struct start *s)
{
    static const struct {
        const char *name;
        unsigned minor;
    } nodes[] = {
        {"dev/null", 3}, {"dev/zero", 5}, {"dev/full", 7}, {"dev/random", 8}, {"dev/urandom", 9}};
    static const char *const links[][2] = {{"/proc/self/fd", "dev/fd"},
                                           {"/proc/self/fd/0", "dev/stdin"},
                                           {"/proc/self/fd/1", "dev/stdout"},
                                           {"/proc/self/fd/2", "dev/stderr"}};
    if (mount("tmpfs", "dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k,nr_inodes=32,mode=755") ||
        mkdir("dev/shm", 0755)) {
        return start_fail(s, -errno, "tmpfs for /dev");
    }
    umask(0);
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        if (mknod(nodes[i].name, S_IFCHR | 0666, makedev(1, nodes[i].minor)) &&
            bind_node(nodes[i].name)) {
            return start_fail(s, -errno, "device node %s", nodes[i].name);
        }
    }
    umask(022);
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        if (symlink(links[i][0], links[i][1])) {
            return start_fail(s, -errno, "link %s", links[i][1]);
        }
    }
    const unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC;
    if (mount(NULL, "dev", NULL, flags, NULL)) {
        return start_fail(s, -errno, "/dev read-only");
    }
    s->record.marks_ns[START_T_MOUNTS] = clock_now_ns();
    return 0;
}

// The programs of an account pay into the same counters as what lives in its namespaces, in inner
// ones too (/proc/sys/user): jobs get half, so that an editor or a desktop is never refused.
int child_own_shares(struct start *s)
{
    static const char *const halved[][2] = {
        {"proc/sys/fs/inotify/max_user_instances", "proc/sys/user/max_inotify_instances"},
        {"proc/sys/fs/inotify/max_user_watches", "proc/sys/user/max_inotify_watches"}};
    for (size_t i = 0; i < ARRAY_LEN(halved); i++) {
        char text[24];
        unsigned long all;
        if (fd_read_at(AT_FDCWD, halved[i][0], text, sizeof text) <= 0 ||
            sscanf(text, "%lu", &all) != 1) {
            continue; // a kernel without inotify
        }
        snprintf(text, sizeof text, "%lu", all - all / 2);
        int e = fd_write_at(AT_FDCWD, halved[i][1], text);
        if (e) {
            return start_fail(s, e, "/%s", halved[i][1]);
        }
    }
    return 0;
}

// Who makes a user namespace pays for all that lives in it, in counters with limits for the whole
// host: inotify instances (128), watches, message queues, pending signals. Not host root, whose own
// programs would be refused then, but the first id of this instance. Capabilities stay: some hosts
// let nobody else make a user namespace.
static int become_payer(uint32_t uid)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct caps[2];
    if (syscall(SYS_capget, &head, caps) || setresuid((uid_t)-1, uid, (uid_t)-1)) {
        return -errno;
    }
    return syscall(SYS_capset, &head, caps) ? -errno : 0; // the change took the effective ones
}

// Asks the front for the maps and waits for them.
static int await_maps(struct start *s)
{
    int sock = *start_fd(s, INNER_FRONT);
    struct start_note note = {.what = START_NOTE_MAPS};
    if (send(sock, &note, sizeof note, MSG_NOSIGNAL) != sizeof note) {
        return start_fail(s, -errno, "the front is gone");
    }
    char mapped;
    if (fd_read_full(sock, &mapped, 1) != 1) {
        return start_fail(s, -EPIPE, "the front is gone");
    }
    s->record.marks_ns[START_T_MAPPED] = clock_now_ns();
    return 0;
}

int child_born_inside(struct start *s) { return await_maps(s); }

int child_user_namespace(struct start *s)
{
    int paid = become_payer(s->record.seat.uid_base + PLAN_UID_LAUNCHER);
    if (paid) {
        return start_fail(s, paid, "user id of the instance");
    }
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) {
        return start_fail(s, -errno, "user namespace");
    }
    return await_maps(s);
}

int child_no_groups(struct start *s)
{
    return setgroups(0, NULL) ? start_fail(s, -errno, "supplementary groups") : 0;
}

int child_ids(struct start *s)
{
    if (setresgid(0, 0, 0) || setresuid(0, 0, 0)) {
        return start_fail(s, -errno, "ids of inner root");
    }
    int e = sys_keyring_new_session();
    // ENOSYS: a kernel without keyrings has none to hide. EPERM: a container's filter refuses the
    // call, to all that live in it.
    return e && e != -ENOSYS && e != -EPERM ? start_fail(s, e, "session keyring") : 0;
}

#ifdef __SANITIZE_ADDRESS__
// At its end a sanitized program looks for leaks by ptrace, which the service's filter refuses.
static char no_leak_check[] = "ASAN_OPTIONS=detect_leaks=0";
#endif

// Settings only, from the caller. To be freed; NULL without memory.
static const char **make_env(char *const *env)
{
    size_t n = 0;
    while (env[n]) {
        n++;
    }
    const char **copy = calloc(n + 2, sizeof *copy);
    if (copy) {
        memcpy(copy, env, n * sizeof *copy);
#ifdef __SANITIZE_ADDRESS__
        copy[n] = no_leak_check;
#endif
    }
    return copy;
}

int child_reexec(struct start *s)
{
    size_t n = 0;
    while (s->argv[n]) {
        n++;
    }
    AUTO_FREE const char **argv = calloc(n + 2, sizeof *argv);
    AUTO_FREE const char **env = make_env(s->env);
    if (!argv || !env) {
        return start_fail(s, -ENOMEM, "arguments");
    }
    argv[0] = INNER_NAME;
    memcpy(argv + 1, s->argv, n * sizeof *argv);
    int record = fd_sealed("isle-start", &s->record, sizeof s->record);
    if (record < 0) {
        return start_fail(s, record, "record for the new image");
    }
    *start_fd(s, INNER_RECORD) = record;
    int e = start_place_fds(s->fd, INNER_FD_END - INNER_RECORD, INNER_RECORD);
    if (e) {
        return start_fail(s, e, "descriptors");
    }
    *start_fd(s, INNER_FRONT) = INNER_FRONT; // where a failure is told
    // execve's types lack the const; it only reads
    execve("/proc/self/exe", (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
    return start_fail(s, -errno,
                      "executing isle again (its program and libraries must be readable "
                      "and executable by all)");
}
