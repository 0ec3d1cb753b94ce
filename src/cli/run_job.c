#include "cli/run_job.h"

#include "base/fd.h"
#include "codec/json.h"
#include "codec/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

struct builder {
    const struct run_options *o;
    struct run_job *job;
    struct run_error *error;
    enum language language;
};

static int refuse(struct builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int refuse(struct builder *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(b->error->text, sizeof b->error->text, format, args);
    va_end(args);
    return -EINVAL;
}

// ---- Reading what the user named

// A file that may be read to its end: a regular one or a pipe. Descriptor or -EINVAL.
static int open_readable(struct builder *b, const char *what, const char *path, struct stat *ret)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, ret)) {
        return refuse(b, "%s: %.300s: %m", what, path);
    }
    if (!S_ISREG(ret->st_mode) && !S_ISFIFO(ret->st_mode)) {
        return refuse(b, "%s: %.300s is neither a file nor a pipe", what, path);
    }
    return fd_take(&fd);
}

// All of it, up to out->max.
static int read_all(struct builder *b, const char *what, const char *path, int fd, struct buf *out)
{
    char chunk[8192];
    for (;;) {
        ssize_t n = fd_read_full(fd, chunk, sizeof chunk);
        if (n < 0) {
            errno = (int)-n;
            return refuse(b, "%s: %.300s: %m", what, path);
        }
        if (buf_add(out, chunk, (size_t)n)) {
            return out->error == -EMSGSIZE
                       ? refuse(b, "%s: %.300s is above the maximum of %zu bytes", what, path,
                                out->max)
                       : out->error;
        }
        if ((size_t)n < sizeof chunk) {
            return 0;
        }
    }
}

