// effort.h: what work costs in processor time: what else the machine does must not decide a test.
#ifndef ISLE_TESTS_EFFORT_H
#define ISLE_TESTS_EFFORT_H

#include "base/clock.h"

// Of this process so far.
static inline uint64_t effort_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

#endif
