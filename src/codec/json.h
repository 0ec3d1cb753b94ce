// json.h: strict JSON (RFC 8259) by yyjson, plus what it leaves to us: depth, duplicate keys, and
// numbers that keep every digit.
#ifndef ISLE_CODEC_JSON_H
#define ISLE_CODEC_JSON_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <yyjson.h>

enum {
    JSON_MAX_DEPTH = 64,     // of a tenant's value
    JSON_ENVELOPE_DEPTH = 8, // what isle's own objects (job, result) may add around one
};

struct json_error {
    char text[160]; // for a person: what and where ("duplicate key \"a\" at byte 17")
};

// Parses the whole of data. Numbers are raw (yyjson_is_raw): take them with json_int() and the
// like. Refused: more than JSON_MAX_DEPTH levels, a key twice in an object (compared after
// unescaping), lone surrogates, anything after the value, NaN and the like. The document or NULL
// with *ret_error filled.
yyjson_doc *json_parse(const char *data, size_t len, struct json_error *ret_error);
// The same with JSON_ENVELOPE_DEPTH more levels.
yyjson_doc *json_parse_envelope(const char *data, size_t len, struct json_error *ret_error);

// Checks as json_parse() without keeping the document: is this text one strict JSON value? 0 or
// -EBADMSG.
int json_check(const char *data, size_t len, struct json_error *ret_error);

// A number as an integer, exactly: refuses fractions, exponents that leave one, and what does not
// fit. 0, -EINVAL (not a number or not whole), -ERANGE.
int json_int(const yyjson_val *v, int64_t *ret);
// As a decimal scaled by 10^digits (timeout "2.5" with digits 3 is 2500), exactly or rounded up.
// Same errors.
int json_decimal(const yyjson_val *v, int digits, int64_t *ret);
// The same rounded down: for comparing with a lower bound, which 0.99999 must not reach by
// rounding.
int json_decimal_down(const yyjson_val *v, int digits, int64_t *ret);

// Are they the same value? Numbers by what they are worth, exactly, whatever their length (1, 1.0,
// 10e-1); names of an object in any order.
bool json_equal(const yyjson_val *a, const yyjson_val *b);
// Is it a number that is written without fraction and exponent, of whatever length?
bool json_is_integer(const yyjson_val *v);
// Can a program hold this number? An integer of any length, else what is finite as a double: not
// 1e400.
bool json_number_fits(const yyjson_val *v);
// How many containers stand in one another; 0: a scalar.
size_t json_depth(const yyjson_val *v);

// Appends the value as compact JSON, digits and key order kept, characters not escaped. 0 or
// -errno.
int json_write(struct buf *out, const yyjson_val *v);

#endif
