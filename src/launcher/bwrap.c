// bwrap.c: the launcher's part of a launch with Bubblewrap. It prepares what Bubblewrap is to find,
// starts it as the workspace's uid, and waits for isle's first process inside to say that all is as
// it was asked for; only then the job's descriptors leave the launcher.
#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"
#include "guest/policy/policy.h"
#include "kernel/seccomp.h"
#include "kernel/sys.h"
#include "launcher/inside.h"
#include "launcher/launcher.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { PATIENCE_MS = 5000 }; // for Bubblewrap: some ms, but hosts are busy

const char *const passport_names[PASSPORT_N_NAMESPACES] = {"user", "pid", "ipc",   "uts",
                                                           "net",  "mnt", "cgroup"};

// ---- steps --------------------------------------------------------------------------------------

int bstep_check(struct launch *c)
{
    c->q.rung = PLAN_RUNG_SELF; // begin_check() has seen to the rest
    return c->q.network == PLAN_NETWORK_HOST && !c->l->config.allow_host_network ? -EPERM : 0;
}

void bwrap_wrap(struct launcher *l, struct box *b)
{
    struct wrapped *w = &l->wrapped[b - l->box];
    *w = (struct wrapped){.report = -1, .said = -1};
    for (size_t i = 0; i < ARRAY_LEN(w->fds); i++) {
        w->fds[i] = -1;
    }
    b->wrapped = w;
}

int bstep_slot(struct launch *c) { return step_slot(c); }
int bstep_groups(struct launch *c) { return step_groups(c); }
int bstep_channels(struct launch *c) { return step_channels(c); }
int bstep_workspace(struct launch *c) { return step_workspace(c); }
int bstep_session_tmp(struct launch *c) { return step_session_tmp(c); }
int bstep_package_sets(struct launch *c) { return step_package_sets(c); }
int bstep_limits(struct launch *c) { return step_limits(c); }

static int make_arguments(struct launch *c)
{
    char data[BWRAP_ARGUMENTS_MAX];
    struct bwrap_cover covers[PROC_MAX_COVERS];
    int e = proc_covers(c->l->proc, covers); // of now: a kernel module brings files of its own
    if (e) {
        return e;
    }
    const struct bwrap_input in = {.version = c->l->config.bwrap_version,
                                   .hostname = c->l->config.hostname,
                                   .covers = covers,
                                   .n_sets = c->q.n_sets,
                                   .host_network = c->q.network == PLAN_NETWORK_HOST};
    int len = bwrap_arguments(&in, data, sizeof data);
    return len < 0 ? len : fd_sealed("bwrap-arguments", data, (size_t)len);
}

// The first stage of the policy, as for the native launcher; pid 2 installs the second itself.
static int make_filter(struct launch *c)
{
    const struct policy_filter *f = &policy_stage1;
    const struct seat_config *config = &c->l->config;
    struct sock_filter code[SECCOMP_MAX_CODE];
    if (config->n_calls == 0) {
        return fd_sealed("bwrap-filter", f->code, f->count * sizeof *f->code);
    }
    int n = seccomp_allow_first(code, f->code, f->count, config->calls, config->n_calls);
    return n < 0 ? n : fd_sealed("bwrap-filter", code, (size_t)n * sizeof *code);
}

static int make_passport(struct launch *c)
{
    struct passport p = {.magic = PASSPORT_MAGIC,
                         .landlock_abi = c->l->landlock_abi,
                         .single_uid = c->l->config.single_uid};
    struct stat st;
    char path[32];
    if (getrandom(&p.nonce, sizeof p.nonce, 0) != sizeof p.nonce ||
        fstat(c->fds[PLAN_N_START_FDS], &st)) {
        return -errno;
    }
    p.workspace_dev = st.st_dev;
    p.workspace_ino = st.st_ino;
    p.n_calls = c->l->config.n_calls;
    memcpy(p.calls, c->l->config.calls, sizeof p.calls);
    if (!c->q.tmp_folder) {
        p.tmp_bytes = c->q.limits.tmp_bytes;
        p.tmp_inodes = c->q.limits.tmp_inodes;
    }
    for (size_t i = 0; i < PASSPORT_N_NAMESPACES; i++) {
        snprintf(path, sizeof path, "self/ns/%s", passport_names[i]);
        if (fstatat(c->l->proc, path, &st, 0)) {
            return -errno;
        }
        bool shared = c->q.network == PLAN_NETWORK_HOST && !strcmp(passport_names[i], "net");
        p.namespaces[i] = shared ? 0 : st.st_ino;
    }
    c->nonce = p.nonce;
    return fd_sealed("passport", &p, sizeof p);
}

