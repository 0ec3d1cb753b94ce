#include "log/log.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "codec/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const log_level_names[LOG_N_LEVELS] = {"debug", "info", "warning", "error"};
const char *const log_format_names[LOG_N_FORMATS] = {"text", "json"};

struct sink {
    int fd;
    bool torn; // its last line was written in part (a full disk): the next one begins a new line
};

struct log {
    struct sink log, audit;
    enum log_format format;
    enum log_level least;
    uint64_t lost;
};

static int find(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -EINVAL;
}

int log_level_find(const char *name, enum log_level *ret)
{
    int i = find(log_level_names, LOG_N_LEVELS, name);
    if (i < 0) {
        return i;
    }
    *ret = (enum log_level)i;
    return 0;
}

int log_format_find(const char *name, enum log_format *ret)
{
    int i = find(log_format_names, LOG_N_FORMATS, name);
    if (i < 0) {
        return i;
    }
    *ret = (enum log_format)i;
    return 0;
}

int log_open_file(int folder, const char *name, int *ret)
{
    int fd = openat(folder, name,
                    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC,
                    0640);
    if (fd < 0) {
        return -errno;
    }
    *ret = fd;
    return 0;
}

int log_new(int fd, int audit_fd, enum log_format format, enum log_level least, struct log **ret)
{
    struct log *l = calloc(1, sizeof *l);
    if (!l) {
        return -ENOMEM;
    }
    log_change(l, format, least);
    log_change_files(l, fd, audit_fd);
    *ret = l;
    return 0;
}

void log_free(struct log *l) { free(l); }

void log_change(struct log *l, enum log_format format, enum log_level least)
{
    l->format = format;
    l->least = least;
}

void log_change_files(struct log *l, int fd, int audit_fd)
{
    l->log = (struct sink){.fd = fd};
    l->audit = (struct sink){.fd = audit_fd};
}

uint64_t log_lost(const struct log *l) { return l->lost; }

// ---- A line

