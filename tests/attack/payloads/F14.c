#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    char *b = aligned_alloc(64, 128);
    int harmless = argc > 1; /* the same work inside one cache line, for comparison */
    volatile uint32_t *p = (void *)(b + (harmless ? 60 : 62));
    for (long i = 0; i < (harmless ? LONG_MAX : 200000000L); i++)
        __sync_fetch_and_add(p, 1);
    return 0;
}
