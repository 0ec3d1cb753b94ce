#include "codec/json_out.h"

#include "codec/utf8.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void begin_piece(struct buf *out, const char *key)
{
    if (out->len && !strchr("{[", out->data[out->len - 1])) {
        buf_putc(out, ',');
    }
    if (key) {
        buf_printf(out, "\"%s\":", key);
    }
}

void json_put_bytes(struct buf *out, const char *key, const char *data, size_t len)
{
    if (data) {
        begin_piece(out, key);
        utf8_json_string(out, data, len);
    } else {
        json_put_json(out, key, NULL);
    }
}

void json_put_json(struct buf *out, const char *key, const char *json)
{
    begin_piece(out, key);
    buf_puts(out, json ? json : "null");
}

void json_put_text(struct buf *out, const char *key, const char *text)
{
    json_put_bytes(out, key, text, text ? strlen(text) : 0);
}

void json_put_int(struct buf *out, const char *key, int64_t value)
{
    begin_piece(out, key);
    buf_printf(out, "%lld", (long long)value);
}

void json_put_number(struct buf *out, const char *key, double value, int digits)
{
    begin_piece(out, key);
    buf_printf(out, "%.*f", digits, value);
}

void json_put_bool(struct buf *out, const char *key, bool value)
{
    json_put_json(out, key, value ? "true" : "false");
}

void json_put_time(struct buf *out, const char *key, int64_t ms)
{
    struct tm t;
    time_t seconds = (time_t)(ms / 1000);
    char text[48];
    if (ms <= 0 || !gmtime_r(&seconds, &t)) {
        json_put_text(out, key, NULL);
        return;
    }
    size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &t);
    if (ms % 1000) {
        n += (size_t)snprintf(text + n, sizeof text - n, ".%03d000", (int)(ms % 1000));
    }
    snprintf(text + n, sizeof text - n, "Z");
    json_put_text(out, key, text);
}

void json_put_texts(struct buf *out, const char *key, const char *const *texts)
{
    json_begin(out, key, '[');
    for (; *texts; texts++) {
        json_put_text(out, NULL, *texts);
    }
    json_end(out, ']');
}

void json_begin(struct buf *out, const char *key, char bracket)
{
    begin_piece(out, key);
    buf_putc(out, bracket);
}

void json_end(struct buf *out, char bracket) { buf_putc(out, bracket); }
