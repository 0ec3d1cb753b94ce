// requests.c: what the service may ask. One record in, one record out; START is answered by the
// sandbox's own life (PARKED, EXECUTED, END).
#include "base/fd.h"
#include "base/msg.h"
#include "launcher/inject.h"
#include "launcher/launcher.h"

#include <poll.h>
#include <sys/socket.h>

enum { ANSWER_PATIENCE_MS = 3000 };

struct answer {
    struct plan_record r;
    int fd;
    bool silent; // answered by other records
};

void request_answer(struct launcher *l, const struct plan_record *r, const int *fds, int n)
{
    uint64_t before = inject_as(INJECT_SERVICE, PLAN_STEP_end);
    int e = msg_send(SEAT_SERVICE, r, sizeof *r, fds, n, MSG_DONTWAIT);
    if (e == -EAGAIN || e == -ENOBUFS) {
        struct pollfd p = {.fd = SEAT_SERVICE, .events = POLLOUT};
        poll(&p, 1, ANSWER_PATIENCE_MS);
        e = msg_send(SEAT_SERVICE, r, sizeof *r, fds, n, MSG_DONTWAIT);
    }
    inject_back(before);
    if (e) {
        launcher_shut_down(l); // gone, or not reading: its jobs end with it
    }
}

static void prepare(struct launcher *l, const struct plan_request *q, int *fds, struct answer *a)
{
    (void)fds;
    if (l->config.launcher != SEAT_NATIVE || q->plain) { // every start is a cold one
        a->r.error = EOPNOTSUPP;
        return;
    }
    struct box *b = begin_prepare(l, q, &a->r.error, &a->r.step);
    a->r.id = b ? b->id : 0;
    if (b) {
        a->r.shim_pid = b->r.shim_pid;
    }
}

static void fail_box(struct launcher *l, struct box *b, const struct plan_record *r)
{
    b->r.tag = r->tag;
    box_fail(l, b, r->step, r->error);
}

static void start(struct launcher *l, const struct plan_request *q, int *fds, struct answer *a)
{
    struct box *b = box_find(l, q->id);
    if (b && b->started) {
        a->r.error = EBUSY; // and that one goes on
        return;
    }
    if (b && b->r.error) {
        b->r.tag = q->tag; // it failed while it was parked: its END is on the way
        a->silent = true;
        return;
    }
    a->r.op = PLAN_END;
    a->r.error = q->id && !b ? ENOENT : -begin_check(l, b, q);
    a->r.step = PLAN_STEP_check;
    if (!q->id && !a->r.error && !q->plain && l->config.launcher == SEAT_BWRAP) {
        a->silent = bwrap_start(l, q, fds, &a->r.error, &a->r.step) != NULL;
        return;
    }
    if (!q->id && !a->r.error) {
        b = begin_prepare(l, q, &a->r.error, &a->r.step);
    }
    if (!b) {
        return;
    }
    a->silent = true;
    if (a->r.error) {
        fail_box(l, b, &a->r);
    } else {
        begin_start(l, b, q, fds);
    }
}

static void send_signal(struct launcher *l, const struct plan_request *q, int *fds,
                        struct answer *a)
{
    (void)fds;
    struct box *b = box_find(l, q->id);
    if (b) {
        box_notes(l, b); // has it begun?
    }
    a->r.error = b ? -box_signal(l, b, (int)q->signal) : ENOENT;
}

static void kill_it(struct launcher *l, const struct plan_request *q, int *fds, struct answer *a)
{
    (void)fds;
    struct box *b = box_find(l, q->id);
    if (!b) {
        a->r.error = ENOENT;
        return;
    }
    box_notes(l, b);
    if (!b->reported) { // else it is over already, by itself
        b->r.flags |= PLAN_KILLED;
    }
    box_kill(l, b);
}

static void sample(struct launcher *l, const struct plan_request *q, int *fds, struct answer *a)
{
    (void)fds;
    struct box *b = box_find(l, q->id);
    if (!b) {
        a->r.error = ENOENT;
        return;
    }
    box_figures(l, b, &a->r);
}

static void next_execution(struct launcher *l, const struct plan_request *q, int *fds,
                           struct answer *a)
{
    struct box *b = box_find(l, q->id);
    if (b && !b->executed) {
        a->r.error = EBUSY;
        return;
    }
    sample(l, q, fds, a);
    if (b) {
        cgroup_reset_peak(&l->groups, b->group);
        box_begin_execution(l, b, q->limits.cpu_ns);
    }
}

