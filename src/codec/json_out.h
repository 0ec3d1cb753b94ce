// json_out.h: JSON written into a buffer, piece by piece. Commas come by themselves: each piece
// puts one before itself unless it is the first of its object or array. A key is a literal that
// needs no escapes, or NULL for an element of an array. Errors are the buffer's, checked once at
// the end.
#ifndef ISLE_CODEC_JSON_OUT_H
#define ISLE_CODEC_JSON_OUT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// As UTF-8; NULL: null.
void json_put_text(struct buf *out, const char *key, const char *text);
void json_put_bytes(struct buf *out, const char *key, const char *data, size_t len);
void json_put_int(struct buf *out, const char *key, int64_t value);
// With so many digits behind the point; finite.
void json_put_number(struct buf *out, const char *key, double value, int digits);
void json_put_bool(struct buf *out, const char *key, bool value);
// A time of day, ms since the epoch: "2026-11-29T11:36:19.475000Z"; the fraction is left out when
// it is zero. 0 and below: null.
void json_put_time(struct buf *out, const char *key, int64_t ms);
// What is JSON already; NULL: null.
void json_put_json(struct buf *out, const char *key, const char *json);
// An array of strings; the list ends with NULL.
void json_put_texts(struct buf *out, const char *key, const char *const *texts);

// Opens an object ('{') or an array ('['); what follows is in it until json_end().
void json_begin(struct buf *out, const char *key, char bracket);
void json_end(struct buf *out, char bracket); // '}' or ']'

#endif
