#include "cli/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int option_refuse(struct option_error *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    return -EINVAL;
}

// The option that `word` is, and the value behind its '='.
static const struct option *find(const struct option *table, size_t n, char *word, char **ret_value)
{
    size_t len = strcspn(word, "=");
    for (size_t i = 0; i < n; i++) {
        const char *names[] = {table[i].name, table[i].other};
        for (size_t k = 0; k < 2; k++) {
            if (!names[k]) {
                continue;
            }
            bool is_long = strncmp(names[k], "--", 2) == 0;
            if (strcmp(word, names[k]) == 0) {
                *ret_value = NULL;
                return &table[i];
            }
            if (is_long && word[len] == '=' && strlen(names[k]) == len &&
                strncmp(word, names[k], len) == 0) {
                *ret_value = word + len + 1;
                return &table[i];
            }
        }
    }
    return NULL;
}

static int list_add(struct option_list *list, const char *value)
{
    if (list->n % 64 == 0) {
        const char **words = reallocarray(list->words, list->n + 64, sizeof *words);
        if (!words) {
            return -ENOMEM;
        }
        list->words = words;
    }
    list->words[list->n++] = value;
    return 0;
}

static int store(const struct option *o, void *target, char *value, struct option_error *e)
{
    char *field = (char *)target + o->offset;
    struct option_list *list = (struct option_list *)(void *)field;
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case OPTION_TEXT:
        *(const char **)(void *)field = value;
        return 0;
    case OPTION_LIST:
        if (list->n == OPTION_LIST_MAX) {
            return option_refuse(e, "%s: more than %d", o->name, OPTION_LIST_MAX);
        }
        return list_add(list, value);
    }
    return -EINVAL;
}

// Takes the option at argv[*at], which is one of the table, and its value.
static int take(const struct option *table, size_t n, char **argv, size_t *at, void *target,
                struct option_error *e)
{
    char *value;
    const struct option *o = find(table, n, argv[*at], &value);
    if (o->kind == OPTION_FLAG && value) {
        return option_refuse(e, "%s: takes no value", o->name);
    }
    if (o->kind != OPTION_FLAG && !value) {
        value = argv[++*at];
        char *ignored;
        // "--timeout -l" and "--timeout --" forgot a value; "--code=-l" says that it is meant
        if (!value || strcmp(value, "--") == 0 || find(table, n, value, &ignored)) {
            return option_refuse(e, "%s: needs a value (%s)", o->name, o->argument);
        }
    }
    return store(o, target, value, e);
}

// How many letters are wrong, missing or too many (Levenshtein); LONG or more is LONG.
enum { LONG = 32 };
static size_t distance(const char *a, const char *b)
{
    size_t row[LONG + 1], m = strlen(b);
    if (strlen(a) > LONG || m > LONG) {
        return LONG;
    }
    for (size_t k = 0; k <= m; k++) {
        row[k] = k;
    }
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t k = 1; k <= m; k++) {
            size_t same = diagonal + (a[i] != b[k - 1]);
            size_t other = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;
            diagonal = row[k];
            row[k] = same < other ? same : other;
        }
    }
    return row[m];
}

// The one option that is nearly `word`, or whose name begins with it or the other way round; NULL.
static const char *meant(const struct option *table, size_t n, const char *word)
{
    enum { MOSTLY_RIGHT = 2, ENOUGH = 5, SHORT = 6 }; // "--" and three letters, four
    char name[LONG + 1];
    size_t len = strcspn(word, "="), best = LONG;
    const char *found = NULL;
    if (strncmp(word, "--", 2) != 0 || len > LONG) {
        return NULL;
    }
    snprintf(name, sizeof name, "%.*s", (int)len, word);
    for (size_t i = 0; i < n; i++) {
        size_t common = strlen(table[i].name) < len ? strlen(table[i].name) : len;
        bool begins = common >= ENOUGH && strncmp(table[i].name, name, common) == 0;
        size_t d = begins ? 1 : distance(name, table[i].name);
        if (d < best) {
            best = d;
            found = table[i].name;
        } else if (d == best) {
            found = NULL; // either could be meant
        }
    }
    // two of three letters wrong is another word
    return best <= (len <= SHORT ? MOSTLY_RIGHT - 1 : MOSTLY_RIGHT) && len >= ENOUGH ? found : NULL;
}

// "-lpython" and "-l=python" for "-l python".
static const char *meant_short(const struct option *table, size_t n, const char *word)
{
    for (size_t i = 0; word[1] != '-' && word[1] && word[2] && i < n; i++) {
        const char *names[] = {table[i].name, table[i].other};
        for (size_t k = 0; table[i].argument && k < 2; k++) {
            if (names[k] && strlen(names[k]) == 2 && strncmp(names[k], word, 2) == 0) {
                return names[k];
            }
        }
    }
    return NULL;
}

static int refuse_unknown(const struct option *table, size_t n, const char *word, bool after_file,
                          struct option_error *e)
{
    const char *other = meant(table, n, word);
    if (other) {
        return option_refuse(e, "%.100s: unknown option; did you mean %s?", word, other);
    }
    other = after_file ? NULL : meant_short(table, n, word);
    if (other) {
        return option_refuse(e, "%.100s: unknown option; did you mean %s %.100s?", word, other,
                             word + (word[2] == '=' ? 3 : 2));
    }
    // "ls -la" is a command without its --
    return option_refuse(e, "%.100s: unknown option%s", word,
                         after_file ? "; words of a command go behind --" : "");
}

int options_parse(const struct option *table, size_t n, char **argv, void *target,
                  struct option_rest *ret, struct option_error *ret_error)
{
    struct option_rest rest = {.takes_command = ret->takes_command};
    for (size_t at = 1; argv[at]; at++) {
        if (strcmp(argv[at], "--") == 0) {
            rest.command = argv + at + 1;
            break;
        }
        if (argv[at][0] == '-' && argv[at][1]) {
            char *ignored;
            if (!find(table, n, argv[at], &ignored)) {
                return refuse_unknown(table, n, argv[at], rest.takes_command && rest.n_operands > 0,
                                      ret_error);
            }
            int e = take(table, n, argv, &at, target, ret_error);
            if (e) {
                return e;
            }
        } else if (rest.n_operands < OPERANDS_MAX) {
            rest.operands[rest.n_operands++] = argv[at];
        }
    }
    *ret = rest;
    return 0;
}
