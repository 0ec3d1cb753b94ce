#include "kernel/proc.h"

#include "base/fd.h"
#include "kernel/mount.h"

const struct proc_mask proc_masks[] = {
    {"acpi", true},       {"asound", true},       {"bootconfig", false},    {"bus", true},
    {"cmdline", false},   {"config.gz", false},   {"consoles", false},      {"diskstats", false},
    {"driver", true},     {"fs", true},           {"interrupts", false},    {"iomem", false},
    {"ioports", false},   {"irq", true},          {"kallsyms", false},      {"kcore", false},
    {"key-users", false}, {"keys", false},        {"latency_stats", false}, {"locks", false},
    {"mdstat", false},    {"modules", false},     {"mtrr", false},          {"partitions", false},
    {"pressure", true},   {"sched_debug", false}, {"schedstat", false},     {"scsi", true},
    {"softirqs", false},  {"swaps", false},       {"timer_list", false},    {"zoneinfo", false},
};
const size_t proc_n_masks = ARRAY_LEN(proc_masks);

int proc_covers(int dir, struct bwrap_cover ret[PROC_MAX_COVERS])
{
    size_t n = 0;
    for (size_t i = 0; i < proc_n_masks && n < PROC_MAX_COVERS - 2; i++) {
        if (!faccessat(dir, proc_masks[i].path, F_OK, AT_SYMLINK_NOFOLLOW)) {
            ret[n++] = (struct bwrap_cover){proc_masks[i].path,
                                            proc_masks[i].is_folder ? "tmp/folder" : "tmp/empty"};
        } else if (errno != ENOENT) { // it may be there
            return -errno;
        }
    }
    // the same for all jobs of a host otherwise
    if (!faccessat(dir, "sys/kernel/random/boot_id", F_OK, 0)) {
        ret[n++] = (struct bwrap_cover){"sys/kernel/random/boot_id", "tmp/boot_id"};
    } else if (errno != ENOENT) {
        return -errno;
    }
    ret[n] = (struct bwrap_cover){NULL, NULL};
    return 0;
}

int proc_new(void)
{
    AUTO_CLOSE int fs = sys_result(syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC));
    if (fs < 0) {
        return fs;
    }
    if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "hidepid", "2", 0) ||
        syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0)) {
        return -errno;
    }
    return sys_result(syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
                              MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
}
