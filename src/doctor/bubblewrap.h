// bubblewrap.h: which Bubblewrap is there, and what is known to be wrong with it.
#ifndef ISLE_DOCTOR_BUBBLEWRAP_H
#define ISLE_DOCTOR_BUBBLEWRAP_H

#include <stdbool.h>
#include <stddef.h>

struct bubblewrap {
    char path[256];
    char version[32]; // "0.12.1"; "" when it does not say
    bool setuid;
};

// `given` (an operator's path, "" for none), else the runtime root's, else that of PATH. 0 or
// -ENOENT. The runtime root's is not executed: its version is that of the root's list of packages.
int bubblewrap_find(const char *given, const char *runtime_root, struct bubblewrap *ret);

// Known holes of this version, in words, or NULL.
const char *bubblewrap_holes(const struct bubblewrap *b);

// Is version `a` older than `b`? Numbers between dots; what follows them is not looked at.
bool bubblewrap_older(const char *a, const char *b);

#endif
