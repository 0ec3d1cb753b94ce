#include "cli/report.h"

#include "base/fd.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "codec/json.h"
#include "model/limits.h"
#include "model/result.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

// The parts of a SandboxResult that the front looks at.
struct view {
    yyjson_val *root;
    struct result r; // reason, exit_code, signal
    const char *error;
};

static yyjson_val *part(const struct view *v, const char *object, const char *key)
{
    return yyjson_obj_get(yyjson_obj_get(v->root, object), key);
}

static bool number(yyjson_val *v, int64_t *ret) { return v && json_int(v, ret) == 0; }

static bool read_view(yyjson_val *root, struct view *ret)
{
    struct view v = {.root = root, .r.exit_code = -1};
    const char *reason = yyjson_get_str(yyjson_obj_get(root, "reason"));
    int64_t n;
    int i = 0;
    while (reason && i < REASON_COUNT && strcmp(reason, reason_names[i]) != 0) {
        i++;
    }
    if (!reason || i == REASON_COUNT) {
        return false;
    }
    v.r.reason = (enum reason)i;
    if (number(yyjson_obj_get(root, "exit_code"), &n)) {
        v.r.exit_code = (int)(n & 0xff);
    }
    if (number(yyjson_obj_get(root, "signal"), &n)) {
        v.r.signal = (int)(n & 0x7f);
    }
    v.error = yyjson_get_str(yyjson_obj_get(root, "error"));
    *ret = v;
    return true;
}

static void print_value(const struct report *r, const struct buf *text)
{
    AUTO_BUF struct buf clean = BUF_INIT(terminal_room(text->len));
    if (isatty(fileno(r->out)) && terminal_clean(&clean, buf_text(text), text->len) == 0) {
        text = &clean;
    }
    fwrite(buf_text(text), 1, text->len, r->out);
    putc('\n', r->out);
}

// A snippet's non-null result, on a line of its own.
static int print_result(const struct report *r, const struct view *v)
{
    yyjson_val *value = yyjson_obj_get(v->root, "result");
    if (!value || yyjson_is_null(value)) {
        return 0;
    }
    AUTO_BUF struct buf text = BUF_INIT(64 << 20);
    int e = json_write(&text, value);
    if (!e) {
        fputs(r->line_open ? "\n" : "", r->out);
        print_value(r, &text);
    }
    return e;
}

static void print_truncation(const struct report *r, const struct view *v)
{
    static const struct {
        const char *flag, *bytes, *name;
    } streams[] = {{"stdout", "stdout_bytes", "standard output"},
                   {"stderr", "stderr_bytes", "standard error"}};
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        int64_t bytes = 0;
        if (yyjson_is_true(part(v, "truncated", streams[i].flag))) {
            number(part(v, "usage", streams[i].bytes), &bytes);
        }
        if (bytes > 0) { // not known where the service ended meanwhile, and no limit's doing
            fprintf(r->err, "isle: %s was cut: the job wrote %lld bytes (--max-%s-kb)\n",
                    streams[i].name, (long long)bytes, streams[i].flag);
        }
    }
}

// A failure of the program's own is told by its output and status; saying it twice helps nobody.
static bool is_told_already(const struct view *v)
{
    static const char *const plain[] = {"Exit code ", "Ended by signal "};
    if (v->r.reason != REASON_ERROR || !v->error) {
        return v->r.reason == REASON_OK;
    }
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        if (strncmp(v->error, plain[i], strlen(plain[i])) == 0) {
            return true;
        }
    }
    const char *output = yyjson_get_str(yyjson_obj_get(v->root, "stderr"));
    return output && strstr(output, v->error) != NULL;
}

// The option that gives a job more of what it had not enough of.
static const char *option_of_reason(enum reason reason)
{
    static const struct {
        enum reason reason;
        enum limit limit;
    } rows[] = {{REASON_TIMEOUT, LIMIT_TIMEOUT},
                {REASON_CPU_LIMIT, LIMIT_CPU},
                {REASON_MEMORY_LIMIT, LIMIT_MEMORY},
                {REASON_DISK_LIMIT, LIMIT_DISK}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].reason == reason) {
            return limit_specs[rows[i].limit].option;
        }
    }
    return NULL;
}

// "artifact: artifact a.png: does not exist" says one word twice.
static bool begins_with_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    return strncmp(text, word, n) == 0 && text[n] == ' ';
}

