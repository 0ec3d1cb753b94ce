// populate.h: memory that is about to be filled whole.
#ifndef ISLE_BASE_POPULATE_H
#define ISLE_BASE_POPULATE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { POPULATE_LEAST_BYTES = 256 * 1024, POPULATE_PAGE_BYTES = 4096 };

// Has the kernel put the pages below fresh memory at once (madvise(2), MADV_POPULATE_WRITE, Linux
// 5.14), which costs half of what a fault for each does. Where it cannot, they come one by one.
// errno stays.
static inline void populate(void *data, size_t len)
{
    int saved = errno;
    size_t skipped = -(uintptr_t)data % POPULATE_PAGE_BYTES;
    if (len >= POPULATE_LEAST_BYTES) {
        madvise((char *)data + skipped, (len - skipped) / POPULATE_PAGE_BYTES * POPULATE_PAGE_BYTES,
                MADV_POPULATE_WRITE);
    }
    errno = saved;
}

#endif
