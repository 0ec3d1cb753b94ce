#include "job/runner.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"

#include <sys/socket.h>

enum { MAX_QUEUED = 1024, RECORDS_PER_ROUND = 32 };

// What a host has in /proc can grow (a module is loaded), and is looked at when a sandbox is made.
#define PARKED_MAX_NS (60 * NS_PER_S)

struct queued {
    struct plan_request q;
    struct queued *next;
};

struct runner {
    struct loop *loop;
    struct loop_watch socket, life;
    int fd;
    bool lost;
    uint32_t last_tag;
    struct runner_call *calls;
    struct queued *queue, **queue_end;
    unsigned n_queued;
    void (*on_lost)(void *ctx);
    void *ctx;
    // the sandbox that was prepared ahead
    struct runner_call ahead;
    uint32_t parked; // its id
    bool expected;   // its PREPARE is not answered yet
    unsigned below;  // another is asked for while fewer calls than this are in flight
    uint32_t network;
    uint64_t asked_ns;
    void (*parked_ready)(void *ctx);
    void *parked_ctx;
    struct runner_stats stats;
};

static struct runner_call *find(struct runner *r, uint32_t tag)
{
    struct runner_call *c = r->calls;
    while (c && c->tag != tag) {
        c = c->next;
    }
    return c;
}

void runner_forget(struct runner *r, struct runner_call *call)
{
    for (struct runner_call **p = &r->calls; *p; p = &(*p)->next) {
        if (*p == call) {
            *p = call->next;
            break;
        }
    }
    call->tag = 0;
    call->next = NULL;
}

// PREPARE and START go on until END; whatever else is asked has one answer.
static bool is_last(const struct plan_record *rec)
{
    return rec->op == PLAN_END ||
           (rec->op != PLAN_PREPARE && rec->op != PLAN_PARKED && rec->op != PLAN_EXECUTED);
}

// PREPARE's answer, PARKED, or its early end.
static void ahead_says(struct runner_call *c, const struct plan_record *rec, int fd)
{
    struct runner *r = c->ctx;
    fd_close(fd);
    r->expected = false;
    r->parked = rec->op == PLAN_END || rec->error ? 0 : rec->id;
    if (rec->op == PLAN_PREPARE && rec->error) {
        runner_forget(r, c);                                // no END follows
        r->below = rec->error == EOPNOTSUPP ? 0 : r->below; // this launcher makes none
    }
    if (r->parked_ready) {
        void (*ready)(void *ctx) = r->parked_ready;
        r->parked_ready = NULL;
        ready(r->parked_ctx);
    }
}

// Not before a program has begun: the launcher does one thing at a time, and that job would wait.
static void ask_next(struct runner *r)
{
    struct plan_request q = {.op = PLAN_PREPARE, .network = r->network};
    unsigned n = 0;
    for (const struct runner_call *c = r->calls; c; c = c->next) {
        n++;
    }
    if (n >= r->below || r->expected || r->parked) {
        return;
    }
    r->ahead = RUNNER_CALL_INIT(ahead_says, r);
    r->expected = !runner_send(r, &q, NULL, 0, &r->ahead);
    r->asked_ns = clock_now_ns();
}

static void dispatch(struct runner *r, const struct plan_record *rec, int fd)
{
    struct runner_call *c = rec->tag ? find(r, rec->tag) : NULL;
    if (!c) { // nobody waits: a call that was forgotten, or one without an owner
        fd_close(fd);
        return;
    }
    if (is_last(rec)) {
        runner_forget(r, c);
    }
    const bool begun = rec->op == PLAN_EXECUTED;
    c->answer(c, rec, fd);
    if (begun) {
        ask_next(r);
    }
}

// The launcher is gone, and every sandbox with it: the kernel has seen to that.
static void lose(struct runner *r)
{
    if (r->lost) {
        return;
    }
    r->lost = true;
    loop_remove(r->loop, &r->socket);
    loop_remove(r->loop, &r->life);
    while (r->calls) {
        struct runner_call *c = r->calls;
        struct plan_record end = RUNNER_LOST_RECORD;
        end.tag = c->tag;
        runner_forget(r, c);
        c->answer(c, &end, -1);
    }
    r->expected = false;
    if (r->on_lost) {
        r->on_lost(r->ctx);
    }
}

// True when there may be more.
static bool receive(struct runner *r)
{
    struct plan_record rec;
    int fd = -1;
    ssize_t n = msg_recv(r->fd, &rec, sizeof rec, &fd, 1, NULL, MSG_DONTWAIT);
    if (n == -EAGAIN) {
        return false;
    }
    if (fd == -EMFILE && !rec.error) { // what came with it is lost
        rec.error = EMFILE;
    }
    if (n != sizeof rec) { // the end, or a launcher of another build
        fd_close(fd);
        lose(r);
        return false;
    }
    dispatch(r, &rec, fd);
    return true;
}

static void flush(struct runner *r)
{
    while (r->queue) {
        struct queued *first = r->queue;
        int e = msg_send(r->fd, &first->q, sizeof first->q, NULL, 0, MSG_DONTWAIT);
        if (e == -EAGAIN) {
            return;
        }
        r->queue = first->next;
        r->n_queued--;
        free(first);
    }
    r->queue_end = &r->queue;
    loop_change(r->loop, &r->socket, EPOLLIN);
}

static void socket_ready(struct loop_watch *w, uint32_t events)
{
    struct runner *r = w->ctx;
    if (events & EPOLLOUT) {
        flush(r);
    }
    // One record a round where that is all there is: the next look would only say EAGAIN.
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        receive(r);
    }
}

