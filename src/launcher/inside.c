// inside.c: isle's first process in a sandbox that Bubblewrap made. Pid 1 there, without a right:
// it looks whether it is where it should be, tells the launcher, gets the order, forks the job's
// process and becomes the shim. An image of its own, the launcher's program executed again: nothing
// of the launcher's memory is here.
#include "launcher/inside.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"
#include "kernel/landlock.h"
#include "kernel/sys.h"
#include "launcher/inject.h"
#include "launcher/launcher.h"

#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

// Places of what came with the order; the shim's report is NOTE_SHIM_FD in pid 1.
enum { FD_SOCK = CHILD_SOCK, FD_SHIM = CHILD_SHIM };

static _Noreturn void fail(int sock, uint32_t step, int error)
{
    struct note n = {.kind = NOTE_ERROR, .step = step, .error = -error};
    msg_send(sock, &n, sizeof n, NULL, 0, MSG_DONTWAIT);
    _exit(125);
}

// ---- is it so? ----------------------------------------------------------------------------------

static bool is_identity(const struct passport *p)
{
    uid_t r, e, s;
    gid_t gr, ge, gs;
    return getpid() == 1 && !getresuid(&r, &e, &s) && !getresgid(&gr, &ge, &gs) &&
           r == PLAN_JOB_UID && e == r && s == r && gr == PLAN_JOB_UID && ge == gr && gs == gr &&
           (p->single_uid || getgroups(0, NULL) == 0);
}

static bool has_no_rights(const struct passport *p)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct d[2];
    (void)p;
    return !syscall(SYS_capget, &head, d) && !d[0].permitted && !d[1].permitted &&
           !d[0].inheritable && !d[1].inheritable && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

static bool has_filter(const struct passport *p)
{
    for (uint32_t i = 0; i < p->n_calls && i < SEAT_MAX_CALLS; i++) {
        if (p->calls[i] == SYS_socket) {
            return true; // cannot be told then
        }
    }
    // Bubblewrap itself may have such a socket, and so far this process inherits no other filter
    AUTO_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
    return fd < 0 && errno == EAFNOSUPPORT;
}

static bool has_own_namespaces(const struct passport *p)
{
    char path[48];
    struct stat st;
    for (size_t i = 0; i < PASSPORT_N_NAMESPACES; i++) {
        snprintf(path, sizeof path, "/proc/self/ns/%s", passport_names[i]);
        if (stat(path, &st) || st.st_ino == p->namespaces[i]) {
            return false;
        }
    }
    return true;
}

static bool is_sized(const char *path, uint64_t bytes, uint64_t inodes)
{
    struct statvfs s;
    return !statvfs(path, &s) && s.f_blocks * s.f_frsize == bytes && s.f_files == inodes;
}

static bool has_own_tree(const struct passport *p)
{
    static const char *const read_only[] = {"/",    "/usr", "/bin",  "/lib",
                                            "/etc", "/dev", "/proc", "/proc/sys"};
    struct statvfs s;
    struct stat st;
    for (size_t i = 0; i < ARRAY_LEN(read_only); i++) {
        if (statvfs(read_only[i], &s) || !(s.f_flag & ST_RDONLY)) {
            return false;
        }
    }
    return !stat("/workspace", &st) && st.st_dev == p->workspace_dev &&
           st.st_ino == p->workspace_ino && st.st_uid == PLAN_JOB_UID &&
           (!p->tmp_bytes || is_sized("/tmp", p->tmp_bytes, p->tmp_inodes));
}

static const struct {
    const char *what;
    bool (*is_so)(const struct passport *p);
} facts[] = {
    {"user and process ids", is_identity}, {"no capability", has_no_rights},
    {"seccomp filter", has_filter},        {"namespaces of its own", has_own_namespaces},
    {"mounts of its own", has_own_tree},
};

int bstep_verify(struct launch *c)
{
    static struct passport p;
    (void)c;
    if (pread(BWRAP_FD_PASSPORT, &p, sizeof p, 0) != sizeof p || p.magic != PASSPORT_MAGIC) {
        return -EBADMSG;
    }
    for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
        if (!facts[i].is_so(&p)) {
            dprintf(STDERR_FILENO, "isle: inside Bubblewrap: not as asked for: %s\n",
                    facts[i].what);
            return -EPROTO;
        }
    }
    c->l->landlock_abi = p.landlock_abi;
    c->l->config.n_calls = p.n_calls;
    memcpy(c->l->config.calls, p.calls, sizeof p.calls);
    c->nonce = p.nonce;
    return 0;
}

// ---- pid 1 --------------------------------------------------------------------------------------

