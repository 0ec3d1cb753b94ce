// Every call of a launch that can fail fails once. Whatever happens: an END comes, nothing is left
// in the launcher, and the next job runs. In builds with -Dinject=true.
#include "checks.h"
#include "plan/steps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { INJECT_OP = 0x494e4a, MAX_CALLS = 2000 }; // launcher/inject.h

struct left {
    uint64_t mounts, fds, groups;
};

static int arm(struct client *c, uint32_t call, struct plan_record *ret, struct left *ret_left)
{
    struct plan_request q = {.op = INJECT_OP, .id = call};
    int e = client_ask(c, &q, ret);
    *ret_left = (struct left){ret->cpu_ns, ret->memory_peak_bytes, ret->pids_peak};
    return e;
}

// Failures that a launch may survive: each is a comfort, not a fence.
static bool may_survive(uint32_t step, const char *call)
{
    bool drop = step == PLAN_STEP_shim_identity || step == PLAN_STEP_capabilities;
    return step == PLAN_STEP_groups                 // made ahead: then in line
           || step == PLAN_STEP_end                 // figures are unknown, a removal is tried again
           || (drop && !strcmp(call, "setresuid")); // the attempt to undo it shall fail
}

// One job with the Nth call failing. False when there was no such call.
static bool one_call(struct client *c, uint32_t call, bool parked, const struct left *before)
{
    const char *const job[] = {"/bin/sh", "-c", "exit 7", NULL};
    struct try t = try_of(job);
    struct plan_record armed, r = {0}, told, next, parked_r;
    struct left left;
    char title[160];
    uint32_t id = 0;
    c->n_early = 0; // ENDs of sandboxes that were not waited for; none has a descriptor
    int e = arm(c, call, &armed, &left);
    int g = 0;
    if (!e && parked) {
        struct plan_request q = {.op = PLAN_PREPARE};
        g = client_ask(c, &q, &parked_r);
        id = parked_r.id;
    }
    if (!g && !e) {
        e = client_run(c, id, &t, 5000, &r);
    }
    int h = arm(c, 0, &told, &left);
    if (h || !told.status) {
        check("no call is left to fail", !h && clean_exit(&r, e, 7), say(&r, e));
        return false;
    }
    bool refused = g || (!e && r.error); // PREPARE said so, or END
    bool known = g ? parked_r.step < PLAN_STEP_NAMES : r.step < PLAN_STEP_NAMES;
    bool right = refused
                     ? known
                     : clean_exit(&r, e, 7) && may_survive(told.step, (const char *)told.marks_ns);
    bool same = left.mounts == before->mounts && left.fds <= before->fds && left.groups == 0;
    struct try again = try_of(job);
    int n = client_run(c, 0, &again, 5000, &next);
    if (!right || !same || !clean_exit(&next, n, 7)) {
        snprintf(title, sizeof title, "call %u (%.16s in step %s)", call,
                 (const char *)told.marks_ns, plan_step_name(told.step));
        char detail[512];
        snprintf(
            detail, sizeof detail,
            "prepare %d, end %d error %d step %s status %x; left: mounts %+lld fds %+lld groups "
            "%llu; next %d error %d step %s",
            g, e, r.error, plan_step_name(r.step), (unsigned)r.status,
            (long long)(left.mounts - before->mounts), (long long)(left.fds - before->fds),
            (unsigned long long)left.groups, n, next.error, plan_step_name(next.step));
        check(title, false, detail);
    }
    return true;
}

void check_inject(struct client *c)
{
    struct plan_record r;
    struct left before;
    const char *const job[] = {"/bin/true", NULL};
    struct try t = try_of(job);
    for (int i = 0; i < 3; i++) { // whatever is made once is made
        client_run(c, 0, &t, 5000, &r);
    }
    if (arm(c, 0, &r, &before)) {
        check("this launcher does not inject failures (-Dinject=true)", false, "");
        return;
    }
    for (int parked = 0; parked < 2; parked++) {
        uint32_t call = 1;
        while (call < MAX_CALLS && one_call(c, call, parked, &before)) {
            call++;
        }
        char title[96];
        snprintf(title, sizeof title, "%u calls of a %s launch failed one by one", call - 1,
                 parked ? "parked" : "cold");
        check(title, call > 100, "");
    }
}