int bstep_papers(struct launch *c)
{
    c->arguments = make_arguments(c);
    c->filter = c->arguments < 0 ? -1 : make_filter(c);
    c->passport = c->filter < 0 ? -1 : make_passport(c);
    if (c->passport < 0) {
        return c->arguments < 0 ? c->arguments : c->filter < 0 ? c->filter : c->passport;
    }
    // bounded by RLIMIT_FSIZE, and in the job's memory
    c->said = memfd_create("bwrap-stderr", MFD_CLOEXEC);
    return c->said < 0 ? -errno : 0;
}

int bstep_clone(struct launch *c)
{
    int pidfd = -1;
    struct clone_args a = {
        .flags = CLONE_NEWPID | CLONE_PIDFD | (c->v2 >= 0 ? CLONE_INTO_CGROUP : UINT64_C(0)),
        .pidfd = (uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = c->v2 >= 0 ? (unsigned)c->v2 : 0,
    };
    pid_t pid = sys_clone3(&a);
    if (pid == 0) {
        bwrap_child(c);
    }
    if (pid < 0) {
        return pid;
    }
    c->box->pidfd = pidfd;
    c->box->r.shim_pid = c->box->wrapped->bwrap = pid;
    launcher_mark(c, PLAN_T_CLONED);
    return 0;
}

// What the launcher keeps of it until the order.
static int hold(struct launch *c)
{
    struct box *b = c->box;
    struct wrapped *w = b->wrapped;
    for (int i = 0; i < PLAN_N_START_FDS; i++) {
        w->fds[i] = fcntl(c->fds[i], F_DUPFD_CLOEXEC, SEAT_FD_END);
        if (w->fds[i] < 0) {
            return -errno;
        }
    }
    w->q = c->q;
    w->nonce = c->nonce;
    w->said = fd_take(&c->said);
    w->report = fd_take(&c->child_report);
    w->until_ns = clock_now_ns() + PATIENCE_MS * NS_PER_MS;
    b->r.tag = c->q.tag;
    b->r.rung = c->q.rung;
    b->r.downgrades = begin_downgrades(c->l, c->q.network);
    b->uid = c->q.uid;
    b->started = true;
    b->cpu_budget_ns = c->q.limits.cpu_ns;
    return 0;
}

static void close_launch(struct launch *c)
{
    for (int i = 0; i < SEAT_N_V1; i++) {
        fd_close(c->tasks[i]);
    }
    const int fds[] = {c->v2,        c->child_sock, c->child_report, c->passport,
                       c->arguments, c->filter,     c->said};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fd_close(fds[i]);
    }
    for (int i = PLAN_N_START_FDS; i < c->n_fds; i++) {
        close(c->fds[i]); // the caller's descriptors stay the caller's
    }
}

struct box *bwrap_start(struct launcher *l, const struct plan_request *q, const int *fds,
                        int *ret_error, uint32_t *ret_step)
{
    struct launch c = {.l = l,
                       .q = *q,
                       .n_fds = PLAN_N_START_FDS,
                       .tasks = {-1, -1, -1, -1},
                       .v2 = -1,
                       .net = -1,
                       .child_sock = -1,
                       .child_report = -1,
                       .passport = -1,
                       .arguments = -1,
                       .filter = -1,
                       .said = -1};
    memcpy(c.fds, fds, PLAN_N_START_FDS * sizeof *fds);
    int e = bsteps_run(&c, PLAN_PHASE_ONE, PLAN_IN_LAUNCHER, ret_step);
    bool lives = c.box && c.box->pidfd >= 0;
    if (lives) {
        e = hold(&c);
        if (e) { // it ends, and END tells why
            c.box->r.tag = q->tag;
            box_fail(l, c.box, PLAN_BSTEP_clone, -e);
        }
    }
    close_launch(&c);
    if (lives) {
        return c.box;
    }
    if (c.box) {
        box_discard(l, c.box);
    }
    *ret_error = -e;
    return NULL;
}

