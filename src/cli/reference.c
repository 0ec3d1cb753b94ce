// isle-reference: of the build only. Prints what is made from isle's tables: the man page, the
// completions of shells, the tables of docs/ (tools/docs.py puts them there).
//
//   isle-reference man DATE | bash | zsh | fish | limits | reasons | statuses | settings |
//                  idle_settings | departures | downgrades | options
#include "base/fd.h"
#include "cli/completion.h"
#include "cli/config.h"
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

static const char *or_unset(const char *value) { return *value ? value : "unset"; }

static void settings(void)
{
    puts("| setting | default | values | SIGHUP | |\n|---|---|---|---|---|");
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting_spec *s = &setting_specs[i];
        char values[256];
        if (!s->hidden && !s->idle) {
            ROW(s->name, or_unset(s->initial), config_values(s, values, sizeof values),
                s->live ? "yes" : "", s->help);
        }
    }
}

// Of the platform, for what a later version does.
static void idle_settings(void)
{
    puts("| setting | secret | |\n|---|---|---|");
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting_spec *s = &setting_specs[i];
        if (s->idle) {
            ROW(s->name, s->secret ? "yes" : "", s->help);
        }
    }
}

static void departures(void)
{
    puts("| setting | documented | isle | why | to restore |\n|---|---|---|---|---|");
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting_spec *s = &setting_specs[i];
        char restore[120];
        if (s->why) {
            snprintf(restore, sizeof restore, "%s=%s", s->name, s->platform);
            ROW(s->name, or_unset(s->platform), or_unset(s->initial), s->why, restore);
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
             {"idle_settings", idle_settings},
             {"departures", departures},
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
