// The events of a service, which may be anybody's: cut anywhere they are the same events, and none
// is larger than allowed.
#include "client/sse.h"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

enum { MOST = 256 };

static int note(void *ctx, const struct sse_event *e)
{
    struct buf *seen = ctx;
    MUST(e->len <= MOST && strlen(e->name) < 32 && strlen(e->id) < 128);
    buf_puts(seen, e->name);
    buf_putc(seen, '\0');
    buf_puts(seen, e->id);
    buf_putc(seen, '\0');
    return buf_add(seen, e->data, e->len);
}

static int feed(const uint8_t *data, size_t len, size_t piece, struct buf *seen)
{
    struct sse s;
    int e = 0;
    sse_init(&s, MOST, note, seen);
    for (size_t at = 0; !e && at < len; at += piece) {
        e = sse_feed(&s, (const char *)data + at, len - at < piece ? len - at : piece);
    }
    sse_done(&s);
    return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 1 || len > 1 << 14) {
        return 0;
    }
    struct buf whole = BUF_INIT(1 << 20), pieces = BUF_INIT(1 << 20);
    int e = feed(data + 1, len - 1, len, &whole);
    int f = feed(data + 1, len - 1, 1 + data[0] % 16, &pieces);
    MUST(e == f && (e == 0 || e == -EMSGSIZE));
    MUST(whole.len == pieces.len && memcmp(buf_text(&whole), buf_text(&pieces), whole.len) == 0);
    buf_free(&whole);
    buf_free(&pieces);
    return 0;
}