// ---- the order ----------------------------------------------------------------------------------

int bstep_order(struct launch *c)
{
    struct wrapped *w = c->box->wrapped;
    int pair[2], one = 1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        return -errno;
    }
    AUTO_CLOSE int ours = pair[0];
    AUTO_CLOSE int theirs = pair[1];
    int fds[INSIDE_N_FDS];
    memcpy(fds, w->fds, sizeof w->fds);
    fds[INSIDE_FD_REPORT] = w->report;
    fds[INSIDE_FD_SHIM] = SEAT_SHIM;
    fds[INSIDE_FD_SOCK] = theirs;
    if (setsockopt(ours, SOL_SOCKET, SO_PASSCRED, &one, sizeof one)) {
        return -errno;
    }
    int e = msg_send(c->box->sock, &w->q, sizeof w->q, fds, INSIDE_N_FDS, MSG_DONTWAIT);
    if (!e) { // what comes next comes from pid 2, whose execve closes the other end
        fd_close(c->box->sock);
        c->box->sock = fd_take(&ours);
    }
    return e;
}

static void let_go(struct wrapped *w)
{
    for (int i = 0; i < PLAN_N_START_FDS; i++) {
        w->fds[i] = fd_close(w->fds[i]);
    }
    w->report = fd_close(w->report);
}

void bwrap_inside(struct launcher *l, struct box *b, const struct note *n, pid_t from)
{
    struct wrapped *w = b->wrapped;
    uint64_t nonce = (uint64_t)(uint32_t)n->status << 32 | n->step;
    if (!w->until_ns || nonce != w->nonce || b->r.error) {
        return;
    }
    struct launch c = {.l = l, .box = b};
    w->until_ns = 0;
    b->r.shim_pid = from;
    launcher_mark(&c, PLAN_T_START);
    uint32_t step = 0;
    int e = bsteps_run(&c, PLAN_PHASE_TWO, PLAN_IN_LAUNCHER, &step);
    let_go(w);
    if (e) {
        box_fail(l, b, step, -e);
    }
}

uint64_t bwrap_tick(struct launcher *l, struct box *b, uint64_t now_ns)
{
    struct wrapped *w = b->wrapped;
    if (!w || !w->until_ns || b->r.error) {
        return UINT64_MAX;
    }
    if (now_ns < w->until_ns) {
        return w->until_ns;
    }
    box_fail(l, b, PLAN_BSTEP_bubblewrap, ETIMEDOUT);
    return UINT64_MAX;
}

void bwrap_done(struct box *b)
{
    if (b->wrapped) {
        let_go(b->wrapped);
        b->wrapped->said = fd_close(b->wrapped->said);
        b->wrapped = NULL;
    }
}

// ---- table --------------------------------------------------------------------------------------

// Behind the execution of it is only Bubblewrap's own part, of which the launcher tells (end.c).
#define bstep_bubblewrap NULL

#define STEP(id, phase, where, why) {PLAN_IN_##where, PLAN_PHASE_##phase, bstep_##id},
static const struct launch_step steps[PLAN_N_BWRAP_STEPS] = {PLAN_BWRAP_STEPS(STEP)};
#undef STEP

int bsteps_run(struct launch *c, enum plan_phase phase, enum plan_where where, uint32_t *ret_step)
{
    return steps_walk(steps, PLAN_N_BWRAP_STEPS, PLAN_BSTEP_FIRST, c, phase, where, ret_step);
}
