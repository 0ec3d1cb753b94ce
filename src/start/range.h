// range.h: which host uids (and gids) an instance may use.
#ifndef ISLE_START_RANGE_H
#define ISLE_START_RANGE_H

#include <stdint.h>

#include <stdbool.h>

enum {
    RANGE_MAX_INSTANCES = 1000,
    RANGE_SMALL = 32768, // above a container's accounts, below nobody (65534)
    RANGE_SMALL_FIRST = 32000,
    RANGE_MIN_IDS = 32767, // besides inner root's: service, slots and thousands of workspaces
};

// The first id of instance k's range and its size, as a function of k and of what this process has
// mapped (/proc/self/uid_map below `root`), so that all starts on a host agree. PLAN_UID_COUNT ids;
// in a container that has no more than 65536, RANGE_SMALL of them, the same for every k. Free
// means: no entry of passwd, group, subuid or subgid (in etc/ below `root`) touches it. 0; -EBUSY
// (not free: try another k), -ERANGE (this map has no room for k or more).
int range_of_instance(int root, uint32_t k, uint32_t *ret_base, uint32_t *ret_count);

// The largest range of an account in a file like subuid(5), by its name or number.
struct range_of_account {
    uint32_t first, count;
};
// False: none of RANGE_MIN_IDS or more.
bool range_of_account(int root, const char *file, const char *name, uint32_t uid,
                      struct range_of_account *ret);

#endif
