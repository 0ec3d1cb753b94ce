#include "kernel/caps.h"

#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int caps_set(uint32_t mask)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{mask, mask, 0}, {0, 0, 0}};
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)) {
        return -errno;
    }
    return syscall(SYS_capset, &head, data) ? -errno : 0;
}

uint64_t caps_effective(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &head, data)) {
        return 0;
    }
    return data[0].effective | (uint64_t)data[1].effective << 32;
}

int caps_bound(uint32_t mask)
{
    // the kernel may know more capabilities than our headers: up to its first EINVAL
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
        int kept = cap < 32 && (mask & UINT32_C(1) << cap);
        if (!kept && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0)) {
            return -errno;
        }
    }
    return errno == EINVAL ? 0 : -errno;
}

int caps_lock(void) { return prctl(PR_SET_SECUREBITS, CAPS_SECUREBITS, 0, 0, 0) ? -errno : 0; }
