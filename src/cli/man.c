#include "cli/man.h"

#include "base/fd.h"
#include "cli/verb.h"
#include "conf/conf.h"

#include <ctype.h>
#include <string.h>

// A character that roff would take for something else, or NULL.
static const char *escape_of(char c)
{
    return c == '\\' ? "\\e" : c == '`' ? "\\(ga" : c == '\'' ? "\\(aq" : NULL;
}

// Text as roff reads it literally.
static void put(FILE *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const char *escape = escape_of(text[i]);
        if (escape) {
            fputs(escape, out);
        } else {
            fputc(text[i], out);
        }
    }
}

static size_t width_of(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        const char *escape = escape_of(text[i]);
        n += escape ? strlen(escape) : 1;
    }
    return n;
}

enum { WIDTH = 78 };

// One sentence, in lines of WIDTH.
static void put_sentence(FILE *out, const char *text, size_t len)
{
    size_t column = 0;
    for (size_t from = 0, n; from < len; from += n + 1) {
        const char *space = memchr(text + from, ' ', len - from);
        n = space ? (size_t)(space - text) - from : len - from;
        size_t width = width_of(text + from, n);
        if (column > 0) {
            bool fits = column + 1 + width <= WIDTH;
            fputc(fits ? ' ' : '\n', out);
            column = fits ? column + 1 : 0;
        }
        if (column == 0 && n > 0 && strchr(".'", text[from])) {
            fputs("\\&", out);
        }
        put(out, text + from, n);
        column += width;
    }
    fputc('\n', out);
}

// Filled text: each sentence begins a line, so that the formatter knows where it ends.
static void put_text(FILE *out, const char *text)
{
    size_t len = strlen(text), from = 0;
    for (size_t i = 0; i <= len; i++) {
        bool sentence = i > 1 && text[i] == ' ' && text[i - 1] == '.' && isupper(text[i + 1]);
        if (i == len || text[i] == '\n' || sentence) {
            if (i > from) {
                put_sentence(out, text + from, i - from);
            }
            from = i + 1;
        }
    }
}

// One word as the argument of a macro: words of two or three letters could be macros themselves,
// and a lone '|' or ',' is punctuation.
static void put_word(FILE *out, const char *word, size_t len)
{
    fputs(" \\&", out);
    put(out, word, len);
}

// A form's words: options by .Fl, what is to be replaced by .Ar, the rest literally.
static void put_form_word(FILE *out, const char *word, size_t len)
{
    if (len > 1 && word[0] == '-') {
        fputs(".Fl", out);
        if (len == 2 && word[1] == '-') {
            fputs(" \\-", out);
        } else {
            put_word(out, word + 1, len - 1);
        }
    } else if (isupper(word[0])) {
        size_t dots = len > 3 && memcmp(word + len - 3, "...", 3) == 0 ? 3 : 0;
        fputs(".Ar", out);
        put_word(out, word, len - dots);
        fputs(dots ? " ..." : "", out);
    } else {
        fputs(".Cm", out);
        put_word(out, word, len);
    }
    fputc('\n', out);
}

// "[--limit N]", "[list]", "[OPTIONS]": what may be left out. Returns what follows.
static const char *put_group(FILE *out, const char *group)
{
    size_t len = strcspn(group, "]");
    fputs(".Op", out);
    for (size_t at = 1, n; at < len; at += n + 1) {
        const char *word = group + at;
        bool option = *word == '-';
        n = strcspn(word, " ]");
        fputs(option ? " Fl" : isupper(*word) ? " Ar" : " Cm", out);
        put_word(out, word + option, n - option);
    }
    fputc('\n', out);
    return group + len + 1;
}

static void put_form(FILE *out, const struct verb *v, const struct verb_form *f)
{
    fputs(".Nm\n.Cm ", out);
    fprintf(out, "%s\n", v->name);
    for (const char *word = f->words; *word; word += strspn(word, " ")) {
        if (*word == '[') {
            word = put_group(out, word);
        } else {
            size_t len = strcspn(word, " ");
            put_form_word(out, word, len);
            word += len;
        }
    }
}

static void put_option(FILE *out, const struct verb_option *o)
{
    fputs(".It", out);
    if (o->other) {
        fputs(" Fl", out);
        put_word(out, o->other + 1, strlen(o->other + 1));
        fputs(" ,", out);
    }
    fputs(" Fl", out);
    put_word(out, o->name + 1, strlen(o->name + 1));
    if (o->argument) {
        fputs(" Ar", out);
        put_word(out, o->argument, strlen(o->argument));
    }
    fputc('\n', out);
    put_text(out, o->help);
    fputs(o->many ? "(may be given again)\n" : "", out);
}

