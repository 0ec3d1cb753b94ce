// rlimit.h: per-process limits (getrlimit(2)).
#ifndef ISLE_KERNEL_RLIMIT_H
#define ISLE_KERNEL_RLIMIT_H

#include <stdint.h>

// Sets soft and hard limit, neither above the present hard limit (raising needs a right in the
// initial user namespace). 0 or -errno. Async-signal-safe.
int rlimit_lower(int resource, uint64_t soft, uint64_t hard);

#endif
