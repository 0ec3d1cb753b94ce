// sqlite.h: the store in one SQLite file, for a service that runs alone.
//
// WAL with synchronous=FULL: a write that was answered survives the loss of power. One thread
// writes, in groups: what comes while it waits for the disk goes into the next transaction
// together. Reads are short (an index, a limit) and run at once, on a connection of their own.
#ifndef ISLE_STORE_SQLITE_H
#define ISLE_STORE_SQLITE_H

#include "io/loop.h"
#include "store/store.h"

struct store_sqlite {
    const char *dir;      // a folder of the service's own; the files in it get mode 0600
    int64_t now_ms;       // when jobs ended that the last start had begun
    uint32_t lazy_ms;     // how long lazy writes wait for company; 0: 200
    size_t waiting_bytes; // of writes that are not answered yet, the last eighth of it of short
                          // ones; 0: 128 MiB
};

struct store_error {
    char text[256]; // for a person
};

// Opens or makes the store: lock, integrity check, migrations; jobs that an older start had begun
// become FAILED with reason worker_lost, once. 0 or -errno with *ret_error filled: -EBUSY (another
// process has it), -EBADMSG (damaged), -EPROTONOSUPPORT (written by a newer version).
// It starts a thread: to be called after the process has dropped its rights.
int store_sqlite_open(struct loop *l, const struct store_sqlite *config, struct store **ret,
                      struct store_error *ret_error);

#endif
