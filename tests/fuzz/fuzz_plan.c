// Requests of a service that was taken over. The input edits a request that is right: (offset,
// value) pairs after one byte for its kind and one for the number of descriptors.
#include "fuzz.h"
#include "plan/plan.h"

#include <string.h>

static struct plan_request right(uint32_t op)
{
    struct plan_request q = {
        .op = op, .id = 1, .tag = 7, .uid = PLAN_UID_WORKSPACE_0 + 5, .signal = 15};
    q.limits = (struct plan_limits){.memory_bytes = 64 << 20,
                                    .tmp_bytes = 16 << 20,
                                    .file_bytes = 16 << 20,
                                    .tmp_inodes = 4096,
                                    .cpu_percent = 100,
                                    .pids = 64,
                                    .nofile = 256};
    q.size_bytes = 8 << 20;
    q.size_inodes = 4096;
    memcpy(q.workspace, "once/r1", sizeof "once/r1");
    return q;
}

// What the launcher relies on once a request was let through.
static void check_start(const struct plan_request *q)
{
    MUST(q->uid >= PLAN_UID_WORKSPACE_0 && q->uid < PLAN_UID_WORKSPACE_END);
    MUST(q->n_sets <= PLAN_SETS_PER_JOB && q->filter < PLAN_N_FILTERS &&
         q->network < PLAN_N_NETWORKS);
    MUST(q->limits.memory_bytes > 0 && q->limits.pids > 0 && q->limits.nofile > 0 &&
         q->limits.cpu_percent > 0);
    if (q->workspace_kind == PLAN_WORKSPACE_FOLDER) {
        MUST(memchr(q->workspace, '\0', sizeof q->workspace));
        MUST(!strstr(q->workspace, "..") && q->workspace[0] != '/' && strchr(q->workspace, '/'));
    } else {
        MUST(q->workspace_kind == PLAN_WORKSPACE_TMPFS && q->workspace_no < PLAN_MAX_TMPFS);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 2) {
        return 0;
    }
    struct plan_request q = right(data[0] % (PLAN_OP_END + 1));
    for (size_t i = 2; i + 1 < len; i += 2) {
        ((uint8_t *)&q)[data[i] % sizeof q] = data[i + 1];
    }
    const char *field = NULL;
    int e = plan_check(&q, data[1] % 18, &field);
    MUST(e <= 0 && (e == 0 || (field && field[0])));
    if (e == 0) {
        MUST(q.op >= PLAN_PREPARE && q.op < PLAN_OP_END);
        if (q.op == PLAN_START) {
            check_start(&q);
        } else if (q.op == PLAN_TMPFS) {
            MUST(q.size_bytes > 0 && q.size_inodes > 0); // 0 would be no limit at all
        } else if (q.op == PLAN_SIGNAL) {
            MUST(q.signal >= 1 && q.signal <= 64);
        }
    }
    return 0;
}
