// hash.h: where a name stands in a table in memory. Not for names that somebody could choose to
// meet in one place.
#ifndef ISLE_BASE_HASH_H
#define ISLE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

// FNV-1a.
static inline uint32_t hash_bytes(const char *data, size_t len)
{
    uint32_t h = UINT32_C(2166136261);
    for (size_t i = 0; i < len; i++) {
        h = (h ^ (unsigned char)data[i]) * UINT32_C(16777619);
    }
    return h;
}

#endif
