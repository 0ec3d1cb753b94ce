#include "client/print.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "codec/json.h"
#include "codec/utf8.h"

#include <string.h>
#include <wchar.h>

enum { TEXT_MAX = 128 << 20, CELL_MAX = 4096, COLUMNS_MAX = 12 };

// What lets a terminal show other characters, or another order of them, than there are: back to the
// line's begin or by one, unless as the end of a line; marks that turn the direction.
static void show_hidden(struct buf *text)
{
    for (size_t i = 0; i < text->len; i++) {
        unsigned char *p = (unsigned char *)text->data + i;
        bool end = i + 1 < text->len && p[0] == '\r' && p[1] == '\n';
        bool back = (*p == '\r' && !end) || *p == '\b';
        memset(p, '?', back ? 1 : utf8_turns((const char *)p, text->len - i));
    }
}

// Appends the cell and a NUL.
static int put_cell(struct buf *out, yyjson_val *v, bool json)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    if (!v || yyjson_is_null(v)) {
        return buf_add(out, "-", 2);
    }
    if (!json && yyjson_is_str(v)) {
        buf_add(&text, yyjson_get_str(v), strnlen(yyjson_get_str(v), CELL_MAX));
    } else if (!json && yyjson_is_bool(v)) {
        buf_puts(&text, yyjson_get_bool(v) ? "yes" : "no");
    } else {
        json_write(&text, v);
    }
    if (text.error) {
        return text.error;
    }
    show_hidden(&text);
    AUTO_FREE char *clean = buf_take(&text);
    if (!clean) {
        return -ENOMEM;
    }
    text_no_controls(clean);
    return buf_add(out, clean, strlen(clean) + 1);
}

// "a.b" of an object.
static yyjson_val *member(yyjson_val *object, const char *key)
{
    for (const char *dot; (dot = strchr(key, '.')); key = dot + 1) {
        object = yyjson_obj_getn(object, key, (size_t)(dot - key));
    }
    return yyjson_obj_get(object, key);
}

// Columns that it takes: characters, which is right for most of what is printed here.
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++) {
        n += (*text & 0xc0) != 0x80;
    }
    return n;
}

static void put_row(FILE *out, const char *const *cells, const size_t *widths, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fputs(cells[i], out);
        if (i + 1 == n) {
            fputc('\n', out);
        } else if (!widths) {
            fputc('\t', out);
        } else {
            size_t used = width_of(cells[i]);
            fprintf(out, "%*s", (int)(widths[i] > used ? widths[i] - used : 0) + 2, "");
        }
    }
}

// Its cells one behind another.
static int collect(yyjson_val *array, const struct print_column *columns, size_t n,
                   struct buf *cells, size_t *widths)
{
    size_t i, count;
    yyjson_val *item;
    yyjson_arr_foreach(array, i, count, item)
    {
        for (size_t k = 0; k < n; k++) {
            size_t at = cells->len;
            int e = put_cell(cells, member(item, columns[k].key), columns[k].json);
            if (e) {
                return e;
            }
            size_t width = width_of(cells->data + at);
            widths[k] = width > widths[k] ? width : widths[k];
        }
    }
    return 0;
}

int print_table(FILE *out, bool terminal, yyjson_val *array, const struct print_column *columns,
                size_t n)
{
    AUTO_BUF struct buf cells = BUF_INIT(TEXT_MAX);
    const char *row[COLUMNS_MAX];
    size_t widths[COLUMNS_MAX];
    for (size_t k = 0; k < n; k++) {
        row[k] = columns[k].head;
        widths[k] = strlen(row[k]);
    }
    int e = collect(array, columns, n, &cells, widths);
    if (e) {
        return e;
    }
    if (terminal) {
        put_row(out, row, widths, n);
    }
    const char *at = buf_text(&cells);
    for (size_t i = 0; i < yyjson_arr_size(array); i++) {
        for (size_t k = 0; k < n; k++, at += strlen(at) + 1) {
            row[k] = at;
        }
        put_row(out, row, terminal ? widths : NULL, n);
    }
    return 0;
}

// The first array in an object, or the value itself.
static yyjson_val *list_of(yyjson_val *data)
{
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(data, i, n, key, value)
    {
        if (yyjson_is_arr(value)) {
            return value;
        }
    }
    return data;
}

int print_list(yyjson_val *data, const struct print_column *columns, size_t n)
{
    bool terminal = isatty(STDOUT_FILENO);
    yyjson_val *list = list_of(data);
    int e = yyjson_is_arr(list) ? print_table(stdout, terminal, list, columns, n) : -EPROTO;
    yyjson_val *cursor = yyjson_obj_get(data, "next_cursor");
    if (!e && yyjson_is_str(cursor)) {
        AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
        e = put_cell(&text, cursor, false);
        fflush(stdout);
        fprintf(stderr, "isle: there is more: --cursor %s\n", buf_text(&text));
    }
    return e;
}

int print_list_or(yyjson_val *data, const struct print_column *columns, size_t n, const char *none)
{
    yyjson_val *list = list_of(data);
    if (!yyjson_is_arr(list) || yyjson_arr_size(list) > 0) {
        return print_list(data, columns, n);
    }
    fprintf(stderr, "isle: %s\n", none);
    return 0;
}

int print_fields(FILE *out, yyjson_val *object, const struct print_column *columns, size_t n)
{
    AUTO_BUF struct buf cell = BUF_INIT(TEXT_MAX);
    if (!yyjson_is_obj(object)) {
        return -EPROTO;
    }
    for (size_t k = 0; k < n; k++) {
        yyjson_val *v = member(object, columns[k].key);
        if (!v || yyjson_is_null(v)) {
            continue;
        }
        buf_clear(&cell);
        int e = put_cell(&cell, v, columns[k].json);
        if (e) {
            return e;
        }
        fprintf(out, "%s: %s\n", columns[k].head, buf_text(&cell));
    }
    return 0;
}

int print_word(FILE *out, yyjson_val *value)
{
    AUTO_BUF struct buf cell = BUF_INIT(TEXT_MAX);
    bool word = yyjson_get_len(value) > 0 && yyjson_is_str(value);
    int e = word ? put_cell(&cell, value, false) : -EPROTO;
    if (!e) {
        fprintf(out, "%s\n", buf_text(&cell));
    }
    return e;
}

static int put_text(FILE *out, const char *text, size_t len, bool code)
{
    AUTO_BUF struct buf clean = BUF_INIT(terminal_room(len));
    int e = 0;
    if (isatty(fileno(out))) {
        e = terminal_clean(&clean, text, len);
        if (code) {
            show_hidden(&clean);
        }
        text = buf_text(&clean);
        len = clean.len;
    }
    fwrite(text, 1, e ? 0 : len, out);
    return e;
}

int print_text(FILE *out, yyjson_val *text)
{
    return yyjson_is_str(text) ? put_text(out, yyjson_get_str(text), yyjson_get_len(text), false)
                               : 0;
}

int print_code(FILE *out, const char *text, size_t len) { return put_text(out, text, len, true); }

int print_json(FILE *out, yyjson_val *value)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    int e = json_write(&text, value);
    e = e ? e : put_text(out, text.data, text.len, false);
    if (!e) {
        fputc('\n', out);
    }
    return e;
}
