#include "codec/base64.h"

enum { NONE = 255 };

static unsigned value(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (unsigned)(c - 'A');
    }
    if (c >= 'a' && c <= 'z') {
        return (unsigned)(c - 'a') + 26;
    }
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0') + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : NONE;
}

static size_t padding(const char *text, size_t len)
{
    size_t n = 0;
    while (n < 2 && n < len && text[len - 1 - n] == '=') {
        n++;
    }
    return n;
}

bool base64_measure(const char *text, size_t len, size_t *ret)
{
    size_t pad = padding(text, len);
    if (len % 4) {
        return false;
    }
    for (size_t i = 0; i < len - pad; i++) {
        if (value(text[i]) == NONE) {
            return false;
        }
    }
    // Bits behind the last byte would make two texts of one value.
    if (pad && value(text[len - pad - 1]) & (pad == 1 ? 3U : 15U)) {
        return false;
    }
    *ret = len / 4 * 3 - pad;
    return true;
}

void base64_decode(const char *text, size_t len, uint8_t *ret)
{
    size_t n = len - padding(text, len), at = 0;
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        bits = bits << 6 | value(text[i]);
        if (i % 4) {
            ret[at++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
        }
    }
}

void base64_encode(const void *data, size_t len, char *ret)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *bytes = data;
    for (size_t i = 0; i < len; i += 3, ret += 4) {
        uint32_t three = (uint32_t)bytes[i] << 16;
        three |= i + 1 < len ? (uint32_t)bytes[i + 1] << 8 : 0;
        three |= i + 2 < len ? bytes[i + 2] : 0;
        ret[0] = digits[three >> 18];
        ret[1] = digits[three >> 12 & 63];
        ret[2] = i + 1 < len ? digits[three >> 6 & 63] : '=';
        ret[3] = i + 2 < len ? digits[three & 63] : '=';
    }
    *ret = '\0';
}
