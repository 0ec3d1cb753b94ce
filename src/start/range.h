// range.h: which host uids (and gids) an instance may use.
#ifndef ISLE_START_RANGE_H
#define ISLE_START_RANGE_H

#include <stdint.h>

enum { RANGE_MAX_INSTANCES = 1000 };

// The first id of instance k's range of PLAN_UID_COUNT, as a function of k and of what this process
// has mapped (/proc/self/uid_map below `root`), so that all starts on a host agree. Free means: no
// entry of passwd, group, subuid or subgid (in etc/ below `root`) touches it. 0; -EBUSY (not free:
// try another k), -ERANGE (this map has no room for k or more).
int range_of_instance(int root, uint32_t k, uint32_t *ret_base);

#endif