// What it said before it died still counts: an END in the socket is a job that ended.
static void life_ready(struct loop_watch *w, uint32_t events)
{
    struct runner *r = w->ctx;
    (void)events;
    for (int i = 0; i < RECORDS_PER_ROUND && !r->lost && receive(r); i++) {
    }
    lose(r);
}

int runner_new(struct loop *loop, int socket, int pidfd, void (*on_lost)(void *ctx), void *ctx,
               struct runner **ret)
{
    struct runner *r = calloc(1, sizeof *r);
    if (!r) {
        return -ENOMEM;
    }
    r->loop = loop;
    r->fd = socket;
    r->on_lost = on_lost;
    r->ctx = ctx;
    r->queue_end = &r->queue;
    r->socket = LOOP_WATCH_INIT(socket_ready, r);
    r->life = LOOP_WATCH_INIT(life_ready, r);
    int e = loop_add(loop, &r->socket, socket, EPOLLIN);
    if (!e) {
        e = loop_add(loop, &r->life, pidfd, EPOLLIN);
    }
    if (e) {
        runner_free(r);
        return e;
    }
    *ret = r;
    return 0;
}

void runner_free(struct runner *r)
{
    if (!r) {
        return;
    }
    loop_remove(r->loop, &r->socket);
    loop_remove(r->loop, &r->life);
    while (r->queue) {
        struct queued *first = r->queue;
        r->queue = first->next;
        free(first);
    }
    free(r);
}

void runner_expect_parked(struct runner *r, uint32_t tag)
{
    r->ahead = RUNNER_CALL_INIT(ahead_says, r);
    r->ahead.tag = tag;
    r->ahead.next = r->calls;
    r->calls = &r->ahead;
    r->expected = true;
    r->asked_ns = clock_now_ns();
}

void runner_keep_parked(struct runner *r, uint32_t network, unsigned below)
{
    r->below = below;
    r->network = network;
}

int runner_take_parked(struct runner *r, uint32_t *ret, void (*ready)(void *ctx), void *ctx)
{
    if (r->expected && r->parked_ready) { // another waits: this job's is made meanwhile
        r->stats.misses++;
        *ret = 0;
        return 0;
    }
    if (r->expected) {
        r->parked_ready = ready;
        r->parked_ctx = ctx;
        return -EAGAIN;
    }
    runner_forget(r, &r->ahead); // from START on its records are the taker's
    *ret = r->parked;
    r->parked = 0;
    if (*ret && clock_now_ns() - r->asked_ns > PARKED_MAX_NS) {
        runner_kill(r, *ret);
        *ret = 0;
    }
    *(*ret ? &r->stats.hits : &r->stats.misses) += 1;
    return 0;
}

void runner_stats(const struct runner *r, struct runner_stats *ret)
{
    *ret = r ? r->stats : (struct runner_stats){0};
}

void runner_leave_parked(struct runner *r, const void *ctx)
{
    if (r->parked_ctx == ctx) {
        r->parked_ready = NULL;
        r->parked_ctx = NULL;
    }
}

void runner_finish(struct runner *r)
{
    if (!r->lost) {
        r->lost = true;
        loop_remove(r->loop, &r->socket);
        loop_remove(r->loop, &r->life);
        shutdown(r->fd, SHUT_RDWR);
    }
}

static int enqueue(struct runner *r, const struct plan_request *q)
{
    struct queued *item = r->n_queued < MAX_QUEUED ? malloc(sizeof *item) : NULL;
    if (!item) {
        return -EAGAIN;
    }
    *item = (struct queued){.q = *q};
    *r->queue_end = item;
    r->queue_end = &item->next;
    r->n_queued++;
    return loop_change(r->loop, &r->socket, EPOLLIN | EPOLLOUT);
}

int runner_send(struct runner *r, struct plan_request *q, const int *fds, int n,
                struct runner_call *call)
{
    if (r->lost) {
        return -EPIPE;
    }
    q->tag = 0;
    if (call) {
        do {
            q->tag = ++r->last_tag;
        } while (q->tag == 0 || find(r, q->tag));
    }
    // behind those that wait: a KILL must not overtake the START before it
    int e = r->queue ? -EAGAIN : msg_send(r->fd, q, sizeof *q, fds, n, MSG_DONTWAIT);
    if (e == -EAGAIN && n == 0) {
        e = enqueue(r, q);
    }
    if (!e && call) {
        call->tag = q->tag;
        call->next = r->calls;
        r->calls = call;
    }
    return e;
}

int runner_signal(struct runner *r, uint32_t id, int signal)
{
    struct plan_request q = {.op = PLAN_SIGNAL, .id = id, .signal = (uint32_t)signal};
    return runner_send(r, &q, NULL, 0, NULL);
}

int runner_kill(struct runner *r, uint32_t id)
{
    struct plan_request q = {.op = PLAN_KILL, .id = id};
    return runner_send(r, &q, NULL, 0, NULL);
}

int runner_tmpfs(struct runner *r, uint32_t uid, uint64_t bytes, uint64_t inodes,
                 struct runner_call *call)
{
    struct plan_request q = {
        .op = PLAN_TMPFS, .uid = uid, .size_bytes = bytes, .size_inodes = inodes};
    return runner_send(r, &q, NULL, 0, call);
}

int runner_tmpfs_drop(struct runner *r, uint32_t workspace_no)
{
    struct plan_request q = {.op = PLAN_TMPFS_DROP, .workspace_no = workspace_no};
    return runner_send(r, &q, NULL, 0, NULL);
}
