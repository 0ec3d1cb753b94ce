// check_inject.h: what the tests that inject failures share. In builds with -Dinject=true.
#ifndef TEST_LAUNCHER_CHECK_INJECT_H
#define TEST_LAUNCHER_CHECK_INJECT_H

#include "client.h"
#include "launcher/inject.h"

// What is there in the launcher.
struct inject_left {
    uint64_t mounts, fds, groups;
};

// Plans failures (NULL: none) from now on, and tells of the time before: inject.h.
int inject_arm(struct client *c, const struct inject_plan *plan, struct plan_record *ret,
               struct inject_left *ret_left);
// Until a failure that was planned has happened, so long at most.
bool inject_wait(int timeout_ms);
// check_inject_locks.c: while a job runs: the next look at locks counts them, with `next` planned.
int inject_locks_begin(struct client *c, const struct inject_plan *next);

#endif
