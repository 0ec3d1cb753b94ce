// calls.h: names of system calls, as SANDBOX_SECCOMP_ALLOW gives them.
#ifndef ISLE_CLI_CALLS_H
#define ISLE_CLI_CALLS_H

#include "plan/seat.h"

struct calls {
    uint32_t number[SEAT_MAX_CALLS];
    uint32_t n;
};

struct calls_error {
    char text[200]; // begins with the name that is wrong
};

// Names of this architecture, separated by commas; empty ones count for nothing. 0, or -EINVAL
// with *ret_error.
int calls_parse(const char *text, struct calls *ret, struct calls_error *ret_error);

#endif
