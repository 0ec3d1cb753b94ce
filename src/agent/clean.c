#include "agent/clean.h"
#include "codec/utf8.h"

#include <string.h>
#include <yyjson.h>

enum { STRING_MAX = 4096 }; // bytes of an escape sequence that carries a text (a title, a link)

static bool is_json(const char *data, size_t len)
{
    yyjson_doc *doc = yyjson_read(data, len, YYJSON_READ_NUMBER_AS_RAW);
    bool yes = doc && (yyjson_is_ctn(yyjson_doc_get_root(doc)));
    yyjson_doc_free(doc);
    return yes;
}

// The length of the escape sequence at data[0] == ESC (ECMA-48, 5.3 to 5.6); 1: nothing known.
static size_t escape(const unsigned char *data, size_t len)
{
    size_t i = 2;
    if (len < 2) {
        return 1;
    }
    if (data[1] == '[') {
        while (i < len && data[i] >= 0x20 && data[i] <= 0x3f) {
            i++;
        }
        return i < len && data[i] >= 0x40 && data[i] <= 0x7e ? i + 1 : i;
    }
    if (data[1] && strchr("]PX^_", data[1])) {
        for (; i < len && i < STRING_MAX && data[i] != '\n'; i++) {
            if (data[i] == 7) {
                return i + 1;
            }
            if (data[i] == 27) { // its end, or another sequence, which ends it, too
                return i + 1 < len && data[i + 1] == '\\' ? i + 2 : 2;
            }
        }
        return 2;
    }
    i = 1;
    while (i < len && data[i] >= 0x20 && data[i] <= 0x2f) {
        i++;
    }
    return i < len && data[i] >= 0x30 && data[i] <= 0x7e ? i + 1 : 1;
}

struct screen {
    struct buf *out;
    size_t line; // where the current one begins
    bool redraw; // a CR came: what comes next overwrites it
};

static void draw(struct screen *s, char c)
{
    if (s->redraw && c != '\n') {
        s->out->len = s->line;
    }
    s->redraw = false;
    buf_putc(s->out, c);
    s->line = c == '\n' ? s->out->len : s->line;
}

static void rub_out(struct screen *s)
{
    while (s->out->len > s->line) {
        unsigned char last = (unsigned char)s->out->data[--s->out->len];
        if ((last & 0xc0) != 0x80) {
            break;
        }
    }
}

static void replay(const char *text, size_t len, struct buf *out)
{
    const unsigned char *data = (const unsigned char *)text;
    struct screen s = {.out = out};
    for (size_t i = 0; i < len; i++) {
        unsigned char c = data[i];
        if (c == 27) {
            i += escape(data + i, len - i) - 1;
        } else if (c == '\r') {
            s.redraw = true;
        } else if (c == '\b') {
            rub_out(&s);
        } else if (c == 0xc2 && i + 1 < len && data[i + 1] >= 0x80 && data[i + 1] < 0xa0) {
            i++; // C1, which terminals obey, too
        } else if (c == '\n' || c == '\t' || (c >= 32 && c != 127)) {
            draw(&s, (char)c);
        }
    }
}

struct lines {
    const char *data;
    size_t len, at;
    size_t budget; // bytes that may still be looked at for JSON
};

static size_t line_length(const struct lines *l, size_t at)
{
    const char *end = memchr(l->data + at, '\n', l->len - at);
    return (end ? (size_t)(end - l->data) : l->len) - at;
}

// Not strspn(): a sanitizer's may look at the whole text each time.
static size_t blanks(const char *data, size_t len)
{
    size_t n = 0;
    while (n < len && (data[n] == ' ' || data[n] == '\t')) {
        n++;
    }
    return n;
}

// Where the JSON that begins with the line at `from` ends: behind its line; l->len when it goes on
// to the end without being over; 0: it is none.
static size_t json_end(struct lines *l, size_t from)
{
    size_t i = from + blanks(l->data + from, l->len - from), depth = 0;
    size_t begin = i;
    if (i >= l->len || (l->data[i] != '{' && l->data[i] != '[')) {
        return 0;
    }
    bool string = false;
    for (; i < l->len && l->budget > 0; i++, l->budget--) {
        char c = l->data[i];
        if (string) {
            if (c == '\\') {
                i++;
            } else if (c == '\n') {
                return 0;
            }
            string = c != '"';
        } else if (c == '"') {
            string = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            break;
        }
    }
    if (i >= l->len || l->budget == 0) {
        return l->len; // cut off, or too much to be sure: nothing is left out of it
    }
    size_t json = i + 1 - begin, after = i + 1;
    i = after + blanks(l->data + after, l->len - after);
    if ((i < l->len && l->data[i] != '\n') || !is_json(l->data + begin, json)) {
        return 0;
    }
    l->budget = l->budget > json ? l->budget - json : 0;
    return i < l->len ? i + 1 : i;
}

