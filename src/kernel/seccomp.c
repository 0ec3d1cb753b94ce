#include "kernel/seccomp.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int seccomp_install(const struct sock_filter *filter, unsigned short count)
{
    // the kernel's type lacks the const; it only reads
    struct sock_fprog program = {count, (struct sock_filter *)(uintptr_t)filter};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) ? -errno : 0;
}

int seccomp_allow_first(struct sock_filter ret[SECCOMP_MAX_CODE], const struct sock_filter *filter,
                        unsigned short count, const uint32_t *calls, uint32_t n)
{
    // A block of its own that falls through to the filter, whose jumps so keep their lengths.
    enum { AROUND = 5 };
    uint32_t len = 0;
    if (n > SECCOMP_MAX_CALLS || count > SECCOMP_MAX_CODE - AROUND - SECCOMP_MAX_CALLS) {
        return -E2BIG;
    }
    ret[len++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    ret[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SECCOMP_ARCH, 0,
                                              (unsigned char)(n + 3));
    ret[len++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (uint32_t i = 0; i < n; i++) {
        ret[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i],
                                                  (unsigned char)(n - i), 0);
    }
    ret[len++] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 1);
    ret[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    memcpy(ret + len, filter, count * sizeof *filter);
    return (int)(len + count);
}

int seccomp_install_with(const struct sock_filter *filter, unsigned short count,
                         const uint32_t *calls, uint32_t n)
{
    struct sock_filter code[SECCOMP_MAX_CODE];
    if (n == 0) {
        return seccomp_install(filter, count);
    }
    int len = seccomp_allow_first(code, filter, count, calls, n);
    return len < 0 ? len : seccomp_install(code, (unsigned short)len);
}
