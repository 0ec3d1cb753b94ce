#include "launcher/inject.h"
#include "launcher/launcher.h"

// name, where, phase and reason: plan/steps.h. Here each gets its function, in the same order.
static const struct step {
    enum plan_where where;
    enum plan_phase phase;
    int (*run)(struct launch *c);
} steps[PLAN_N_STEPS] = {
#define STEP(id, phase, where, why) {PLAN_IN_##where, PLAN_PHASE_##phase, step_##id},
    PLAN_STEPS(STEP)
#undef STEP
};

int steps_run(struct launch *c, enum plan_phase phase, enum plan_where where, uint32_t *ret_step)
{
    for (uint32_t i = 0; i < PLAN_N_STEPS; i++) {
        if (steps[i].phase != phase || steps[i].where != where) {
            continue;
        }
        uint64_t before = inject_as(INJECT_LAUNCH, i);
        int e = steps[i].run(c);
        inject_back(before);
        if (e) {
            *ret_step = i;
            return e;
        }
    }
    return 0;
}
