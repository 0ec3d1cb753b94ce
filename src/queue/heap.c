#include "queue/heap.h"

#include <errno.h>
#include <stdlib.h>

int heap_reserve(struct heap *h, size_t count)
{
    if (count < h->room) {
        return 0;
    }
    size_t room = h->room ? 2 * h->room : 64;
    while (room <= count) {
        room *= 2;
    }
    struct deadline *at = reallocarray(h->at, room, sizeof *at);
    if (!at) {
        return -ENOMEM;
    }
    h->at = at;
    h->room = room;
    return 0;
}

void heap_free(struct heap *h)
{
    free(h->at);
    *h = (struct heap){0};
}

static void put(struct heap *h, size_t place, struct deadline d)
{
    h->at[place] = d;
    d.entry->heap_at = place;
}

// Moves d from the free place `place` to where it belongs.
static void settle(struct heap *h, size_t place, struct deadline d)
{
    while (place > 1 && h->at[place / 2].due_ns > d.due_ns) {
        put(h, place, h->at[place / 2]);
        place /= 2;
    }
    for (;;) {
        size_t child = 2 * place;
        if (child < h->count && h->at[child + 1].due_ns < h->at[child].due_ns) {
            child++;
        }
        if (child > h->count || h->at[child].due_ns >= d.due_ns) {
            break;
        }
        put(h, place, h->at[child]);
        place = child;
    }
    put(h, place, d);
}

void heap_set(struct heap *h, struct queue_entry *e, uint64_t due_ns)
{
    if (due_ns != 0) {
        size_t place = e->heap_at ? e->heap_at : ++h->count;
        settle(h, place, (struct deadline){due_ns, e});
    } else if (e->heap_at != 0) {
        size_t place = e->heap_at;
        struct deadline last = h->at[h->count--];
        e->heap_at = 0;
        if (last.entry != e) {
            settle(h, place, last);
        }
    }
}

const struct deadline *heap_first(const struct heap *h) { return h->count > 0 ? &h->at[1] : NULL; }
