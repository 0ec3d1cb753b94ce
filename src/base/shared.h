// shared.h: a long text that several hold and nobody copies. It does not change once it was handed
// on, so that any thread may read it; it is held and released on one thread only.
#ifndef ISLE_BASE_SHARED_H
#define ISLE_BASE_SHARED_H

#include <stddef.h>

// A copy, held once; NUL-terminated. NULL: no memory.
char *shared_of(const char *data, size_t len);
// A text of shared_of(). NULL is harmless.
void shared_hold(const char *text);
void shared_release(const char *text); // the last one frees it

#endif
