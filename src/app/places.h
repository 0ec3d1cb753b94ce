// places.h: where the programs and the guest's files are: beside `isle` in a build tree, in
// libexec when installed, where ISLE_LIBEXEC says (tests).
#ifndef ISLE_APP_PLACES_H
#define ISLE_APP_PLACES_H

#include <limits.h>

struct places {
    char libexec[PATH_MAX]; // isle-launcher, isle-shim
    char guest[PATH_MAX];   // python.pyc, javascript.cjs
};

// 0, or -ENOENT when isle-launcher is in none of the places (*ret is then the last one tried).
int places_find(struct places *ret);

#endif