// Editors of Windows put the mark U+FEFF in front of a file. It belongs to no language, and a shell
// would take it for a part of the first command's name.
static size_t bom_length(const char *text, size_t len)
{
    return len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

static int read_named(struct builder *b, const char *what, const char *path, struct buf *out)
{
    struct stat st;
    AUTO_CLOSE int fd = open_readable(b, what, path, &st);
    return fd < 0 ? fd : read_all(b, what, path, fd, out);
}

// ---- Writing JSON

static void put_key(struct buf *json, const char *key)
{
    buf_printf(json, "%s\"%s\":", json->len > 1 ? "," : "", key);
}

// Text of the user's. JSON carries UTF-8 only, and replacing what is not would change it silently.
static int put_string(struct builder *b, const char *what, const char *text, size_t len)
{
    if (!utf8_valid(text, len)) {
        return refuse(b, "%s: not valid UTF-8 at byte %zu%s", what, utf8_valid_prefix(text, len),
                      what == b->o->file ? "; save it as UTF-8" : "");
    }
    utf8_json_string(&b->job->json, text, len);
    return 0;
}

static int put_text(struct builder *b, const char *what, const char *text)
{
    return put_string(b, what, text, strlen(text));
}

// ---- The code and its language

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const struct {
    const char *name;
    enum language language;
} extensions[] = {{".py", LANGUAGE_PYTHON},      {".js", LANGUAGE_JAVASCRIPT},
                  {".mjs", LANGUAGE_JAVASCRIPT}, {".cjs", LANGUAGE_JAVASCRIPT},
                  {".sh", LANGUAGE_BASH},        {".bash", LANGUAGE_BASH}},
  interpreters[] = {{"python", LANGUAGE_PYTHON},
                    {"python3", LANGUAGE_PYTHON},
                    {"python3.13", LANGUAGE_PYTHON},
                    {"node", LANGUAGE_JAVASCRIPT},
                    {"nodejs", LANGUAGE_JAVASCRIPT},
                    {"bash", LANGUAGE_BASH},
                    {"sh", LANGUAGE_BASH}};

// The next word of a #! line; *at goes behind it. Empty at the end.
static size_t next_word(const char *line, size_t len, size_t *at)
{
    while (*at < len && (line[*at] == ' ' || line[*at] == '\t')) {
        ++*at;
    }
    size_t from = *at;
    while (*at < len && line[*at] != ' ' && line[*at] != '\t' && line[*at] != '\r') {
        ++*at;
    }
    return *at - from;
}

// "#!/usr/bin/env -S python3 -u" and "#!/bin/bash": the last part of the interpreter's path.
static enum language language_of_shebang(const struct buf *code)
{
    if (code->len < 2 || memcmp(code->data, "#!", 2) != 0) {
        return LANGUAGE_NONE;
    }
    const char *line = code->data + 2, *end = memchr(line, '\n', code->len - 2);
    size_t len = end ? (size_t)(end - line) : code->len - 2, at = 0, n;
    while ((n = next_word(line, len, &at)) > 0) {
        const char *word = line + at - n, *slash = memrchr(word, '/', n);
        const char *name = slash ? slash + 1 : word;
        size_t name_len = (size_t)(word + n - name);
        if (word[0] == '-' || (name_len == 3 && memcmp(name, "env", 3) == 0)) {
            continue;
        }
        for (size_t i = 0; i < ARRAY_LEN(interpreters); i++) {
            if (strlen(interpreters[i].name) == name_len &&
                memcmp(interpreters[i].name, name, name_len) == 0) {
                return interpreters[i].language;
            }
        }
        break;
    }
    return LANGUAGE_NONE;
}

// What somebody calls a language: "node", "py", "Python". NONE: nothing known.
static enum language language_meant(const char *word)
{
    for (int i = LANGUAGE_NONE + 1; i < LANGUAGE_COUNT; i++) {
        if (strcasecmp(word, language_names[i]) == 0) {
            return (enum language)i;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(interpreters); i++) {
        if (strcasecmp(word, interpreters[i].name) == 0) {
            return interpreters[i].language;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(extensions); i++) {
        if (strcasecmp(word, extensions[i].name + 1) == 0) {
            return extensions[i].language;
        }
    }
    return LANGUAGE_NONE;
}

static int find_language(struct builder *b, const struct buf *code)
{
    const struct run_options *o = b->o;
    if (o->language) {
        for (int i = LANGUAGE_NONE + 1; i < LANGUAGE_COUNT; i++) {
            if (strcmp(o->language, language_names[i]) == 0) {
                b->language = (enum language)i;
                return 0;
            }
        }
        enum language meant = language_meant(o->language);
        return meant ? refuse(b, "-l: unknown language %.60s; it is called %s here", o->language,
                              language_names[meant])
                     : refuse(b, "-l: unknown language %.60s; python, javascript or bash",
                              o->language);
    }
    const char *dot = o->file ? strrchr(base_name(o->file), '.') : NULL;
    for (size_t i = 0; dot && i < ARRAY_LEN(extensions); i++) {
        if (strcmp(dot, extensions[i].name) == 0) {
            b->language = extensions[i].language;
        }
    }
    if (b->language == LANGUAGE_NONE) {
        b->language = language_of_shebang(code);
    }
    if (b->language == LANGUAGE_NONE) {
        return refuse(b, "%.300s: the language is not known; give -l python, javascript or bash",
                      o->file ? o->file : "-c");
    }
    return 0;
}

static int read_code(struct builder *b, struct buf *code)
{
    const struct run_options *o = b->o;
    if (o->code) {
        size_t n = strlen(o->code);
        return buf_add(code, o->code, n)
                   ? refuse(b, "code: %zu bytes are above the maximum of %zu", n, code->max)
                   : 0;
    }
    if (strcmp(o->file, "-") == 0) {
        return read_all(b, "code", "standard input", STDIN_FILENO, code);
    }
    if (o->file[0] && !strpbrk(o->file, "./") && access(o->file, F_OK) && errno == ENOENT) {
        return refuse(b, "code: %.100s: no such file; a command goes behind --: isle run -- %.100s",
                      o->file, o->file);
    }
    return read_named(b, "code", o->file, code);
}

static int add_code(struct builder *b)
{
    const struct run_options *o = b->o;
    AUTO_BUF struct buf code = BUF_INIT(JOB_MAX_CODE_BYTES);
    int e = read_code(b, &code);
    if (!e && o->file) {
        size_t skip = bom_length(buf_text(&code), code.len);
        code.len -= skip;
        memmove(code.data, code.data + skip, code.len);
    }
    e = e ? e : find_language(b, &code);
    if (e) {
        return e;
    }
    struct buf *json = &b->job->json;
    put_key(json, "language");
    buf_printf(json, "\"%s\"", language_names[b->language]);
    put_key(json, "code");
    e = put_string(b, o->code ? "-c" : o->file, buf_text(&code), code.len);
    if (!e && o->file && strcmp(o->file, "-") != 0) {
        put_key(json, "code_name");
        e = put_text(b, o->file, base_name(o->file));
    }
    return e;
}

static int add_command(struct builder *b)
{
    struct buf *json = &b->job->json;
    if (b->o->language) {
        return refuse(b, "-l: goes with code, not with a command");
    }
    put_key(json, "command");
    for (size_t i = 0; b->o->command[i]; i++) {
        buf_puts(json, i ? "," : "[");
        int e = put_text(b, "command", b->o->command[i]);
        if (e) {
            return e;
        }
    }
    return buf_putc(json, ']');
}

static int add_payload(struct builder *b) { return b->o->command ? add_command(b) : add_code(b); }

// ---- The rest of the job

static int add_params(struct builder *b)
{
    const char *given = b->o->params;
    AUTO_BUF struct buf text = BUF_INIT(JOB_MAX_PARAMS_BYTES);
    struct json_error why;
    if (!given) {
        return 0;
    }
    int e = given[0] == '@' ? read_named(b, "--params", given + 1, &text)
                            : buf_add(&text, given, strlen(given));
    if (e) {
        return e;
    }
    size_t skip = given[0] == '@' ? bom_length(buf_text(&text), text.len) : 0;
    // One strict JSON value stays one inside the job's JSON: it is put in as it stands.
    if (json_check(buf_text(&text) + skip, text.len - skip, &why)) {
        return refuse(b, "--params: not valid JSON: %s%s", why.text,
                      given[0] == '{' && !strchr(given, '"')
                          ? "; did the shell take the quotes? Write '{\"a\": 1}'"
                      : given[0] && !strchr("@{[", given[0]) ? "; a file is @FILE"
                                                             : "");
    }
    put_key(&b->job->json, "params");
    return buf_add(&b->job->json, text.data + skip, text.len - skip);
}

// -?(0|[1-9][0-9]*)(.[0-9]+)?: no exponents here, nor anything else JSON has.
static bool is_number(const char *text)
{
    const char *digits = "0123456789";
    text += *text == '-';
    size_t whole = strspn(text, digits);
    if (whole == 0 || (whole > 1 && text[0] == '0')) {
        return false;
    }
    text += whole;
    if (*text == '.') {
        size_t fraction = strspn(text + 1, digits);
        text += fraction ? 1 + fraction : 0;
    }
    return *text == '\0';
}

static int add_limits(struct builder *b)
{
    struct buf *json = &b->job->json;
    const char *separator = "";
    put_key(json, "limits");
    buf_putc(json, '{');
    for (int i = 0; i < LIMIT_COUNT; i++) {
        const char *value = b->o->limit[i];
        if (!value) {
            continue;
        }
        if (!is_number(value)) {
            return refuse(b, "%s: %.60s is not a number: digits, at most one point (unit: %s)",
                          limit_specs[i].option, value, limit_specs[i].unit);
        }
        buf_printf(json, "%s\"%s\":%s", separator, limit_specs[i].name, value);
        separator = ",";
    }
    return buf_putc(json, '}');
}

static int add_variable(struct builder *b, size_t i)
{
    const struct option_list *env = &b->o->env;
    const char *word = env->words[i], *equals = strchr(word, '=');
    if (!equals) {
        return refuse(b, "--env: %.100s is not NAME=VALUE", word);
    }
    size_t n = (size_t)(equals - word);
    for (size_t k = 0; k < i; k++) {
        if (strncmp(env->words[k], word, n + 1) == 0) {
            return refuse(b, "--env: %.*s is given twice", (int)(n < 100 ? n : 100), word);
        }
    }
    buf_puts(&b->job->json, i ? "," : "");
    int e = put_string(b, "--env", word, n);
    buf_putc(&b->job->json, ':');
    return e ? e : put_text(b, "--env", equals + 1);
}

static int add_env(struct builder *b)
{
    put_key(&b->job->json, "env");
    buf_putc(&b->job->json, '{');
    for (size_t i = 0; i < b->o->env.n; i++) {
        int e = add_variable(b, i);
        if (e) {
            return e;
        }
    }
    return buf_putc(&b->job->json, '}');
}

static int add_cwd(struct builder *b)
{
    if (!b->o->cwd) {
        return 0;
    }
    put_key(&b->job->json, "cwd");
    return put_text(b, "--cwd", b->o->cwd);
}

// A terminal is open for writing too, and the service need not be able to: it gets another opening.
static int open_own_input(void)
{
    int fd = isatty(STDIN_FILENO) ? open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
    return fd < 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : fd;
}

static int add_stdin(struct builder *b)
{
    const char *path = b->o->input;
    if (!path) {
        return 0;
    }
    bool own = strcmp(path, "-") == 0;
    AUTO_CLOSE int fd = own ? open_own_input() : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st)) {
        return refuse(b, "--stdin: %.300s: %m", own ? "standard input" : path);
    }
    if (S_ISDIR(st.st_mode)) {
        return refuse(b, "--stdin: %.300s is a folder", own ? "standard input" : path);
    }
    put_key(&b->job->json, "stdin_fd");
    buf_printf(&b->job->json, "%zu", b->job->n_fds);
    b->job->fds[b->job->n_fds++] = fd_take(&fd);
    return 0;
}

// SRC[:DEST], the last colon counts. A DEST that ends in '/' is the folder.
static int add_file(struct builder *b, size_t i)
{
    const char *word = b->o->files.words[i], *colon = strrchr(word, ':');
    AUTO_FREE char *source = colon ? strndup(word, (size_t)(colon - word)) : strdup(word);
    if (!source) {
        return -ENOMEM;
    }
    const char *target = colon ? colon + 1 : base_name(source);
    if (!*source || !*target) {
        return refuse(b, "--file: %.300s is not SRC or SRC:DEST", word);
    }
    struct stat st;
    // Not blocking: a pipe without a writer must not hold us; it is refused just below.
    AUTO_CLOSE int fd = open(source, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st)) {
        return refuse(b, "--file: %.300s: %m", source);
    }
    if (!S_ISREG(st.st_mode)) {
        return refuse(b, "--file: %.300s is not a regular file", source);
    }
    struct buf *json = &b->job->json;
    AUTO_BUF struct buf path = BUF_INIT((size_t)2 * JOB_MAX_PATH);
    buf_printf(&path, "%.*s%s", JOB_MAX_PATH + 1, target,
               target[strlen(target) - 1] == '/' ? base_name(source) : "");
    buf_printf(json, "%s{\"target_path\":", i ? "," : "");
    int e = put_string(b, "--file", buf_text(&path), path.len);
    buf_printf(json, ",\"fd\":%zu,\"mode\":\"%s\"}", b->job->n_fds,
               st.st_mode & 0111 ? "0755" : "0644");
    b->job->fds[b->job->n_fds++] = fd_take(&fd);
    b->job->staged_bytes += lower_pages((uint64_t)st.st_size);
    return e;
}

