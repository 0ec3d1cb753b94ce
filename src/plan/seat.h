// seat.h: what isle-launcher is given once, at its start, by start/: descriptors in fixed places
// and one sealed record. Whatever a plan names by index was fixed here.
//
// Working directory at exec: the folder of private mounts that host root made (start step
// "mounts"), with
//   proc (fully visible, read-write)  ws (workspace root)  rt (runtime root)  guest (wrappers)
//   dev (nodes)  new (empty, for the launcher's own tmpfs root)
//   cache (package sets; only where there is a cache)
//   sproc (a proc that hides other uids' processes)
//   net (files for jobs with the host's network; only where those are allowed)
//   bw (what Bubblewrap is started in: its program and libraries, and empty folders; only where
//   seat_config.launcher says SEAT_BWRAP)
#ifndef ISLE_PLAN_SEAT_H
#define ISLE_PLAN_SEAT_H

#include <stdint.h>

enum seat_fd {
    SEAT_SERVICE = 3,   // SEQPACKET socket to the service
    SEAT_SERVICE_PIDFD, // ends when the service does
    SEAT_SHIM,          // the installed shim, O_RDONLY
    SEAT_LOCK,          // instance lock, held only
    SEAT_CONFIG,        // sealed memfd: struct seat_config
    SEAT_CGROUP_V2,     // folder isle/K of the v2 tree, or closed
    SEAT_CGROUP_V1,     // first of SEAT_N_V1: folders isle/K of v1 hierarchies, closed where absent
    SEAT_FD_END = SEAT_CGROUP_V1 + 4,
};

// Controllers isle uses. v1: each its own hierarchy (or co-mounted: the same folder opened twice).
enum seat_controller { SEAT_MEMORY, SEAT_PIDS, SEAT_CPU, SEAT_CPUACCT, SEAT_N_V1 };

// What makes a sandbox. Its name is that of options, results and reports.
// NONE: jobs run without sandboxes.
enum seat_launcher { SEAT_NATIVE, SEAT_BWRAP, SEAT_NONE, SEAT_N_LAUNCHERS };
extern const char *const seat_launcher_names[SEAT_N_LAUNCHERS];

enum {
    SEAT_MAGIC = 0x49534c45,
    SEAT_VERSION = 4,
    SEAT_HOSTNAME_MAX = 64,
    SEAT_MAX_CALLS = 16,
    SEAT_PATH_MAX = 128,
};

struct seat_config {
    uint32_t magic, version;
    uint32_t v1_controllers; // bit per enum seat_controller: enforce through SEAT_CGROUP_V1 + n
    uint32_t v2_controllers; // bit: enforce through the v2 folder (cpu implies cpuacct)
    uint32_t uid_base;       // host uid of inner 1, less one: for messages only
    uint32_t uid_count;      // inner ids that exist: 0 .. uid_count - 1
    uint32_t single_uid; // 1: only inner 0 exists. Workspaces still have numbers of their own in
                         // plans, but all belong to it
    uint32_t test_refuse_rungs;      // tests: bit 1 << enum plan_rung; 0 in every real start
    uint32_t require_user_namespace; // 1: rung none is refused
    uint32_t allow_host_network;     // 1: PLAN_NETWORK_HOST is not refused
    uint32_t allow_plain;            // 1: plan_request.plain is not refused; always with SEAT_NONE
    uint32_t n_calls;                // system calls that jobs may make besides the policy's
    uint32_t calls[SEAT_MAX_CALLS];  // by number
    uint32_t launcher;               // enum seat_launcher
    uint32_t bwrap_version;          // plan/bwrap.h; 0: it did not say
    char bwrap_path[SEAT_PATH_MAX];  // for messages only: bw/bwrap is what is executed
    char hostname[SEAT_HOSTNAME_MAX];
};

#endif
