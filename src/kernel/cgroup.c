#include "kernel/cgroup.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

enum { V1 = 1, V2 = 2 };
enum { PATH_BYTES = 96, CPU_PERIOD_US = 100000, SOCKET_PART = 8 };

enum value { MEMORY_BYTES, SOCKET_BYTES, PIDS, CPU_QUOTA_US, CPU_QUOTA_AND_PERIOD, ZERO, ONE };

// Written in this order: memory+swap may not be below memory.
static const struct limit_file {
    uint8_t controller, version;
    const char *file;
    enum value value;
    bool optional; // kernels without swap accounting, or too old for it
} limit_files[] = {
    {SEAT_MEMORY, V1, "memory.limit_in_bytes", MEMORY_BYTES, false},
    {SEAT_MEMORY, V1, "memory.memsw.limit_in_bytes", MEMORY_BYTES, true},
    // Without a limit, v1 does not count what sockets hold at all (v2 counts it as memory): a job
    // could take the host's, for which there is one bound (net.ipv4.tcp_mem).
    {SEAT_MEMORY, V1, "memory.kmem.tcp.limit_in_bytes", SOCKET_BYTES, true},
    {SEAT_PIDS, V1, "pids.max", PIDS, false},
    {SEAT_CPU, V1, "cpu.cfs_quota_us", CPU_QUOTA_US, false},
    {SEAT_MEMORY, V2, "memory.max", MEMORY_BYTES, false},
    {SEAT_MEMORY, V2, "memory.swap.max", ZERO, true},
    {SEAT_MEMORY, V2, "memory.oom.group", ONE, false},
    {SEAT_PIDS, V2, "pids.max", PIDS, false},
    {SEAT_CPU, V2, "cpu.max", CPU_QUOTA_AND_PERIOD, false},
};

// For each figure the first file that is there. cpu.stat has its total on v2 even without the
// controller.
static const struct figure_file {
    uint8_t figure, controller, version;
    bool always;
    const char *file, *key; // key NULL: the file is one number
    uint64_t scale;
} figure_files[] = {
    {CGROUP_CPU_NS, SEAT_CPUACCT, V1, false, "cpuacct.usage", NULL, 1},
    {CGROUP_CPU_NS, SEAT_CPUACCT, V2, true, "cpu.stat", "usage_usec ", 1000},
    {CGROUP_MEMORY_PEAK, SEAT_MEMORY, V1, false, "memory.max_usage_in_bytes", NULL, 1},
    {CGROUP_MEMORY_PEAK, SEAT_MEMORY, V2, false, "memory.peak", NULL, 1},
    {CGROUP_PIDS_PEAK, SEAT_PIDS, V1, false, "pids.peak", NULL, 1},
    {CGROUP_PIDS_PEAK, SEAT_PIDS, V2, false, "pids.peak", NULL, 1},
    {CGROUP_OOM_KILLS, SEAT_MEMORY, V1, false, "memory.oom_control", "oom_kill ", 1},
    {CGROUP_OOM_KILLS, SEAT_MEMORY, V2, false, "memory.events", "oom_kill ", 1},
};

static int real_make(int folder, const char *name)
{
    return mkdirat(folder, name, 0755) ? -errno : 0;
}

static int real_remove(int folder, const char *name)
{
    return unlinkat(folder, name, AT_REMOVEDIR) ? -errno : 0;
}

static const struct cgroup_io real_io = {real_make, real_remove};

void cgroup_tree_init(struct cgroup_tree *t, int v2, const int *v1, uint32_t v1_controllers,
                      uint32_t v2_controllers, const struct cgroup_io *io)
{
    struct stat seen[SEAT_N_V1] = {0};
    *t = (struct cgroup_tree){.v2 = v2, .v2_on = v2 >= 0 ? v2_controllers : 0};
    t->io = io ? io : &real_io;
    for (unsigned i = 0; i < SEAT_N_V1; i++) {
        t->v1[i] = -1;
        t->at[i] = (uint8_t)i;
        if (v1[i] < 0 || !(v1_controllers & 1U << i) || fstat(v1[i], &seen[i])) {
            continue;
        }
        t->v1_on |= 1U << i;
        t->v1[i] = v1[i];
        for (unsigned k = 0; k < i; k++) {
            if (t->v1[k] >= 0 && seen[k].st_dev == seen[i].st_dev &&
                seen[k].st_ino == seen[i].st_ino) {
                t->v1[i] = -1;
                t->at[i] = (uint8_t)k;
                break;
            }
        }
    }
}

