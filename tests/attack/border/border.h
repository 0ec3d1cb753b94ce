// border.h: a service that is taken over, and what it tries on the launcher, its sandboxes and the
// host.
//
// The program starts as `isle` does (start/start.h). Where the real service would begin its work,
// this one attacks. Each check is one line on standard output: "PASS name" or "FAIL name: detail".
#ifndef ISLE_TESTS_BORDER_H
#define ISLE_TESTS_BORDER_H

#include "plan/plan.h"
#include "start/start.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct border {
    struct seat seat;
    int report;    // to the front, which prints
    int host_proc; // the host's full /proc, which a real service never sees: worst case
    uint32_t tag;
    unsigned failed;
};

// One check; `detail` (may be NULL) is shown on failure.
void border_check(struct border *b, const char *name, bool ok, const char *detail, ...)
    __attribute__((format(printf, 4, 5)));

// A request that the launcher accepts: /bin/true in workspace `name` of `uid`.
struct plan_request border_good(const char *name, uint32_t uid);
// Makes folder NAME below the workspace root with `w` of `uid`. 0 or -errno.
int border_workspace(struct border *b, const char *name, uint32_t uid);
// Descriptors for PLAN_START that run `argv`; the caller closes them.
void border_fds(int fds[PLAN_N_START_FDS], const char *const *argv);
void border_fds_close(int fds[PLAN_N_START_FDS]);
// Sends, then waits for the last answer of that tag (END for START and PREPARE's failure), at most
// `limit_ms`. 0 and *ret, -ETIMEDOUT, -EPIPE (the launcher is gone), or the sending's -errno.
int border_ask(struct border *b, struct plan_request *q, const int *fds, int n, uint32_t want_op,
               int limit_ms, struct plan_record *ret);
// Runs /bin/true as the launcher should: is it alive and of use? True if so.
bool border_alive(struct border *b);

void attack_processes(struct border *b); // border_host.c
void attack_host(struct border *b);
void attack_plans(struct border *b); // border_plan.c
void attack_floods(struct border *b);

#endif
