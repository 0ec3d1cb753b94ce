// sys.h: system calls that this libc has no wrapper for. All return 0 (or what they make) or
// -errno, are async-signal-safe, and make descriptors O_CLOEXEC.
#ifndef ISLE_KERNEL_SYS_H
#define ISLE_KERNEL_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static inline int sys_result(long r) { return r < 0 ? -errno : (int)r; }

static inline int sys_pidfd_open(pid_t pid) { return sys_result(syscall(SYS_pidfd_open, pid, 0)); }

static inline int sys_pidfd_signal(int pidfd, int sig)
{
    return sys_result(syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0));
}

// As fork(), without libc's handlers: the child is a copy and may call async-signal-safe functions
// only, unless the process is single-threaded. 0 in the child.
static inline pid_t sys_clone3(const struct clone_args *a)
{
    return (pid_t)sys_result(syscall(SYS_clone3, a, sizeof *a));
}

static inline int sys_pivot_root(const char *to, const char *old)
{
    return sys_result(syscall(SYS_pivot_root, to, old));
}

// Executes what the descriptor `fd` is open on (O_PATH will do). Returns only -errno.
static inline int sys_exec_fd(int fd, char *const *argv, char *const *env)
{
    return sys_result(syscall(SYS_execveat, fd, "", argv, env, AT_EMPTY_PATH));
}

// Closes every descriptor from `first` on.
static inline int sys_close_from(unsigned first)
{
    return sys_result(syscall(SYS_close_range, first, ~0U, 0));
}

// A new, empty, anonymous session keyring (keyctl(2), KEYCTL_JOIN_SESSION_KEYRING).
static inline int sys_keyring_new_session(void)
{
    return syscall(SYS_keyctl, 1, NULL) < 0 ? -errno : 0;
}

#endif
