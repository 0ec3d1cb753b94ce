#include "launcher/inject.h"
#include "launcher/launcher.h"

// name, where, phase and reason: plan/steps.h. Here each gets its function, in the same order.
#define STEP(id, phase, where, why) {PLAN_IN_##where, PLAN_PHASE_##phase, step_##id},
static const struct launch_step steps[PLAN_N_STEPS] = {PLAN_STEPS(STEP)};
// Of the same steps, and some of its own (plain.c).
static const struct launch_step plain_steps[PLAN_N_PLAIN_STEPS] = {PLAN_PLAIN_STEPS(STEP)};
#undef STEP

int steps_walk(const struct launch_step *rows, uint32_t n, uint32_t first, struct launch *c,
               enum plan_phase phase, enum plan_where where, uint32_t *ret_step)
{
    for (uint32_t i = 0; i < n; i++) {
        if (rows[i].phase != phase || rows[i].where != where) {
            continue;
        }
        uint64_t before = inject_as(INJECT_LAUNCH, first + i);
        int e = rows[i].run(c);
        inject_back(before);
        if (e) {
            *ret_step = first + i;
            return e;
        }
    }
    return 0;
}

int steps_run(struct launch *c, enum plan_phase phase, enum plan_where where, uint32_t *ret_step)
{
    return c->plain ? steps_walk(plain_steps, PLAN_N_PLAIN_STEPS, PLAN_PSTEP_FIRST, c, phase, where,
                                 ret_step)
                    : steps_walk(steps, PLAN_N_STEPS, 0, c, phase, where, ret_step);
}
