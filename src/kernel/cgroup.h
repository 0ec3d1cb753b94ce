// cgroup.h: one control group per sandbox, in whatever the host has: v2, v1 hierarchies, both
// (hybrid), or none. Which file says what stands in two tables in cgroup.c; the rest of isle knows
// limits and figures only. Sources: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/*.rst.
//
// A controller the host lacks is a downgrade (cgroup_downgrades()), never an error here: its limit
// is not set and its figures are PLAN_UNKNOWN.
#ifndef ISLE_KERNEL_CGROUP_H
#define ISLE_KERNEL_CGROUP_H

#include "plan/plan.h"
#include "plan/seat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// How groups are made and removed. cgroupfs fills and empties a folder by itself; a test's fixture
// tree needs help with that. Every control file is an ordinary file to both.
struct cgroup_io {
    int (*make)(int folder, const char *name); // 0 or -errno
    int (*remove)(int folder, const char *name);
};

// The instance's folders, below which one folder per sandbox is made. -1: not there.
struct cgroup_tree {
    int v2;
    int v1[SEAT_N_V1]; // -1 also for a hierarchy that is the same as an earlier one (cpu,cpuacct)
    uint8_t at[SEAT_N_V1]; // index into v1 of the hierarchy that has this controller
    uint32_t v1_on, v2_on; // controllers that count, one bit per enum seat_controller
    const struct cgroup_io *io;
};

struct cgroup_limits {
    uint64_t memory_bytes;
    uint64_t pids; // the shim included
    uint32_t cpu_percent;
};

enum cgroup_figure {
    CGROUP_CPU_NS,
    CGROUP_MEMORY_PEAK,
    CGROUP_PIDS_PEAK,
    CGROUP_OOM_KILLS,
    CGROUP_N_FIGURES
};

// Takes the descriptors as they are (they stay the caller's); v1: SEAT_N_V1 of them. io NULL: the
// real one.
void cgroup_tree_init(struct cgroup_tree *t, int v2, const int *v1, uint32_t v1_controllers,
                      uint32_t v2_controllers, const struct cgroup_io *io);

// enum plan_downgrade bits of what this tree cannot do.
uint32_t cgroup_downgrades(const struct cgroup_tree *t);

// Makes the group `name` in every hierarchy. 0 or -errno (then nothing is left).
int cgroup_make(const struct cgroup_tree *t, const char *name);
// 0, or -EBUSY while something is alive in it. What is already gone does not matter.
int cgroup_remove(const struct cgroup_tree *t, const char *name);

// What lets a process in: the v1 `tasks` files for writing ("0" moves the writer, and it costs a
// fraction of cgroup.procs), -1 where there is none, and the v2 folder for clone3(), or -1. The
// caller closes them. 0 or -errno.
int cgroup_open_entrance(const struct cgroup_tree *t, const char *name, int ret_tasks[SEAT_N_V1],
                         int *ret_v2);

// 0 or -errno. Every limit given must be above 0: 0 is refused (-EINVAL), not unlimited.
int cgroup_limit(const struct cgroup_tree *t, const char *name, const struct cgroup_limits *l);

// PLAN_UNKNOWN if it cannot be measured.
uint64_t cgroup_figure(const struct cgroup_tree *t, const char *name, enum cgroup_figure which);
// Starts the memory peak again where the kernel can (v1; later readings then begin from now).
void cgroup_reset_peak(const struct cgroup_tree *t, const char *name);

// A descriptor that becomes readable when the group runs out of memory (v1: an eventfd, told before
// the kernel kills), or -ENOENT where the kernel ends the whole group by itself (v2,
// memory.oom.group) or does not count memory.
int cgroup_watch_oom(const struct cgroup_tree *t, const char *name);

// SIGKILL to everything in it, atomically. 0, or -errno where the kernel has no such thing (v1).
int cgroup_kill(const struct cgroup_tree *t, const char *name);

// From here on nothing in it can fork, where processes are counted.
void cgroup_no_forks(const struct cgroup_tree *t, const char *name);

// Processes in the group, as the caller's pid namespace sees them, at most `max`. Count or -errno
// (-ENOENT: no hierarchy at all).
int cgroup_members(const struct cgroup_tree *t, const char *name, pid_t *ret_pids, int max);

#endif
