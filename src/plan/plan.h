// plan.h: what crosses the border between the service and isle-launcher, byte for byte.
//
// The service (uid 1 of the outer user namespace, three file capabilities) asks; the launcher (root
// of that namespace, the only process that makes sandboxes) checks and answers. One SOCK_SEQPACKET
// socket, fixed-size records, descriptors by SCM_RIGHTS. A record carries numbers and bounded names
// only: roots, filters, uid range and cgroup parent were given to the launcher at its start
// (seat.h) and are named here by index. A tenant's bytes (argv, environment, working directory)
// travel in a sealed memfd that only the job's own process reads (args.h).
//
// Both ends are one build, so the order of bytes is the host's; sizes are asserted all the same,
// since the fuzz corpus and the launcher's validator depend on them. Nothing here may grow with its
// input.
#ifndef ISLE_PLAN_PLAN_H
#define ISLE_PLAN_PLAN_H

#include <stdint.h>

// Inner uids (and gids) of an instance; inner 0 is the first uid of its range.
enum {
    PLAN_UID_LAUNCHER = 0,
    PLAN_UID_SERVICE = 1,
    PLAN_UID_ZYGOTE_0 = 256, // zygotes: one uid each, never a workspace's
    PLAN_UID_SLOT_0 = 16384, // shims: one per sandbox slot, never leased to a workspace
    PLAN_UID_WORKSPACE_0 = 20480,
    PLAN_UID_WORKSPACE_END = 65536,
    PLAN_UID_COUNT = 65536,
    PLAN_JOB_UID = 1000, // what a job sees itself as
};

enum {
    PLAN_MAX_SANDBOXES = 256, // alive or parked at once
    PLAN_MAX_TMPFS = 256,     // tmpfs workspaces at once
    PLAN_MAX_SETS = 256,      // registered package sets
    PLAN_SETS_PER_JOB = 8,
    PLAN_NAME_MAX = 64, // workspace name, NUL included
};

// How the job's own user namespace is made (docs/ARCHITECTURE.md, "rungs").
enum plan_rung {
    PLAN_RUNG_AUTO, // the one found at start
    PLAN_RUNG_PARENT,
    PLAN_RUNG_SELF,
    PLAN_RUNG_NONE, // stays in the outer namespace: downgrade no_user_namespace
};

enum plan_op {
    // launcher -> service
    PLAN_READY = 1, // once; fd 0: the workspace root, opened in the launcher's own mount namespace;
                    // fd 1: likewise the package cache, where there is one
    PLAN_PARKED,    // phase one of sandbox `id` is done
    PLAN_EXECUTED,  // the job's program is running (its execve succeeded): the job's time starts
                    // here
    PLAN_END, // sandbox `id` is over: processes reaped, groups removed. The last record of an id
    // service -> launcher, each answered by a record of the same op (START: by EXECUTED and END)
    PLAN_PREPARE,    // phase one only, for jobs with `network`; the answer's id names the parked
                     // sandbox
    PLAN_START,      // phase two in sandbox `id`, or both phases when id is 0
    PLAN_SIGNAL,     // `signal` to every process of the sandbox but its shim
    PLAN_KILL,       // SIGKILL to all of it; END follows
    PLAN_SAMPLE,     // figures up to now, of the current execution
    PLAN_EXECUTION,  // ends the current execution (the answer has its figures) and begins the next
                     // one: CPU time counts from 0 against cpu_ns, the memory peak is reset
    PLAN_TMPFS,      // make a tmpfs workspace for `uid`; answer: id = its number, fd 0 = it
    PLAN_TMPFS_DROP, // `workspace_no`
    PLAN_SET_ADD,    // register a package set; request fd 0, a folder opened below READY's fd 1
                     // that belongs to the cache's owner; answer: id = its number
    PLAN_SET_DROP,   // `sets[0]`
    PLAN_OP_END,
};

enum plan_workspace {
    PLAN_WORKSPACE_FOLDER, // `workspace`, a name below the workspace root: NAME/w, and NAME/t for
                           // /tmp if `tmp_folder`
    PLAN_WORKSPACE_TMPFS,  // `workspace_no`
};

// Which stage-2 filter: tmpfs workspaces may fallocate, folders may not (it takes gigabytes before
// any accounting can see them).
enum plan_filter { PLAN_FILTER_TMPFS, PLAN_FILTER_FOLDER, PLAN_N_FILTERS };

enum plan_network {
    PLAN_NETWORK_NONE, // a namespace of its own with a loopback
    PLAN_NETWORK_HOST, // the host's namespace; only where seat_config.allow_host_network is set
    PLAN_N_NETWORKS,
};

// Descriptors of PLAN_START, in this order, all present.
enum plan_start_fd {
    PLAN_FD_STDIN,
    PLAN_FD_STDOUT,
    PLAN_FD_STDERR,
    PLAN_FD_FRAMES, // the guest's end of the frame socket, or a shell script (a sealed memfd);
                    // /dev/null when has_frames is 0
    PLAN_FD_ARGS,   // sealed memfd, args.h
    PLAN_N_START_FDS,
};

// 0 never means unlimited: plan_check() refuses it for every limit but those marked optional.
struct plan_limits {
    uint64_t memory_bytes; // cgroup: memory_mb plus the size of a tmpfs workspace
    uint64_t cpu_ns;       // CPU time of all processes of one execution; optional, 0: none
    uint64_t tmp_bytes;    // size of the /tmp tmpfs (ignored with tmp_folder)
    uint64_t file_bytes;   // RLIMIT_FSIZE
    uint32_t tmp_inodes;
    uint32_t cpu_percent; // 100: one CPU
    uint32_t pids;        // of the job; the shim is added by the launcher
    uint32_t nofile;
};

