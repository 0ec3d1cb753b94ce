// buf.h: a growable byte buffer with a bound that is given when it is made. Growing past the bound
// fails; nothing in the product grows without one.
#ifndef ISLE_BASE_BUF_H
#define ISLE_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

struct buf {
    char *data; // NUL-terminated whenever not NULL (the NUL is not counted)
    size_t len;
    size_t cap;
    size_t max; // bytes at most
    int error;  // first failure (-ENOMEM, -EMSGSIZE), sticky: check once at the end
};

#define BUF_INIT(bound) ((struct buf){.max = (bound)})
#define AUTO_BUF __attribute__((cleanup(buf_free)))

void buf_free(struct buf *b);
void buf_clear(struct buf *b); // len 0, error 0; memory kept

// Room for `extra` more bytes. 0 or the (sticky) error.
int buf_reserve(struct buf *b, size_t extra);
int buf_add(struct buf *b, const void *data, size_t len);
int buf_puts(struct buf *b, const char *text);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The text (never NULL: "" when empty); valid until the next change.
const char *buf_text(const struct buf *b);
// The malloc'ed text, which the caller now owns; the buffer is empty afterwards. NULL only without
// memory.
char *buf_take(struct buf *b);

#endif
