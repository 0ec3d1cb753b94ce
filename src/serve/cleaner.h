// cleaner.h: folder trees that nobody needs any more go by and by, on background threads, a few at
// a time and each in small pieces: one that is huge, or cannot be removed, holds up none of the
// others, and no job. A piece is one file at least, and that may take long: whose it is (`owner`,
// as io/work.h has it, or 0) leaves room for others.
#ifndef ISLE_SERVE_CLEANER_H
#define ISLE_SERVE_CLEANER_H

#include "workspace/files.h"

struct cleaner;
struct work_pool;

// `trash`: a folder of the service's own; stays the caller's. 0 or -errno.
int cleaner_new(int trash, struct work_pool *pool, struct cleaner **ret);
// After work_pool_stop(). What is not removed stays. NULL is harmless.
void cleaner_free(struct cleaner *c);

// From the loop: 0, or -errno of something that could not be removed.
typedef void (*cleaner_done)(void *ctx, int error);
// Moves dir/name into the trash, at once and atomically, and removes it there. `done` (may be NULL)
// comes once if it answers 0; else -errno (-ENOENT). ret_trashed (may be NULL): how it is called in
// the trash, once it is there, also where it is not removed after all.
int cleaner_take(struct cleaner *c, int dir, const char *name, uint64_t owner, cleaner_done done,
                 void *ctx, char ret_trashed[FILES_RANDOM_NAME]);
// Removes an entry of the trash. 0 or -errno.
int cleaner_remove(struct cleaner *c, const char *name, uint64_t owner, cleaner_done done,
                   void *ctx);
// Removes everything that is in the trash: at start. 0 or -errno.
int cleaner_sweep(struct cleaner *c);

#endif