static void put_verb(FILE *out, const struct verb *v)
{
    struct verb_option o;
    fprintf(out, ".Ss isle %s\n", v->name);
    put_text(out, v->about);
    if (v->forms->what) {
        fputs(".Bl -tag -width Ds\n", out);
        for (const struct verb_form *f = v->forms; f->words; f++) {
            fputs(".It Xo\n", out);
            put_form(out, v, f);
            fputs(".Xc\n", out);
            put_text(out, f->what);
        }
        fputs(".El\n", out);
    }
    if (v->notes) {
        fputs(".Pp\n", out);
        put_text(out, v->notes);
    }
    fputs(".Pp\nOptions:\n.Bl -tag -width Ds\n", out);
    for (size_t i = 0; i < verb_n_options(v); i++) {
        verb_option_at(v, i, &o);
        put_option(out, &o);
    }
    fputs(".El\n", out);
}

static void put_statuses(FILE *out, const struct verb *v)
{
    fprintf(out, "%s.Nm\n.Cm %s :\n.Bl -tag -width \"126, 127\" -compact\n",
            v == verbs[0] ? "" : ".Pp\n", v->name);
    for (const struct verb_status *s = v->statuses; s->status; s++) {
        fputs(".It ", out);
        put(out, s->status, strlen(s->status));
        fputc('\n', out);
        put_text(out, s->when);
    }
    fputs(".El\n", out);
}

static void put_settings(FILE *out, bool paths)
{
    fputs(".Bl -tag -width Ds\n", out);
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting_spec *s = &setting_specs[i];
        if (s->hidden || (paths && (s->type != SETTING_PATH || !*s->initial))) {
            continue;
        }
        fprintf(out, ".It %s %s\n", paths ? "Pa" : "Ev", paths ? s->initial : s->name);
        put_text(out, s->help);
        if (!paths && *s->initial) {
            fprintf(out, "(default\n.Ql \\&%s )\n", s->initial);
        } else if (paths) {
            fprintf(out, ".Pq Ev %s\n", s->name);
        }
    }
    fputs(".El\n", out);
}

// What the verbs that speak to a service look at beside the settings.
static void put_remote(FILE *out)
{
    static const struct {
        const char *name, *what;
    } rows[] = {
        {"ISLE_URL", "Where the service is, as for --url."},
        {"ISLE_KEY", "Who asks, as for --key."},
        {"SSL_CERT_FILE", "Certificates to trust instead of the system's, for https://."},
    };
    fputs("Verbs that speak to a service look at these too:\n.Bl -tag -width Ds\n", out);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        fprintf(out, ".It Ev %s\n", rows[i].name);
        put_text(out, rows[i].what);
    }
    fputs(".El\n", out);
}

void man_print(const char *date, FILE *out)
{
    fprintf(out,
            ".\\\" Made from isle's tables by its build.\n.Dd %s\n.Dt ISLE 1\n.Os\n"
            ".Sh NAME\n.Nm isle\n.Nd run untrusted code, each job in a sandbox of its own\n"
            ".Sh SYNOPSIS\n",
            date);
    for (size_t i = 0; verbs[i]; i++) {
        for (const struct verb_form *f = verbs[i]->forms; f->words; f++) {
            put_form(out, verbs[i], f);
        }
    }
    fputs(".Nm\n.Cm help\n.Op Ar verb\n.Nm\n.Fl -version\n"
          ".Sh DESCRIPTION\n"
          ".Nm\nruns Python, JavaScript, shell scripts and commands that nobody trusts.\n"
          "Each job has namespaces, limits and a system call filter of its own, sees a\n"
          "read-only system and no file, process or network of this machine, and leaves\n"
          "nothing behind.\n"
          "Started as root,\n.Nm\nuses that to make the sandbox, and never inside.\n"
          "An ordinary user gets what the host grants;\n.Nm\n.Cm doctor\nsays what that is.\n",
          out);
    for (size_t i = 0; verbs[i]; i++) {
        put_verb(out, verbs[i]);
    }
    fputs(
        ".Sh ENVIRONMENT\nSettings of the operator.\nAn empty value counts as unset; a bad one is "
        "refused by name, value and bound.\n",
        out);
    put_settings(out, false);
    put_remote(out);
    fputs(".Sh FILES\n", out);
    put_settings(out, true);
    fputs(".Sh EXIT STATUS\n", out);
    for (size_t i = 0; verbs[i]; i++) {
        put_statuses(out, verbs[i]);
    }
    fputs(".Sh EXAMPLES\n", out);
    for (size_t i = 0; verbs[i]; i++) {
        fputs(".Bd -literal -compact\n", out);
        for (size_t k = 0; verbs[i]->examples[k]; k++) {
            put(out, verbs[i]->examples[k], strlen(verbs[i]->examples[k]));
            fputc('\n', out);
        }
        fputs(".Ed\n", out);
    }
}
