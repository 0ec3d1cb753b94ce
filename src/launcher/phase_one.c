// phase_one.c: the sandbox's own part of phase one. Runs in pid 1 and pid 2 of the new namespaces,
// as inner root of the outer user namespace, in a copy of the launcher's memory; single-threaded,
// so libc may be called, but nothing here allocates.
#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"
#include "kernel/caps.h"
#include "kernel/landlock.h"
#include "kernel/mount.h"
#include "kernel/net.h"
#include "kernel/proc.h"
#include "kernel/sys.h"
#include "launcher/launcher.h"

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

void launcher_mark(const struct launch *c, enum plan_mark mark)
{
    c->l->marks[c->box - c->l->box][mark] = clock_now_ns();
}

static _Noreturn void child_fail(int fd, uint32_t step, int error)
{
    struct note n = {.kind = NOTE_ERROR, .step = step, .error = -error};
    msg_send(fd, &n, sizeof n, NULL, 0, MSG_DONTWAIT);
    _exit(125);
}

_Noreturn void child_pid1(struct launch *c)
{
    uint32_t step = 0;
    int e = steps_run(c, PLAN_PHASE_ONE, PLAN_IN_PID1, &step);
    // until descriptors are in their places, that place is the service's socket
    bool early = step == PLAN_STEP_pid1_descriptors || step == PLAN_PSTEP_pid1_descriptors;
    int report = early ? c->child_report : CHILD_REPORT;
    child_fail(report, step, e); // success does not come back from shim_exec
}

static _Noreturn void child_pid2(struct launch *c)
{
    uint32_t step = 0;
    int e = steps_run(c, PLAN_PHASE_ONE, PLAN_IN_PID2, &step);
    e = e ? e : steps_run(c, PLAN_PHASE_TWO, PLAN_IN_PID2, &step);
    child_fail(CHILD_SOCK, step, e); // success does not come back from exec
}

// ---- pid 1 ----------------------------------------------------------------------------------

int step_pid1_descriptors(struct launch *c)
{
    int want[CHILD_PROC - CHILD_REPORT] = {c->child_report, c->child_sock, SEAT_SHIM,
                                           c->l->self_pidfd};
    memcpy(&want[CHILD_TASKS - CHILD_REPORT], c->tasks, sizeof c->tasks);
    want[CHILD_NET - CHILD_REPORT] = c->net;
    want[CHILD_TEMPLATE - CHILD_REPORT] = c->plain ? c->l->plain : c->l->template;
    // in two moves: sources and targets overlap
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        want[i] = want[i] < 0 ? -EBADF : fcntl(want[i], F_DUPFD_CLOEXEC, CHILD_END);
        if (want[i] == -1) {
            return -errno;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        int to = CHILD_REPORT + (int)i;
        int flags = to == CHILD_REPORT ? 0 : O_CLOEXEC; // the shim inherits the report
        if (want[i] >= 0 ? dup3(want[i], to, flags) < 0 : (close(to), to < CHILD_TASKS)) {
            return -EBADF;
        }
    }
    return sys_close_from(CHILD_PROC);
}

int child_parent_death(void)
{
    struct pollfd p = {.fd = CHILD_PIDFD, .events = POLLIN};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)) {
        return -errno;
    }
    // had it died before that? getppid() is 0 in a new pid namespace and cannot tell
    return poll(&p, 1, 0) == 0 ? 0 : -ESRCH;
}

int child_try_undo(const struct launcher *l)
{
    if (l->config.single_uid) { // its uid is inner root's and stays it: the rights are not
        return caps_set(UINT32_C(1) << CAP_SYS_ADMIN) ? 0 : -EPERM;
    }
    return setresuid(0, 0, 0) && setuid(0) ? 0 : -EPERM;
}

int step_pid1_parent_death(struct launch *c)
{
    (void)c;
    return child_parent_death();
}

