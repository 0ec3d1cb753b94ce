// isle-reference: of the build only. Prints what is made from isle's tables: the man page, the
// completions of shells, the tables of docs/ (tools/docs.py puts them there).
//
//   isle-reference man DATE | bash | zsh | fish | limits | reasons | statuses | settings |
//                  downgrades | options
#include "base/fd.h"
#include "cli/completion.h"
#include "cli/man.h"
#include "cli/verb.h"
#include "conf/conf.h"
#include "model/limits.h"
#include "model/result.h"

#include <stdio.h>
#include <string.h>

// A cell of a table in Markdown.
static void cell(const char *text)
{
    fputs(" ", stdout);
    for (; *text; text++) {
        fputs(*text == '|' || *text == '\\' ? "\\" : "", stdout);
        putchar(*text);
    }
    fputs(" |", stdout);
}

static void row(const char *const *cells, size_t n)
{
    fputs("|", stdout);
    for (size_t i = 0; i < n; i++) {
        cell(cells[i]);
    }
    putchar('\n');
}
#define ROW(...)                                                                                   \
    row((const char *const[]){__VA_ARGS__},                                                        \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void limits(void)
{
    puts("| limit | option | default | range | when it is hit |\n|---|---|---|---|---|");
    for (int i = 0; i < LIMIT_COUNT; i++) {
        const struct limit_spec *s = &limit_specs[i];
        char name[64], option[64], min[32], max[32], initial[32], range[96];
        limit_format((enum limit)i, s->min, min, sizeof min);
        limit_format((enum limit)i, s->max, max, sizeof max);
        limit_format((enum limit)i, s->initial, initial, sizeof initial);
        snprintf(name, sizeof name, "`%s`", s->name);
        snprintf(option, sizeof option, "`%s`", s->option);
        snprintf(range, sizeof range, "%s to %s %s", min, max, s->unit);
        ROW(name, option, s->optional && s->initial == 0 ? "none" : initial, range, s->on_hit);
    }
}

static void reasons(void)
{
    puts("| reason | status | exit status | when |\n|---|---|---|---|");
    for (int i = 0; i < REASON_COUNT; i++) {
        const struct reason_spec *s = &reason_specs[i];
        struct result r = {.reason = (enum reason)i};
        char name[64], status[32], exit_text[16];
        if (!s->when) {
            continue;
        }
        snprintf(name, sizeof name, "`%s`", reason_names[i]);
        snprintf(status, sizeof status, "`%s`", status_names[result_status(&r)]);
        snprintf(exit_text, sizeof exit_text, "%d", s->exit);
        ROW(name, status, s->exit == REASON_EXIT_OWN ? "its own" : exit_text, s->when);
    }
}

static void statuses(void)
{
    puts("| exit status | when |\n|---|---|");
    const struct verb *run = verb_find("run");
    for (const struct verb_status *s = run ? run->statuses : NULL; s && s->status; s++) {
        ROW(s->status, s->when);
    }
}

// Words with spaces between become words with commas between, behind what is there already.
static const char *add_words(char *text, size_t size, const char *words)
{
    size_t len = strlen(text);
    for (const char *p = words; *p && len + sizeof ", x" <= size; p++) {
        if (*p == ' ' || (p == words && len)) {
            text[len++] = ',';
            text[len++] = ' ';
        }
        if (*p != ' ') {
            text[len++] = *p;
        }
    }
    text[len] = '\0';
    return text;
}

static const char *values_of(const struct setting_spec *s, char *text, size_t size)
{
    const char *unit = s->unit ? s->unit : "";
    text[0] = '\0';
    switch (s->type) {
    case SETTING_BOOL:
        return s->choices ? s->choices : "true, false";
    case SETTING_NUMBER:
        snprintf(text, size, "%lld to %lld%s%s", (long long)s->min, (long long)s->max,
                 *unit ? " " : "", unit);
        return text;
    case SETTING_PATH:
        snprintf(text, size, "absolute path");
        return add_words(text, size, s->choices ? s->choices : "");
    case SETTING_NAME:
        return "letters, digits, -; up to 63";
    case SETTING_WORDS:
        snprintf(text, size, "up to %lld words with commas between", (long long)s->max);
        return text;
    case SETTING_TEXT:
        snprintf(text, size, "text of up to %lld bytes", (long long)s->max);
        return text;
    case SETTING_CALLS:
        return "names with commas between";
    case SETTING_CHOICE:
        return *s->choices ? add_words(text, size, s->choices) : "unset";
    }
    return "";
}

static void settings(void)
{
    puts("| setting | default | values | |\n|---|---|---|---|");
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting_spec *s = &setting_specs[i];
        char values[100];
        if (!s->hidden) {
            ROW(s->name, *s->initial ? s->initial : "unset", values_of(s, values, sizeof values),
                s->help);
        }
    }
}

static void print_downgrades(void)
{
    puts("| downgrade | what is lost | to mend it |\n|---|---|---|");
    for (size_t i = 0; i < n_downgrades; i++) {
        char name[64];
        snprintf(name, sizeof name, "`%s`", downgrades[i].name);
        ROW(name, downgrades[i].lost, downgrades[i].fix);
    }
}

// "VERB OPTION" lines, for the test that looks for each of them in help, man page and completions.
static void options(void)
{
    struct verb_option o;
    for (size_t i = 0; verbs[i]; i++) {
        for (size_t k = 0; k < verb_n_options(verbs[i]); k++) {
            verb_option_at(verbs[i], k, &o);
            printf("%s %s\n", verbs[i]->name, o.name);
        }
    }
}

static const struct {
    const char *name;
    void (*print)(void);
} pages[] = {{"limits", limits},
             {"reasons", reasons},
             {"statuses", statuses},
             {"settings", settings},
             {"downgrades", print_downgrades},
             {"options", options}};

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "man") == 0 && argc == 3) {
        man_print(argv[2], stdout);
    } else if (completion_print(word, stdout)) {
        size_t i = 0;
        while (i < ARRAY_LEN(pages) && strcmp(word, pages[i].name) != 0) {
            i++;
        }
        if (i == ARRAY_LEN(pages)) {
            fprintf(stderr, "isle-reference: unknown word '%s'\n", word);
            return 1;
        }
        pages[i].print();
    }
    return fflush(stdout) || ferror(stdout);
}
