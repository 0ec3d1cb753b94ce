#include "app/bounds.h"

#include "plan/plan.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>

enum {
    MAX_SLOTS = PLAN_MAX_SANDBOXES - 8, // some are parked, or on trial
    OWN_FDS = 64,
    JOB_FDS = 10,
};

// What is not kept for connections (passed.c) does for so many jobs; the launcher, which has the
// same limit, needs less for each.
uint32_t bounds_slots_by_descriptors(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur / 2 >= OWN_FDS + MAX_SLOTS * JOB_FDS) {
        return MAX_SLOTS;
    }
    return l.rlim_cur / 2 < OWN_FDS + JOB_FDS ? 1 : (uint32_t)(l.rlim_cur / 2 - OWN_FDS) / JOB_FDS;
}

uint32_t bounds_slots_wanted(const struct conf *c)
{
    int64_t slots = c->number[SETTING_WORKER_CONCURRENCY];
    slots = slots ? slots : get_nprocs();
    return slots < MAX_SLOTS ? (uint32_t)slots : MAX_SLOTS;
}

struct jobs_limits bounds_jobs(const struct conf *c)
{
    const int64_t *n = c->number;
    const uint32_t wanted = bounds_slots_wanted(c), most = bounds_slots_by_descriptors();
    return (struct jobs_limits){
        .queue = {.slots = wanted < most ? wanted : most,
                  .team_running = (uint32_t)n[SETTING_TEAM_CONCURRENCY],
                  .waiting = (uint32_t)n[SETTING_QUEUE_LIMIT],
                  .team_waiting = (uint32_t)n[SETTING_QUEUE_TEAM_LIMIT]},
        .queue_timeout_ms = (uint64_t)n[SETTING_QUEUE_TIMEOUT_SECONDS] * 1000,
        .memory_bytes = (uint64_t)n[SETTING_INSTANCE_MEMORY_MB] << 20,
        .tool_timeout_ms = (uint64_t)n[SETTING_STREAM_TOOL_TIMEOUT_CODE] * 1000,
        .result_ttl_ms = n[SETTING_RESULT_TTL_SECONDS] * 1000,
        .disabled = !conf_bool(c, SETTING_RUNTIME_ENABLED)};
}

uint64_t bounds_team_bytes(const struct conf *c)
{
    return (uint64_t)c->number[SETTING_TEAM_DISK_MB] << 20;
}
