// bwrap.h: which Bubblewrap, and may it be used? For the start, --show-plan and `isle doctor`.
#ifndef ISLE_START_BWRAP_H
#define ISLE_START_BWRAP_H

#include "plan/seat.h"

#include <stddef.h>
#include <stdint.h>

struct bwrap_found {
    char path[SEAT_PATH_MAX]; // as it was asked for
    uint32_t version;         // plan/bwrap.h; 0: it did not say, or not in time
    char version_text[16];    // "0.12.0", or "unknown"
    uint32_t is_runtimes;     // 1: the runtime root's, executed with that root's libraries
};

// The program to use: `setting` (an absolute path), or with "bwrap", "" or NULL the runtime root's.
// 0, -ENOENT and the like for one that is not there or no program, -EPERM for one with a set-uid or
// set-gid mode; then ret_text says what is wrong and what to do.
int bwrap_find(const char *setting, const char *runtime_root, struct bwrap_found *ret,
               char *ret_text, size_t size);

// Asks it for its version: executed as nobody (by root), in / with an empty environment, for a
// second at most. Fills version and version_text.
void bwrap_ask_version(struct bwrap_found *b, const char *runtime_root);

// Its arguments for a job on this host, as the launcher makes them: words with their NULs. Bytes,
// or -E2BIG.
int bwrap_words(const struct bwrap_found *b, const char *hostname, uint32_t n_sets,
                uint32_t host_network, char *ret, size_t size);

#endif
