// sse.h: server-sent events (WHATWG HTML, 9.2): bytes in, events out. Memory is bounded by the
// largest event that is believed.
#ifndef ISLE_CLIENT_SSE_H
#define ISLE_CLIENT_SSE_H

#include "base/buf.h"

#include <stdbool.h>

struct sse_event {
    const char *name; // "message" where none was given
    const char *id;   // the last one given, also by an event before; ""
    const char *data; // lines joined by '\n'; NUL-terminated
    size_t len;
};

struct sse {
    // 0, or -errno, which ends the feeding.
    int (*event)(void *ctx, const struct sse_event *e);
    void *ctx;
    // inner
    struct buf line, data;
    char name[32], id[128];
    bool after_cr, has_data;
};

// max_bytes: of one line, and of the data of one event.
void sse_init(struct sse *s, size_t max_bytes, int (*event)(void *ctx, const struct sse_event *e),
              void *ctx);
void sse_done(struct sse *s);
// 0; -EMSGSIZE: an event is too long; what event() gave.
int sse_feed(struct sse *s, const char *data, size_t len);

#endif
