// policy.h: the filters that mkpolicy makes of job.policy.
#ifndef ISLE_GUEST_POLICY_H
#define ISLE_GUEST_POLICY_H

#include "plan/plan.h"

#include <linux/filter.h>
#include <stddef.h>

struct policy_filter {
    const struct sock_filter *code;
    unsigned short count;
};

// Stage 1: installed once by the launcher, inherited by every child for nothing. Allows what set-up
// needs. Stage 2, by enum plan_filter: small, installed per job, takes the set-up calls away.
extern const struct policy_filter policy_stage1;
extern const struct policy_filter policy_stage2[PLAN_N_FILTERS];

// Every system call of this architecture that has a name, sorted by name (policy_names.c). Arrays:
// pointers would be relocated at every start of the program, asked or not.
struct policy_name {
    char name[32];
    int number;
};
extern const struct policy_name policy_names[];
extern const size_t policy_n_names;

#endif