// Characters that end a line or reorder it for some reader, beyond those that JSON has escaped
// already: C1, U+200B..200F, U+2028..202E, U+2060..206F, U+FEFF. Length in bytes, or 0.
static size_t is_odd(const unsigned char *p, unsigned *ret)
{
    if (p[0] == 0xc2 && p[1] < 0xa0) {
        *ret = p[1];
        return 2;
    }
    if (p[0] != 0xe2 && p[0] != 0xef) {
        return 0;
    }
    unsigned c = (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    bool odd = (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
               (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
    *ret = c;
    return odd ? 3 : 0;
}

// In quotes, with JSON's escapes: both formats' way. Valid UTF-8 is what comes out of it.
static void put_quoted(struct buf *out, const char *text)
{
    AUTO_BUF struct buf json = BUF_INIT(8 * LOG_MAX_TEXT);
    size_t len = strnlen(text, LOG_MAX_TEXT + 1);
    bool cut = len > LOG_MAX_TEXT;
    len = cut ? utf8_cut(text, LOG_MAX_TEXT) : len;
    if (utf8_json_string(&json, text, len)) {
        buf_puts(out, "\"\"");
        return;
    }
    const char *end = json.data + json.len - 1; // the quote
    const char *done = json.data;
    for (const char *p = json.data; p < end; p++) {
        unsigned c = 0;
        size_t n = is_odd((const unsigned char *)p, &c);
        if (n) {
            buf_add(out, done, (size_t)(p - done));
            buf_printf(out, "\\u%04x", c);
            done = p + n;
            p = done - 1;
        }
    }
    buf_add(out, done, (size_t)(end - done));
    buf_puts(out, cut ? "...\"" : "\"");
}

static bool is_bare(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._:/@+-";
    size_t n = strspn(text, plain);
    return n > 0 && n <= LOG_MAX_TEXT && text[n] == '\0';
}

static void put_key(struct buf *out, enum log_format format, const char *key)
{
    if (format == LOG_JSON) {
        buf_printf(out, "%s\"%s\":", out->len ? "," : "{", key);
    } else {
        buf_printf(out, "%s%s=", out->len ? " " : "", key);
    }
}

static void put_field(struct buf *out, enum log_format format, const struct log_field *f)
{
    if (f->kind == LOG_K_TEXT && !f->text) {
        return;
    }
    put_key(out, format, f->key);
    switch (f->kind) {
    case LOG_K_TEXT:
        if (format == LOG_TEXT && is_bare(f->text)) {
            buf_puts(out, f->text);
        } else {
            put_quoted(out, f->text);
        }
        break;
    case LOG_K_INT:
        buf_printf(out, "%" PRId64, f->number);
        break;
    case LOG_K_BOOL:
        buf_puts(out, f->number ? "true" : "false");
        break;
    }
}

static void print_time(char *text, size_t size)
{
    int64_t ms = clock_wall_ms();
    time_t s = (time_t)(ms / 1000);
    struct tm t;
    gmtime_r(&s, &t);
    size_t n = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &t);
    snprintf(text + n, size - n, ".%03dZ", (int)(ms % 1000));
}

// Every field, or as many as there is room for.
static void put_line(struct buf *out, enum log_format format, const struct log_field *f, size_t n)
{
    const size_t room = LOG_MAX_LINE - 32; // for cut=true and what ends the line
    bool cut = false;
    for (size_t i = 0; i < n && !out->error; i++) {
        size_t len = out->len;
        put_field(out, format, &f[i]);
        if (out->len > room) {
            out->len = len;
            out->data[len] = '\0';
            cut = true;
        }
    }
    if (cut) {
        put_field(out, format, &LOG_B("cut", true));
    }
    buf_puts(out, format == LOG_JSON ? "}\n" : "\n");
}

// ---- Where it goes

// A pipe or socket whose reader does not read says so before the write would wait: a line is no
// longer than what it then takes whole.
static bool takes(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT);
}

static void write_line(struct log *l, struct sink *to, const struct buf *line)
{
    if (to->fd < 0) {
        return;
    }
    const char *data = line->data + !to->torn; // in front of the line is a newline
    size_t len = line->len - !to->torn;
    ssize_t n = takes(to->fd) ? write(to->fd, data, len) : 0;
    l->lost += n != (ssize_t)len;
    if (n > 0) {
        to->torn = (size_t)n < len;
    }
}

static void put_event(struct log *l, enum log_level level, const char *event,
                      const struct log_field *f, size_t n, bool audited)
{
    char time_text[40];
    print_time(time_text, sizeof time_text);
    const struct log_field first[] = {LOG_T("time", time_text),
                                      LOG_T("level", log_level_names[level]), LOG_T("event", event),
                                      LOG_B("audit", audited)};
    // of fields, each at most as long as its text with every byte escaped
    AUTO_BUF struct buf line = BUF_INIT(LOG_MAX_LINE + 8 * LOG_MAX_TEXT);
    AUTO_BUF struct buf whole = BUF_INIT(LOG_MAX_LINE + 8 * LOG_MAX_TEXT + 1);
    for (size_t i = 0; i < ARRAY_LEN(first) - !audited; i++) {
        put_field(&line, l->format, &first[i]);
    }
    put_line(&line, l->format, f, n);
    buf_putc(&whole, '\n');
    buf_add(&whole, line.data, line.len);
    if (line.error || whole.error) {
        l->lost++;
        return;
    }
    if (level >= l->least || (audited && l->audit.fd < 0)) {
        write_line(l, &l->log, &whole);
    }
    if (audited) {
        write_line(l, &l->audit, &whole);
    }
}

void log_event(struct log *l, enum log_level level, const char *event, const struct log_field *f,
               size_t n)
{
    if (l && level >= l->least) {
        put_event(l, level, event, f, n, false);
    }
}

void log_audit(struct log *l, const char *event, const struct log_field *f, size_t n)
{
    if (l) {
        put_event(l, LOG_INFO, event, f, n, true);
    }
}
