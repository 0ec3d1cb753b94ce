#include "cli/terminal.h"

#include "codec/utf8.h"

#include <string.h>

size_t terminal_room(size_t len) { return 3 * len + 1; } // U+FFFD takes three bytes for one

int terminal_clean(struct buf *out, const char *data, size_t len)
{
    size_t from = out->len;
    int e = utf8_clean(out, data, len);
    if (e) {
        return e;
    }
    for (size_t i = from; i < out->len; i++) {
        unsigned char *p = (unsigned char *)out->data + i;
        if ((*p < 0x20 && !(*p && strchr("\t\n\r\b", *p))) || *p == 0x7f) {
            *p = '?';
        } else if (p[0] == 0xc2 && i + 1 < out->len && p[1] < 0xa0) { // U+0080 to U+009F
            p[0] = p[1] = '?';
        }
    }
    return 0;
}