struct plan_request {
    uint32_t op;
    uint32_t id;  // sandbox
    uint32_t tag; // the service's own mark, repeated in every answer
    uint32_t signal;
    uint32_t root; // index of the runtime root
    uint32_t filter;
    uint32_t network;
    uint32_t rung;
    uint32_t uid; // of the workspace
    uint32_t workspace_kind;
    uint32_t workspace_no;
    uint32_t tmp_folder; // 1: /tmp is NAME/t
    uint32_t has_frames; // 1: descriptor 3 of the job is PLAN_FD_FRAMES; 0: it has none
    uint32_t plain;  // 1: without namespaces (PLAN_PLAIN_STEPS); only where seat_config.allow_plain
                     // is set, and the only way where seat_config.launcher is SEAT_NONE
    uint32_t unused; // 0
    uint32_t n_sets;
    uint32_t sets[PLAN_SETS_PER_JOB]; // mounted read-only at /packages/0, /packages/1 ...
    uint64_t size_bytes;              // PLAN_TMPFS
    uint64_t size_inodes;             // PLAN_TMPFS
    struct plan_limits limits;
    char workspace[PLAN_NAME_MAX]; // [a-z0-9-]+/[a-z0-9-]+
};

// Moments of a launch, CLOCK_MONOTONIC ns, 0 where not reached. For tests/bench and traces.
enum plan_mark {
    PLAN_T_REQUEST,
    PLAN_T_GROUPS, // cgroups made
    PLAN_T_CLONED, // pid 1 exists
    PLAN_T_PARKED, // phase one done
    PLAN_T_START,  // phase two begins in pid 2
    PLAN_T_EXEC,   // last instruction before execve
    PLAN_T_REPORT, // the shim's report was read
    PLAN_T_GONE,   // every process reaped
    PLAN_T_END,    // groups removed
    PLAN_N_MARKS,
};

#define PLAN_UNKNOWN UINT64_MAX // a figure that could not be measured

enum plan_flag { // why the launcher itself ended or cut the sandbox; from the kernel's counters
                 // only
    PLAN_HIT_MEMORY = 1, // an OOM kill inside the job's group
    PLAN_HIT_CPU = 2,    // cpu_ns used up
    PLAN_KILLED = 4,     // by PLAN_KILL
};

struct plan_record {
    uint32_t op;
    uint32_t id;
    uint32_t tag;
    int32_t error;  // 0, or a positive errno: *the sandbox* failed (never: the program failed)
    uint32_t step;  // with error: a step of one of the tables in steps.h, or PLAN_STEP_end
    int32_t status; // END: wait status of the main process; -1 when none came. With error at a step
                    // of Bubblewrap's: its own, and fd 0 holds what it wrote
    uint32_t flags; // enum plan_flag
    uint32_t rung;
    int32_t shim_pid; // as the launcher sees them
    int32_t main_pid;
    uint64_t cpu_ns;
    uint64_t memory_peak_bytes;
    uint64_t pids_peak; // without the shim
    uint64_t marks_ns[PLAN_N_MARKS];
    uint32_t downgrades;   // bits of enum plan_downgrade. READY: of every job; PARKED, EXECUTED,
                           // END: of this one besides
    uint32_t landlock_abi; // READY: 0: none
};

// What this launcher cannot do on this host, or was told not to. Names, losses and remedies:
// model/downgrade.c.
enum plan_downgrade {
    PLAN_NO_USER_NAMESPACE = 1 << 0,
    PLAN_NO_LANDLOCK = 1 << 1,
    PLAN_NO_CGROUP_MEMORY = 1 << 2,
    PLAN_NO_CGROUP_PIDS = 1 << 3,
    PLAN_NO_CGROUP_CPU = 1 << 4, // the share
    PLAN_NO_CPU_TIME = 1 << 5,   // no accounting of CPU time either
    PLAN_SINGLE_UID = 1 << 6,
    PLAN_SECCOMP_ALLOW = 1 << 7,    // seat_config.n_calls: the policy was widened
    PLAN_HOST_NETWORK = 1 << 8,     // of one job: PLAN_NETWORK_HOST
    PLAN_ABSTRACT_SOCKETS = 1 << 9, // likewise, and no Landlock that keeps it from those names
    PLAN_NO_LOOPBACK = 1 << 10,     // of one job: nobody may bring one up here
    PLAN_NO_ISOLATION = 1 << 11,    // of one job: plan_request.plain
    PLAN_OLD_BWRAP = 1 << 16,       // Bubblewrap with known holes
};

_Static_assert(sizeof(struct plan_limits) == 48, "wire size");
_Static_assert(sizeof(struct plan_request) == 224, "wire size");
_Static_assert(sizeof(struct plan_record) == 40 + 24 + 8 * PLAN_N_MARKS + 8, "wire size");

// Is this a request the launcher may act on? Pure: looks at the record alone, not at the host.
// n_fds: descriptors that came with it. 0; -EINVAL, -EPERM (uid outside the workspace block),
// -ERANGE; then *ret_field (static text) names the field.
int plan_check(const struct plan_request *q, int n_fds, const char **ret_field);

// Workspace names: two parts of [a-z0-9-], not empty, not starting with '-', NUL-terminated in
// bounds.
int plan_check_name(const char name[PLAN_NAME_MAX]);

#endif