// The folder that speaks for a controller in this version of cgroups, or -1.
static int folder_of(const struct cgroup_tree *t, unsigned controller, unsigned version,
                     bool always)
{
    if (version == V2) {
        return always || (t->v2_on & 1U << controller) ? t->v2 : -1;
    }
    return t->v1_on & 1U << controller ? t->v1[t->at[controller]] : -1;
}

uint32_t cgroup_downgrades(const struct cgroup_tree *t)
{
    static const uint32_t bit[SEAT_N_V1] = {
        [SEAT_MEMORY] = PLAN_NO_CGROUP_MEMORY,
        [SEAT_PIDS] = PLAN_NO_CGROUP_PIDS,
        [SEAT_CPU] = PLAN_NO_CGROUP_CPU,
        [SEAT_CPUACCT] = PLAN_NO_CPU_TIME,
    };
    uint32_t missing = 0;
    for (unsigned i = 0; i < SEAT_N_V1; i++) {
        bool have = (t->v1_on | t->v2_on) & 1U << i || (i == SEAT_CPUACCT && t->v2 >= 0);
        missing |= have ? 0 : bit[i];
    }
    return missing;
}

int cgroup_make(const struct cgroup_tree *t, const char *name)
{
    int e = t->v2 < 0 ? 0 : t->io->make(t->v2, name);
    for (unsigned i = 0; i < SEAT_N_V1 && !e; i++) {
        e = t->v1[i] < 0 ? 0 : t->io->make(t->v1[i], name);
    }
    if (e) {
        cgroup_remove(t, name);
    }
    return e;
}

int cgroup_remove(const struct cgroup_tree *t, const char *name)
{
    int left = 0;
    for (unsigned i = 0; i <= SEAT_N_V1; i++) {
        int folder = i < SEAT_N_V1 ? t->v1[i] : t->v2;
        int e = folder < 0 ? 0 : t->io->remove(folder, name);
        if (e && e != -ENOENT) {
            left = -EBUSY;
        }
    }
    return left;
}

