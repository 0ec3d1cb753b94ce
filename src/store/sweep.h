// sweep.h: removes jobs whose results have been kept long enough, a few at a time, so that nobody
// waits behind a big removal.
#ifndef ISLE_STORE_SWEEP_H
#define ISLE_STORE_SWEEP_H

#include "store/store.h"

enum { SWEEP_BATCH = 50 };

// Lives in its owner's struct until `done`.
struct store_sweep {
    // The owner's, filled before the start.
    struct store *store;
    int64_t before_ms; // jobs that ended before it go
    // Called for each before its record goes: what belongs to it elsewhere (files) goes first, so
    // that none is left without a record after a crash. As a `row` of store.h. May be NULL.
    void (*removing)(void *ctx, const struct store_job *job);
    // All are gone, or it stopped at an error of the store: 0 or -errno.
    void (*done)(void *ctx, int error, uint64_t removed);
    void *ctx;

    // Its own.
    uint64_t removed;
    unsigned in_batch, waiting;
    int error;
    size_t id_len[SWEEP_BATCH];
    char ids[SWEEP_BATCH][STORE_ID_MAX];
};

// Begins. `done` comes from the loop, or before this returns when there is nothing to do.
void store_sweep_start(struct store_sweep *s);

#endif
