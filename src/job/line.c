#include "job/line.h"

#include "codec/utf8.h"

#include <stdint.h>
#include <string.h>

static int is_control(const char *p, size_t len)
{
    unsigned char c = (unsigned char)p[0];
    // U+0080..U+009F are controls too: some terminals take U+009B for an escape sequence's begin
    return c < 0x20 || c == 0x7f || (c == 0xc2 && len > 1 && (unsigned char)p[1] < 0xa0);
}

void line_add(struct buf *out, const char *data, size_t len)
{
    if (len > out->max) {
        len = utf8_cut(data, out->max);
    }
    AUTO_BUF struct buf clean = BUF_INIT(3 * len + 4); // U+FFFD takes three bytes for one
    if (utf8_clean(&clean, data, len)) {
        return;
    }
    char *p = clean.data;
    size_t n = clean.len;
    for (size_t i = 0; i < n; i++) {
        if (is_control(p + i, n - i)) {
            p[i] = ' ';
            if (i + 1 < n && ((unsigned char)p[i + 1] & 0xc0) == 0x80) {
                memmove(p + i + 1, p + i + 2, n - i - 2);
                n--;
            }
        }
    }
    size_t room = out->max - out->len;
    buf_add(out, p, n <= room ? n : utf8_cut(p, room));
}
