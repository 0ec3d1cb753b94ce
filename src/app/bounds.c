#include "app/bounds.h"

#include "plan/plan.h"

#include <sys/sysinfo.h>

enum { MAX_SLOTS = PLAN_MAX_SANDBOXES - 8 }; // some are parked, or on trial

struct jobs_limits bounds_jobs(const struct conf *c)
{
    const int64_t *n = c->number;
    int64_t slots = n[SETTING_WORKER_CONCURRENCY];
    slots = slots ? slots : get_nprocs();
    return (struct jobs_limits){
        .queue = {.slots = slots < MAX_SLOTS ? (uint32_t)slots : MAX_SLOTS,
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