static int add_files(struct builder *b)
{
    put_key(&b->job->json, "input_files");
    buf_putc(&b->job->json, '[');
    for (size_t i = 0; i < b->o->files.n; i++) {
        int e = add_file(b, i);
        if (e) {
            return e;
        }
    }
    return buf_putc(&b->job->json, ']');
}

static int add_artifacts(struct builder *b)
{
    struct buf *json = &b->job->json;
    put_key(json, "artifacts");
    for (size_t i = 0; i < b->o->artifacts.n; i++) {
        const char *word = b->o->artifacts.words[i];
        size_t n = strlen(word);
        bool optional = n > 0 && word[n - 1] == '?';
        buf_printf(json, "%s{\"path\":", i ? "," : "[");
        int e = put_string(b, "--artifact", word, n - optional);
        if (e) {
            return e;
        }
        buf_printf(json, ",\"optional\":%s}", optional ? "true" : "false");
    }
    return buf_puts(json, b->o->artifacts.n ? "]" : "[]");
}

static int add_sets(struct builder *b)
{
    struct buf *json = &b->job->json;
    put_key(json, "package_sets");
    buf_putc(json, '[');
    for (size_t i = 0; i < b->o->sets.n; i++) {
        buf_puts(json, i ? "," : "");
        int e = put_text(b, "--package-set", b->o->sets.words[i]);
        if (e) {
            return e;
        }
    }
    return buf_putc(json, ']');
}

