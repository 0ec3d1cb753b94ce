#include "workspace/uids.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

static bool is_taken(const struct uids *u, uint32_t i) { return u->taken[i / 8] >> (i % 8) & 1; }

uint32_t uids_take(struct uids *u)
{
    const uint32_t count = u->count ? u->count : UIDS_COUNT;
    for (uint32_t tries = 0; tries < count; tries++) {
        uint32_t i = u->next % count;
        u->next = (i + 1) % count;
        if (!is_taken(u, i)) {
            u->taken[i / 8] |= (uint8_t)(1u << (i % 8));
            return PLAN_UID_WORKSPACE_0 + i;
        }
    }
    return 0;
}

int uids_claim(struct uids *u, uint32_t uid)
{
    const uint32_t count = u->count ? u->count : UIDS_COUNT;
    if (uid < PLAN_UID_WORKSPACE_0 || uid - PLAN_UID_WORKSPACE_0 >= count) {
        return -ERANGE;
    }
    uint32_t i = uid - PLAN_UID_WORKSPACE_0;
    if (is_taken(u, i)) {
        return -EBUSY;
    }
    u->taken[i / 8] |= (uint8_t)(1u << (i % 8));
    return 0;
}

void uids_give(struct uids *u, uint32_t uid)
{
    if (uid >= PLAN_UID_WORKSPACE_0 && uid < PLAN_UID_WORKSPACE_END) {
        uint32_t i = uid - PLAN_UID_WORKSPACE_0;
        u->taken[i / 8] &= (uint8_t) ~(1u << (i % 8));
    }
}

uint32_t uids_left(const struct uids *u)
{
    uint32_t taken = 0;
    for (size_t i = 0; i < sizeof u->taken; i++) {
        taken += (uint32_t)__builtin_popcount(u->taken[i]);
    }
    return (u->count ? u->count : UIDS_COUNT) - taken;
}