int step_join_groups(struct launch *c)
{
    for (int i = 0; i < SEAT_N_V1; i++) {
        // "0" is the writer: a thread group of one
        if (c->tasks[i] >= 0 && write(CHILD_TASKS + i, "0", 1) != 1) {
            return -errno;
        }
    }
    return 0;
}

int step_cgroup_namespace(struct launch *c)
{
    (void)c;
    return unshare(CLONE_NEWCGROUP) ? -errno : 0;
}

// Moves what a child keeps to its place, where it may stand already: dup3() refuses that.
static int place(int *fd, int to)
{
    if (*fd == to) {
        fd_take(fd);
        return 0;
    }
    return dup3(*fd, to, O_CLOEXEC) < 0 ? -errno : 0;
}

// Its own scope for the descriptor: whatever number it had may be the next one's place.
static int new_proc_at(int to, uint64_t attributes)
{
    AUTO_CLOSE int proc = proc_new();
    int e = proc < 0 ? proc : 0;
    if (!e && attributes) {
        e = mount_set(proc, attributes, 0, 0);
    }
    return e ? e : place(&proc, to);
}

int step_proc(struct launch *c)
{
    (void)c;
    // One stays read-write and attached nowhere: for id maps and namespace limits later. The other
    // is the job's, read-only. (A clone would be EINVAL before Linux 6.15.)
    int e = new_proc_at(CHILD_PROC, 0);
    return e ? e : new_proc_at(CHILD_PROC_JOB, MOUNT_ATTR_RDONLY);
}

int step_root(struct launch *c)
{
    (void)c;
    return setns(CHILD_TEMPLATE, CLONE_NEWNS) ? -errno : 0; // root and working folder with it
}

int step_network(struct launch *c)
{
    return c->net >= 0 && setns(CHILD_NET, CLONE_NEWNET) ? -errno : 0;
}

int step_fork(struct launch *c)
{
    pid_t pid = fork();
    if (pid == 0) {
        child_pid2(c);
    }
    c->main = pid;
    return pid < 0 ? -errno : 0;
}

int step_shim_capabilities(struct launch *c)
{
    (void)c;
    int e = caps_bound(0);
    return e ? e : caps_lock();
}

int step_shim_identity(struct launch *c)
{
    uint32_t uid = launcher_uid(c->l, PLAN_UID_SLOT_0 + (uint32_t)(c->box - c->l->box));
    if ((!c->l->config.single_uid && setgroups(0, NULL)) || setresgid(uid, uid, uid) ||
        setresuid(uid, uid, uid)) {
        return -errno;
    }
    int e = caps_set(0); // NO_SETUID_FIXUP has kept them over the change
    return e ? e : child_try_undo(c->l);
}

int step_shim_parent_death(struct launch *c)
{
    (void)c;
    return child_parent_death();
}

int step_shim_no_new_privs(struct launch *c)
{
    (void)c;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

int step_shim_exec(struct launch *c)
{
    (void)c;
    char name[] = "shim";
    char *argv[] = {name, NULL}, *env[] = {NULL};
    return sys_exec_fd(CHILD_SHIM, argv, env);
}

// ---- pid 2 ----------------------------------------------------------------------------------

int step_session(struct launch *c)
{
    (void)c;
    close(CHILD_REPORT); // pid 1's alone
    return setsid() < 0 ? -errno : 0;
}

static int mount_tmpfs(const char *path, const char *options)
{
    return mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) ? -errno : 0;
}

int step_mounts(struct launch *c)
{
    (void)c;
    return unshare(CLONE_NEWNS) ? -errno : 0;
}

int step_mount_tmp(struct launch *c)
{
    (void)c;
    return mount_tmpfs("tmp", "size=1m,nr_inodes=64,mode=1777"); // its real size comes with the job
}

int step_mount_shm(struct launch *c)
{
    (void)c;
    return mount_tmpfs("dev/shm", "size=64m,nr_inodes=4096,mode=1777");
}

