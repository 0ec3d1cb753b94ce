// Rows of the self-test, and of the downgrades that a real start found.
#include "doctor/doctor.h"

#include "model/result.h"

#include <stdio.h>
#include <string.h>

static const enum doctor_state states[SELFTEST_N_VERDICTS] = {
    [SELFTEST_NOT_RUN] = DOCTOR_FAILED,      [SELFTEST_HELD] = DOCTOR_FINE,
    [SELFTEST_UNENFORCED] = DOCTOR_DEGRADED, [SELFTEST_ESCAPED] = DOCTOR_FAILED,
    [SELFTEST_BROKEN] = DOCTOR_FAILED,
};

static void see_start(struct doctor *d)
{
    const struct trial *t = d->trial;
    struct doctor_row *r = doctor_add(d, "self-test", "start");
    if (t->started) {
        r->state = DOCTOR_FINE;
        DOCTOR_FOUND(r, "a service is ready in %llu ms", (unsigned long long)t->start_ms);
        return;
    }
    r->state = DOCTOR_FAILED;
    DOCTOR_FOUND(r, "%s: %s", t->why.step, t->why.text);
    DOCTOR_COST(r, "no job runs: isolation_unavailable");
    DOCTOR_FIX(r, "see the rows that say failed; the step is one of isle run --show-plan");
}

static void see_item(struct doctor *d, const struct selftest_item *item)
{
    struct doctor_row *r = doctor_add(d, "self-test", item->name);
    const char *between = item->detail[0] ? ": " : "";
    r->state = states[item->verdict];
    if (!item->is_attack) {
        DOCTOR_FOUND(r, "%s", item->detail);
        if (r->state == DOCTOR_FAILED) { // other languages run all the same
            r->state = DOCTOR_DEGRADED;
            DOCTOR_COST(r, "jobs of this language fail");
            DOCTOR_FIX(r, "make the runtime root anew: ./bootstrap, or set SANDBOX_RUNTIME_ROOT");
        }
        return;
    }
    DOCTOR_FOUND(r, "a job that %s: %s%s%s", item->what, selftest_verdict_names[item->verdict],
                 between, item->detail);
    if (item->verdict == SELFTEST_ESCAPED) {
        DOCTOR_COST(r, "jobs are not isolated on this host: isle must not be used here");
        DOCTOR_FIX(r, "report it as docs/security.md says, with the output of isle doctor --json");
    } else if (item->verdict == SELFTEST_UNENFORCED) {
        DOCTOR_COST(r, "this limit does not hold here");
        DOCTOR_FIX(r, "see the downgrade of that name");
    } else if (item->verdict == SELFTEST_BROKEN || item->verdict == SELFTEST_NOT_RUN) {
        DOCTOR_COST(r, "nothing is known of this wall");
        DOCTOR_FIX(r, "see the rows above; the attacks need the Python of the runtime root");
    }
}

static void see_downgrades(struct doctor *d)
{
    for (size_t i = 0; i < n_downgrades; i++) {
        if (d->trial->seat.downgrades & downgrades[i].bit) {
            struct doctor_row *r = doctor_add(d, "downgrades", downgrades[i].name);
            r->state = downgrades[i].bit == PLAN_NO_ISOLATION ? DOCTOR_FAILED : DOCTOR_DEGRADED;
            DOCTOR_FOUND(r, "listed in every result");
            DOCTOR_COST(r, "%s", downgrades[i].lost);
            DOCTOR_FIX(r, "%s", downgrades[i].fix);
        }
    }
}

void doctor_trial(struct doctor *d)
{
    if (!d->trial) {
        return;
    }
    see_start(d);
    for (size_t i = 0; d->trial->started && i < SELFTEST_N; i++) {
        see_item(d, &d->trial->items[i]);
    }
    see_downgrades(d);
}
