// rung.c: how a job gets its own user namespace. Being root of the outer namespace is not being
// host root: hosts forbid unprivileged user namespaces in different ways, so there are three rungs,
// tried in order at start (docs/ARCHITECTURE.md).
#include "base/fd.h"
#include "base/msg.h"
#include "kernel/caps.h"
#include "kernel/seccomp.h"
#include "kernel/sys.h"
#include "kernel/userns.h"
#include "launcher/inject.h"
#include "launcher/launcher.h"

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

// The kernel ignores the second argument; a test's filter (rung_refuse()) tells the rungs by it.
static int unshare_user(uint32_t rung)
{
    return sys_result(syscall(SYS_unshare, CLONE_NEWUSER, rung));
}

static int become(uint32_t uid)
{
    return setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ? -errno : 0;
}

// It unshares while still inner root; the launcher, in the parent namespace, writes the maps.
static int enter_parent(uint32_t uid, int proc, int sock)
{
    (void)uid;
    (void)proc;
    struct note n = {.kind = NOTE_MAP};
    unsigned char refused = EPERM;
    int e = unshare_user(PLAN_RUNG_PARENT);
    e = e ? e : msg_send(sock, &n, sizeof n, NULL, 0, 0);
    if (e) {
        return e;
    }
    ssize_t got = msg_recv(sock, &refused, 1, NULL, 0, NULL, 0);
    return got != 1 ? -EPERM : refused ? -refused : become(PLAN_JOB_UID);
}

// Already its workspace's uid, it unshares and writes its own maps.
static int enter_self(uint32_t uid, int proc, int sock)
{
    (void)sock;
    const struct userns_map map = {PLAN_JOB_UID, uid, 1};
    int e = become(uid);
    if (e) {
        return e;
    }
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)) { // else /proc/self/uid_map is not ours
        return -errno;
    }
    e = unshare_user(PLAN_RUNG_SELF);
    if (e) {
        return e;
    }
    AUTO_CLOSE int self = openat(proc, "self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    e = self < 0 ? -errno : userns_write_maps(self, &map, true);
    // this memory is a copy of the launcher's
    int locked = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ? -errno : 0;
    return e ? e : locked;
}

// It stays in the outer namespace. Bounding set and securebits while CAP_SETPCAP is still there.
static int enter_none(uint32_t uid, int proc, int sock)
{
    (void)proc;
    (void)sock;
    int e = caps_bound(0);
    e = e ? e : caps_lock();
    return e ? e : become(uid);
}

// rung: one of the table, as plan_check() and step `check` saw to.
int rung_enter(const struct launcher *l, uint32_t rung, uint32_t uid, int proc, int sock)
{
    static int (*const enter[])(uint32_t, int, int) = {
        [PLAN_RUNG_PARENT] = enter_parent,
        [PLAN_RUNG_SELF] = enter_self,
        [PLAN_RUNG_NONE] = enter_none,
    };
    // before "deny": that freezes them. An account with one id has frozen them at the start.
    if (!l->config.single_uid && setgroups(0, NULL)) {
        return -errno;
    }
    return enter[rung](launcher_uid(l, uid), proc, sock);
}

int rung_answer(const struct launcher *l, int sock, pid_t pid, uint32_t uid)
{
    const struct userns_map map = {PLAN_JOB_UID, launcher_uid(l, uid), 1};
    char path[16];
    snprintf(path, sizeof path, "%d", pid);
    AUTO_CLOSE int dir = openat(l->proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int e = dir < 0 ? -errno : userns_write_maps(dir, &map, true);
    unsigned char refused = (unsigned char)-e; // those that there are, are below 134
    return msg_send(sock, &refused, 1, NULL, 0, MSG_DONTWAIT);
}

// The last that exists: no workspace of the first job's.
static uint32_t probe_uid(const struct launcher *l) { return l->config.uid_count - 1; }

// The probe's child. As every child it dies with us and keeps none of our descriptors: a copy of
// the service's socket would hide the end of this process.
static _Noreturn void probe_child(const struct launcher *l, uint32_t rung, int sock)
{
    struct pollfd p = {.fd = l->self_pidfd, .events = POLLIN};
    inject_as(INJECT_PROBE, PLAN_STEP_end);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (poll(&p, 1, 0) != 0 || dup2(sock, 3) < 0 || dup2(l->proc, 4) < 0 || sys_close_from(5)) {
        _exit(1);
    }
    _exit(rung_enter(l, rung, probe_uid(l), 4, 3) ? 1 : 0);
}

static bool probe(const struct launcher *l, uint32_t rung)
{
    int pair[2], one = 1, status = -1;
    pid_t from = 0;
    struct note n;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        return false;
    }
    setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof one);
    pid_t pid = fork();
    if (pid == 0) {
        probe_child(l, rung, pair[1]);
    }
    close(pair[1]);
    if (pid > 0 && msg_recv(pair[0], &n, sizeof n, NULL, 0, &from, 0) == sizeof n) {
        rung_answer(l, pair[0], from, probe_uid(l));
    }
    close(pair[0]);
    if (pid > 0) {
        waitpid(pid, &status, 0);
    }
    return status == 0;
}

uint32_t rung_find(struct launcher *l)
{
    for (uint32_t rung = PLAN_RUNG_PARENT; rung < PLAN_RUNG_NONE; rung++) {
        if (probe(l, rung)) {
            return rung;
        }
    }
    return PLAN_RUNG_NONE;
}

static int refuse_loopback(void)
{
    const struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIOCSIFFLAGS, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    return seccomp_install(code, ARRAY_LEN(code));
}

int rung_refuse(uint32_t mask)
{
    int refused = mask & LAUNCHER_REFUSE_LOOPBACK ? refuse_loopback() : 0;
    if (refused) {
        return refused;
    }
    for (uint32_t rung = PLAN_RUNG_PARENT; rung < PLAN_RUNG_NONE; rung++) {
        const struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 4),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
            BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 2),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rung, 1, 0),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        };
        int e = mask & 1U << rung ? seccomp_install(code, ARRAY_LEN(code)) : 0;
        if (e) {
            return e;
        }
    }
    return 0;
}
