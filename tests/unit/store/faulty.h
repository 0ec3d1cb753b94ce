// faulty.h: a disk that fails when it is told to: a layer below SQLite, above the real files.
#ifndef STORE_FAULTY_H
#define STORE_FAULTY_H

#include <stdatomic.h>

struct faulty {
    atomic_int countdown; // the call that makes it 0 fails, and all after it; negative: none does
    atomic_int code;      // with this, such as SQLITE_FULL
    atomic_int syncs;     // of logs, since the start
    atomic_int calls;     // that could have failed
};
extern struct faulty faulty;

// From here on databases are opened through it.
void faulty_install(void);

#endif
