// seccomp.h: classic BPF filters (seccomp(2)). Async-signal-safe.
#ifndef ISLE_KERNEL_SECCOMP_H
#define ISLE_KERNEL_SECCOMP_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>

#if defined(__x86_64__)
#define SECCOMP_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SECCOMP_ARCH AUDIT_ARCH_AARCH64
#endif

// Installs a filter on this thread; it stays for ever and passes to every child. Needs
// no_new_privs. 0 or -errno.
int seccomp_install(const struct sock_filter *filter, unsigned short count);

enum { SECCOMP_MAX_CODE = 1536, SECCOMP_MAX_CALLS = 20 };

// Writes `filter` to `ret` with n system calls of this architecture before it, by number, that are
// allowed with whatever arguments; for others it is as it was. The number of instructions, or
// -E2BIG.
int seccomp_allow_first(struct sock_filter ret[SECCOMP_MAX_CODE], const struct sock_filter *filter,
                        unsigned short count, const uint32_t *calls, uint32_t n);

// Installs that; with n 0 the filter itself. 0 or -errno.
int seccomp_install_with(const struct sock_filter *filter, unsigned short count,
                         const uint32_t *calls, uint32_t n);

#endif
