#include "workspace/names.h"

#include "codec/utf8.h"

#include <errno.h>
#include <string.h>

// How many bytes at p are a character that text should not hold; 0: none. len > 0, valid UTF-8.
static size_t unwanted(const char *p, size_t len, const char *also)
{
    unsigned char c = (unsigned char)p[0];
    if (c < 0x20 || c == 0x7f || strchr(also, c)) {
        return 1;
    }
    return c == 0xc2 && len > 1 && (unsigned char)p[1] < 0xa0 ? 2 : 0; // U+0080 to U+009F
}

static bool is_plain(const char *path, size_t len, const char *also)
{
    if (!utf8_valid(path, len)) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (unwanted(path + i, len - i, also)) {
            return false;
        }
    }
    return true;
}

static void add_escaped(struct buf *out, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%%%02X", (unsigned)(unsigned char)p[i]);
    }
}

int names_escape(struct buf *out, const char *path, size_t len, const char *also, bool *ret_escaped)
{
    *ret_escaped = !is_plain(path, len, also);
    if (!*ret_escaped) {
        return buf_add(out, path, len);
    }
    for (size_t at = 0; at < len;) {
        size_t valid = utf8_valid_prefix(path + at, len - at);
        for (size_t end = at + valid; at < end;) {
            size_t n = path[at] == '%' ? 1 : unwanted(path + at, end - at, also);
            if (n) {
                add_escaped(out, path + at, n);
            } else {
                buf_putc(out, path[at]);
            }
            at += n ? n : 1;
        }
        if (at < len) {
            add_escaped(out, path + at, 1);
            at++;
        }
    }
    return out->error;
}

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

int names_unescape(struct buf *out, const char *text, size_t len)
{
    for (size_t at = 0; at < len; at++) {
        char c = text[at];
        if (c == '%') {
            int high = len - at > 2 ? digit(text[at + 1]) : -1;
            int low = high < 0 ? -1 : digit(text[at + 2]);
            if (low < 0) {
                return -EINVAL;
            }
            c = (char)(high * 16 + low);
            at += 2;
        }
        if (!c) {
            return -EINVAL;
        }
        buf_putc(out, c);
    }
    return out->error;
}
