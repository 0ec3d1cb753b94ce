// groups.h: the control groups of an instance: isle/K in every hierarchy that is of use.
//
// What is of use is found out, not guessed from names: a hierarchy counts when it is mounted for
// writing, the folder could be made and has the control files of the controller. All paths lie
// below the descriptor `root`, "/" of the host or a made-up tree of a test.
#ifndef ISLE_START_GROUPS_H
#define ISLE_START_GROUPS_H

#include "plan/seat.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { GROUPS_PATH_MAX = 192, GROUPS_V2 = SEAT_N_V1, GROUPS_N = SEAT_N_V1 + 1 };

// Mount points relative to `root`; "" where there is none.
struct groups {
    int root;
    char path[GROUPS_N][GROUPS_PATH_MAX]; // v1 by enum seat_controller, then the v2 tree
    char from[GROUPS_N][GROUPS_PATH_MAX]; // what of the hierarchy is mounted there: "" for all
    bool own; // an account's: paths are of folders that were delegated to it
};

struct groups_limits {
    uint64_t memory_bytes, pids; // of the whole instance; 0: not limited
    uid_t owner; // inner root, as the host sees it; the caller itself: nothing to give away
};

// A path of mountinfo, which writes blanks and the like as \\ooo. Relative to the root; "" if too
// long.
void groups_copy_path(char to[GROUPS_PATH_MAX], const char *from);

// What groups_claim() and groups_make() made: folders isle/K (-1: none), and who enforces what. A
// controller is in one of the masks (bit per enum seat_controller) or in none.
struct groups_made {
    int fd[GROUPS_N]; // as struct groups
    uint32_t v1_controllers, v2_controllers;
};
#define GROUPS_NONE ((struct groups_made){.fd = {-1, -1, -1, -1, -1}})

// Reads proc/self/mountinfo. Never fails: what cannot be read is not there.
void groups_detect(int root, struct groups *ret);

// Hierarchies that are mounted read-only, although they could be written: a container's.
bool groups_any_read_only(int root);
// The same tree in a mount namespace that nobody is in, where they are writable as far as the
// kernel lets us: its "/", and the namespace, which has to be kept open as long as that is used. 0
// or -errno.
int groups_open_writable(int *ret_root, int *ret_mounts);
// groups_detect() below such a root, by what can be written there.
void groups_detect_writable(int root, struct groups *ret);

// The same for an account: of each hierarchy the group the caller is in (proc/self/cgroup), when it
// may make groups there. v2 passes controllers on only from a folder without processes: the
// caller's own group when it is alone in it, else the one above.
void groups_detect_own(int root, struct groups *ret);

// Controllers that groups_make() would not find, as bits of enum plan_downgrade.
uint32_t groups_lacking(const struct groups *g);

// Can `dir`, a v2 folder, be without processes? Moves them to its group isle-main: the caller, and
// in a container all that it sees. Only where this may be done: an account's folder holds nobody
// but the caller; a container's root is no root of the hierarchy. 0 or -errno.
int groups_vacate(const struct groups *g, int dir);

// Makes isle/K in one hierarchy and locks it, before anything is written: two starts whose lock
// files lie in different folders meet here only. 0, also where there is no hierarchy of use, and
// with it nothing that such starts could share; -EBUSY: they are another's; -errno.
int groups_claim(const struct groups *g, uint32_t k, struct groups_made *ret);
// Makes the rest of what is claimed: isle/K elsewhere; isle/K/service in v2, and in v1 where the
// instance has a limit; writes the limits, delegates.
// A hierarchy that refuses is left out. 0, or -errno with everything closed: a limit of the whole
// instance could not be set.
int groups_make(const struct groups *g, uint32_t k, const struct groups_limits *limits,
                struct groups_made *made);
void groups_close(struct groups_made *made);

// Puts the calling process (single-threaded, host root) into isle/K/service of v1. 0 or -errno.
int groups_join_v1(const struct groups_made *made);

// Kills what lives in the groups of instance k. `uid_base`, PLAN_UID_COUNT ids on: whose processes
// they must be where one group cannot be killed at once.
// is_ours (may be NULL): asked once the target is fixed, before the kill.
void groups_kill(const struct groups *g, uint32_t k, uint32_t uid_base, bool (*is_ours)(void *ctx),
                 void *ctx);

// Is there a living owner of isle/K? groups_claim() locks one of its folders (flock(2)), and the
// launcher holds that until its end: so it shows, whatever folder the lock files are kept in.
bool groups_held(const struct groups *g, uint32_t k);

// groups_claim() of what is there: -ENOENT where nothing is.
int groups_take(const struct groups *g, uint32_t k, struct groups_made *ret);
// Removes isle/K everywhere, whatever its depth; the caller has claimed it. 0, -EBUSY: processes.
int groups_clear(const struct groups *g, uint32_t k);
// Both, without a trace of the claim. 0 (also when there is none), -EBUSY: processes, or another's.
int groups_remove(const struct groups *g, uint32_t k);

#endif
