#include "io/loop.h"

#include "base/clock.h"
#include "base/fd.h"

#include <limits.h>

enum { BATCH = 16 };

struct loop {
    int epoll;
    bool stop;
    struct loop_timer *timers; // sorted, soonest first: there are few of them
    struct epoll_event batch[BATCH];
    int n_batch;
};

int loop_new(struct loop **ret)
{
    struct loop *l = calloc(1, sizeof *l);
    if (!l) {
        return -ENOMEM;
    }
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll < 0) {
        int e = -errno;
        free(l);
        return e;
    }
    *ret = l;
    return 0;
}

void loop_free(struct loop *l)
{
    if (l) {
        close(l->epoll);
        free(l);
    }
}

int loop_add(struct loop *l, struct loop_watch *w, int fd, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e)) {
        return -errno;
    }
    w->fd = fd;
    w->events = events;
    return 0;
}

int loop_change(struct loop *l, struct loop_watch *w, uint32_t events)
{
    if (w->fd < 0 || w->events == events) {
        return w->fd < 0 ? -EBADF : 0;
    }
    struct epoll_event e = {.events = events, .data.ptr = w};
    if (epoll_ctl(l->epoll, EPOLL_CTL_MOD, w->fd, &e)) {
        return -errno;
    }
    w->events = events;
    return 0;
}

void loop_remove(struct loop *l, struct loop_watch *w)
{
    if (w->fd < 0) {
        return;
    }
    epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
    w->fd = -1;
    for (int i = 0; i < l->n_batch; i++) { // its owner may be freed before the batch is through
        if (l->batch[i].data.ptr == w) {
            l->batch[i].data.ptr = NULL;
        }
    }
}

void loop_timer_clear(struct loop *l, struct loop_timer *t)
{
    for (struct loop_timer **p = &l->timers; *p; p = &(*p)->next) {
        if (*p == t) {
            *p = t->next;
            break;
        }
    }
    t->due_ns = 0;
    t->next = NULL;
}

void loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t delay_ns)
{
    if (t->due_ns) {
        loop_timer_clear(l, t);
    }
    t->due_ns = clock_now_ns() + delay_ns;
    struct loop_timer **p = &l->timers;
    while (*p && (*p)->due_ns <= t->due_ns) {
        p = &(*p)->next;
    }
    t->next = *p;
    *p = t;
}

// Rounded up: a timer never fires early.
static int wait_ms(const struct loop *l, int timeout_ms)
{
    if (!l->timers) {
        return timeout_ms;
    }
    uint64_t now = clock_now_ns();
    uint64_t due = l->timers->due_ns;
    uint64_t ms = due <= now ? 0 : (due - now + NS_PER_MS - 1) / NS_PER_MS;
    int left = ms > INT_MAX ? INT_MAX : (int)ms;
    return timeout_ms >= 0 && timeout_ms < left ? timeout_ms : left;
}

// Only timers that were due when the round began: one that sets itself to 0 cannot starve the
// descriptors.
static void fire_timers(struct loop *l)
{
    if (!l->timers) {
        return;
    }
    uint64_t now = clock_now_ns();
    while (l->timers && l->timers->due_ns <= now && !l->stop) {
        struct loop_timer *t = l->timers;
        loop_timer_clear(l, t);
        t->fire(t);
    }
}

int loop_step(struct loop *l, int timeout_ms)
{
    int n = epoll_wait(l->epoll, l->batch, BATCH, wait_ms(l, timeout_ms));
    if (n < 0) {
        return errno == EINTR ? 0 : -errno;
    }
    l->n_batch = n;
    for (int i = 0; i < l->n_batch && !l->stop; i++) {
        struct loop_watch *w = l->batch[i].data.ptr;
        if (w) {
            w->ready(w, l->batch[i].events);
        }
    }
    l->n_batch = 0;
    fire_timers(l);
    return 0;
}

int loop_run(struct loop *l)
{
    l->stop = false;
    while (!l->stop) {
        int e = loop_step(l, -1);
        if (e) {
            return e;
        }
    }
    return 0;
}

void loop_stop(struct loop *l) { l->stop = true; }
