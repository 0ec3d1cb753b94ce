#include "http/value.h"

#include "codec/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static bool is_token_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool http_is_token(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!is_token_char(text[i])) {
            return false;
        }
    }
    return len > 0;
}

bool http_is_value(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return utf8_valid(text, len);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int http_percent_decode(struct buf *out, const char *data, size_t len, bool plus)
{
    for (size_t i = 0; i < len; i++) {
        char c = data[i];
        if (c == '%') {
            int high = len - i > 2 ? hex_digit(data[i + 1]) : -1;
            int low = len - i > 2 ? hex_digit(data[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return -EINVAL;
            }
            c = (char)(high * 16 + low);
            i += 2;
        } else if (plus && c == '+') {
            c = ' ';
        }
        int e = buf_putc(out, c);
        if (e) {
            return e;
        }
    }
    return 0;
}

// Digits up to `end`, at least one. -ERANGE: too many for any file.
static int number(const char *text, size_t len, uint64_t *ret)
{
    uint64_t n = 0;
    if (len == 0) {
        return -EINVAL;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return -EINVAL;
        }
        if (n > (UINT64_MAX - 9) / 10) {
            n = UINT64_MAX / 10 - 1; // past every size, and stays there
        }
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    *ret = n;
    return 0;
}

int http_range(const char *value, uint64_t size, uint64_t *ret_first, uint64_t *ret_len)
{
    if (strncmp(value, "bytes=", 6) != 0) {
        return 0;
    }
    const char *from = value + 6;
    const char *dash = strchr(from, '-');
    if (!dash) {
        return 0;
    }
    size_t n_from = (size_t)(dash - from), n_to = strlen(dash + 1);
    uint64_t first = 0, last = UINT64_MAX;
    if ((n_from && number(from, n_from, &first)) || (n_to && number(dash + 1, n_to, &last)) ||
        (!n_from && !n_to)) {
        return 0;
    }
    if (!n_from) { // the last so many
        if (last == 0 || size == 0) {
            return -ERANGE;
        }
        first = last >= size ? 0 : size - last;
        last = size - 1;
    }
    if (n_from && n_to && last < first) {
        return 0;
    }
    if (first >= size) {
        return -ERANGE;
    }
    last = last >= size ? size - 1 : last;
    *ret_first = first;
    *ret_len = last - first + 1;
    return 1;
}

static const char *skip_separators(const char *at) { return at + strspn(at, " \t,"); }

bool http_etag_listed(const char *list, const char *etag, bool weak)
{
    bool own_weak = strncmp(etag, "W/", 2) == 0;
    const char *own = own_weak ? etag + 2 : etag;
    if (strcmp(list, "*") == 0) {
        return true;
    }
    for (const char *at = skip_separators(list); *at; at = skip_separators(at)) {
        bool is_weak = strncmp(at, "W/", 2) == 0;
        const char *tag = is_weak ? at + 2 : at;
        const char *end = *tag == '"' ? strchr(tag + 1, '"') : NULL;
        if (!end) {
            return false;
        }
        size_t len = (size_t)(end + 1 - tag);
        if (strlen(own) == len && memcmp(own, tag, len) == 0 && (weak || (!is_weak && !own_weak))) {
            return true;
        }
        at = end + 1;
        if (*at && *at != ' ' && *at != '\t' && *at != ',') {
            return false;
        }
    }
    return false;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '%' && c != '/';
}

int http_attachment(struct buf *out, const char *name)
{
    const char *slash = strrchr(name, '/');
    name = slash ? slash + 1 : name;
    buf_puts(out, "attachment; filename=\"");
    bool plain = true;
    for (const char *c = name; *c; c++) {
        bool fine = is_plain((unsigned char)*c);
        plain = plain && fine;
        // The bytes behind the first of a character say nothing of their own.
        if (fine || ((unsigned char)*c & 0xc0) != 0x80) {
            buf_putc(out, fine ? *c : '_');
        }
    }
    buf_putc(out, '"');
    if (plain) {
        return out->error;
    }
    AUTO_BUF struct buf clean = BUF_INIT(out->max);
    int e = utf8_clean(&clean, name, strlen(name));
    if (e) {
        return e;
    }
    buf_puts(out, "; filename*=UTF-8''");
    for (size_t i = 0; i < clean.len; i++) {
        unsigned char c = (unsigned char)clean.data[i];
        if (c < 0x80 && (isalnum(c) || strchr("!#$&+-.^_`|~", c))) { // attr-char of RFC 8187
            buf_putc(out, (char)c);
        } else {
            buf_printf(out, "%%%02X", c);
        }
    }
    return out->error;
}