static void numbered(struct answer *a, int number)
{
    if (number < 0) {
        a->r.error = -number;
    } else {
        a->r.id = (uint32_t)number;
    }
}

static void tmpfs(struct launcher *l, const struct plan_request *q, int *fds, struct answer *a)
{
    (void)fds;
    numbered(a, stock_tmpfs_add(l, q, &a->fd));
}

static void tmpfs_drop(struct launcher *l, const struct plan_request *q, int *fds, struct answer *a)
{
    (void)fds;
    a->r.error = -stock_tmpfs_drop(l, q->workspace_no);
}

static void set_add(struct launcher *l, const struct plan_request *q, int *fds, struct answer *a)
{
    (void)q;
    numbered(a, stock_set_add(l, fds[0]));
}

static void set_drop(struct launcher *l, const struct plan_request *q, int *fds, struct answer *a)
{
    (void)fds;
    a->r.error = -stock_set_drop(l, q->sets[0]);
}

static void (*const operations[PLAN_OP_END])(struct launcher *, const struct plan_request *, int *,
                                             struct answer *) = {
    [PLAN_PREPARE] = prepare,   [PLAN_START] = start,           [PLAN_SIGNAL] = send_signal,
    [PLAN_KILL] = kill_it,      [PLAN_SAMPLE] = sample,         [PLAN_EXECUTION] = next_execution,
    [PLAN_TMPFS] = tmpfs,       [PLAN_TMPFS_DROP] = tmpfs_drop, [PLAN_SET_ADD] = set_add,
    [PLAN_SET_DROP] = set_drop,
};

// A request that plan_check() refuses. A START names a sandbox that will not come to life: then
// that one ends, so that the service always gets its END.
static void refuse(struct launcher *l, const struct plan_request *q, int error, struct answer *a)
{
    struct box *b = q->op == PLAN_START ? box_find(l, q->id) : NULL;
    a->r.error = -error;
    a->r.step = PLAN_STEP_check;
    if (b && !b->started) {
        a->silent = true;
        fail_box(l, b, &a->r);
    } else if (q->op == PLAN_START && !b) {
        a->r.op = PLAN_END;
    }
}

// A service that listens holds sockets of the host's network. A job that got one, as its standard
// input say, would be on that network: it may make calls that the service may not. 0 or -EPERM.
static int check_descriptors(const int *fds, int n)
{
    for (int i = 0; i < n; i++) {
        int domain = AF_UNIX;
        socklen_t len = sizeof domain;
        if (!getsockopt(fds[i], SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain != AF_UNIX) {
            return -EPERM;
        }
    }
    return 0;
}

bool request_serve(struct launcher *l)
{
    struct plan_request q;
    int fds[PLAN_N_START_FDS], n_fds = 0;
    uint64_t before = inject_as(INJECT_SERVICE, PLAN_STEP_end);
    ssize_t n = msg_recv(SEAT_SERVICE, &q, sizeof q, fds, PLAN_N_START_FDS, NULL, MSG_DONTWAIT);
    inject_back(before);
    if (n == -EAGAIN) {
        return true;
    }
    if (n == 0 || (n < 0 && n != -EMSGSIZE)) {
        return false;
    }
    while (n_fds < PLAN_N_START_FDS && fds[n_fds] >= 0) {
        n_fds++;
    }
    if (n != sizeof q) { // not of this build: nothing in it means anything
        q = (struct plan_request){0};
    }
    if (inject_request(l, &q)) {
        return true;
    }
    const char *field;
    struct answer a = {.r = {.op = q.op, .id = q.id, .tag = q.tag, .status = -1}, .fd = -1};
    int e = fds[0] == -EMFILE ? -EMFILE : plan_check(&q, n_fds, &field);
    e = e ? e : check_descriptors(fds, n_fds);
    if (e) {
        refuse(l, &q, e, &a);
    } else { // plan_check() knows the same operations, which the linter cannot see
        operations[q.op](l, &q, fds, &a); // NOLINT(clang-analyzer-core.CallAndMessage)
    }
    for (int i = 0; i < n_fds; i++) {
        close(fds[i]);
    }
    if (!a.silent) {
        request_answer(l, &a.r, &a.fd, a.fd >= 0 ? 1 : 0); // a.fd is lent
    }
    return true;
}
