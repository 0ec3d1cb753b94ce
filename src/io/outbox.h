// outbox.h: bytes on their way into a stream socket that may be slow. Never blocks; its bound is
// that of its buffer.
#ifndef ISLE_IO_OUTBOX_H
#define ISLE_IO_OUTBOX_H

#include "base/buf.h"

#include <stddef.h>

struct outbox {
    struct buf data; // append here (bounded)
    size_t sent;     // bytes of data already gone
};
#define OUTBOX_INIT(bound) ((struct outbox){.data = BUF_INIT(bound)})

void outbox_free(struct outbox *o);
// Bytes that wait.
size_t outbox_left(const struct outbox *o);
// Sends what the socket takes now. 1: all gone; 0: wait for EPOLLOUT; -errno (-EPIPE: the reader is
// gone).
int outbox_flush(struct outbox *o, int sock);

#endif
