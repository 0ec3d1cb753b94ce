// proc.h: the /proc of a sandbox (proc(5)).
#ifndef ISLE_KERNEL_PROC_H
#define ISLE_KERNEL_PROC_H

#include "plan/bwrap.h"

#include <stdbool.h>
#include <stddef.h>

// What a job must not read though it belongs to no process: the host's hardware, how it was booted,
// what its disks, devices and processors do for others. What is left is what programs ask for
// (cpuinfo, meminfo, stat, loadavg, uptime, vmstat) or says what any kernel of this kind can do; a
// test lists it.
struct proc_mask {
    const char *path; // below /proc
    bool is_folder;
};
extern const struct proc_mask proc_masks[];
extern const size_t proc_n_masks;

// What Bubblewrap is to cover of a job's /proc: those of the above that the proc `dir` (a
// descriptor) has, and the boot id, with what lies for them in the model of a job's root
// (TEMPLATE_MASK). Ends with a NULL path. 0 or -errno.
enum { PROC_MAX_COVERS = 64 };
int proc_covers(int dir, struct bwrap_cover ret[PROC_MAX_COVERS]);

// A new proc of this pid namespace, hidepid=2, read-write, attached nowhere. Descriptor or -errno.
// EPERM: there is no fully visible proc in this mount namespace (mount_too_revealing()).
int proc_new(void);

#endif
