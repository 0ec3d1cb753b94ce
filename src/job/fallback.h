// fallback.h: a second try without a sandbox, where an operator wants that
// (SANDBOX_LEGACY_FALLBACK_ENABLED): when the sandbox failed before the program began, never when
// the program did. What the program is given is kept until it has begun.
#ifndef ISLE_JOB_FALLBACK_H
#define ISLE_JOB_FALLBACK_H

#include "model/job.h"
#include "model/result.h"
#include "plan/plan.h"

#include <stdbool.h>

struct fallback {
    int fds[PLAN_N_START_FDS]; // copies of those of START; -1: none are kept
};

void fallback_init(struct fallback *f);
// 0 or -errno.
int fallback_keep(struct fallback *f, const int fds[PLAN_N_START_FDS]);
void fallback_drop(struct fallback *f);
// Are there copies of what START was given?
bool fallback_is_open(const struct fallback *f);

// May this END of a sandbox whose program has not begun be answered by a second try? *r then says
// why in isolation.fallback, and that it has no launcher. bwrap and said as wrapped_failed() takes
// them. False: nothing is changed.
bool fallback_take(struct result *r, const struct job *j, const struct plan_record *end,
                   const char *bwrap, int said);
// It could not be asked for.
void fallback_untake(struct result *r, const char *launcher);

#endif
