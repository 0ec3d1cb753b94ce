// steps.h: the start as data, in the order of time. `isle run --show-plan` prints it.
#ifndef ISLE_START_STEPS_H
#define ISLE_START_STEPS_H

#include "start/mode.h"

#include <stddef.h>

struct start; // start/internal.h

enum start_where {
    START_FRONT, // the process a user started: host root, single-threaded
    START_CHILD, // its child, before it executes itself again: host root, then inner root
    START_INNER, // the new image: inner root, then the service
    START_N_WHERE,
};
extern const char *const start_where_names[START_N_WHERE];

// For whom a step is: bits 1 << enum start_user.
enum {
    START_FOR_ROOT = 1 << START_ROOT,
    START_FOR_RANGE = 1 << START_RANGE,
    START_FOR_SINGLE = 1 << START_SINGLE,
    START_FOR_ACCOUNTS = START_FOR_RANGE | START_FOR_SINGLE,
    START_FOR_MAPPED = START_FOR_ROOT | START_FOR_RANGE, // who has ids to drop to
    START_FOR_ALL = START_FOR_ROOT | START_FOR_ACCOUNTS,
};

struct start_step {
    const char *name; // as in struct start_error
    enum start_where where;
    uint32_t who;                // START_FOR_*
    int (*run)(struct start *s); // 0 or -errno with s->error filled
    const char *why;             // one sentence: why, and why here
};

extern const struct start_step start_steps[];
extern const size_t start_n_steps;

#endif
