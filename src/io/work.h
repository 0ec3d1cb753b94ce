// work.h: what would block the loop (a hash, a zip, an fsync, the removal of a tree) runs on a few
// threads; its end is told on the loop.
//
// Threads are started with the first pieces of work, so a process that never has any has one
// thread; they stay, and sleep while there is nothing to do. All signals are blocked in them. Queue
// nothing before the process has dropped its rights.
#ifndef ISLE_IO_WORK_H
#define ISLE_IO_WORK_H

#include "io/loop.h"

#include <stdbool.h>
#include <stdint.h>

struct work_pool;

// The number that a tenant's pieces have in common; 0: nobody's, as of NULL.
uint64_t work_owner(const char *tenant);

// One piece, in its owner's struct; the owner's again when `done` is called.
struct work {
    void (*run)(struct work *w); // on a thread: touches nothing but what the owner set aside for it
    void (*done)(struct work *w); // on the loop's thread, once; may queue the next piece
    void *ctx;
    bool background; // waits behind those that are not (somebody waits for them), and leaves one
                     // thread to them where there are several
    uint64_t owner;  // work_owner(); the one with the fewest running is next. None has all
                     // threads, nor all that the background may have
    // inner
    struct work *next;
    bool queued; // to be read, on the loop's thread: it is not the owner's now
};

// `threads` (1 to 16) at most. 0 or -errno.
int work_pool_new(struct loop *l, unsigned threads, struct work_pool **ret);
// 0; -EAGAIN: no thread could be started; -ESHUTDOWN: the pool was stopped. Then nothing will be
// called.
int work_queue(struct work_pool *p, struct work *w);
// Closes fd (-1 is harmless), on a thread where that is the end of a file, or may become that of a
// large one: its blocks are given back then. A pool of NULL has none. `owner` as above.
enum { WORK_CLOSE_BYTES = 256 << 10 }; // 64 blocks, which may lie apart
void work_close(struct work_pool *p, int fd, uint64_t owner);
// Pieces that were queued and whose `done` has not been called.
unsigned work_waiting(const struct work_pool *p);
// Waits for what runs and ends the threads. No `done` is called any more, every piece is its
// owner's again (`queued` is false). Harmless twice, and on NULL.
void work_pool_stop(struct work_pool *p);
// Stops it and frees it. NULL is harmless.
void work_pool_free(struct work_pool *p);

#endif
