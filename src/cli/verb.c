#include "cli/verb.h"

#include "base/text.h"
#include "model/limits.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

enum { NAME_WIDTH = 24 };

int verb_complain(const char *name, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_no_controls(text);
    fprintf(stderr, "isle%s%s: %s\n", name ? " " : "", name ? name : "", text);
    return CLI_REFUSED;
}

int verb_complain_option(const struct verb *v, const struct option_error *why)
{
    size_t n = strlen(why->text);
    bool asks = n > 0 && why->text[n - 1] == '?';
    return verb_complain(v->name, "%s%s isle %s --help", why->text, asks ? " See" : "; see",
                         v->name);
}

int verb_end_output(const char *name)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return 0;
    }
    return errno == EPIPE ? CLI_REFUSED : verb_complain(name, "output: %m");
}

// ---- Options

static void limit_option(enum limit which, struct verb_option *ret)
{
    const struct limit_spec *s = &limit_specs[which];
    char min[32], max[32], initial[32];
    limit_format(which, s->min, min, sizeof min);
    limit_format(which, s->max, max, sizeof max);
    limit_format(which, s->initial, initial, sizeof initial);
    *ret = (struct verb_option){.name = s->option, .argument = "N", .limit = true};
    snprintf(ret->help, sizeof ret->help, "%s: %s to %s %s, default %s", s->help, min,
             which == LIMIT_CPUS ? "all" : max, s->unit, // the host's
             s->optional && s->initial == 0 ? "none" : initial);
}

size_t verb_n_options(const struct verb *v)
{
    return v->n_options + (v->limits ? (size_t)LIMIT_COUNT : 0);
}

void verb_option_at(const struct verb *v, size_t i, struct verb_option *ret)
{
    if (i >= v->n_options) {
        limit_option((enum limit)(i - v->n_options), ret);
        return;
    }
    const struct option *o = &v->options[i];
    *ret = (struct verb_option){.name = o->name,
                                .other = o->other,
                                .argument = o->argument,
                                .values = o->values,
                                .many = o->kind == OPTION_LIST};
    snprintf(ret->help, sizeof ret->help, "%s", o->help);
}

static bool wants_help(const struct verb *v, const void *target)
{
    for (size_t i = 0; i < v->n_options; i++) {
        if (strcmp(v->options[i].name, "--help") == 0) {
            return *(const bool *)((const char *)target + v->options[i].offset);
        }
    }
    return false;
}

static void print_forms(const struct verb *v, const char *word, FILE *out);
static void print_options(const struct verb *v, const char *only, FILE *out);

// Of what goes with one operand: "isle tools create --help".
static void help_of(const struct verb *v, const char *word, const char *options)
{
    print_forms(v, word, stdout);
    if (v->notes) {
        printf("\n%s\n", v->notes);
    }
    print_options(v, options, stdout);
    printf("\nThe other forms, exit status, examples: isle %s --help\n", v->name);
}

bool verb_begin(const struct verb *v, char **argv, void *target, struct option_rest *ret_rest,
                int *ret_status)
{
    struct option_error why = {"not enough memory"};
    *ret_rest = (struct option_rest){};
    if (options_parse(v->options, v->n_options, argv, target, ret_rest, &why)) {
        *ret_status = verb_complain_option(v, &why);
        return false;
    }
    if (wants_help(v, target)) {
        const char *word = ret_rest->n_operands ? ret_rest->operands[0] : NULL;
        const char *options = word && v->options_of ? v->options_of(v, word) : NULL;
        if (options) {
            help_of(v, word, options);
        } else {
            verb_help(v, stdout);
        }
        *ret_status = verb_end_output(v->name);
        return false;
    }
    return true;
}

// ---- Help

// Is it a form of that first word, "list" or "[list]"? NULL: every one is.
static bool is_form_of(const struct verb_form *f, const char *word)
{
    const char *begin = f->words + (f->words[0] == '[');
    size_t n = word ? strlen(word) : 0;
    return n == 0 || (strncmp(begin, word, n) == 0 && strchr(" ]", begin[n])); // or the end
}

static void print_forms(const struct verb *v, const char *word, FILE *out)
{
    const char *lead = "Usage:";
    size_t width = 0;
    for (const struct verb_form *f = v->forms; f->words; f++) {
        size_t n = is_form_of(f, word) ? strlen(f->words) : 0;
        width = n > width ? n : width;
    }
    for (const struct verb_form *f = v->forms; f->words; f++) {
        if (!is_form_of(f, word)) {
            continue;
        }
        fprintf(out, "%s isle %s", lead, v->name);
        lead = "      ";
        if (f->what) {
            fprintf(out, " %-*s  %s\n", (int)width, f->words, f->what);
        } else {
            fprintf(out, "%s%s\n", *f->words ? " " : "", f->words);
        }
    }
}

bool verb_is_among(const char *word, const char *list)
{
    size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += n) {
        if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ' ')) {
            return true;
        }
    }
    return false;
}

// Those that are among `only`, and those of every form; NULL: all.
static void print_options(const struct verb *v, const char *only, FILE *out)
{
    bool limits = false;
    struct verb_option o;
    fputs("\nOptions:\n", out);
    for (size_t i = 0; i < verb_n_options(v); i++) {
        char names[64];
        verb_option_at(v, i, &o);
        if (only && !verb_is_among(o.name, only) &&
            !verb_is_among(o.name, "--url --key --json --help")) {
            continue;
        }
        fputs(o.limit && !limits ? "\nLimits:\n" : "", out);
        limits = o.limit;
        snprintf(names, sizeof names, "%s%s%s%s%s", o.other ? o.other : "", o.other ? ", " : "",
                 o.name, o.argument ? " " : "", o.argument ? o.argument : "");
        fprintf(out, "  %-*s  %s\n", NAME_WIDTH, names, o.help);
    }
}

void verb_help(const struct verb *v, FILE *out)
{
    fprintf(out, "%s\n\n", v->about);
    print_forms(v, NULL, out);
    if (v->notes) {
        fprintf(out, "\n%s\n", v->notes);
    }
    print_options(v, NULL, out);
    fputs("\nExit status:\n", out);
    for (const struct verb_status *s = v->statuses; s->status; s++) {
        fprintf(out, "  %-8s  %s\n", s->status, s->when);
    }
    fputs("\nExamples:\n", out);
    for (size_t i = 0; v->examples[i]; i++) {
        fprintf(out, "  %s\n", v->examples[i]);
    }
}
