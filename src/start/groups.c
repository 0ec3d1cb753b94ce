#include "start/groups.h"

#include "base/fd.h"
#include "host/host.h"
#include "plan/plan.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

// The controllers of seat.h. `leaf`: a control file that a folder of it must have in v1.
static const struct {
    const char *name, *leaf;
    bool v2; // a controller of its own in v2 (cpuacct is part of cpu there)
} controllers[SEAT_N_V1] = {
    [SEAT_MEMORY] = {"memory", "memory.limit_in_bytes", true},
    [SEAT_PIDS] = {"pids", "pids.max", true},
    [SEAT_CPU] = {"cpu", "cpu.cfs_quota_us", true},
    [SEAT_CPUACCT] = {"cpuacct", "cpuacct.usage", false},
};

// ---- detection ----------------------------------------------------------------------------------

static void detect_any(void *ctx, const struct host_mount *m)
{
    struct groups *g = ctx;
    if (!strcmp(m->type, "cgroup2") && !g->path[GROUPS_V2][0]) {
        groups_copy_path(g->path[GROUPS_V2], m->point);
        groups_copy_path(g->from[GROUPS_V2], m->from);
    }
    for (int i = 0; !strcmp(m->type, "cgroup") && i < SEAT_N_V1; i++) {
        if (host_lists(m->super, controllers[i].name) && !g->path[i][0]) {
            groups_copy_path(g->path[i], m->point);
            groups_copy_path(g->from[i], m->from);
        }
    }
}

struct each_group {
    void (*what)(void *ctx, const struct host_mount *m);
    void *ctx;
};

static void see_group(void *ctx, const struct host_mount *m)
{
    const struct each_group *g = ctx;
    if (host_lists(m->super, "rw")) {
        g->what(g->ctx, m);
    }
}

// The hierarchies that are not read-only as a whole.
static void each_line(int root, void (*what)(void *ctx, const struct host_mount *m), void *ctx)
{
    struct each_group g = {what, ctx};
    host_each_mount(root, "cgroup", see_group, &g);
}

static void detect(void *ctx, const struct host_mount *m)
{
    if (host_lists(m->options, "rw")) {
        detect_any(ctx, m);
    }
}

void groups_detect(int root, struct groups *ret)
{
    *ret = (struct groups){.root = root};
    each_line(root, detect, ret);
}

static void note_read_only(void *ctx, const struct host_mount *m)
{
    *(bool *)ctx |= host_lists(m->options, "ro");
}

bool groups_any_read_only(int root)
{
    bool any = false;
    each_line(root, note_read_only, &any);
    return any;
}

static void make_writable(void *ctx, const struct host_mount *m)
{
    static const struct {
        const char *word;
        unsigned long flag;
    } kept[] = {{"nosuid", MS_NOSUID}, {"nodev", MS_NODEV}, {"noexec", MS_NOEXEC}};
    unsigned long flags = MS_REMOUNT | MS_BIND | MS_RELATIME;
    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        flags |= host_lists(m->options, kept[i].word) ? kept[i].flag : 0;
    }
    if (host_lists(m->options, "ro")) {
        mount(NULL, m->point, NULL, flags, NULL); // refused in a user namespace of the container's
    }
}

static _Noreturn void writable_child(int ready)
{
    AUTO_CLOSE int root = -1;
    if (!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL)) {
        root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    if (root >= 0) {
        each_line(root, make_writable, NULL);
        fd_write_all(ready, "", 1);
        pause(); // until it is killed
    }
    _exit(1);
}

