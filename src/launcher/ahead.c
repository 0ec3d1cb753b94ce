// ahead.c: control groups and network namespaces made before they are needed. They know nothing of
// a job, and are the dearest part of phase one: a child of the launcher, the maker, makes them on
// another CPU while jobs run. What is not there in time is made as if there were no maker.
#include "base/fd.h"
#include "base/msg.h"
#include "kernel/net.h"
#include "kernel/sys.h"
#include "launcher/inject.h"
#include "launcher/launcher.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    // In batches: while the maker works, a launch has to wait for its locks and its CPU now and
    // then.
    AHEAD = 8,
    AHEAD_LOW = 2,
    N_FDS = SEAT_N_V1 + 2,
};

// Maker -> launcher: the group's name, and descriptors: those of `tasks` that are there, v2, net.
struct made {
    int32_t error;
    uint8_t has_tasks[SEAT_N_V1];
    uint8_t has_v2;
    char group[16];
};

// ---- the maker's side: a child of the launcher, inner root, in its cgroup folder `service`
// ----------

// The maker stays in the newest one until the next: there is no way home (the host's belongs to the
// initial user namespace), and it has no socket in it that a job could meet.
static int new_net(const struct launcher *l)
{
    if (unshare(CLONE_NEWNET)) {
        return -errno;
    }
    int e = net_loopback_up();
    int net = e ? e : openat(l->proc, "self/ns/net", O_RDONLY | O_CLOEXEC);
    return e ? e : net < 0 ? -errno : net;
}

static void make_one(const struct launcher *l, int sock, uint32_t serial)
{
    struct made m = {.error = 0};
    int tasks[SEAT_N_V1], v2 = -1, fds[N_FDS], n = 0;
    for (int i = 0; i < SEAT_N_V1; i++) {
        tasks[i] = -1;
    }
    snprintf(m.group, sizeof m.group, "a%u", serial);
    int e = cgroup_make(&l->groups, m.group);
    bool made = !e;
    e = e ? e : cgroup_open_entrance(&l->groups, m.group, tasks, &v2);
    int net = e ? e : new_net(l);
    for (int i = 0; i < SEAT_N_V1; i++) {
        m.has_tasks[i] = tasks[i] >= 0;
        if (tasks[i] >= 0) {
            fds[n++] = tasks[i];
        }
    }
    m.has_v2 = v2 >= 0;
    if (v2 >= 0) {
        fds[n++] = v2;
    }
    if (net >= 0) {
        fds[n++] = net;
    } else {
        m.error = -net;
    }
    if (m.error && made) {
        cgroup_remove(&l->groups, m.group);
    }
    if (msg_send(sock, &m, sizeof m, m.error ? NULL : fds, m.error ? 0 : n, 0)) {
        _exit(1);
    }
    for (int i = 0; i < n; i++) {
        close(fds[i]);
    }
}

static _Noreturn void maker(struct launcher *l, int sock)
{
    enum { SOCK = SEAT_SERVICE, PROC = SEAT_SHIM };
    struct pollfd p = {.fd = l->self_pidfd, .events = POLLIN};
    char wanted;
    inject_as(INJECT_MAKER, PLAN_STEP_end);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    prctl(PR_SET_NAME, "isle-maker");
    // Nobody must wait for an end of file that we delay: of the launcher's descriptors it keeps the
    // groups, /proc, and the lock, for a free lock says that nobody makes groups any more.
    if (poll(&p, 1, 0) != 0 || dup3(sock, SOCK, O_CLOEXEC) < 0 ||
        dup3(l->proc, PROC, O_CLOEXEC) < 0 || sys_close_from(SEAT_FD_END)) {
        _exit(1);
    }
    close(SEAT_SERVICE_PIDFD);
    l->proc = PROC;
    for (uint32_t serial = 1; msg_recv(SOCK, &wanted, 1, NULL, 0, NULL, 0) == 1; serial++) {
        make_one(l, SOCK, serial);
    }
    _exit(0);
}

// ---- the launcher's side ------------------------------------------------------------------------

static void want(struct launcher *l, int count)
{
    for (; l->maker >= 0 && l->wanted < count; l->wanted++) {
        if (msg_send(l->maker, "", 1, NULL, 0, MSG_DONTWAIT)) {
            return;
        }
    }
}

static void start_maker(struct launcher *l)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        return; // it only is slower then
    }
    l->maker_pid = fork();
    if (l->maker_pid == 0) {
        maker(l, pair[1]);
    }
    close(pair[1]);
    l->maker = pair[0];
    if (l->maker_pid < 0) {
        l->maker = fd_close(l->maker);
    }
}

bool ahead_take(struct launcher *l, struct launch *c)
{
    struct made m;
    int fds[N_FDS], k = 0;
    if (l->maker < 0) {
        return false;
    }
    ssize_t n = msg_recv(l->maker, &m, sizeof m, fds, N_FDS, NULL, MSG_DONTWAIT);
    if (n == sizeof m) {
        l->wanted--;
    } else if (n != -EAGAIN) {
        l->maker = fd_close(l->maker); // it died
    }
    if (n != sizeof m || m.error) {
        return false;
    }
    if (fds[0] == -EMFILE) {
        cgroup_remove(&l->groups, m.group);
        return false;
    }
    // an empty group is easily taken for a leftover, by whoever cleans in /sys/fs/cgroup
    if (m.has_v2 && faccessat(l->groups.v2, m.group, F_OK, AT_SYMLINK_NOFOLLOW)) {
        for (int i = 0; i < N_FDS; i++) {
            fd_close(fds[i]);
        }
        cgroup_remove(&l->groups, m.group);
        return false;
    }
    for (int i = 0; i < SEAT_N_V1; i++) {
        c->tasks[i] = m.has_tasks[i] ? fds[k++] : -1;
    }
    c->v2 = m.has_v2 ? fds[k++] : -1;
    c->net = fds[k];
    memcpy(c->box->group, m.group, sizeof c->box->group);
    return true;
}

void ahead_refill(struct launcher *l)
{
    // for the only job of a short life there is no next one to prepare; others make no such things
    if (l->last_id < 2 || l->config.launcher != SEAT_NATIVE) {
        return;
    }
    if (!l->maker_pid) {
        start_maker(l);
    }
    if (l->wanted <= AHEAD_LOW) {
        want(l, AHEAD);
    }
}

void ahead_done(struct launcher *l)
{
    struct made m;
    int fds[N_FDS];
    if (l->maker < 0) {
        return;
    }
    kill(l->maker_pid, SIGKILL);
    waitpid(l->maker_pid, NULL, 0);
    while (msg_recv(l->maker, &m, sizeof m, fds, N_FDS, NULL, MSG_DONTWAIT) == sizeof m) {
        for (int i = 0; i < N_FDS; i++) {
            fd_close(fds[i]);
        }
        if (!m.error) {
            cgroup_remove(&l->groups, m.group);
        }
    }
    // what it was just making is in no message: the front removes the instance's folder as a whole
    l->maker = fd_close(l->maker);
}