// How many lines from l->at on are as the first; *ret_end: behind the last of them.
static size_t run(const struct lines *l, bool is_blank, size_t *ret_end)
{
    size_t first = line_length(l, l->at), n = 0, at = l->at;
    while (at < l->len) {
        size_t len = line_length(l, at);
        bool same = is_blank ? blanks(l->data + at, len) == len
                             : len == first && memcmp(l->data + at, l->data + l->at, len) == 0;
        if (!same) {
            break;
        }
        n++;
        at += len + (at + len < l->len);
        if (at >= l->len || l->data[at - 1] != '\n') {
            break;
        }
    }
    *ret_end = at;
    return n;
}

static void collapse(struct lines *l, struct buf *out)
{
    while (l->at < l->len) {
        size_t end = json_end(l, l->at), len = line_length(l, l->at);
        if (end > 0) {
            buf_add(out, l->data + l->at, end - l->at);
            l->at = end;
            continue;
        }
        bool is_blank = blanks(l->data + l->at, len) == len;
        size_t n = run(l, is_blank, &end);
        if (n < (is_blank ? (size_t)CLEAN_BLANK_RUN : (size_t)CLEAN_EQUAL_RUN)) {
            buf_add(out, l->data + l->at, end - l->at);
        } else {
            buf_add(out, l->data + l->at, len);
            buf_printf(
                out, is_blank ? "\n[%zu more blank lines]\n" : "\n[the same line %zu more times]\n",
                n - 1);
        }
        l->at = end;
    }
}

static void add_line(const char *line, size_t len, struct buf *out)
{
    if (len <= CLEAN_LINE_BYTES) {
        buf_add(out, line, len);
        return;
    }
    size_t head = utf8_cut(line, CLEAN_LINE_HEAD_BYTES), tail = len - CLEAN_LINE_TAIL_BYTES;
    while (tail < len && ((unsigned char)line[tail] & 0xc0) == 0x80) {
        tail++;
    }
    buf_add(out, line, head);
    buf_printf(out, " [%zu bytes of this line are left out] ", tail - head);
    buf_add(out, line + tail, len - tail);
}

static size_t count_lines(const char *data, size_t len)
{
    size_t n = len > 0 && data[len - 1] != '\n';
    for (const char *p = data; (p = memchr(p, '\n', len - (size_t)(p - data))); p++) {
        n++;
    }
    return n;
}

static void cut(const struct buf *all, const struct clean_told *told, struct buf *out)
{
    struct lines l = {.data = buf_text(all), .len = all->len};
    size_t lines = count_lines(l.data, l.len), left_out_bytes = 0;
    size_t tail = lines > CLEAN_HEAD_LINES + CLEAN_TAIL_LINES ? lines - CLEAN_TAIL_LINES : 0;
    for (size_t i = 0; l.at < l.len; i++) {
        size_t len = line_length(&l, l.at), whole = len + (l.at + len < l.len);
        if (i >= CLEAN_HEAD_LINES && i < tail) {
            left_out_bytes += whole;
        } else {
            if (tail > 0 && i == tail) {
                buf_printf(out,
                           "[%zu lines, %zu bytes, are left out here; the output had %zu lines, "
                           "%zu bytes]\n",
                           tail - CLEAN_HEAD_LINES, left_out_bytes, told->lines, told->bytes);
            }
            add_line(l.data + l.at, len, out);
            buf_add(out, "\n", whole - len);
        }
        l.at += whole;
    }
}

int clean_output(const char *data, size_t len, bool failed, struct buf *out, struct clean_told *ret)
{
    struct clean_told told = {.bytes = len, .lines = len ? count_lines(data, len) : 0};
    AUTO_BUF struct buf drawn = BUF_INIT(len + 1), text = BUF_INIT(3 * len + 1),
                        runs = BUF_INIT(48 * len + 64); // three blank lines become one and a note
    if (len > 0 && is_json(data, len)) {
        buf_add(&runs, data, len);
    } else if (len > 0) {
        replay(data, len, &drawn);
        utf8_clean(&text, buf_text(&drawn), drawn.len);
        struct lines l = {.data = buf_text(&text), .len = text.len, .budget = 8 * len + 65536};
        collapse(&l, &runs);
    }
    size_t before = out->len;
    if (failed) {
        cut(&runs, &told, out);
    } else {
        buf_add(out, buf_text(&runs), runs.len);
    }
    int errors[] = {drawn.error, text.error, runs.error, out->error};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (errors[i]) {
            return errors[i];
        }
    }
    told.bytes_kept = out->len - before;
    told.lines_kept = told.bytes_kept ? count_lines(out->data + before, told.bytes_kept) : 0;
    *ret = told;
    return 0;
}