int groups_open_writable(int *ret_root, int *ret_mounts)
{
    int ends[2];
    char path[32], ok;
    if (pipe2(ends, O_CLOEXEC)) {
        return -errno;
    }
    pid_t pid = fork();
    if (pid == 0) {
        writable_child(ends[1]);
    }
    int e = pid < 0 ? -errno : 0;
    close(ends[1]);
    AUTO_CLOSE int root = -1;
    AUTO_CLOSE int mounts = -1;
    if (!e && fd_read_full(ends[0], &ok, 1) == 1) {
        snprintf(path, sizeof path, "/proc/%d/root", pid);
        root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
        mounts = open(path, O_RDONLY | O_CLOEXEC);
        e = root < 0 || mounts < 0 ? -errno : 0;
    } else {
        e = e ? e : -EPERM;
    }
    close(ends[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    if (!e) {
        *ret_root = fd_take(&root);
        *ret_mounts = fd_take(&mounts);
    }
    return e;
}

void groups_detect_writable(int root, struct groups *ret)
{
    *ret = (struct groups){.root = root};
    each_line(root, detect_any, ret);
    for (int i = 0; i < GROUPS_N; i++) {
        if (ret->path[i][0] && faccessat(root, ret->path[i], W_OK, AT_EACCESS)) {
            ret->path[i][0] = '\0';
        }
    }
}

uint32_t groups_lacking(const struct groups *g)
{
    static const uint32_t downgrade[SEAT_N_V1] = {[SEAT_MEMORY] = PLAN_NO_CGROUP_MEMORY,
                                                  [SEAT_PIDS] = PLAN_NO_CGROUP_PIDS,
                                                  [SEAT_CPU] = PLAN_NO_CGROUP_CPU,
                                                  [SEAT_CPUACCT] = PLAN_NO_CPU_TIME};
    char path[GROUPS_PATH_MAX + 32], have[512] = "";
    uint32_t bits = 0;
    if (g->path[GROUPS_V2][0]) {
        snprintf(path, sizeof path, "%s/cgroup.controllers", g->path[GROUPS_V2]);
        if (fd_read_at(g->root, path, have, sizeof have) < 0) {
            have[0] = '\0';
        }
    }
    for (int i = 0; i < SEAT_N_V1; i++) {
        // every v2 group counts its CPU time, with or without a controller
        bool v2 = controllers[i].v2 ? host_lists(have, controllers[i].name)
                                    : g->path[GROUPS_V2][0] != '\0';
        bits |= v2 || g->path[i][0] ? 0U : downgrade[i];
    }
    return bits;
}

// ---- making -------------------------------------------------------------------------------------

// Jobs have a limit for what their sockets hold (v1). With one that stays, the kernel need not
// patch itself each time that the first such group comes and the last one goes. Best effort.
static void count_sockets(int root, const char *isle)
{
    char path[GROUPS_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/memory.kmem.tcp.limit_in_bytes", isle);
    fd_write_at(root, path, "9223372036854771712");
}

// isle/K of hierarchy i. A descriptor or -errno.
static int make_folder(const struct groups *g, int i, uint32_t k)
{
    char path[GROUPS_PATH_MAX + 32];
    int at = snprintf(path, sizeof path, "%s/isle", g->path[i]);
    snprintf(path + at, sizeof path - (size_t)at, "/%u", k);
    int e = mkdirat(g->root, path, 0755) ? -errno : 0;
    if (e == -ENOENT) { // the first instance of this host
        path[at] = '\0';
        e = mkdirat(g->root, path, 0755) && errno != EEXIST ? -errno : 0;
        count_sockets(g->root, path);
        path[at] = '/';
        e = e || !mkdirat(g->root, path, 0755) ? e : -errno;
    }
    // EEXIST: two controllers in one hierarchy (cpu,cpuacct); what a dead owner left is gone
    if (e && e != -EEXIST) {
        return e;
    }
    int fd = openat(g->root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

// "+x" for what the folder has and does not pass on yet. A controller that refuses (a process in
// the folder that must stay there: EBUSY) is missing below, where it counts. Has it any of ours?
static bool enable_controllers(const struct groups *g, int dir)
{
    char have[512], passed[512], word[16];
    bool any = false;
    if (fd_read_at(dir, "cgroup.controllers", have, sizeof have) < 0) {
        return false;
    }
    for (int i = 0; i < SEAT_N_V1; i++) {
        const char *name = controllers[i].name;
        if (!controllers[i].v2 || !host_lists(have, name)) {
            continue;
        }
        if (!any && fd_read_at(dir, "cgroup.subtree_control", passed, sizeof passed) < 0) {
            return false;
        }
        any = true;
        if (!host_lists(passed, name)) {
            snprintf(word, sizeof word, "+%s", name);
            if (fd_write_at(dir, "cgroup.subtree_control", word) == -EBUSY &&
                !groups_vacate(g, dir)) {
                fd_write_at(dir, "cgroup.subtree_control", word);
            }
        }
    }
    return any;
}

static int make_service(int dir)
{
    return mkdirat(dir, "service", 0755) && errno != EEXIST ? -errno : 0;
}

// isle/K of hierarchy i, if it is of use. A descriptor or -errno.
static int open_folder(const struct groups *g, int i, uint32_t k)
{
    AUTO_CLOSE int dir = g->path[i][0] ? make_folder(g, i, k) : -ENOENT;
    const char *leaf = i == GROUPS_V2 ? "cgroup.procs" : controllers[i].leaf;
    if (dir < 0 || faccessat(dir, leaf, F_OK, 0)) {
        return dir < 0 ? dir : -errno;
    }
    return fd_take(&dir);
}

static int make_v1(const struct groups *g, int i, uint32_t k, const struct groups_limits *limits,
                   struct groups_made *made)
{
    AUTO_CLOSE int dir = made->fd[i] >= 0 ? fd_take(&made->fd[i]) : open_folder(g, i, k);
    if (dir < 0) {
        return 0; // not of use
    }
    uint64_t limit = i == SEAT_MEMORY ? limits->memory_bytes : i == SEAT_PIDS ? limits->pids : 0;
    int e = 0;
    if (limit) {
        e = fd_write_num_at(dir, controllers[i].leaf, limit);
        e = e ? e : make_service(dir); // host root's: limits of the service are not the service's
    }
    // the folder only, never its files: the instance's own limits stay host root's
    if (!e && !g->own && fchown(dir, limits->owner, limits->owner)) {
        e = -errno;
    }
    if (!e) {
        made->fd[i] = fd_take(&dir);
        made->v1_controllers |= UINT32_C(1) << i;
    }
    return e;
}

// Delegation as cgroup-v2.rst has it, but for the limits.
static int delegate_v2(int dir, uid_t owner)
{
    static const char *const given[] = {
        ".",       "cgroup.procs",         "cgroup.threads",        "cgroup.subtree_control",
        "service", "service/cgroup.procs", "service/cgroup.threads"};
    for (size_t i = 0; i < ARRAY_LEN(given); i++) {
        if (fchownat(dir, given[i], owner, owner, AT_SYMLINK_NOFOLLOW) && errno != ENOENT) {
            return -errno;
        }
    }
    return 0;
}

static uint32_t enabled_v2(int dir)
{
    char passed[512], stat[256];
    uint32_t bits = 0;
    // every v2 group counts its CPU time, with or without the controller
    if (fd_read_at(dir, "cpu.stat", stat, sizeof stat) > 0 && strstr(stat, "usage_usec")) {
        bits |= UINT32_C(1) << SEAT_CPUACCT;
    }
    if (fd_read_at(dir, "cgroup.subtree_control", passed, sizeof passed) > 0) {
        for (int i = 0; i < SEAT_N_V1; i++) {
            bool on = controllers[i].v2 && host_lists(passed, controllers[i].name);
            bits |= on ? UINT32_C(1) << i : 0;
        }
    }
    return bits;
}

// Down to isle/K, which passes them on to the jobs' groups: hence no process in isle/K itself, but
// in service/.
static void enable_down_to(const struct groups *g, int dir)
{
    char path[GROUPS_PATH_MAX + 8];
    AUTO_CLOSE int top = openat(g->root, g->path[GROUPS_V2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0 || !enable_controllers(g, top)) {
        return;
    }
    snprintf(path, sizeof path, "%s/isle", g->path[GROUPS_V2]);
    AUTO_CLOSE int parent = openat(g->root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent >= 0) {
        enable_controllers(g, parent);
        enable_controllers(g, dir);
    }
}

static int make_v2(const struct groups *g, const struct groups_limits *limits,
                   struct groups_made *made)
{
    int dir = made->fd[GROUPS_V2];
    if (dir < 0) {
        return 0; // not of use
    }
    enable_down_to(g, dir);
    uint32_t bits = enabled_v2(dir);
    int e = 0;
    if ((bits & 1 << SEAT_MEMORY) && limits->memory_bytes) {
        e = fd_write_num_at(dir, "memory.max", limits->memory_bytes);
    }
    if (!e && (bits & 1 << SEAT_PIDS) && limits->pids) {
        e = fd_write_num_at(dir, "pids.max", limits->pids);
    }
    if (!e && !g->own) {
        e = delegate_v2(dir, limits->owner);
    }
    made->v2_controllers = e ? 0 : bits;
    return e;
}

// -EBUSY: another's, or just removed by whoever had it.
static int lock_folder(const struct groups *g, int i, uint32_t k, int dir)
{
    char path[GROUPS_PATH_MAX + 32];
    struct stat locked, there;
    if (flock(dir, LOCK_EX | LOCK_NB)) {
        return errno == EWOULDBLOCK ? -EBUSY : -errno;
    }
    snprintf(path, sizeof path, "%s/isle/%u", g->path[i], k);
    bool same = !fstat(dir, &locked) && !fstatat(g->root, path, &there, AT_SYMLINK_NOFOLLOW) &&
                locked.st_dev == there.st_dev && locked.st_ino == there.st_ino;
    return same ? 0 : -EBUSY;
}

int groups_claim(const struct groups *g, uint32_t k, struct groups_made *ret)
{
    struct groups_made made = GROUPS_NONE;
    // One lock is enough, and two folders of one hierarchy (cpu,cpuacct) would lock each other out.
    for (int i = GROUPS_N - 1; i >= 0; i--) {
        AUTO_CLOSE int dir = open_folder(g, i, k);
        if (dir < 0) {
            continue;
        }
        int e = lock_folder(g, i, k, dir);
        if (e) {
            return e;
        }
        if (i != GROUPS_V2 || !make_service(dir)) {
            made.fd[i] = fd_take(&dir);
            break;
        }
    }
    *ret = made;
    return 0;
}

int groups_make(const struct groups *g, uint32_t k, const struct groups_limits *limits,
                struct groups_made *made)
{
    int e = make_v2(g, limits, made);
    for (int i = 0; i < SEAT_N_V1 && !e; i++) {
        // what v2 does already (in a hybrid set-up: CPU time) needs no group of its own
        bool needed = g->path[i][0] && !(made->v2_controllers & UINT32_C(1) << i);
        e = needed ? make_v1(g, i, k, limits, made) : 0;
    }
    if (e) {
        groups_close(made);
    }
    return e;
}

void groups_close(struct groups_made *made)
{
    for (int i = 0; i < GROUPS_N; i++) {
        made->fd[i] = fd_close(made->fd[i]);
    }
}

int groups_join_v1(const struct groups_made *made)
{
    static const int joined[] = {SEAT_MEMORY, SEAT_PIDS};
    for (size_t i = 0; i < ARRAY_LEN(joined); i++) {
        int dir = made->fd[joined[i]];
        // `tasks`, not cgroup.procs: that one waits for a grace period, up to 10 ms
        int e = dir < 0 ? 0 : fd_write_at(dir, "service/tasks", "0");
        if (e && e != -ENOENT) { // not limited
            return e;
        }
    }
    return 0;
}
