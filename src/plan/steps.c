#include "plan/steps.h"

const struct plan_step_info plan_steps[PLAN_N_STEPS] = {
#define INFO(id, phase, where, why) {#id, why, PLAN_PHASE_##phase, PLAN_IN_##where},
    PLAN_STEPS(INFO)};

const struct plan_step_info plan_bwrap_steps[PLAN_N_BWRAP_STEPS] = {PLAN_BWRAP_STEPS(INFO)};

const struct plan_step_info plan_plain_steps[PLAN_N_PLAIN_STEPS] = {PLAN_PLAIN_STEPS(INFO)
#undef INFO
};

const char *plan_step_name(unsigned step)
{
    if (step < PLAN_N_STEPS) {
        return plan_steps[step].name;
    }
    if (plan_step_is_bwrap(step)) {
        return plan_bwrap_steps[step - PLAN_BSTEP_FIRST].name;
    }
    if (plan_step_is_plain(step)) {
        return plan_plain_steps[step - PLAN_PSTEP_FIRST].name;
    }
    return step == PLAN_STEP_end ? "end" : "?";
}

enum plan_step_kind plan_step_kind(unsigned step)
{
    switch (step) {
    case PLAN_STEP_chdir:
    case PLAN_BSTEP_chdir:
    case PLAN_PSTEP_chdir:
        return PLAN_KIND_CHDIR;
    case PLAN_STEP_exec:
    case PLAN_BSTEP_program:
    case PLAN_PSTEP_exec:
        return PLAN_KIND_PROGRAM;
    default:
        return step < PLAN_N_STEPS || plan_step_is_bwrap(step) || plan_step_is_plain(step)
                   ? PLAN_KIND_SETUP
                   : PLAN_KIND_AFTER;
    }
}
