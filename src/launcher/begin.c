// begin.c: the launcher's own part of a launch.
#include "base/fd.h"
#include "base/msg.h"
#include "kernel/landlock.h"
#include "kernel/sys.h"
#include "launcher/launcher.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

// ---- phase one ------------------------------------------------------------------------------

int step_slot(struct launch *c)
{
    struct launcher *l = c->l;
    for (int i = 0; i < PLAN_MAX_SANDBOXES; i++) {
        struct box *b = &l->box[i];
        if (b->id) {
            continue;
        }
        *b = (struct box){
            .pidfd = -1, .main_pidfd = -1, .sock = -1, .report = -1, .mounts = -1, .oom = -1};
        b->id = ++l->last_id ? l->last_id : ++l->last_id; // never 0, also after 2^32
        b->r = (struct plan_record){.id = b->id, .status = -1};
        snprintf(b->group, sizeof b->group, "j%u", b->id);
        memset(l->marks[i], 0, sizeof l->marks[i]);
        b->network = c->q.network;
        b->plain = c->plain;
        if (l->config.launcher == SEAT_BWRAP && !c->plain) {
            bwrap_wrap(l, b);
        }
        c->box = b;
        launcher_mark(c, PLAN_T_REQUEST);
        return 0;
    }
    return -EAGAIN;
}

int step_groups(struct launch *c)
{
    if (ahead_take(c->l, c)) {
        if (c->box->network == PLAN_NETWORK_HOST) {
            c->net = fd_close(c->net);
        }
        launcher_mark(c, PLAN_T_GROUPS);
        return 0;
    }
    int e = cgroup_make(&c->l->groups, c->box->group);
    e = e ? e : cgroup_open_entrance(&c->l->groups, c->box->group, c->tasks, &c->v2);
    launcher_mark(c, PLAN_T_GROUPS);
    return e;
}

int step_channels(struct launch *c)
{
    int sock[2], report[2], one = 1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock)) {
        return -errno;
    }
    c->box->sock = sock[0];
    c->child_sock = sock[1];
    // the sender's pid comes with each note, as the kernel sees it
    if (setsockopt(sock[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof one) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report)) {
        return -errno;
    }
    c->box->report = report[0];
    c->child_report = report[1];
    return 0;
}