// What the host's network needs of the host's /etc, as host root copied it at the start; from below
// /tmp, which is covered next.
int step_network_files(struct launch *c)
{
    static const char *const files[][2] = {
        {TEMPLATE_NETWORK "resolv.conf", "etc/resolv.conf"},
        {TEMPLATE_NETWORK "hosts", "etc/hosts"},
        {TEMPLATE_NETWORK "ca", "etc/ssl/certs/ca-certificates.crt"},
    };
    for (size_t i = 0; c->box->network == PLAN_NETWORK_HOST && i < ARRAY_LEN(files); i++) {
        // ENOENT: the host has no such file, or the runtime root no place for it
        if (mount(files[i][0], files[i][1], NULL, MS_BIND, NULL) && errno != ENOENT) {
            return -errno;
        }
    }
    return 0;
}

int step_mount_proc(struct launch *c)
{
    (void)c;
    int e = mount_attach(CHILD_PROC_JOB, AT_FDCWD, "proc");
    close(CHILD_PROC_JOB);
    return e;
}

int step_mask_proc(struct launch *c)
{
    (void)c;
    char path[48];
    for (size_t i = 0; i < proc_n_masks; i++) {
        // Both ends are ours and nobody else is here yet: the plain call by path is safe, and
        // cheaper than two by descriptor.
        snprintf(path, sizeof path, "proc/%s", proc_masks[i].path);
        if (mount(proc_masks[i].is_folder ? TEMPLATE_MASK "folder" : TEMPLATE_MASK "empty", path,
                  NULL, MS_BIND, NULL) &&
            errno != ENOENT) {
            return -errno;
        }
    }
    // the same for all jobs of a host otherwise
    const char *const boot_id = "proc/sys/kernel/random/boot_id";
    return mount(TEMPLATE_MASK "boot_id", boot_id, NULL, MS_BIND, NULL) ? -errno : 0;
}

int step_loopback(struct launch *c)
{
    if (c->net >= 0 || c->box->network == PLAN_NETWORK_HOST) { // up already when made ahead
        return 0;
    }
    c->loopback_error = net_loopback_up();
    // Refused by a security module: a namespace without any network is as closed. PARKED tells.
    bool refused = c->loopback_error == -EPERM || c->loopback_error == -EACCES;
    return refused ? 0 : c->loopback_error;
}

int step_hostname(struct launch *c)
{
    const char *name = c->l->config.hostname;
    return sethostname(name, strlen(name)) ? -errno : 0;
}

int step_oom_score(struct launch *c)
{
    (void)c;
    return fd_write_at(CHILD_PROC, "self/oom_score_adj", "500");
}

int step_landlock_rules(struct launch *c)
{
    static const struct {
        const char *path;
        uint64_t access;
    } rules[] = {
        {"/", LANDLOCK_LIST},           {"/usr", LANDLOCK_RUN},
        {"/etc", LANDLOCK_READ},        {"/proc", LANDLOCK_READ},
        {"/packages", LANDLOCK_RUN},    {"/dev/shm", LANDLOCK_ALL},
        {"/tmp", LANDLOCK_ALL},         {"/dev/null", LANDLOCK_NODE},
        {"/dev/zero", LANDLOCK_NODE},   {"/dev/full", LANDLOCK_NODE},
        {"/dev/random", LANDLOCK_NODE}, {"/dev/urandom", LANDLOCK_NODE},
    };
    int abi = c->l->landlock_abi;
    if (abi == 0) {
        return 0; // a downgrade that READY told
    }
    AUTO_CLOSE int ruleset = landlock_new(abi);
    int e = ruleset < 0 ? ruleset : 0;
    for (size_t i = 0; i < ARRAY_LEN(rules) && !e; i++) {
        e = landlock_allow(ruleset, abi, rules[i].path, rules[i].access);
    }
    return e ? e : place(&ruleset, CHILD_LANDLOCK);
}

int step_park(struct launch *c)
{
    struct note n = {.kind = NOTE_PARKED, .error = -c->loopback_error};
    launcher_mark(c, PLAN_T_PARKED);
    return msg_send(CHILD_SOCK, &n, sizeof n, NULL, 0, 0);
}
