// lower.h: a checked job becomes the numbers of a plan (plan/plan.h). Pure: the same job and host
// give the same plan, and `--show-plan` prints just this.
#ifndef ISLE_MODEL_LOWER_H
#define ISLE_MODEL_LOWER_H

#include "conf/conf.h"
#include "model/job.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

// What this host and its settings allow.
struct lower_host {
    uint32_t cpus_percent; // 100 per CPU; 0: not known
    int64_t max_disk_mb;   // SANDBOX_MAX_DISK_MB
    int64_t tmpfs_max_mb;  // SANDBOX_TMPFS_WORKSPACE_MB: up to here a one-shot workspace is a tmpfs
    bool has_packages;     // SANDBOX_PACKAGES_ROOT is set
    bool host_network;     // SANDBOX_NETWORK_ALLOW_HOST
    bool plain;            // SANDBOX_FILESYSTEM_ISOLATION_ENABLED=false: without namespaces
    enum job_network network; // SANDBOX_NETWORK_DEFAULT
};

// From the settings and this process's CPUs.
void lower_host_read(const struct conf *c, struct lower_host *ret);

// What the job itself asks for and the host does not have or allow is refused, by name and bound: a
// limit, a package set, the host's network. What it left open is filled in: a default limit is
// lowered to what there is, the network is the setting's. 0 or -EINVAL.
int lower_check_host(struct job *j, const struct lower_host *host, struct job_error *ret_error);

// What staging will put into the workspace before the job runs. With disk_mb 0 the tmpfs has
// exactly this much room, so that the job's first own file is ENOSPC.
struct lower_staged {
    uint64_t bytes;   // of all input files, each in whole pages: lower_pages()
    uint64_t entries; // files and folders below the workspace, with input, output, tmp, logs
};
// bytes rounded up to whole pages (0 stays 0).
uint64_t lower_pages(uint64_t bytes);
// How many files and folders belong to so many MB of a workspace.
uint64_t lower_inodes(uint64_t mb);

struct lowered {
    // The workspace: the size of a tmpfs, or what the accounting of a folder allows.
    uint64_t workspace_bytes, workspace_inodes;
    struct plan_request start; // PLAN_START; id, uid, root, workspace name or number, the sets'
                               // numbers, and whether there is a descriptor 3 are the pipeline's
                               // to fill
};

// The workspace is a session's folder, with its /tmp, whatever its size.
void lower_into_session(const struct job *j, struct lowered *l);

// `limits` were checked. Sizes are never 0, which would mean unlimited to the kernel.
void lower_job(const struct job *j, const struct lower_host *host,
               const struct lower_staged *staged, struct lowered *ret);

#endif
