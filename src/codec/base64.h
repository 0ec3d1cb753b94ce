// base64.h: base64 (RFC 4648, section 4), strict: the padding is there, nothing else is between.
#ifndef ISLE_CODEC_BASE64_H
#define ISLE_CODEC_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Is this base64? *ret: how many bytes it stands for.
bool base64_measure(const char *text, size_t len, size_t *ret);
// Decodes what base64_measure() said yes to, into room for as many bytes as it said.
void base64_decode(const char *text, size_t len, uint8_t *ret);

#define BASE64_CHARS(bytes) (((bytes) + 2) / 3 * 4)
// BASE64_CHARS(len) characters and a NUL.
void base64_encode(const void *data, size_t len, char *ret);

#endif
