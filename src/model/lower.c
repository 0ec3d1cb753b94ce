#include "model/lower.h"

#include "model/refuse.h"

#include <errno.h>
#include <stdio.h>

#define MB (UINT64_C(1) << 20)

enum {
    PAGE_BYTES = 4096,
    INODES_PER_MB = 64,
    INODES_MIN = 4096,
};
// RLIMIT_FSIZE counts for /dev/shm and memfds too, where the guest's own files are: it never goes
// below this. A tmpfs has its own hard bound; a folder's accounting catches what is written.
#define FILE_BYTES_MIN (64 * MB)

static int cap(struct limits *l, enum limit which, int64_t bound, const char *whose,
               struct job_error *ret_error)
{
    if (l->value[which] <= bound) {
        return 0;
    }
    if (l->source[which] != LIMIT_FROM_JOB) {
        limits_lower(l, which, bound, LIMIT_FROM_HOST);
        return 0;
    }
    char field[64], given[32], most[32];
    snprintf(field, sizeof field, "limits.%s", limit_specs[which].name);
    limit_format(which, l->value[which], given, sizeof given);
    limit_format(which, bound, most, sizeof most);
    return job_refuse(ret_error, field, "%s is above the maximum of %s %s (%s)", given, most,
                      limit_specs[which].unit, whose);
}

int lower_check_host(struct job *j, const struct lower_host *host, struct job_error *ret_error)
{
    struct limits *l = &j->limits;
    if (j->n_package_sets && !host->has_packages) {
        return job_refuse(ret_error, "package_sets",
                          "there are none here: SANDBOX_PACKAGES_ROOT is not set");
    }
    if (j->network == JOB_NETWORK_DEFAULT) {
        j->network = host->network;
    }
    if (j->network == JOB_NETWORK_HOST && !host->host_network) {
        return job_refuse(
            ret_error, "network",
            "the host's network is not allowed: SANDBOX_NETWORK_ALLOW_HOST is not set "
            "to true");
    }
    int64_t cpus = host->cpus_percent ? host->cpus_percent : limit_specs[LIMIT_CPUS].max;
    int e = cap(l, LIMIT_CPUS, cpus, "of this host", ret_error);
    return e ? e : cap(l, LIMIT_DISK, host->max_disk_mb, "SANDBOX_MAX_DISK_MB", ret_error);
}

uint64_t lower_pages(uint64_t bytes) { return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES; }

// A size of 0 is unlimited to the kernel.
static uint64_t not_zero(uint64_t bytes) { return bytes ? bytes : PAGE_BYTES; }

uint64_t lower_inodes(uint64_t mb)
{
    return mb * INODES_PER_MB > INODES_MIN ? mb * INODES_PER_MB : INODES_MIN;
}

static void size_workspace(uint64_t disk_mb, const struct lower_staged *staged, struct lowered *ret)
{
    ret->workspace_bytes = disk_mb * MB;
    ret->workspace_inodes = lower_inodes(disk_mb);
    if (disk_mb == 0) {
        ret->workspace_bytes = not_zero(lower_pages(staged->bytes));
        ret->workspace_inodes = staged->entries + 1; // and its root
    }
}

static void size_tmp(uint64_t disk_mb, uint64_t memory_mb, struct plan_limits *ret)
{
    uint64_t bytes = disk_mb * MB < memory_mb * MB / 2 ? disk_mb * MB : memory_mb * MB / 2;
    ret->tmp_bytes = not_zero(lower_pages(bytes));
    // The root of a tmpfs takes one inode: with one, nothing can be made in it.
    ret->tmp_inodes = disk_mb == 0 ? 1 : (uint32_t)lower_inodes(bytes / MB);
}

void lower_job(const struct job *j, const struct lower_host *host,
               const struct lower_staged *staged, struct lowered *ret)
{
    const int64_t *v = j->limits.value;
    uint64_t disk_mb = (uint64_t)v[LIMIT_DISK], memory_mb = (uint64_t)v[LIMIT_MEMORY];
    bool tmpfs = v[LIMIT_DISK] <= host->tmpfs_max_mb;
    *ret = (struct lowered){};
    size_workspace(disk_mb, staged, ret);
    struct plan_request *q = &ret->start;
    q->op = PLAN_START;
    q->network = j->network == JOB_NETWORK_HOST ? PLAN_NETWORK_HOST : PLAN_NETWORK_NONE;
    q->plain = host->plain;
    q->rung = PLAN_RUNG_AUTO;
    q->workspace_kind = tmpfs ? PLAN_WORKSPACE_TMPFS : PLAN_WORKSPACE_FOLDER;
    q->filter = tmpfs ? PLAN_FILTER_TMPFS : PLAN_FILTER_FOLDER;
    q->n_sets = (uint32_t)j->n_package_sets;
    q->limits.memory_bytes = memory_mb * MB + (tmpfs ? ret->workspace_bytes : 0);
    q->limits.cpu_ns = (uint64_t)v[LIMIT_CPU] * UINT64_C(1000000);
    q->limits.cpu_percent = (uint32_t)v[LIMIT_CPUS];
    q->limits.pids = (uint32_t)v[LIMIT_PIDS];
    q->limits.nofile = (uint32_t)v[LIMIT_NOFILE];
    q->limits.file_bytes = disk_mb * MB > FILE_BYTES_MIN ? disk_mb * MB : FILE_BYTES_MIN;
    size_tmp(disk_mb, memory_mb, &q->limits);
}

void lower_into_session(const struct job *j, struct lowered *l)
{
    l->start.workspace_kind = PLAN_WORKSPACE_FOLDER;
    l->start.filter = PLAN_FILTER_FOLDER;
    l->start.tmp_folder = 1;
    l->start.limits.memory_bytes = (uint64_t)j->limits.value[LIMIT_MEMORY] * MB;
}