// The text of an error may quote the job: no control characters towards a terminal.
static void print_error(const struct report *r, const struct view *v)
{
    const char *reason = reason_names[v->r.reason], *option = option_of_reason(v->r.reason);
    AUTO_FREE char *error = v->error && v->r.reason != REASON_OK ? strdup(v->error) : NULL;
    if (error) {
        text_no_controls(error);
    }
    if (error && begins_with_word(error, reason)) {
        fprintf(r->err, "isle: %s", error);
    } else {
        fprintf(r->err, "isle: %s%s%s", reason, error ? ": " : "", error ? error : "");
    }
    if (option) {
        fprintf(r->err, " (%s)", option);
    }
}

static void print_summary(const struct report *r, const struct view *v)
{
    int64_t n;
    const char *separator = " (";
    if (number(part(v, "usage", "wall_ms"), &n)) {
        fprintf(r->err, "%s%.3f s", separator, (double)n / 1e3);
        separator = ", ";
    }
    if (number(part(v, "usage", "cpu_ms"), &n)) {
        fprintf(r->err, "%sCPU %.3f s", separator, (double)n / 1e3);
        separator = ", ";
    }
    if (number(part(v, "usage", "memory_peak_bytes"), &n)) {
        fprintf(r->err, "%smemory %.1f MB", separator, (double)n / (1 << 20));
        separator = ", ";
    }
    fputs(separator[0] == ',' ? ")" : "", r->err);
}

static const struct downgrade *downgrade_named(const char *name)
{
    for (size_t k = 0; name && k < n_downgrades; k++) {
        if (strcmp(name, downgrades[k].name) == 0) {
            return &downgrades[k];
        }
    }
    return NULL;
}

// What this host could not give: at a terminal somebody can mend it. One line after every job, so
// the whole story of several is left to the verb that tells it.
static void print_downgrades(const struct report *r, const struct view *v)
{
    yyjson_val *list = part(v, "isolation", "downgrades"), *item;
    size_t i, count;
    const char *before = "isle: degraded: ";
    const struct downgrade *d = yyjson_arr_size(list) == 1
                                    ? downgrade_named(yyjson_get_str(yyjson_arr_get(list, 0)))
                                    : NULL;
    if (d) {
        fprintf(r->err, "%s%s: %s (to mend it: %s)\n", before, d->name, d->lost, d->fix);
        return;
    }
    yyjson_arr_foreach(list, i, count, item)
    {
        d = downgrade_named(yyjson_get_str(item));
        if (d) {
            fprintf(r->err, "%s%s", before, d->name);
            before = ", ";
        }
    }
    if (before[0] == ',') {
        fputs(" (isle doctor says what each costs and how to mend it)\n", r->err);
    }
}

// A job that was meant to be isolated and was not: said to everybody.
static void print_fallback(const struct report *r, const struct view *v)
{
    const char *why = yyjson_get_str(part(v, "isolation", "fallback"));
    if (why) {
        fprintf(r->err,
                "isle: warning: this job ran without isolation, as its sandbox failed: %s\n", why);
    }
}

// What people read begins a line of its own, also where the job left one open. (A result ended it.)
static void print_line_start(const struct report *r, const struct view *v)
{
    yyjson_val *value = r->snippet ? yyjson_obj_get(v->root, "result") : NULL;
    bool open = r->line_open && (!value || yyjson_is_null(value));
    if (open && r->terminal && isatty(fileno(r->out))) {
        putc('\n', r->err);
    }
}

static void print_for_people(const struct report *r, const struct view *v)
{
    print_line_start(r, v);
    print_truncation(r, v);
    if (r->terminal || !is_told_already(v)) {
        print_error(r, v);
        if (r->terminal) {
            print_summary(r, v);
        }
        putc('\n', r->err);
    }
    if (r->terminal) {
        print_downgrades(r, v);
    }
}

int report_print(const struct report *r, const struct buf *final)
{
    struct json_error why;
    struct view v;
    yyjson_doc *doc = json_parse_envelope(final->data, final->len, &why);
    if (!doc || !read_view(yyjson_doc_get_root(doc), &v)) {
        yyjson_doc_free(doc);
        return -EBADMSG;
    }
    int e = 0;
    print_fallback(r, &v);
    if (r->json) {
        print_value(r, final);
    } else {
        e = r->snippet ? print_result(r, &v) : 0;
        fflush(r->out);
        if (!r->quiet) {
            print_for_people(r, &v);
        }
    }
    int status = result_exit_status(&v.r);
    yyjson_doc_free(doc);
    return e ? e : status;
}
