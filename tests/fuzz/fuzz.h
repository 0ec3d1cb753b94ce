// fuzz.h: what every fuzz target is made of. One target per parser of hostile bytes; each states
// what must hold for any input, and dies where it does not.
#ifndef ISLE_TESTS_FUZZ_H
#define ISLE_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// libFuzzer's name for it; replay.c calls it for the corpus where libFuzzer is not there.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MUST(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #what);                  \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
