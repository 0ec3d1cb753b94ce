// plain.c: the launch without namespaces: what its table has besides the native one's steps. Who
// runs so was decided by an operator, at the launcher's start; what is lost stands in
// docs/security.md.
#include "base/fd.h"
#include "kernel/seccomp.h"
#include "kernel/sys.h"
#include "launcher/launcher.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

int plain_check_host(const struct launcher *l)
{
    bool groups = l->groups.v2 >= 0;
    for (int i = 0; i < SEAT_N_V1; i++) {
        groups |= l->groups.v1[i] >= 0;
    }
    // No pid namespace ends what a job leaves behind: its group has to tell who that is. And with
    // one id for all, nothing would keep a job from the launcher.
    return !l->config.single_uid && groups ? 0 : -EOPNOTSUPP;
}

int step_allowed(struct launch *c)
{
    return c->l->config.allow_plain ? plain_check_host(c->l) : -EPERM;
}

int step_born_plain(struct launch *c) { return begin_clone(c, 0); }

int step_reaper(struct launch *c)
{
    (void)c;
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) ? -errno : 0; // stays over the exec
}

int step_full_proc(struct launch *c)
{
    (void)c;
    AUTO_CLOSE int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0) {
        return -errno;
    }
    // CHILD_NET's number is free here, so this one is lower
    return dup3(proc, CHILD_PROC, O_CLOEXEC) < 0 ? -errno : 0;
}

int step_shim_exec_plain(struct launch *c)
{
    char name[] = "shim", number[16];
    char *argv[] = {name, number, NULL}, *env[] = {NULL};
    snprintf(number, sizeof number, "%d", c->main);
    return sys_exec_fd(CHILD_SHIM, argv, env);
}

int step_identity(struct launch *c)
{
    return rung_enter(c->l, PLAN_RUNG_NONE, c->q.uid, CHILD_PROC, CHILD_SOCK);
}

// Segments, semaphores and queues stay when their maker ends, and the namespace is the host's.
int step_no_shared_ipc(struct launch *c)
{
    static const uint32_t calls[] = {SYS_shmget, SYS_semget, SYS_msgget, SYS_mq_open};
    struct sock_filter f[ARRAY_LEN(calls) + 6];
    unsigned short n = 0;
    (void)c;
    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SECCOMP_ARCH, 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i],
                                              (unsigned char)(ARRAY_LEN(calls) - i), 0);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    return seccomp_install(f, n);
}
