#include "plan/steps.h"

const struct plan_step_info plan_steps[PLAN_N_STEPS] = {
#define INFO(id, phase, where, why) {#id, why, PLAN_PHASE_##phase, PLAN_IN_##where},
    PLAN_STEPS(INFO)
#undef INFO
};

const char *plan_step_name(unsigned step)
{
    if (step < PLAN_N_STEPS) {
        return plan_steps[step].name;
    }
    return step == PLAN_STEP_end ? "end" : "?";
}
