// loop.h: one event loop on epoll(7): descriptors and timers, single-threaded, nothing polled.
//
// Watches and timers live in their owner's struct; the loop allocates nothing after its start. A
// handler may add and remove any watch or timer, its own and others' too: an event that is already
// fetched for a watch that was removed is not delivered.
#ifndef ISLE_IO_LOOP_H
#define ISLE_IO_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct loop;

// A descriptor that is waited for. Level-triggered: `ready` comes again while the condition lasts.
// EPOLLHUP and EPOLLERR are always delivered.
struct loop_watch {
    void (*ready)(struct loop_watch *w, uint32_t events);
    void *ctx;
    int fd; // not owned; -1: not watched (set by the loop only)
    uint32_t events;
};
#define LOOP_WATCH_INIT(handler, context)                                                          \
    ((struct loop_watch){.ready = (handler), .ctx = (context), .fd = -1})

// A moment on CLOCK_MONOTONIC. Fires once, never early, at most about a millisecond late when the
// loop is free.
struct loop_timer {
    void (*fire)(struct loop_timer *t);
    void *ctx;
    uint64_t due_ns; // 0: not set (by the loop only)
    struct loop_timer *next;
};
#define LOOP_TIMER_INIT(handler, context) ((struct loop_timer){.fire = (handler), .ctx = (context)})

// 0 or -errno.
int loop_new(struct loop **ret);
void loop_free(struct loop *l);

// Begins to watch fd for `events` (EPOLLIN, EPOLLOUT; 0: hang-up only). 0 or -errno; -EPERM for
// what cannot be waited for, such as a regular file. w must not be watched.
int loop_add(struct loop *l, struct loop_watch *w, int fd, uint32_t events);
// Other events for a watch. 0 or -errno; no system call when they are the same.
int loop_change(struct loop *l, struct loop_watch *w, uint32_t events);
// Ends a watch. To be called before the descriptor is closed; harmless when not watched.
void loop_remove(struct loop *l, struct loop_watch *w);

// Sets (or moves) a timer to `delay_ns` from now. clear is harmless when it is not set.
void loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t delay_ns);
void loop_timer_clear(struct loop *l, struct loop_timer *t);

// Delivers events until loop_stop(). 0 or -errno.
int loop_run(struct loop *l);
// Waits for events once (timeout_ms as epoll_wait; due timers shorten it) and delivers them.
int loop_step(struct loop *l, int timeout_ms);
void loop_stop(struct loop *l);

#endif