int cgroup_open_entrance(const struct cgroup_tree *t, const char *name, int ret_tasks[SEAT_N_V1],
                         int *ret_v2)
{
    char path[PATH_BYTES];
    int tasks[SEAT_N_V1], v2 = -1, e = 0;
    for (unsigned i = 0; i < SEAT_N_V1; i++) {
        tasks[i] = -1;
        if (t->v1[i] < 0 || e) {
            continue;
        }
        snprintf(path, sizeof path, "%s/tasks", name);
        tasks[i] = openat(t->v1[i], path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        e = tasks[i] < 0 ? -errno : 0;
    }
    if (!e && t->v2 >= 0) {
        v2 = openat(t->v2, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        e = v2 < 0 ? -errno : 0;
    }
    if (e) {
        for (unsigned i = 0; i < SEAT_N_V1; i++) {
            fd_close(tasks[i]);
        }
        return e;
    }
    memcpy(ret_tasks, tasks, sizeof tasks);
    *ret_v2 = v2;
    return 0;
}

static void format_value(char *text, size_t size, enum value value, const struct cgroup_limits *l)
{
    unsigned long long quota = (unsigned long long)l->cpu_percent * (CPU_PERIOD_US / 100);
    switch (value) {
    case MEMORY_BYTES:
        snprintf(text, size, "%llu", (unsigned long long)l->memory_bytes);
        break;
    case SOCKET_BYTES:
        snprintf(text, size, "%llu", (unsigned long long)(l->memory_bytes / SOCKET_PART));
        break;
    case PIDS:
        snprintf(text, size, "%llu", (unsigned long long)l->pids);
        break;
    case CPU_QUOTA_US:
        snprintf(text, size, "%llu", quota);
        break;
    case CPU_QUOTA_AND_PERIOD:
        snprintf(text, size, "%llu %d", quota, CPU_PERIOD_US);
        break;
    case ZERO:
        snprintf(text, size, "0");
        break;
    case ONE:
        snprintf(text, size, "1");
        break;
    }
}

int cgroup_limit(const struct cgroup_tree *t, const char *name, const struct cgroup_limits *l)
{
    char path[PATH_BYTES], text[48];
    if (l->memory_bytes == 0 || l->pids == 0 || l->cpu_percent == 0) {
        return -EINVAL;
    }
    for (size_t i = 0; i < ARRAY_LEN(limit_files); i++) {
        const struct limit_file *f = &limit_files[i];
        int folder = folder_of(t, f->controller, f->version, false);
        if (folder < 0) {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", name, f->file);
        format_value(text, sizeof text, f->value, l);
        int e = fd_write_at(folder, path, text);
        if (e && !(f->optional && e == -ENOENT)) {
            return e;
        }
    }
    return 0;
}

// The number after `key` at the start of a line, or the text's only number.
static uint64_t number_in(const char *text, const char *key)
{
    const char *line = text;
    while (key && strncmp(line, key, strlen(key))) {
        line = strchr(line, '\n');
        if (!line) {
            return PLAN_UNKNOWN;
        }
        line++;
    }
    const char *digits = key ? line + strlen(key) : text;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(digits, &end, 10);
    return errno || end == digits ? PLAN_UNKNOWN : value;
}

uint64_t cgroup_figure(const struct cgroup_tree *t, const char *name, enum cgroup_figure which)
{
    char path[PATH_BYTES], text[1024];
    for (size_t i = 0; i < ARRAY_LEN(figure_files); i++) {
        const struct figure_file *f = &figure_files[i];
        int folder = f->figure == which ? folder_of(t, f->controller, f->version, f->always) : -1;
        if (folder < 0) {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", name, f->file);
        if (fd_read_at(folder, path, text, sizeof text) <= 0) {
            continue;
        }
        uint64_t value = number_in(text, f->key);
        if (value != PLAN_UNKNOWN && value <= UINT64_MAX / f->scale) {
            return value * f->scale;
        }
    }
    return PLAN_UNKNOWN;
}

void cgroup_reset_peak(const struct cgroup_tree *t, const char *name)
{
    char path[PATH_BYTES];
    int folder = folder_of(t, SEAT_MEMORY, V1, false);
    if (folder >= 0) {
        snprintf(path, sizeof path, "%s/memory.max_usage_in_bytes", name);
        fd_write_at(folder, path, "0"); // best effort: a figure, not a limit
    }
}

int cgroup_watch_oom(const struct cgroup_tree *t, const char *name)
{
    char path[PATH_BYTES], line[32];
    int folder = folder_of(t, SEAT_MEMORY, V1, false);
    if (folder < 0) {
        return -ENOENT;
    }
    AUTO_CLOSE int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event < 0) {
        return -errno;
    }
    snprintf(path, sizeof path, "%s/memory.oom_control", name);
    AUTO_CLOSE int control = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (control < 0) {
        return -errno;
    }
    snprintf(line, sizeof line, "%d %d", event, control);
    snprintf(path, sizeof path, "%s/cgroup.event_control", name);
    int e = fd_write_at(folder, path, line);
    return e ? e : fd_take(&event);
}

int cgroup_kill(const struct cgroup_tree *t, const char *name)
{
    char path[PATH_BYTES];
    if (t->v2 < 0) {
        return -ENOENT;
    }
    snprintf(path, sizeof path, "%s/cgroup.kill", name);
    return fd_write_at(t->v2, path, "1");
}

void cgroup_no_forks(const struct cgroup_tree *t, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/pids.max", name);
    for (unsigned version = V1; version <= V2; version++) {
        int folder = folder_of(t, SEAT_PIDS, version, false);
        if (folder >= 0) {
            fd_write_at(folder, path, "0");
        }
    }
}

// The folder that has every process of the group: any will do, the v2 one is always joined at
// birth.
static int any_folder(const struct cgroup_tree *t)
{
    int folder = t->v2;
    for (unsigned i = 0; i < SEAT_N_V1 && folder < 0; i++) {
        folder = t->v1[i];
    }
    return folder;
}

int cgroup_members(const struct cgroup_tree *t, const char *name, pid_t *ret_pids, int max)
{
    char path[PATH_BYTES], text[4096];
    int folder = any_folder(t), count = 0;
    if (folder < 0) {
        return -ENOENT;
    }
    snprintf(path, sizeof path, "%s/cgroup.procs", name);
    AUTO_CLOSE int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return -errno;
    }
    pid_t pid = 0;
    for (;;) {
        ssize_t n = read(fd, text, sizeof text);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : count;
        }
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            } else if (pid > 0) {
                if (count == max) {
                    return count;
                }
                ret_pids[count++] = pid;
                pid = 0;
            }
        }
    }
}
