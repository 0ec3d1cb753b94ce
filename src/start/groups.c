#include "start/groups.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

static const char parent_name[] = "isle";

// Is `word` one of the words of `list`, which are separated by `separator` or blanks?
static bool has_word(const char *list, const char *word, char separator)
{
    size_t len = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += len) {
        char before = p == list ? separator : p[-1], after = p[len];
        bool starts = before == separator || before == ' ';
        if (starts && (after == separator || after == ' ' || after == '\n' || after == '\0')) {
            return true;
        }
    }
    return false;
}

// ---- detection ----------------------------------------------------------------------------------

// mountinfo writes blanks and the like as \ooo. Relative to the root; "" if too long.
static void copy_path(char *to, const char *from)
{
    size_t n = 0;
    from += *from == '/';
    while (*from && n < GROUPS_PATH_MAX - 1) {
        unsigned code;
        if (*from == '\\' && sscanf(from + 1, "%3o", &code) == 1) {
            to[n++] = (char)code;
            from += 4;
        } else {
            to[n++] = *from++;
        }
    }
    to[*from ? 0 : n] = '\0';
}

// One line of proc_pid_mountinfo(5): "36 35 98:0 /root /mount/point rw,noatime master:1 - type
// source rw,options".
static void detect_line(char *line, struct groups *g)
{
    char *tail = strstr(line, " - ");
    if (!tail) {
        return;
    }
    *tail = '\0';
    char point[1024], options[256], type[32], super[512];
    if (sscanf(line, "%*s %*s %*s %*s %1023s %255s", point, options) != 2 ||
        sscanf(tail + 3, "%31s %*s %511s", type, super) != 2 || !has_word(options, "rw", ',') ||
        !has_word(super, "rw", ',')) {
        return;
    }
    if (!strcmp(type, "cgroup2") && !g->path[GROUPS_V2][0]) {
        copy_path(g->path[GROUPS_V2], point);
    }
    for (int i = 0; !strcmp(type, "cgroup") && i < SEAT_N_V1; i++) {
        if (has_word(super, controllers[i].name, ',') && !g->path[i][0]) {
            copy_path(g->path[i], point);
        }
    }
}

void groups_detect(int root, struct groups *ret)
{
    *ret = (struct groups){.root = root};
    int fd = openat(root, "proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    while (f && getline(&line, &size, f) >= 0) {
        if (strstr(line, " - cgroup")) {
            detect_line(line, ret);
        }
    }
    if (f) {
        fclose(f);
    } else {
        fd_close(fd);
    }
}

// ---- making -------------------------------------------------------------------------------------