int begin_clone(struct launch *c, uint64_t namespaces)
{
    int pidfd = -1;
    struct clone_args a = {
        .flags = namespaces | CLONE_PIDFD | (c->v2 >= 0 ? CLONE_INTO_CGROUP : UINT64_C(0)),
        .pidfd = (uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = c->v2 >= 0 ? (unsigned)c->v2 : 0,
    };
    pid_t pid = sys_clone3(&a);
    if (pid == 0) {
        child_pid1(c);
    }
    if (pid < 0) {
        return pid;
    }
    c->box->pidfd = pidfd;
    c->box->r.shim_pid = pid;
    launcher_mark(c, PLAN_T_CLONED);
    return 0;
}

int step_clone(struct launch *c)
{
    // else step network enters the ready one, or the launcher's, the host's, is the job's
    const uint64_t net =
        c->net < 0 && c->box->network == PLAN_NETWORK_NONE ? CLONE_NEWNET : UINT64_C(0);
    return begin_clone(c, CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | net);
}

static void close_childs_ends(struct launch *c)
{
    for (int i = 0; i < SEAT_N_V1; i++) {
        c->tasks[i] = fd_close(c->tasks[i]);
    }
    c->v2 = fd_close(c->v2);
    c->net = fd_close(c->net);
    c->child_sock = fd_close(c->child_sock);
    c->child_report = fd_close(c->child_report);
}

uint32_t begin_downgrades(const struct launcher *l, uint32_t network)
{
    if (network != PLAN_NETWORK_HOST) {
        return 0;
    }
    return PLAN_HOST_NETWORK | (l->landlock_abi < LANDLOCK_ABI_SCOPES ? PLAN_ABSTRACT_SOCKETS : 0U);
}

struct box *begin_prepare(struct launcher *l, const struct plan_request *q, int *ret_error,
                          uint32_t *ret_step)
{
    if (!q->plain && q->network == PLAN_NETWORK_HOST && !l->config.allow_host_network) {
        *ret_error = EPERM;
        *ret_step = PLAN_STEP_check;
        return NULL;
    }
    // a plain job is in the launcher's network namespace, which is the host's
    struct launch c = {.l = l,
                       .plain = q->plain,
                       .q.network = q->plain ? (uint32_t)PLAN_NETWORK_HOST : q->network,
                       .v2 = -1,
                       .net = -1,
                       .child_sock = -1,
                       .child_report = -1};
    for (int i = 0; i < SEAT_N_V1; i++) {
        c.tasks[i] = -1;
    }
    int e = steps_run(&c, PLAN_PHASE_ONE, PLAN_IN_LAUNCHER, ret_step);
    close_childs_ends(&c);
    if (!e) {
        c.box->r.tag = q->tag;
        c.box->r.downgrades = begin_downgrades(l, c.q.network);
        c.box->r.downgrades |= q->plain ? (uint32_t)PLAN_NO_ISOLATION : 0U;
        return c.box;
    }
    if (c.box) { // nothing lives in it: clone is the last step here
        box_discard(l, c.box);
    }
    *ret_error = -e;
    return NULL;
}

// ---- phase two ------------------------------------------------------------------------------

int begin_check(const struct launcher *l, const struct box *box, const struct plan_request *q)
{
    if (box &&
        (box->network != q->network || box->plain != q->plain)) { // it was born with the other
        return -EINVAL;
    }
    // what is asked for and what this launcher is for must be the same
    if (l->config.launcher == SEAT_NONE && !q->plain) {
        return -EPERM;
    }
    if (q->root != 0) { // one runtime root was given at start
        return -ENOENT;
    }
    // A service may ask for more than the host's own rung, never for less.
    if (q->rung == PLAN_RUNG_NONE && l->rung != PLAN_RUNG_NONE) {
        return -EPERM;
    }
    for (int i = 0; i < PLAN_MAX_SANDBOXES; i++) {
        if (l->box[i].id && l->box[i].started && l->box[i].uid == q->uid) {
            return -EBUSY; // one running job per workspace
        }
    }
    return 0;
}

int step_check(struct launch *c)
{
    // begin_check() has answered before a cold launch had cost anything
    if (c->plain) {
        c->q.rung = PLAN_RUNG_NONE;
    } else if (c->q.rung == PLAN_RUNG_AUTO) {
        c->q.rung = c->l->rung;
    }
    return 0;
}

static int add_mount(struct launch *c, int mount)
{
    if (mount < 0) {
        return mount;
    }
    c->fds[c->n_fds++] = mount;
    return 0;
}

int step_workspace(struct launch *c) { return add_mount(c, stock_workspace(c->l, &c->q)); }

int step_session_tmp(struct launch *c)
{
    return c->q.tmp_folder ? add_mount(c, stock_tmp_folder(c->l, &c->q)) : 0;
}

int step_package_sets(struct launch *c)
{
    int e = 0;
    for (uint32_t i = 0; i < c->q.n_sets && !e; i++) {
        e = add_mount(c, stock_set(c->l, c->q.sets[i]));
    }
    return e;
}

int step_limits(struct launch *c)
{
    const struct plan_limits *l = &c->q.limits;
    const struct cgroup_limits limits = {
        .memory_bytes = l->memory_bytes,
        .pids = (uint64_t)l->pids + box_own_pids(c->box),
        .cpu_percent = l->cpu_percent,
    };
    int e = cgroup_limit(&c->l->groups, c->box->group, &limits);
    if (e) {
        return e;
    }
    int oom = cgroup_watch_oom(&c->l->groups, c->box->group);
    if (oom < 0 && oom != -ENOENT) {
        return oom;
    }
    c->box->oom = oom < 0 ? -1 : oom;
    c->box->cpu_percent = l->cpu_percent;
    return 0;
}

int step_order(struct launch *c)
{
    struct box *b = c->box;
    if (b->sock < 0) { // it has ended while it was parked
        return -EPIPE;
    }
    int e = msg_send(b->sock, &c->q, sizeof c->q, c->fds, c->n_fds, MSG_DONTWAIT);
    if (e) {
        return e;
    }
    b->r.rung = c->q.rung;
    b->uid = c->q.uid;
    b->started = true;
    b->cpu_budget_ns = c->q.limits.cpu_ns; // counted from EXECUTED on
    return 0;
}

void begin_start(struct launcher *l, struct box *box, const struct plan_request *q, const int *fds)
{
    struct launch c = {.l = l, .box = box, .q = *q, .plain = box->plain, .n_fds = PLAN_N_START_FDS};
    uint32_t step = 0;
    memcpy(c.fds, fds, PLAN_N_START_FDS * sizeof *fds);
    box->r.tag = q->tag;
    int e = steps_run(&c, PLAN_PHASE_TWO, PLAN_IN_LAUNCHER, &step);
    for (int i = PLAN_N_START_FDS; i < c.n_fds; i++) {
        close(c.fds[i]); // the caller's descriptors stay the caller's
    }
    if (e) {
        box_fail(l, box, step, -e);
    }
}
