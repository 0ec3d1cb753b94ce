#include "kernel/rlimit.h"

#include <errno.h>
#include <sys/resource.h>

int rlimit_lower(int resource, uint64_t soft, uint64_t hard)
{
    struct rlimit now;
    __rlimit_resource_t which = (__rlimit_resource_t)resource;
    if (getrlimit(which, &now)) {
        return -errno;
    }
    struct rlimit l = {.rlim_cur = soft, .rlim_max = hard};
    if (l.rlim_max > now.rlim_max) {
        l.rlim_max = now.rlim_max;
    }
    if (l.rlim_cur > l.rlim_max) {
        l.rlim_cur = l.rlim_max;
    }
    return setrlimit(which, &l) ? -errno : 0;
}
