// bounds.h: what the settings of `isle serve` come to for those that keep to them.
#ifndef ISLE_APP_BOUNDS_H
#define ISLE_APP_BOUNDS_H

#include "conf/conf.h"
#include "serve/jobs.h"

struct jobs_limits bounds_jobs(const struct conf *c);
// How many jobs at once the settings ask for, and how many this process has the descriptors for.
uint32_t bounds_slots_wanted(const struct conf *c);
uint32_t bounds_slots_by_descriptors(void);
// What a team may have of the disk, as shares.h has it.
uint64_t bounds_team_bytes(const struct conf *c);

#endif
