#include "job/fallback.h"

#include "base/fd.h"
#include "job/verdict.h"
#include "job/wrapped.h"
#include "plan/seat.h"
#include "plan/steps.h"

#include <fcntl.h>
#include <stdlib.h>

void fallback_init(struct fallback *f)
{
    for (int i = 0; i < PLAN_N_START_FDS; i++) {
        f->fds[i] = -1;
    }
}

bool fallback_is_open(const struct fallback *f) { return f->fds[0] >= 0; }

int fallback_keep(struct fallback *f, const int fds[PLAN_N_START_FDS])
{
    for (int i = 0; i < PLAN_N_START_FDS; i++) {
        f->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
        if (f->fds[i] < 0) {
            int e = -errno;
            fallback_drop(f);
            return e;
        }
    }
    return 0;
}

void fallback_drop(struct fallback *f)
{
    for (int i = 0; i < PLAN_N_START_FDS; i++) {
        f->fds[i] = fd_close(f->fds[i]);
    }
}

// The sandbox itself, by a fault that is not the job's limit, not the launcher's end, and not a
// host that is short of memory for the moment: whoever can use that up must not be rewarded by
// jobs without isolation.
static bool sandbox_failed(const struct plan_record *end)
{
    static const int others[] = {EPIPE, ENOMEM, EMFILE, ENFILE};
    enum plan_step_kind kind = plan_step_kind(end->step);
    bool program = kind == PLAN_KIND_PROGRAM || kind == PLAN_KIND_CHDIR;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        program |= end->error == others[i];
    }
    return end->error && !end->flags && !end->marks_ns[PLAN_T_EXEC] && !program &&
           !plan_step_is_plain(end->step);
}

bool fallback_take(struct result *r, const struct job *j, const struct plan_record *end,
                   const char *bwrap, int said)
{
    struct result cause;
    if (r->reason != REASON_OK || !sandbox_failed(end)) {
        return false;
    }
    result_init(&cause, "", 0, 0);
    wrapped_failed(&cause, bwrap, end, said);
    verdict_launch(&cause, j, end);
    if (cause.error) {
        r->isolation.fallback = cause.error;
        r->isolation.launcher = seat_launcher_names[SEAT_NONE];
        cause.error = NULL;
    }
    result_done(&cause);
    return r->isolation.fallback != NULL;
}

void fallback_untake(struct result *r, const char *launcher)
{
    free(r->isolation.fallback);
    r->isolation.fallback = NULL;
    r->isolation.launcher = launcher;
}
