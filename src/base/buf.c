#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_free(struct buf *b)
{
    free(b->data);
    b->data = NULL;
    b->len = b->cap = 0;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->error = 0;
    if (b->data) {
        b->data[0] = '\0';
    }
}

int buf_reserve(struct buf *b, size_t extra)
{
    if (b->error) {
        return b->error;
    }
    if (extra > b->max || b->len > b->max - extra) {
        return b->error = -EMSGSIZE;
    }
    size_t need = b->len + extra + 1;
    if (need <= b->cap) {
        return 0;
    }
    size_t cap = b->cap ? b->cap : 256;
    while (cap < need) {
        cap *= 2;
    }
    char *data = realloc(b->data, cap);
    if (!data) {
        return b->error = -ENOMEM;
    }
    b->data = data;
    b->cap = cap;
    return 0;
}

int buf_add(struct buf *b, const void *data, size_t len)
{
    int e = buf_reserve(b, len);
    if (e) {
        return e;
    }
    if (len > 0) {
        memcpy(b->data + b->len, data, len);
    }
    b->len += len;
    b->data[b->len] = '\0';
    return 0;
}

int buf_puts(struct buf *b, const char *text) { return buf_add(b, text, strlen(text)); }

int buf_putc(struct buf *b, char c) { return buf_add(b, &c, 1); }

int buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (need < 0) {
        return b->error = -EINVAL;
    }
    int e = buf_reserve(b, (size_t)need);
    if (e) {
        return e;
    }
    va_start(args, format);
    vsnprintf(b->data + b->len, (size_t)need + 1, format, args);
    va_end(args);
    b->len += (size_t)need;
    return 0;
}

const char *buf_text(const struct buf *b) { return b->data ? b->data : ""; }

char *buf_take(struct buf *b)
{
    char *text = b->data ? b->data : calloc(1, 1);
    *b = BUF_INIT(b->max);
    return text;
}
