// clock.h: the one clock of every limit: CLOCK_MONOTONIC, which no job and no date(1) can step.
#ifndef ISLE_BASE_CLOCK_H
#define ISLE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

static inline uint64_t clock_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

// At least this long, unless a signal handler runs.
static inline void clock_pause_ns(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

// The time of day, ms since the epoch: for records only, never for a limit.
static inline int64_t clock_wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

#endif
