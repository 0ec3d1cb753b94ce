#include "model/lower.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

// CPUs this process may run on: what its cpuset or taskset leaves of the machine's.
static uint32_t usable_cpus(void)
{
    for (int max = 1024; max <= 1 << 20; max *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)max);
        size_t size = CPU_ALLOC_SIZE((size_t)max);
        int n = set && sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (n > 0) {
            return (uint32_t)n;
        }
    }
    return 0; // a kernel with a larger mask says EINVAL to every size above
}

void lower_host_read(const struct conf *c, struct lower_host *ret)
{
    bool host = strcmp(c->text[SETTING_NETWORK_DEFAULT], job_network_names[JOB_NETWORK_HOST]) == 0;
    *ret = (struct lower_host){
        .host_network = conf_bool(c, SETTING_NETWORK_ALLOW_HOST),
        .plain = !conf_bool(c, SETTING_FILESYSTEM_ISOLATION_ENABLED),
        .network = host ? JOB_NETWORK_HOST : JOB_NETWORK_NONE,
        .cpus_percent = 100 * usable_cpus(),
        .max_disk_mb = c->number[SETTING_MAX_DISK_MB],
        .tmpfs_max_mb = c->number[SETTING_TMPFS_WORKSPACE_MB],
        .has_packages = c->text[SETTING_PACKAGES_ROOT][0] != '\0',
    };
}
