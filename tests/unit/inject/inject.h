// inject.h: makes the n-th call that can fail do so, once. Linked with -Wl,--wrap for the calls of
// our own objects (builds with -Dinject=true, without _FORTIFY_SOURCE, whose names are others).
#ifndef ISLE_TESTS_INJECT_H
#define ISLE_TESTS_INJECT_H

#include <stdbool.h>

// From now on the n-th fallible call fails (from 1; 0: none does).
void inject_at(unsigned n);
// Did it come to that call since?
bool inject_hit(void);

// Runs `what` with every call in it failing once, then without a failure. `what` returns its own
// result; `good` is that of a run without failure, which a run with one may have too (where the
// code copes). Returns the number of calls tried.
unsigned inject_all(int (*what)(void), int good);

#endif
