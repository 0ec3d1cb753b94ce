// heap.h: the entries that have a deadline, soonest first.
#ifndef ISLE_QUEUE_HEAP_H
#define ISLE_QUEUE_HEAP_H

#include "queue/queue.h"

struct deadline {
    uint64_t due_ns;
    struct queue_entry *entry; // whose heap_at is its place here
};

struct heap {
    struct deadline *at; // at[0] is not used
    size_t count, room;
};

// Room for `count` entries in all. 0 or -ENOMEM.
int heap_reserve(struct heap *h, size_t count);
void heap_free(struct heap *h);

// Gives an entry this deadline, instead of any that it had; 0: none. Room must be there.
void heap_set(struct heap *h, struct queue_entry *e, uint64_t due_ns);
// The soonest; NULL when there is none.
const struct deadline *heap_first(const struct heap *h);

#endif
