#include <stdint.h>
#include <stdlib.h>
int main()
{
    char *b = aligned_alloc(64, 128);
    volatile uint32_t *p = (void *)(b + 62);
    for (long i = 0; i < 200000000L; i++)
        __sync_fetch_and_add(p, 1);
    return 0;
}
