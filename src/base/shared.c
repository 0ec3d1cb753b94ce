#include "base/shared.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct shared {
    size_t holds;
    char text[];
};

static struct shared *of(const char *text)
{
    return (struct shared *)((uintptr_t)text - offsetof(struct shared, text));
}

char *shared_of(const char *data, size_t len)
{
    struct shared *s = len < SIZE_MAX - sizeof *s ? malloc(sizeof *s + len + 1) : NULL;
    if (!s) {
        return NULL;
    }
    s->holds = 1;
    if (len > 0) {
        memcpy(s->text, data, len);
    }
    s->text[len] = '\0';
    return s->text;
}

void shared_hold(const char *text)
{
    if (text) {
        of(text)->holds++;
    }
}

void shared_release(const char *text)
{
    if (text && --of(text)->holds == 0) {
        free(of(text));
    }
}
