#include "io/outbox.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { FLUSH_BYTES = 4 << 20 };

void outbox_free(struct outbox *o)
{
    buf_free(&o->data);
    o->sent = 0;
}

size_t outbox_left(const struct outbox *o) { return o->data.len - o->sent; }

int outbox_flush(struct outbox *o, int sock)
{
    const size_t until = o->sent + FLUSH_BYTES; // a peer may read as fast as this writes
    while (outbox_left(o) > 0 && o->sent < until) {
        ssize_t n = send(sock, o->data.data + o->sent, outbox_left(o), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno != EAGAIN) {
            return -errno;
        }
        if (n < 0) {
            break;
        }
        o->sent += (size_t)n;
    }
    size_t left = outbox_left(o);
    if (left == 0) {
        buf_clear(&o->data);
        o->sent = 0;
        return 1;
    }
    if (o->sent > left) { // the front half is gone: make its room usable again
        memmove(o->data.data, o->data.data + o->sent, left + 1);
        o->data.len = left;
        o->sent = 0;
    }
    return 0;
}
