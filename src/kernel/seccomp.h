// seccomp.h: classic BPF filters (seccomp(2)). Async-signal-safe.
#ifndef ISLE_KERNEL_SECCOMP_H
#define ISLE_KERNEL_SECCOMP_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#if defined(__x86_64__)
#define SECCOMP_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SECCOMP_ARCH AUDIT_ARCH_AARCH64
#endif

// Installs a filter on this thread; it stays for ever and passes to every child. Needs
// no_new_privs. 0 or -errno.
int seccomp_install(const struct sock_filter *filter, unsigned short count);

#endif
