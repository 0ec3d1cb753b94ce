#include "codec/utf8.h"

#include <stdint.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" // U+FFFD

// What stands at the beginning of some bytes.
enum piece {
    PIECE_CHAR,    // a whole character
    PIECE_INVALID, // a maximal part that no character can begin with
    PIECE_TAIL,    // the end came inside a character
};

// The second byte carries every special rule of RFC 3629 section 4: no overlong forms (C0, C1, E0,
// F0), no surrogates (ED), nothing above U+10FFFF (F4 and up). Later bytes are always 80..BF.
static int lead_of(uint8_t lead, uint8_t *ret_low, uint8_t *ret_high)
{
    *ret_low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    *ret_high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xc2 || lead > 0xf4) {
        return 0;
    }
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

// len > 0. The piece's length in *ret_len (at least 1).
static enum piece piece_at(const uint8_t *p, size_t len, size_t *ret_len)
{
    uint8_t low, high;
    int need = lead_of(p[0], &low, &high);
    *ret_len = 1;
    if (need <= 1) {
        return need == 1 ? PIECE_CHAR : PIECE_INVALID;
    }
    for (size_t i = 1; i < (size_t)need; i++) {
        *ret_len = i;
        if (i == len) {
            return PIECE_TAIL;
        }
        if (p[i] < low || p[i] > high) {
            return PIECE_INVALID;
        }
        low = 0x80;
        high = 0xbf;
    }
    *ret_len = (size_t)need;
    return PIECE_CHAR;
}

// Bytes of valid UTF-8 from p on; ASCII goes by eight, since that is what output mostly is.
static size_t valid_span(const uint8_t *p, size_t len)
{
    size_t at = 0;
    while (at < len) {
        uint64_t eight;
        if (len - at >= sizeof eight) {
            memcpy(&eight, p + at, sizeof eight);
            if (!(eight & UINT64_C(0x8080808080808080))) {
                at += sizeof eight;
                continue;
            }
        }
        size_t n;
        if (piece_at(p + at, len - at, &n) != PIECE_CHAR) {
            break;
        }
        at += n;
    }
    return at;
}

size_t utf8_cut(const char *data, size_t len)
{
    // A character has at most four bytes: only the last three can begin one that is cut.
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        const uint8_t *p = (const uint8_t *)data + len - back;
        size_t n;
        if ((*p & 0xc0) == 0x80) {
            continue;
        }
        return piece_at(p, back, &n) == PIECE_TAIL && n == back ? len - back : len;
    }
    return len;
}

bool utf8_is_line(const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)data[i];
        unsigned char next = i + 1 < len ? (unsigned char)data[i + 1] : 0;
        unsigned char last = i + 2 < len ? (unsigned char)data[i + 2] : 0;
        if (c < 0x20 || c == 0x7f || (c == 0xc2 && next >= 0x80 && next <= 0x9f) ||
            (c == 0xe2 && next == 0x80 && (last == 0xa8 || last == 0xa9))) {
            return false;
        }
    }
    return true;
}

size_t utf8_turns(const char *data, size_t len)
{
    const unsigned char *c = (const unsigned char *)data;
    if (len >= 2 && c[0] == 0xd8 && c[1] == 0x9c) {
        return 2;
    }
    if (len < 3 || c[0] != 0xe2) {
        return 0;
    }
    bool turns =
        (c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xaa && c[2] <= 0xae))) ||
        (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9);
    return turns ? 3 : 0;
}

size_t utf8_valid_prefix(const char *data, size_t len)
{
    return valid_span((const uint8_t *)data, len);
}

bool utf8_valid(const char *data, size_t len) { return utf8_valid_prefix(data, len) == len; }

size_t utf8_source_of(const char *data, size_t len, uint64_t clean)
{
    const uint8_t *p = (const uint8_t *)data;
    size_t at = 0;
    for (uint64_t text = 0; at < len && text < clean; text += sizeof REPLACEMENT - 1) {
        size_t n = valid_span(p + at, len - at);
        if (text + n >= clean) {
            return at + (size_t)(clean - text);
        }
        at += n;
        text += n;
        if (at < len) {
            piece_at(p + at, len - at, &n);
            at += n;
        }
    }
    return at;
}

// The one walk of both outputs: valid spans go through `add`, each invalid part is one U+FFFD.
static void add_spans(struct buf *out, const char *data, size_t len,
                      void (*add)(struct buf *out, const uint8_t *p, size_t len))
{
    const uint8_t *p = (const uint8_t *)data;
    size_t at = 0;
    while (at < len && !out->error) {
        size_t n = valid_span(p + at, len - at);
        add(out, p + at, n);
        at += n;
        if (at < len) {
            piece_at(p + at, len - at, &n);
            buf_puts(out, REPLACEMENT);
            at += n;
        }
    }
}

static void add_as_is(struct buf *out, const uint8_t *p, size_t len) { buf_add(out, p, len); }

int utf8_clean(struct buf *out, const char *data, size_t len)
{
    add_spans(out, data, len, add_as_is);
    return out->error;
}

static const char *escape_of(uint8_t c, char spare[8])
{
    static const char hex[] = "0123456789abcdef";
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\b':
        return "\\b";
    case '\f':
        return "\\f";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        memcpy(spare, "\\u00", 4);
        spare[4] = hex[c >> 4];
        spare[5] = hex[c & 15];
        spare[6] = '\0';
        return spare;
    }
}

static bool is_plain(uint8_t c) { return c >= 0x20 && c != '"' && c != '\\' && c != 0x7f; }

#define EIGHT(byte) (UINT64_C(0x0101010101010101) * (byte))

// Is one of eight bytes less than n (at most 128), or (n 1) zero? "Bit Twiddling Hacks", hasless().
static uint64_t has_less(uint64_t eight, uint64_t n)
{
    return (eight - EIGHT(n)) & ~eight & EIGHT(0x80);
}

static bool eight_plain(const uint8_t *p)
{
    uint64_t eight;
    memcpy(&eight, p, sizeof eight);
    return !(has_less(eight, 0x20) | has_less(eight ^ EIGHT('"'), 1) |
             has_less(eight ^ EIGHT('\\'), 1) | has_less(eight ^ EIGHT(0x7f), 1));
}

// Valid text with what JSON wants escaped.
static void add_escaped(struct buf *out, const uint8_t *p, size_t len)
{
    char spare[8];
    size_t from = 0;
    for (size_t at = 0; at < len; at++) {
        while (len - at > 8 && eight_plain(p + at)) {
            at += 8;
        }
        if (!is_plain(p[at])) {
            buf_add(out, p + from, at - from);
            buf_puts(out, escape_of(p[at], spare));
            from = at + 1;
        }
    }
    buf_add(out, p + from, len - from);
}

int utf8_json_string(struct buf *out, const char *data, size_t len)
{
    buf_putc(out, '"');
    add_spans(out, data, len, add_escaped);
    return buf_putc(out, '"');
}
