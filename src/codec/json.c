#include "codec/json.h"

#include "base/fd.h"
#include "codec/json_keys.h"
#include "codec/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// yyjson keeps a document as one flat array in document order: a container stands before its
// children, so a walk is a loop with a small stack of what is left to come, and no recursion.

// yyjson's readers take no const, though they write nothing.
static yyjson_val *plain(const yyjson_val *v) { return (yyjson_val *)(uintptr_t)v; }

static void set_error(struct json_error *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void set_error(struct json_error *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
}

// Values that still come in one container; an object's member is two.
static size_t entries_of(yyjson_val *v)
{
    size_t n = yyjson_get_len(v);
    return yyjson_is_obj(v) ? 2 * n : n;
}

static int refuse_duplicate(const yyjson_doc *doc, yyjson_val *key, struct json_error *ret_error)
{
    AUTO_BUF struct buf shown = BUF_INIT(512);
    size_t len = yyjson_get_len(key);
    const char *more = len > 40 ? "..." : "";
    utf8_json_string(&shown, yyjson_get_str(key),
                     utf8_cut(yyjson_get_str(key), len > 40 ? 40 : len));
    // A string is unescaped where it stands, so its address is its place in the text.
    set_error(ret_error, "duplicate key %.90s%s at byte %zu", buf_text(&shown), more,
              (size_t)(yyjson_get_str(key) - doc->str_pool));
    return -EBADMSG;
}

static int check_object(const yyjson_doc *doc, struct json_keys *keys, yyjson_val *object,
                        struct json_error *ret_error)
{
    yyjson_val *twice = NULL;
    int e = json_keys_check(keys, object, &twice);
    if (e) {
        set_error(ret_error, e == -ENOMEM ? "not enough memory" : "no randomness");
        return e;
    }
    return twice ? refuse_duplicate(doc, twice, ret_error) : 0;
}

// What RFC 8259 leaves open and yyjson accepts: depth, and a key twice.
static int check_tree(const yyjson_doc *doc, size_t max_depth, struct json_error *ret_error)
{
    size_t left[JSON_MAX_DEPTH + JSON_ENVELOPE_DEPTH];
    struct json_keys keys = {0};
    size_t depth = 0;
    yyjson_val *v = doc->root;
    for (size_t i = 0; i < doc->val_read; i++, v++) {
        if (yyjson_is_ctn(v)) {
            if (depth == max_depth) {
                set_error(ret_error, "nested deeper than %zu levels", max_depth);
                return -EBADMSG;
            }
            left[depth++] = entries_of(v) + 1;
        }
        int e = yyjson_is_obj(v) ? check_object(doc, &keys, v, ret_error) : 0;
        if (e) {
            return e;
        }
        while (depth > 0 && --left[depth - 1] == 0) {
            depth--;
        }
    }
    return 0;
}

static yyjson_doc *parse(const char *data, size_t len, size_t max_depth,
                         struct json_error *ret_error)
{
    yyjson_read_err err = {0};
    // Without YYJSON_READ_INSITU the data is copied and never written.
    yyjson_doc *doc =
        yyjson_read_opts((char *)(uintptr_t)data, len, YYJSON_READ_NUMBER_AS_RAW, NULL, &err);
    if (!doc) {
        set_error(ret_error, "%s at byte %zu", len == 0 ? "empty text" : err.msg, err.pos);
        return NULL;
    }
    if (check_tree(doc, max_depth, ret_error)) {
        yyjson_doc_free(doc);
        return NULL;
    }
    return doc;
}

yyjson_doc *json_parse(const char *data, size_t len, struct json_error *ret_error)
{
    return parse(data, len, JSON_MAX_DEPTH, ret_error);
}

yyjson_doc *json_parse_envelope(const char *data, size_t len, struct json_error *ret_error)
{
    return parse(data, len, JSON_MAX_DEPTH + JSON_ENVELOPE_DEPTH, ret_error);
}

int json_check(const char *data, size_t len, struct json_error *ret_error)
{
    yyjson_doc *doc = json_parse(data, len, ret_error);
    if (!doc) {
        return -EBADMSG;
    }
    yyjson_doc_free(doc);
    return 0;
}

// A number's text taken apart: digits[0..n) x 10^power, without leading zeros.
struct number {
    bool negative;
    const char *text; // digits with at most one '.' among them
    size_t text_len;
    int64_t power; // of the last digit
};

enum { POWER_MAX = 1000000 }; // far beyond any int64; further exponents mean the same

static bool number_split(const yyjson_val *v, struct number *ret)
{
    if (!yyjson_is_raw(plain(v))) {
        return false;
    }
    const char *p = yyjson_get_raw(plain(v)), *end = p + yyjson_get_len(plain(v));
    struct number n = {.negative = p < end && *p == '-'};
    p += n.negative;
    n.text = p;
    bool fraction = false;
    for (; p < end && *p != 'e' && *p != 'E'; p++) {
        n.power -= fraction;
        fraction |= *p == '.';
    }
    n.text_len = (size_t)(p - n.text);
    if (p < end) {
        p++;
        bool down = *p == '-';
        p += *p == '-' || *p == '+';
        int64_t exponent = 0;
        for (; p < end; p++) {
            exponent = exponent < POWER_MAX ? exponent * 10 + (*p - '0') : exponent;
        }
        n.power += down ? -exponent : exponent;
    }
    *ret = n;
    return true;
}

// The digits as an integer at scale 10^digits, truncated. *ret_rest: a non-zero digit was dropped.
static int number_scale(const struct number *n, int digits, uint64_t *ret, bool *ret_rest)
{
    int64_t shift = n->power + digits;
    size_t left = n->text_len - (memchr(n->text, '.', n->text_len) != NULL);
    uint64_t value = 0;
    bool rest = false;
    for (size_t i = 0; i < n->text_len; i++) {
        if (n->text[i] == '.') {
            continue;
        }
        unsigned digit = (unsigned)(n->text[i] - '0');
        if (shift < 0 && (int64_t)left-- <= -shift) {
            rest |= digit != 0;
        } else if (__builtin_mul_overflow(value, 10U, &value) ||
                   __builtin_add_overflow(value, digit, &value)) {
            return -ERANGE;
        }
    }
    for (; shift > 0 && value != 0; shift--) {
        if (__builtin_mul_overflow(value, 10U, &value)) {
            return -ERANGE;
        }
    }
    *ret = value;
    *ret_rest = rest;
    return 0;
}

static int number_signed(bool negative, uint64_t value, int64_t *ret)
{
    uint64_t most = (uint64_t)INT64_MAX + negative;
    if (value > most) {
        return -ERANGE;
    }
    *ret = negative ? (int64_t)(0 - value) : (int64_t)value;
    return 0;
}

int json_int(const yyjson_val *v, int64_t *ret)
{
    struct number n;
    uint64_t value;
    bool rest;
    if (!number_split(v, &n)) {
        return -EINVAL;
    }
    int e = number_scale(&n, 0, &value, &rest);
    if (e || rest) {
        return e ? e : -EINVAL;
    }
    return number_signed(n.negative, value, ret);
}

// Towards the larger number if `up`, else towards the smaller one.
static int decimal(const yyjson_val *v, int digits, bool up, int64_t *ret)
{
    struct number n;
    uint64_t value;
    bool rest;
    if (!number_split(v, &n)) {
        return -EINVAL;
    }
    int e = number_scale(&n, digits, &value, &rest);
    if (e) {
        return e;
    }
    if (rest && n.negative != up && __builtin_add_overflow(value, 1U, &value)) {
        return -ERANGE;
    }
    return number_signed(n.negative, value, ret);
}

int json_decimal(const yyjson_val *v, int digits, int64_t *ret)
{
    return decimal(v, digits, true, ret);
}

int json_decimal_down(const yyjson_val *v, int digits, int64_t *ret)
{
    return decimal(v, digits, false, ret);
}

// ---- Equal

// Without zeros at either end: then equal numbers have equal digits and powers.
static void number_trim(struct number *n)
{
    while (n->text_len > 0 && (*n->text == '0' || *n->text == '.')) {
        n->text++;
        n->text_len--;
    }
    while (n->text_len > 0 && strchr("0.", n->text[n->text_len - 1])) {
        n->power += n->text[--n->text_len] == '0';
    }
}

static bool number_equal(const yyjson_val *a, const yyjson_val *b)
{
    struct number x, y;
    const char *one = yyjson_get_raw(plain(a)), *other = yyjson_get_raw(plain(b));
    size_t len = yyjson_get_len(plain(a));
    if (!one || !other || !number_split(a, &x) || !number_split(b, &y)) {
        return false;
    }
    if (len == yyjson_get_len(plain(b)) && memcmp(one, other, len) == 0) {
        return true;
    }
    number_trim(&x);
    number_trim(&y);
    if (x.text_len == 0 || y.text_len == 0) {
        return x.text_len == y.text_len; // zero, with either sign
    }
    // An exponent of so many digits was not read to its end.
    if (x.negative != y.negative || x.power != y.power || x.power >= POWER_MAX ||
        x.power <= -POWER_MAX) {
        return false;
    }
    size_t i = 0, k = 0;
    while (i < x.text_len && k < y.text_len) {
        i += x.text[i] == '.';
        k += y.text[k] == '.';
        if (x.text[i++] != y.text[k++]) {
            return false;
        }
    }
    return i == x.text_len && k == y.text_len;
}

static bool scalar_equal(yyjson_val *a, yyjson_val *b)
{
    const char *one = yyjson_get_str(a), *other = yyjson_get_str(b);
    if (one && other) {
        size_t len = yyjson_get_len(a);
        return len == yyjson_get_len(b) && memcmp(one, other, len) == 0;
    }
    return yyjson_is_raw(a) ? number_equal(a, b) : yyjson_is_true(a) == yyjson_is_true(b);
}

// Two open containers whose values are being compared.
struct open_pair {
    yyjson_val *next; // of the first; in an object its name
    size_t left;
    bool object;
    yyjson_arr_iter array; // of the second
    yyjson_obj_iter names;
};

static bool pair_open(struct open_pair *p, yyjson_val *a, yyjson_val *b)
{
    if (yyjson_get_len(a) != yyjson_get_len(b)) {
        return false;
    }
    *p = (struct open_pair){
        .next = unsafe_yyjson_get_first(a), .left = yyjson_get_len(a), .object = yyjson_is_obj(a)};
    return p->object ? yyjson_obj_iter_init(b, &p->names) : yyjson_arr_iter_init(b, &p->array);
}

// The next value of the first, and what the second has in its place, or NULL.
static yyjson_val *pair_next(struct open_pair *p, yyjson_val **ret_a)
{
    yyjson_val *a = p->next;
    yyjson_val *b = p->object
                        ? yyjson_obj_iter_getn(&p->names, yyjson_get_str(a), yyjson_get_len(a))
                        : yyjson_arr_iter_next(&p->array);
    *ret_a = p->object ? a + 1 : a;
    p->next = unsafe_yyjson_get_next(*ret_a);
    p->left--;
    return b;
}

bool json_equal(const yyjson_val *one, const yyjson_val *other)
{
    struct open_pair open[JSON_MAX_DEPTH + JSON_ENVELOPE_DEPTH];
    yyjson_val *a = plain(one), *b = plain(other);
    size_t depth = 0;
    for (;;) {
        if (!b || yyjson_get_type(a) != yyjson_get_type(b)) {
            return false;
        }
        if (!yyjson_is_ctn(a)) {
            if (!scalar_equal(a, b)) {
                return false;
            }
        } else if (depth == ARRAY_LEN(open) || !pair_open(&open[depth++], a, b)) {
            return false;
        }
        while (depth > 0 && open[depth - 1].left == 0) {
            depth--;
        }
        if (depth == 0) {
            return true;
        }
        b = pair_next(&open[depth - 1], &a);
    }
}

bool json_is_integer(const yyjson_val *v)
{
    const char *text = yyjson_get_raw(plain(v));
    size_t len = yyjson_get_len(plain(v)), at = text && len > 0 && text[0] == '-';
    const size_t first = at;
    while (text && at < len && text[at] >= '0' && text[at] <= '9') {
        at++;
    }
    return text && at > first && at == len;
}

bool json_number_fits(const yyjson_val *v)
{
    enum { SURELY_DIGITS = 300 }; // a double holds so many before the point
    const char *text = yyjson_get_raw(plain(v));
    size_t len = yyjson_get_len(plain(v));
    bool small = text && len <= SURELY_DIGITS && !memchr(text, 'e', len) && !memchr(text, 'E', len);
    // strtod() ends where the number does, at the latest at what follows it in the document.
    return small || json_is_integer(v) || (text && isfinite(strtod(text, NULL)));
}

size_t json_depth(const yyjson_val *v)
{
    size_t left[JSON_MAX_DEPTH + JSON_ENVELOPE_DEPTH];
    size_t depth = 0, most = 0;
    yyjson_val *at = plain(v);
    do {
        if (yyjson_is_ctn(at) && depth < ARRAY_LEN(left)) {
            left[depth++] = entries_of(at) + 1;
            most = depth > most ? depth : most;
        }
        while (depth > 0 && --left[depth - 1] == 0) {
            depth--;
        }
        at++;
    } while (depth > 0);
    return most;
}

// ---- Write

static void write_scalar(struct buf *out, yyjson_val *v)
{
    if (yyjson_is_str(v)) {
        utf8_json_string(out, yyjson_get_str(v), yyjson_get_len(v));
    } else if (yyjson_is_raw(v)) {
        buf_add(out, yyjson_get_raw(v), yyjson_get_len(v));
    } else {
        buf_puts(out, yyjson_is_null(v) ? "null" : yyjson_is_true(v) ? "true" : "false");
    }
}

// One open container while writing.
struct open_container {
    bool object;
    size_t left;  // values still to come
    size_t total; // values altogether
};

static void write_separator(struct buf *out, const struct open_container *c)
{
    size_t at = c->total - c->left;
    if (at > 0) {
        buf_putc(out, c->object && at % 2 == 1 ? ':' : ',');
    }
}

int json_write(struct buf *out, const yyjson_val *v)
{
    struct open_container open[JSON_MAX_DEPTH + JSON_ENVELOPE_DEPTH];
    size_t depth = 0;
    yyjson_val *at = plain(v);
    do {
        if (depth > 0) {
            write_separator(out, &open[depth - 1]);
            open[depth - 1].left--;
        }
        if (yyjson_is_ctn(at)) {
            if (depth == ARRAY_LEN(open)) {
                return -EMSGSIZE;
            }
            size_t n = entries_of(at);
            open[depth++] = (struct open_container){yyjson_is_obj(at), n, n};
            buf_putc(out, yyjson_is_obj(at) ? '{' : '[');
        } else {
            write_scalar(out, at);
        }
        while (depth > 0 && open[depth - 1].left == 0) {
            buf_putc(out, open[--depth].object ? '}' : ']');
        }
        at++;
    } while (depth > 0 && !out->error);
    return out->error;
}
