#include "plan/plan.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

// What an operation may carry. Fields that an operation does not use are not looked at: they reach
// nothing.
enum {
    NEEDS_ID = 1,
    NEEDS_UID = 2,
    NEEDS_JOB = 4,
    NEEDS_SIGNAL = 8,
    NEEDS_SIZE = 16,
    NEEDS_SET = 32,
    NEEDS_TMPFS_NO = 64,
    NEEDS_NETWORK = 128,
};

static const struct {
    uint8_t known, needs, fds;
} ops[PLAN_OP_END] = {
    [PLAN_PREPARE] = {1, NEEDS_NETWORK, 0},
    [PLAN_START] = {1, NEEDS_UID | NEEDS_JOB | NEEDS_NETWORK, PLAN_N_START_FDS},
    [PLAN_SIGNAL] = {1, NEEDS_ID | NEEDS_SIGNAL, 0},
    [PLAN_KILL] = {1, NEEDS_ID, 0},
    [PLAN_SAMPLE] = {1, NEEDS_ID, 0},
    [PLAN_EXECUTION] = {1, NEEDS_ID, 0},
    [PLAN_TMPFS] = {1, NEEDS_UID | NEEDS_SIZE, 0},
    [PLAN_TMPFS_DROP] = {1, NEEDS_TMPFS_NO, 0},
    [PLAN_SET_ADD] = {1, 0, 1},
    [PLAN_SET_DROP] = {1, NEEDS_SET, 0},
};

// Largest values that make sense; above them a service is mistaken or hostile.
enum { MAX_CPU_PERCENT = 1024 * 100, MAX_PIDS = 32768, MAX_NOFILE = 1 << 20, MAX_SIGNAL = 64 };
static const uint64_t max_bytes = UINT64_C(1) << 50, max_inodes = UINT64_C(1) << 30;

static bool name_part(const char *p, size_t len)
{
    if (len == 0 || p[0] == '-') {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        bool ok = (p[i] >= 'a' && p[i] <= 'z') || (p[i] >= '0' && p[i] <= '9') || p[i] == '-';
        if (!ok) {
            return false;
        }
    }
    return true;
}

int plan_check_name(const char name[PLAN_NAME_MAX])
{
    const char *end = memchr(name, '\0', PLAN_NAME_MAX);
    const char *slash = end ? memchr(name, '/', (size_t)(end - name)) : NULL;
    if (!slash || !name_part(name, (size_t)(slash - name)) ||
        !name_part(slash + 1, (size_t)(end - slash - 1))) {
        return -EINVAL;
    }
    return 0;
}

static int bad(int error, const char *field, const char **ret_field)
{
    *ret_field = field;
    return error;
}

static int check_limits(const struct plan_limits *l, bool tmp_folder, const char **ret_field)
{
    const struct {
        const char *name;
        uint64_t value, max;
        bool needed;
    } rules[] = {
        {"limits.memory_bytes", l->memory_bytes, max_bytes, true},
        {"limits.cpu_ns", l->cpu_ns, UINT64_C(1) << 60, false},
        {"limits.tmp_bytes", l->tmp_bytes, max_bytes, !tmp_folder},
        {"limits.tmp_inodes", l->tmp_inodes, max_inodes, !tmp_folder},
        {"limits.file_bytes", l->file_bytes, max_bytes, true},
        {"limits.cpu_percent", l->cpu_percent, MAX_CPU_PERCENT, true},
        {"limits.pids", l->pids, MAX_PIDS, true},
        {"limits.nofile", l->nofile, MAX_NOFILE, true},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].value > rules[i].max || (rules[i].needed && rules[i].value == 0)) {
            return bad(-ERANGE, rules[i].name, ret_field);
        }
    }
    return 0;
}

static int check_job(const struct plan_request *q, const char **ret_field)
{
    const struct {
        const char *name;
        uint32_t value, end;
    } rules[] = {
        {"filter", q->filter, PLAN_N_FILTERS},
        {"rung", q->rung, PLAN_RUNG_NONE + 1},
        {"workspace_kind", q->workspace_kind, PLAN_WORKSPACE_TMPFS + 1},
        {"tmp_folder", q->tmp_folder, 2},
        {"has_frames", q->has_frames, 2},
        {"plain", q->plain, 2},
        {"unused", q->unused, 1},
        {"n_sets", q->n_sets, PLAN_SETS_PER_JOB + 1},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].value >= rules[i].end) {
            return bad(-EINVAL, rules[i].name, ret_field);
        }
    }
    for (uint32_t i = 0; i < q->n_sets; i++) {
        if (q->sets[i] >= PLAN_MAX_SETS) {
            return bad(-ERANGE, "sets", ret_field);
        }
    }
    bool folder = q->workspace_kind == PLAN_WORKSPACE_FOLDER;
    if (folder && plan_check_name(q->workspace)) {
        return bad(-EINVAL, "workspace", ret_field);
    }
    if (!folder && q->workspace_no >= PLAN_MAX_TMPFS) {
        return bad(-ERANGE, "workspace_no", ret_field);
    }
    if (!folder && q->tmp_folder) { // NAME/t lies beside a folder workspace
        return bad(-EINVAL, "tmp_folder", ret_field);
    }
    if (folder && q->filter != PLAN_FILTER_FOLDER) { // its disk accounting depends on it
        return bad(-EINVAL, "filter", ret_field);
    }
    return check_limits(&q->limits, q->tmp_folder != 0, ret_field);
}

int plan_check(const struct plan_request *q, int n_fds, const char **ret_field)
{
    if (q->op >= PLAN_OP_END || !ops[q->op].known) {
        return bad(-EINVAL, "op", ret_field);
    }
    unsigned needs = ops[q->op].needs;
    if (n_fds != ops[q->op].fds) {
        return bad(-EINVAL, "descriptors", ret_field);
    }
    if ((needs & NEEDS_ID) && q->id == 0) {
        return bad(-EINVAL, "id", ret_field);
    }
    if ((needs & NEEDS_UID) &&
        (q->uid < PLAN_UID_WORKSPACE_0 || q->uid >= PLAN_UID_WORKSPACE_END)) {
        return bad(-EPERM, "uid", ret_field);
    }
    if ((needs & NEEDS_SIGNAL) && (q->signal < 1 || q->signal > MAX_SIGNAL)) {
        return bad(-EINVAL, "signal", ret_field);
    }
    if ((needs & NEEDS_SIZE) && (q->size_bytes == 0 || q->size_bytes > max_bytes)) {
        return bad(-ERANGE, "size_bytes", ret_field); // 0 means unlimited to tmpfs
    }
    if ((needs & NEEDS_SIZE) && (q->size_inodes == 0 || q->size_inodes > max_inodes)) {
        return bad(-ERANGE, "size_inodes", ret_field);
    }
    if ((needs & NEEDS_SET) && q->sets[0] >= PLAN_MAX_SETS) {
        return bad(-ERANGE, "sets", ret_field);
    }
    if ((needs & NEEDS_TMPFS_NO) && q->workspace_no >= PLAN_MAX_TMPFS) {
        return bad(-ERANGE, "workspace_no", ret_field);
    }
    if ((needs & NEEDS_NETWORK) && q->network >= PLAN_N_NETWORKS) {
        return bad(-EINVAL, "network", ret_field);
    }
    return (needs & NEEDS_JOB) ? check_job(q, ret_field) : 0;
}