static int add_network(struct builder *b)
{
    put_key(&b->job->json, "network");
    return b->o->network ? put_text(b, "--network", b->o->network)
                         : buf_puts(&b->job->json, "null");
}

// What the job's own rules say, in the words of options.
static int check(struct builder *b, const struct lower_host *host)
{
    struct run_job *j = b->job;
    struct job_error why;
    int e = job_parse(j->json.data, j->json.len, (int)j->n_fds, &j->job, &why);
    e = e || !host ? e : lower_check_host(&j->job, host, &why);
    if (!e) {
        return 0;
    }
    const char *option = run_options_of_field(why.field);
    const char *detail = why.text + strlen(why.field) + 2;
    return option ? refuse(b, "%s: %s (%s)", option, detail, why.field) : refuse(b, "%s", why.text);
}

int run_job_build(const struct run_options *o, const struct lower_host *host, struct run_job *ret,
                  struct run_error *ret_error)
{
    static int (*const parts[])(struct builder *) = {
        add_payload, add_params, add_limits,    add_env,  add_cwd,
        add_stdin,   add_files,  add_artifacts, add_sets, add_network};
    struct builder b = {o, ret, ret_error, LANGUAGE_NONE};
    *ret = (struct run_job){.json = BUF_INIT(JOB_MAX_JSON_BYTES), .job = {.stdin_fd = -1}};
    ret->fds = calloc(o->files.n + 1, sizeof *ret->fds);
    if (!ret->fds) {
        return refuse(&b, "not enough memory");
    }
    buf_putc(&ret->json, '{');
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        int e = parts[i](&b);
        if (e == -EINVAL) {
            return e;
        }
        if (e || ret->json.error) {
            return refuse(&b, "the job is too large (%d bytes of JSON at most)",
                          JOB_MAX_JSON_BYTES);
        }
    }
    buf_putc(&ret->json, '}');
    return check(&b, host);
}

void run_job_done(struct run_job *j)
{
    for (size_t i = 0; i < j->n_fds; i++) {
        fd_close(j->fds[i]);
    }
    free(j->fds);
    buf_free(&j->json);
    job_done(&j->job);
    *j = (struct run_job){.job = {.stdin_fd = -1}};
}
