#include "conf/file.h"

#include "base/fd.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct reader {
    const char *name;
    unsigned line;
    struct conf_file file;
    struct conf_error *error;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct reader *r, const char *format, ...)
{
    int n = snprintf(r->error->text, sizeof r->error->text, "%.200s:%u: ", r->name, r->line);
    va_list args;
    va_start(args, format);
    vsnprintf(r->error->text + n, sizeof r->error->text - (size_t)n, format, args);
    va_end(args);
    text_no_controls(r->error->text);
    return -EINVAL;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

// ---- A value

// From the opening quote on; taken out of its quotes in place. *ret_end: behind the closing one.
static int unquote(struct reader *r, char *at, char **ret_end)
{
    char quote = *at, *to = at;
    char *p = at + 1;
    for (; *p && *p != quote; p++) {
        if (quote == '"' && *p == '\\' && (p[1] == '"' || p[1] == '\\')) {
            p++;
        }
        *to++ = *p;
    }
    if (!*p) {
        return refuse(r, "the quote is not closed");
    }
    *to = '\0';
    *ret_end = p + 1;
    return 0;
}

// The value that begins at `at`, ended by a NUL; behind it only blanks and a comment.
static int take_value(struct reader *r, char *at)
{
    char *end = at + strcspn(at, " \t\"'\\");
    if (*at == '"' || *at == '\'') {
        int e = unquote(r, at, &end);
        if (e) {
            return e;
        }
    } else if (*end && !is_blank(*end)) {
        return refuse(r, "a value with quotes or a backslash in it stands in '...' or \"...\"");
    }
    const char *rest = end + strspn(end, " \t");
    if (*rest && (*rest != '#' || rest == end)) {
        return refuse(r, "something follows the value; one with blanks stands in '...' or \"...\"");
    }
    *end = '\0';
    return 0;
}

// ---- A line

static int take_name(struct reader *r, const char *name, enum setting *ret)
{
    char why[CONF_UNKNOWN_MAX];
    return conf_setting_find(name, ret, why) ? refuse(r, "%s", why) : 0;
}

static int take_line(struct reader *r, char *line)
{
    char *end = line + strlen(line);
    while (end > line && (is_blank(end[-1]) || end[-1] == '\r')) {
        *--end = '\0';
    }
    while (is_blank(*line)) {
        line++;
    }
    if (!*line || *line == '#') {
        return 0;
    }
    char *equals = strchr(line, '=');
    if (!equals || equals == line) {
        return refuse(r, "%.80s: a line is NAME=VALUE, or begins with #", line);
    }
    if (is_blank(equals[-1]) || is_blank(equals[1])) {
        return refuse(r, "no blanks around =");
    }
    *equals = '\0';
    enum setting n = SETTING_COUNT;
    int e = take_name(r, line, &n);
    e = e ? e : take_value(r, equals + 1);
    if (e) {
        return e;
    }
    if (r->file.lines[n]) {
        return refuse(r, "%s stands in line %u already", line, r->file.lines[n]);
    }
    r->file.lines[n] = r->line;
    r->file.values[n] = equals[1] ? equals + 1 : NULL;
    return 0;
}

int conf_file_parse(char *text, size_t len, const char *name, struct conf_file *ret,
                    struct conf_error *ret_error)
{
    struct reader r = {.name = name, .file = {.text = text}, .error = ret_error};
    text[len] = '\0';
    int e = 0;
    for (char *rest = text, *line; !e && rest;) {
        line = rest;
        size_t n = strcspn(line, "\n");
        r.line++;
        rest = line[n] == '\n' ? line + n + 1 : NULL;
        if (!rest && line + n < text + len) {
            e = refuse(&r, "a NUL byte: this is no text");
            break;
        }
        line[n] = '\0';
        e = take_line(&r, line);
    }
    if (e) {
        free(text);
        return e;
    }
    *ret = r.file;
    return 0;
}

void conf_file_done(struct conf_file *f)
{
    free(f->text);
    *f = (struct conf_file){};
}

// ---- The file

static int complain(struct conf_error *e, const char *name, int error, const char *why)
{
    snprintf(e->text, sizeof e->text, "%.300s: %s", name, why);
    text_no_controls(e->text);
    return error;
}

// What may stand in a file that everybody on the host can read.
static int check_secrets(const struct conf_file *f, const char *name, mode_t mode,
                         struct conf_error *e)
{
    for (int n = 0; n < SETTING_COUNT && mode & S_IROTH; n++) {
        if (setting_specs[n].secret && f->values[n]) {
            snprintf(e->text, sizeof e->text,
                     "%.200s:%u: %s is a secret, and others can read the file: chmod o-r", name,
                     f->lines[n], setting_specs[n].name);
            text_no_controls(e->text);
            return -EPERM;
        }
    }
    return 0;
}

int conf_file_read(int fd, const char *name, struct conf_file *ret, struct conf_error *ret_error)
{
    struct stat st;
    if (fstat(fd, &st)) {
        return complain(ret_error, name, -errno, strerrordesc_np(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return complain(ret_error, name, -EINVAL, "is not a file");
    }
    if (st.st_mode & S_IWOTH) { // it names programs that isle executes
        return complain(ret_error, name, -EPERM, "others can write it: chmod o-w");
    }
    AUTO_FREE char *text = malloc(CONF_FILE_MAX + 2);
    if (!text) {
        return complain(ret_error, name, -ENOMEM, "not enough memory");
    }
    ssize_t len = fd_read_full(fd, text, CONF_FILE_MAX + 1);
    if (len < 0 || len > CONF_FILE_MAX) {
        return len < 0 ? complain(ret_error, name, (int)len, strerrordesc_np((int)-len))
                       : complain(ret_error, name, -EFBIG, "is larger than 64 KiB");
    }
    struct conf_file file;
    char *taken = text;
    text = NULL;
    int e = conf_file_parse(taken, (size_t)len, name, &file, ret_error);
    if (e) {
        return e;
    }
    e = check_secrets(&file, name, st.st_mode, ret_error);
    if (e) {
        conf_file_done(&file);
        return e;
    }
    *ret = file;
    return 0;
}
