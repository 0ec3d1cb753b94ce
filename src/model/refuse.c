#include "model/refuse.h"

#include "base/text.h"
#include "codec/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int job_refuse(struct job_error *e, const char *field, const char *format, ...)
{
    char detail[sizeof e->text];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    e->too_large = false;
    size_t n = strnlen(field, sizeof e->field - 1);
    n = field[n] ? utf8_cut(field, n) : n;
    memcpy(e->field, field, n);
    e->field[n] = '\0';
    snprintf(e->text, sizeof e->text, "%s: %.*s", e->field, (int)(sizeof e->text - n - 3), detail);
    size_t len = strlen(e->text);
    e->text[utf8_cut(e->text, len)] = '\0';
    text_no_controls(e->field);
    text_no_controls(e->text);
    return -EINVAL;
}

const char *job_error_what(const struct job_error *e)
{
    size_t n = strlen(e->field);
    bool told = strncmp(e->text, e->field, n) == 0 && strncmp(e->text + n, ": ", 2) == 0;
    return told ? e->text + n + 2 : e->text;
}

// The text, or its beginning and "..." when it is longer or goes on.
static const char *shorten(const struct buf *b, bool goes_on, char text[SHOWN_BYTES])
{
    enum { KEEP = SHOWN_BYTES - 4 };
    goes_on = goes_on || b->len > KEEP;
    size_t n = b->len > KEEP ? utf8_cut(b->data, KEEP) : b->len;
    snprintf(text, SHOWN_BYTES, "%.*s%s", (int)n, buf_text(b), goes_on ? "..." : "");
    return text;
}

const char *job_show(const yyjson_val *v, char text[SHOWN_BYTES])
{
    yyjson_val *s = (yyjson_val *)(uintptr_t)v; // the readers take no const
    if (yyjson_is_str(s)) {
        return job_show_text(yyjson_get_str(s), yyjson_get_len(s), text);
    }
    AUTO_BUF struct buf b = BUF_INIT(512);
    bool goes_on = json_write(&b, v) != 0; // only the beginning is shown
    return shorten(&b, goes_on, text);
}

const char *job_show_text(const char *data, size_t len, char text[SHOWN_BYTES])
{
    AUTO_BUF struct buf b = BUF_INIT(1024);
    size_t n = len > SHOWN_BYTES ? utf8_cut(data, SHOWN_BYTES) : len;
    utf8_json_string(&b, data, n);
    if (n < len) {
        b.len--; // no closing quote
    }
    return shorten(&b, n < len, text);
}

// Edit distance with swaps of neighbours, in three rows.
bool job_is_near(const char *given, size_t n, const char *name)
{
    enum { LONGEST = 40, ROWS = 3 };
    const size_t m = strlen(name);
    if (n >= 3 && n < m && memcmp(given, name, n) == 0 && name[n] == '_') {
        return true;
    }
    if (n > LONGEST || m > LONGEST) {
        return false;
    }
    size_t rows[ROWS][LONGEST + 1] = {};
    for (size_t j = 0; j <= m; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= n; i++) {
        size_t *now = rows[i % ROWS];
        const size_t *last = rows[(i - 1) % ROWS], *before = rows[(i + 1) % ROWS];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = last[j - 1] + (given[i - 1] != name[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && given[i - 1] == name[j - 2] && given[i - 2] == name[j - 1]) {
                best = before[j - 2] + 1 < best ? before[j - 2] + 1 : best;
            }
            now[j] = best;
        }
    }
    return rows[n % ROWS][m] <= (m < 6 ? 1 : 2);
}

const char *job_show_meant(const char *meant, char text[MEANT_BYTES])
{
    snprintf(text, MEANT_BYTES, "%s%.40s%s", meant ? "; is " : "", meant ? meant : "",
             meant ? " meant?" : "");
    return text;
}
