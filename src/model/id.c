#include "model/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

void job_new_id(char ret[37])
{
    uint8_t b[16] = {0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    // getrandom(2) of at most 256 bytes neither blocks nor comes short once the pool is seeded.
    if (getrandom(b, sizeof b, 0) != sizeof b) {
        uint64_t fallback = (uint64_t)now.tv_nsec ^ ((uint64_t)getpid() << 32);
        for (int i = 0; i < 8; i++) {
            b[8 + i] = (uint8_t)(fallback >> (8 * i));
        }
    }
    for (int i = 0; i < 6; i++) {
        b[i] = (uint8_t)(ms >> (8 * (5 - i)));
    }
    b[6] = (uint8_t)(0x70 | (b[6] & 0x0f)); // version 7
    b[8] = (uint8_t)(0x80 | (b[8] & 0x3f)); // variant of RFC 9562
    snprintf(ret, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
             b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}
