#include "kernel/seccomp.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

int seccomp_install(const struct sock_filter *filter, unsigned short count)
{
    // the kernel's type lacks the const; it only reads
    struct sock_fprog program = {count, (struct sock_filter *)(uintptr_t)filter};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) ? -errno : 0;
}
