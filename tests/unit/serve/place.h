// place.h: a service's data folder, its loop and threads, without a service.
#ifndef SERVE_PLACE_H
#define SERVE_PLACE_H

#include "base/fd.h"
#include "io/loop.h"
#include "io/work.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

struct place {
    char path[64];
    int root;
    struct loop *loop;
    struct work_pool *pool;
};

void place_make(struct place *p);
void place_drop(struct place *p);    // the folder too
void place_threads(struct place *p); // a new pool and loop, as after a start
void place_no_threads(struct place *p);
// Runs the loop until `until` says so; fails after a minute.
void place_run(struct place *p, bool (*until)(void *ctx), void *ctx);
bool place_has(const struct place *p, const char *path);
void place_write(const struct place *p, const char *path, const char *text);
void place_folder(const struct place *p, const char *path);
unsigned place_count(const struct place *p, const char *path); // entries of a folder

#endif
