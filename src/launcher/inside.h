// inside.h: what isle's first process in a Bubblewrap sandbox is told by the launcher, through a
// sealed memfd (BWRAP_FD_PASSPORT) that it inherits. It finds out by itself whether all of it is
// so, and answers with the nonce: Bubblewrap's exit status proves nothing.
#ifndef ISLE_LAUNCHER_INSIDE_H
#define ISLE_LAUNCHER_INSIDE_H

#include "plan/plan.h"
#include "plan/seat.h"

#include <stdint.h>

enum { PASSPORT_MAGIC = 0x50415353, PASSPORT_N_NAMESPACES = 7 };

struct passport {
    uint32_t magic;
    int32_t landlock_abi;
    uint32_t single_uid; // as in seat_config: its account's groups cannot be left
    uint64_t nonce;
    uint32_t n_calls, calls[SEAT_MAX_CALLS]; // as in seat_config
    uint64_t workspace_dev, workspace_ino;
    uint64_t tmp_bytes, tmp_inodes;             // 0: a session's folder
    uint64_t namespaces[PASSPORT_N_NAMESPACES]; // inodes of the launcher's, see passport_names;
                                                // 0: shared
};

// Below /proc/self/ns; the sandbox must have others.
extern const char *const passport_names[PASSPORT_N_NAMESPACES];

// Descriptors of the order, behind the PLAN_N_START_FDS.
enum inside_fd {
    INSIDE_FD_REPORT = PLAN_N_START_FDS, // of the shim
    INSIDE_FD_SHIM,
    INSIDE_FD_SOCK, // of pid 2, closed by its execve
    INSIDE_N_FDS,
};

#endif
