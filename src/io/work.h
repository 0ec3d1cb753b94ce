// work.h: what would block the loop (a hash, a zip, an fsync, the removal of a tree) runs on a few
// threads; its end is told on the loop.
//
// Threads are started with the first piece of work, so a process that never has any has one thread.
// Start nothing before the process has dropped its rights.
#ifndef ISLE_IO_WORK_H
#define ISLE_IO_WORK_H

#include "io/loop.h"

#include <stdbool.h>

struct work_pool;

// One piece, in its owner's struct; the owner's again when `done` is called.
struct work {
    void (*run)(struct work *w); // on a thread: touches nothing but what the owner set aside for it
    void (*done)(struct work *w); // on the loop's thread, once; may queue the next piece
    void *ctx;
    bool background; // waits behind those that are not: somebody waits for them
    // inner
    struct work *next;
    bool queued;
};

// `threads` (1 to 16) at most. 0 or -errno.
int work_pool_new(struct loop *l, unsigned threads, struct work_pool **ret);
// 0, or -EAGAIN: no thread could be started (then nothing will be called).
int work_queue(struct work_pool *p, struct work *w);
// Pieces that were queued and whose `done` has not been called.
unsigned work_waiting(const struct work_pool *p);
// Waits for what runs; what was not begun is dropped without `done`. NULL is harmless.
void work_pool_free(struct work_pool *p);

#endif
