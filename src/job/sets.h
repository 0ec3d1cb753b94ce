// sets.h: the package sets of one job: each folder is opened below the cache root and registered
// with the launcher, which checks it (PLAN_SET_ADD) and gives it a number for the plan.
#ifndef ISLE_JOB_SETS_H
#define ISLE_JOB_SETS_H

#include "job/runner.h"

// In its owner's struct, by SETS_INIT; names and root stay the owner's.
struct sets {
    struct runner *runner;
    int root; // package cache as PLAN_READY gave it
    char *const *names;
    size_t n_names;
    // Once, from the loop: 0 when all are registered, else -errno, of names[n]: -ENOENT, -ENOTDIR,
    // -EACCES there is none; -EPERM not one that is safe to give out; -EPIPE the launcher is gone.
    void (*done)(void *ctx, int error);
    void *ctx;
    size_t n;         // registered so far
    uint32_t *number; // where their numbers go: the plan's `sets`
    struct runner_call call;
};

#define SETS_INIT(of_runner, cache, job, handler, context)                                         \
    ((struct sets){.runner = (of_runner),                                                          \
                   .root = (cache),                                                                \
                   .names = (job)->package_sets,                                                   \
                   .n_names = (job)->n_package_sets,                                               \
                   .done = (handler),                                                              \
                   .ctx = (context)})

// 0, or -errno: then `done` does not come.
int sets_register(struct sets *s);
// Gives them back: the launcher forgets their numbers. Whoever runs with them keeps them.
void sets_drop(struct sets *s);

#endif
