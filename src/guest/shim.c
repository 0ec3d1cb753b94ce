// shim: pid 1 of every sandbox. Started by descriptor from a sealed memfd of mode 0111, so it is
// not dumpable from its first instruction; slot uid, no capability, no_new_privs, in the launcher's
// stage-1 filter. It installs a filter of its own, reaps, reports the status of pid 2 and ends; the
// kernel then kills whatever else lives in the pid namespace. No libc: a few pages, nothing to
// exploit.
#include "guest/note.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// ---- all that depends on the processor --------------------------------------------------------

#if defined(__x86_64__)
#define SHIM_ARCH AUDIT_ARCH_X86_64
__asm__(".globl _start\n_start: xor %ebp,%ebp\n mov %rsp,%rdi\n and $-16,%rsp\n call shim_main\n");
static long call(long nr, long a, long b, long c, long d)
{
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "+a"(nr)
                     : "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return nr;
}
#elif defined(__aarch64__)
#define SHIM_ARCH AUDIT_ARCH_AARCH64
__asm__(".globl _start\n_start: mov x29, xzr\n mov x30, xzr\n mov x0, sp\n bl shim_main\n");
static long call(long nr, long a, long b, long c, long d)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
#else
#error "isle runs on x86_64 and aarch64"
#endif

// ---- the same everywhere ----------------------------------------------------------------------

enum { PID_MAIN = 2, ECHILD_ = 10 };

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ALLOW(nr)                                                                                  \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static const struct sock_filter filter[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SHIM_ARCH, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    LOAD(nr),
    ALLOW(SYS_wait4),
    ALLOW(SYS_write),
    ALLOW(SYS_exit_group),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

// Whose end is reported: pid 2 or, where there is no pid namespace, whom the launcher names.
// `stack`: argc, then argv, as the kernel puts them.
static long main_process(const long *stack)
{
    if (stack[0] < 2) {
        return PID_MAIN;
    }
    long pid = 0;
    for (const char *p = (const char *)(uintptr_t)stack[2]; *p >= '0' && *p <= '9'; p++) {
        pid = pid * 10 + (*p - '0');
    }
    return pid;
}

// Clears with a loop that the compiler may not turn into a call of memset: there is none.
__attribute__((used, noreturn)) void shim_main(const long *stack);
void shim_main(const long *stack)
{
    const long main_pid = main_process(stack);
    struct sock_fprog program = {sizeof filter / sizeof filter[0],
                                 (struct sock_filter *)(uintptr_t)filter};
    struct note n;
    n.kind = NOTE_REPORT;
    n.step = 0;
    n.error = 0;
    if (call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0) ||
        call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program, 0)) {
        call(SYS_exit_group, 1, 0, 0, 0);
    }
    for (;;) {
        int status = -1;
        long pid = call(SYS_wait4, -1, (long)&status, 0, 0);
        if (pid != main_pid && pid != -ECHILD_) {
            continue; // an orphan, reaped
        }
        n.status = pid == main_pid ? status : -1; // -1: cannot be; pid 2 was missed
        call(SYS_write, NOTE_SHIM_FD, (long)&n, sizeof n, 0);
        while (main_pid != PID_MAIN && call(SYS_wait4, -1, 0, 0, 0) != -ECHILD_) {
            // no namespace ends with us: the launcher ends the rest, which is ours to reap
        }
        call(SYS_exit_group, 0, 0, 0, 0);
    }
}