// Descriptors to their places: those of the job stay where they came, above CHILD_END.
int bstep_receive(struct launch *c)
{
    struct note n = {
        .kind = NOTE_INSIDE, .step = (uint32_t)c->nonce, .status = (int32_t)(c->nonce >> 32)};
    int got[INSIDE_N_FDS];
    int e = msg_send(BWRAP_FD_SOCK, &n, sizeof n, NULL, 0, 0);
    if (e) {
        return e;
    }
    ssize_t len = msg_recv(BWRAP_FD_SOCK, &c->q, sizeof c->q, got, INSIDE_N_FDS, NULL, 0);
    if (len != sizeof c->q || got[INSIDE_N_FDS - 1] < 0) {
        return len < 0 ? (int)len : -EMFILE;
    }
    for (int i = 0; i < INSIDE_N_FDS; i++) {
        int high = fcntl(got[i], F_DUPFD_CLOEXEC, CHILD_END);
        if (high < 0) {
            return -errno;
        }
        close(got[i]);
        got[i] = high;
    }
    memcpy(c->fds, got, sizeof(int) * PLAN_N_START_FDS);
    if (dup2(got[INSIDE_FD_REPORT], NOTE_SHIM_FD) < 0 ||
        dup3(got[INSIDE_FD_SOCK], FD_SOCK, O_CLOEXEC) < 0 ||
        dup3(got[INSIDE_FD_SHIM], FD_SHIM, O_CLOEXEC) < 0) {
        return -errno;
    }
    for (int i = INSIDE_FD_REPORT; i < INSIDE_N_FDS; i++) {
        close(got[i]);
    }
    for (int i = FD_SHIM + 1; i < CHILD_END; i++) {
        close(i); // arguments, filter, whatever Bubblewrap left
    }
    return 0;
}

static _Noreturn void inside_pid2(struct launch *c)
{
    uint32_t step = 0;
    int e = getpid() == 2 ? bsteps_run(c, PLAN_PHASE_TWO, PLAN_IN_PID2, &step) : -ESRCH;
    fail(FD_SOCK, step ? step : (uint32_t)PLAN_BSTEP_fork, e);
}

int bstep_fork(struct launch *c)
{
    pid_t pid = fork();
    if (pid == 0) {
        inside_pid2(c);
    }
    return pid < 0 ? -errno : 0;
}

int bstep_shim_exec(struct launch *c)
{
    char name[] = "shim";
    char *argv[] = {name, NULL}, *env[] = {NULL};
    (void)c;
    // the launcher's, tenants' and Bubblewrap's alike: the shim's report is all that stays
    for (int i = 0; i < NOTE_SHIM_FD; i++) {
        close(i);
    }
    return sys_exec_fd(FD_SHIM, argv, env);
}

_Noreturn void inside_main(void)
{
    static struct launcher l;
    static uint64_t marks[1][PLAN_N_MARKS];
    struct launch c = {.l = &l, .box = l.box};
    sigset_t none;
    uint32_t step = 0;
    l.marks = marks;
    inject_init_fd(BWRAP_FD_END, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    umask(022);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int e = bsteps_run(&c, PLAN_PHASE_ONE, PLAN_IN_PID1, &step);
    e = e ? e : bsteps_run(&c, PLAN_PHASE_TWO, PLAN_IN_PID1, &step);
    // from the order on, the first socket's place is the report's
    fail(NOTE_SHIM_FD, step, e);
}

// ---- pid 2 --------------------------------------------------------------------------------------

int bstep_session(struct launch *c) { return step_session(c); }

int bstep_landlock_rules(struct launch *c)
{
    static const char *const run[] = {"/bin", "/sbin", "/lib", "/lib64"}; // mounts of their own
    int abi = c->l->landlock_abi;
    int e = step_landlock_rules(c);
    for (size_t i = 0; i < ARRAY_LEN(run) && abi && !e; i++) {
        e = landlock_allow(CHILD_LANDLOCK, abi, run[i], LANDLOCK_RUN);
        e = e == -ENOENT ? 0 : e;
    }
    return e ? e : step_landlock_workspace(c);
}

int bstep_park(struct launch *c)
{
    (void)c;
    struct note n = {.kind = NOTE_PARKED};
    return msg_send(FD_SOCK, &n, sizeof n, NULL, 0, 0);
}

int bstep_arguments(struct launch *c) { return step_arguments(c); }
int bstep_rlimits(struct launch *c) { return step_rlimits(c); }
int bstep_job_descriptors(struct launch *c) { return step_descriptors(c); }

int bstep_chdir(struct launch *c) { return step_chdir(c); }
int bstep_landlock(struct launch *c) { return step_landlock(c); }
int bstep_filter(struct launch *c) { return step_filter(c); }

int bstep_program(struct launch *c)
{
    uint64_t now = clock_now_ns();
    struct note n = {.kind = NOTE_EXEC, .step = (uint32_t)now, .status = (int32_t)(now >> 32)};
    int e = msg_send(FD_SOCK, &n, sizeof n, NULL, 0, 0);
    return e ? e : step_exec(c);
}