// The folder of all instances in hierarchy i. A descriptor or -errno.
static int open_parent(const struct groups *g, int i)
{
    if (!g->path[i][0]) {
        return -ENOENT;
    }
    AUTO_CLOSE int top = openat(g->root, g->path[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top < 0) {
        return -errno;
    }
    if (mkdirat(top, parent_name, 0755) && errno != EEXIST) {
        return -errno;
    }
    int fd = openat(top, parent_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

// "+x" for what the folder has and does not pass on yet. A controller that refuses (a process in
// the folder: EBUSY) is missing below, where it counts.
static void enable_controllers(int dir)
{
    char have[512], passed[512], word[16];
    if (fd_read_at(dir, "cgroup.controllers", have, sizeof have) < 0 ||
        fd_read_at(dir, "cgroup.subtree_control", passed, sizeof passed) < 0) {
        return;
    }
    for (int i = 0; i < SEAT_N_V1; i++) {
        const char *name = controllers[i].name;
        if (controllers[i].v2 && has_word(have, name, ' ') && !has_word(passed, name, ' ')) {
            snprintf(word, sizeof word, "+%s", name);
            fd_write_at(dir, "cgroup.subtree_control", word);
        }
    }
}

static int make_folder(int parent, uint32_t k)
{
    char name[16];
    snprintf(name, sizeof name, "%u", k);
    // EEXIST: two controllers in one hierarchy (cpu,cpuacct); what a dead owner left is gone
    if (mkdirat(parent, name, 0755) && errno != EEXIST) {
        return -errno;
    }
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int make_service(int dir)
{
    return mkdirat(dir, "service", 0755) && errno != EEXIST ? -errno : 0;
}

static int make_v1(const struct groups *g, int i, uint32_t k, const struct groups_limits *limits,
                   struct groups_made *made)
{
    AUTO_CLOSE int parent = open_parent(g, i);
    AUTO_CLOSE int dir = parent < 0 ? parent : make_folder(parent, k);
    if (dir < 0 || faccessat(dir, controllers[i].leaf, F_OK, 0)) {
        return 0; // not of use
    }
    int e = 0;
    if (i == SEAT_MEMORY) {
        // Old kernels count children only when told; must come before the first child.
        fd_write_at(dir, "memory.use_hierarchy", "1");
        e = limits->memory_bytes
                ? fd_write_num_at(dir, "memory.limit_in_bytes", limits->memory_bytes)
                : 0;
    } else if (i == SEAT_PIDS && limits->pids) {
        e = fd_write_num_at(dir, "pids.max", limits->pids);
    }
    bool limited = (i == SEAT_MEMORY && limits->memory_bytes) || (i == SEAT_PIDS && limits->pids);
    if (!e && limited) {
        e = make_service(dir); // host root's: limits of the service are not the service's
    }
    // the folder only, never its files: the instance's own limits stay host root's
    if (!e && fchown(dir, limits->owner, limits->owner)) {
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
    if (fd_read_at(dir, "cgroup.subtree_control", passed, sizeof passed) < 0) {
        return 0;
    }
    for (int i = 0; i < SEAT_N_V1; i++) {
        if (controllers[i].v2 && has_word(passed, controllers[i].name, ' ')) {
            bits |= UINT32_C(1) << i;
        }
    }
    // every v2 group counts its CPU time, with or without the controller
    bool counts = fd_read_at(dir, "cpu.stat", stat, sizeof stat) > 0 && strstr(stat, "usage_usec");
    return counts ? bits | UINT32_C(1) << SEAT_CPUACCT : bits;
}

static int make_v2(const struct groups *g, uint32_t k, const struct groups_limits *limits,
                   struct groups_made *made)
{
    if (!g->path[GROUPS_V2][0]) {
        return 0;
    }
    AUTO_CLOSE int top = openat(g->root, g->path[GROUPS_V2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top >= 0) {
        enable_controllers(top);
    }
    AUTO_CLOSE int parent = open_parent(g, GROUPS_V2);
    if (parent >= 0) {
        enable_controllers(parent);
    }
    AUTO_CLOSE int dir = parent < 0 ? parent : make_folder(parent, k);
    // A group that passes controllers on may hold no process itself: hence service/.
    if (dir < 0 || faccessat(dir, "cgroup.procs", F_OK, 0) || make_service(dir)) {
        return 0; // not of use
    }
    enable_controllers(dir);
    uint32_t bits = enabled_v2(dir);
    int e = 0;
    if ((bits & 1 << SEAT_MEMORY) && limits->memory_bytes) {
        e = fd_write_num_at(dir, "memory.max", limits->memory_bytes);
    }
    if (!e && (bits & 1 << SEAT_PIDS) && limits->pids) {
        e = fd_write_num_at(dir, "pids.max", limits->pids);
    }
    if (!e) {
        e = delegate_v2(dir, limits->owner);
    }
    if (!e) {
        made->fd[GROUPS_V2] = fd_take(&dir);
        made->v2_controllers = bits;
    }
    return e;
}

int groups_make(const struct groups *g, uint32_t k, const struct groups_limits *limits,
                struct groups_made *ret)
{
    struct groups_made made = {.fd = {-1, -1, -1, -1, -1}};
    int e = make_v2(g, k, limits, &made);
    for (int i = 0; i < SEAT_N_V1 && !e; i++) {
        e = make_v1(g, i, k, limits, &made);
    }
    if (e) {
        groups_close(&made);
        return e;
    }
    // v1's own accounting goes first where both count: it is where v1's other limits are
    made.v2_controllers &= ~made.v1_controllers;
    *ret = made;
    return 0;
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
