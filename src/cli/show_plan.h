// show_plan.h: `isle run --show-plan`: the effective limits and who set each, what the job would
// see, the steps of the start and of the launch. Runs nothing.
#ifndef ISLE_CLI_SHOW_PLAN_H
#define ISLE_CLI_SHOW_PLAN_H

#include "cli/front.h"
#include "cli/run_job.h"
#include "start/bwrap.h"

#include <stdbool.h>
#include <stdio.h>

// bwrap: what makes the sandbox; NULL: isle's own launcher, or nothing where the settings say so. 0
// or CLI_REFUSED.
int show_plan_print(const struct run_job *j, const struct front_settings *settings,
                    const struct bwrap_found *bwrap, bool json, FILE *out);

#endif
