// uids.h: the inner uids that workspaces of one instance are given (plan.h: PLAN_UID_WORKSPACE_*).
// A uid belongs to one workspace at a time; one that was given back is used again as late as can
// be.
#ifndef ISLE_WORKSPACE_UIDS_H
#define ISLE_WORKSPACE_UIDS_H

#include "plan/plan.h"

#include <stdint.h>

enum { UIDS_COUNT = PLAN_UID_WORKSPACE_END - PLAN_UID_WORKSPACE_0 };

struct uids { // zeroed: all free
    uint32_t next;
    uint32_t count; // how many there are; 0: UIDS_COUNT
    uint8_t taken[UIDS_COUNT / 8];
};

// A free uid, or 0 when none is left.
uint32_t uids_take(struct uids *u);
// Takes this one, of a workspace that was there before. 0; -EBUSY: it is taken; -ERANGE: there is
// no such uid.
int uids_claim(struct uids *u, uint32_t uid);
void uids_give(struct uids *u, uint32_t uid);
uint32_t uids_left(const struct uids *u); // that are free

#endif
