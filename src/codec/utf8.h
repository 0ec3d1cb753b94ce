// utf8.h: bytes of a job become text that every JSON reader takes (RFC 3629).
#ifndef ISLE_CODEC_UTF8_H
#define ISLE_CODEC_UTF8_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Length of the longest prefix of data[0..len) that does not end inside a character. A tail that
// could still become a valid character is cut off; an invalid byte is not.
size_t utf8_cut(const char *data, size_t len);

bool utf8_valid(const char *data, size_t len);
// Length of the longest prefix that is valid: where the first byte is that is not.
size_t utf8_valid_prefix(const char *data, size_t len);

// Of valid UTF-8: does nothing in it end a line or move a cursor (C0, DEL, C1, U+2028, U+2029)?
bool utf8_is_line(const char *data, size_t len);
// Of valid UTF-8: bytes of the mark that data begins with, if it is one of those that turn the
// direction of text and are not seen: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069.
// Else 0.
size_t utf8_turns(const char *data, size_t len);

// Appends data as valid UTF-8: each maximal invalid part becomes one U+FFFD (WHATWG rule, as
// Python's and browsers' "replace"); NUL stays. 0 or -errno.
int utf8_clean(struct buf *out, const char *data, size_t len);
// Where in data its clean text has come to `clean` bytes; len where it has fewer.
size_t utf8_source_of(const char *data, size_t len, uint64_t clean);

// Appends a JSON string literal with quotes: valid UTF-8 as it is (no \u escapes for it), control
// characters and U+007F escaped, invalid parts as U+FFFD. 0 or -errno.
int utf8_json_string(struct buf *out, const char *data, size_t len);

#endif
