#include "cli/completion.h"

#include "base/fd.h"
#include "conf/conf.h"

#include <string.h>

// Text inside '...' of a shell. `special` characters get a backslash as well.
static void put_quoted(FILE *out, const char *text, const char *special, const char *apostrophe)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs(apostrophe, out);
        } else {
            fprintf(out, "%s%c", strchr(special, *text) ? "\\" : "", *text);
        }
    }
}

enum { WORDS_MAX = 4096 };

// All verbs, all settings that have a page.
static const char *join_verbs(char words[WORDS_MAX])
{
    size_t len = 0;
    for (size_t i = 0; verbs[i] && len < WORDS_MAX; i++) {
        len += (size_t)snprintf(words + len, WORDS_MAX - len, "%s%s", i ? " " : "", verbs[i]->name);
    }
    return words;
}

static const char *join_settings(char words[WORDS_MAX])
{
    size_t len = 0;
    for (int i = 0; i < SETTING_COUNT && len < WORDS_MAX; i++) {
        if (!setting_specs[i].hidden) {
            len += (size_t)snprintf(words + len, WORDS_MAX - len, "%s%s", len ? " " : "",
                                    setting_specs[i].name);
        }
    }
    return words;
}

// The words that `values` stands for; NULL where it stands for none.
static const char *words_of(const char *values, char room[WORDS_MAX])
{
    if (values && strcmp(values, VALUES_SETTING) == 0) {
        return join_settings(room);
    }
    return values && *values && *values != '<' ? values : NULL;
}

// One of the three, by the kind of what are no words.
static const char *by_kind(const char *values, const char *file, const char *folder,
                           const char *none)
{
    return !values                              ? none
           : strcmp(values, VALUES_FILE) == 0   ? file
           : strcmp(values, VALUES_FOLDER) == 0 ? folder
                                                : none;
}

// ---- bash

// The case of one option's value, "NAME or OTHER of VERB".
static void bash_value(const struct verb *v, const struct verb_option *o, FILE *out)
{
    char room[WORDS_MAX];
    const char *words = words_of(o->values, room);
    if (!o->argument) {
        return;
    }
    fprintf(out, "    '%s %s'", v->name, o->name);
    if (o->other) {
        fprintf(out, " | '%s %s'", v->name, o->other);
    }
    if (words) {
        fprintf(out, ") values='%s' ;;\n", words);
    } else {
        fprintf(out, ") kind='%s' ;;\n", by_kind(o->values, "file", "directory", "none"));
    }
}

static void bash_verb(const struct verb *v, FILE *out)
{
    struct verb_option o;
    char room[WORDS_MAX];
    const char *words = words_of(v->operands, room);
    fprintf(out, "    %s)\n        options='", v->name);
    for (size_t i = 0; i < verb_n_options(v); i++) {
        verb_option_at(v, i, &o);
        fprintf(out, "%s%s%s%s", i ? " " : "", o.name, o.other ? " " : "", o.other ? o.other : "");
    }
    fputs("'\n", out);
    if (words) {
        fprintf(out, "        values='%s'\n", words);
    }
    if (words && v->file_words) {
        fprintf(out,
                "        for ((i = 2; i < COMP_CWORD; i++)); do\n"
                "            [[ \" $values \" == *\" ${COMP_WORDS[i]} \"* ]] || continue\n"
                "            kind='none'\n"
                "            [[ ' %s ' != *\" ${COMP_WORDS[i]} \"* ]] || kind='file'\n"
                "            values=''\n"
                "            break\n"
                "        done\n",
                v->file_words);
    } else if (!words) {
        fprintf(out, "        kind='%s'\n", by_kind(v->operands, "file", "directory", "none"));
    }
    fputs("        ;;\n", out);
}

static void print_bash(FILE *out)
{
    struct verb_option o;
    char room[WORDS_MAX];
    fputs("# bash completion of isle, made by `isle completion bash`\n"
          "_isle() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i\n"
          "    local kind='' values='' options=''\n"
          "    COMPREPLY=()\n"
          "    if ((COMP_CWORD == 1)); then\n"
          "        mapfile -t COMPREPLY < <(compgen -W '",
          out);
    for (size_t i = 0; verbs[i]; i++) {
        fprintf(out, "%s ", verbs[i]->name);
    }
    fputs("help --help --version' -- \"$cur\")\n"
          "        return\n"
          "    fi\n"
          "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
          "        if [[ ${COMP_WORDS[i]} == -- ]]; then # a command, with words of its own\n"
          "            compopt -o default\n"
          "            return\n"
          "        fi\n"
          "    done\n"
          "    # bash takes --name=value for three words\n"
          "    if [[ $cur == = ]]; then\n"
          "        cur=''\n"
          "    elif [[ $prev == = ]]; then\n"
          "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    case \"${COMP_WORDS[1]} $prev\" in\n",
          out);
    for (size_t i = 0; verbs[i]; i++) {
        for (size_t k = 0; k < verb_n_options(verbs[i]); k++) {
            verb_option_at(verbs[i], k, &o);
            bash_value(verbs[i], &o, out);
        }
    }
    fputs("    esac\n"
          "    [[ $kind || $values ]] || case ${COMP_WORDS[1]} in\n",
          out);
    for (size_t i = 0; verbs[i]; i++) {
        bash_verb(verbs[i], out);
    }
    fprintf(out, "    help)\n        values='%s'\n        ;;\n", join_verbs(room));
    fputs("    esac\n"
          "    if [[ $options && $cur == -* ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
          "    elif [[ $values ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$cur\")\n"
          "    elif [[ $kind == file || $kind == directory ]]; then\n"
          "        compopt -o filenames\n"
          "        mapfile -t COMPREPLY < <(compgen -A \"$kind\" -- \"$cur\")\n"
          "    fi\n"
          "}\n"
          "complete -F _isle isle\n",
          out);
}

// ---- zsh

static void zsh_action(const char *values, FILE *out)
{
    char room[WORDS_MAX];
    const char *words = words_of(values, room);
    if (words) {
        fprintf(out, "(%s)", words);
    } else {
        fputs(by_kind(values, "_files", "_files -/", " "), out);
    }
}

// What follows the first word: files, if that is one of these.
static void zsh_then_files(const char *words, FILE *out)
{
    fputs(" '*:word:{ [[ -n ${words[(r)(", out);
    for (; *words; words++) {
        fputc(*words == ' ' ? '|' : *words, out);
    }
    fputs(")]} ]] && _files }'", out);
}

static void zsh_spelling(const struct verb_option *o, const char *name, const char *others,
                         FILE *out)
{
    bool is_long = strncmp(name, "--", 2) == 0;
    fprintf(out, "            '%s%s%s[", o->many ? "*" : others, name,
            o->argument ? is_long ? "=" : "+" : "");
    put_quoted(out, o->help, "[]:", "'\\''");
    fputc(']', out);
    if (o->argument) {
        fputc(':', out);
        put_quoted(out, o->argument, "[]:", "'\\''");
        fputc(':', out);
        zsh_action(o->values, out);
    }
    fputs("' \\\n", out);
}

static void zsh_option(const struct verb_option *o, FILE *out)
{
    char others[80] = "";
    if (o->other) {
        snprintf(others, sizeof others, "(%s %s)", o->name, o->other);
        zsh_spelling(o, o->other, others, out);
    }
    zsh_spelling(o, o->name, others, out);
}

static void print_zsh(FILE *out)
{
    struct verb_option o;
    char room[WORDS_MAX];
    fputs("#compdef isle\n# zsh completion of isle, made by `isle completion zsh`\n"
          "_isle() {\n"
          "    if (( CURRENT == 2 )); then\n"
          "        local -a verbs=(\n",
          out);
    for (size_t i = 0; verbs[i]; i++) {
        fprintf(out, "            '%s:", verbs[i]->name);
        put_quoted(out, verbs[i]->summary, ":", "'\\''");
        fputs("'\n", out);
    }
    fputs("            'help:what the verbs are'\n"
          "            '--help:what the verbs are'\n"
          "            '--version:the version'\n"
          "        )\n"
          "        _describe verb verbs\n"
          "        return\n"
          "    fi\n"
          "    shift words\n"
          "    (( CURRENT-- ))\n"
          "    case $words[1] in\n",
          out);
    for (size_t i = 0; verbs[i]; i++) {
        fprintf(out, "    %s)\n        _arguments -s -S \\\n", verbs[i]->name);
        for (size_t k = 0; k < verb_n_options(verbs[i]); k++) {
            verb_option_at(verbs[i], k, &o);
            zsh_option(&o, out);
        }
        const char *files = verbs[i]->file_words;
        fprintf(out, "            '%s:word:", files ? "1" : "*");
        zsh_action(verbs[i]->operands, out);
        fputc('\'', out);
        if (files) {
            zsh_then_files(files, out);
        }
        fputs("\n        ;;\n", out);
    }
    fprintf(out, "    help)\n        _arguments '1:verb:(%s)'\n        ;;\n", join_verbs(room));
    // sourced (eval), or autoloaded by its #compdef line
    fputs("    esac\n"
          "}\n"
          "if [[ $funcstack[1] == _isle ]]; then\n"
          "    _isle \"$@\"\n"
          "else\n"
          "    compdef _isle isle\n"
          "fi\n",
          out);
}

// ---- fish

static void fish_line(const char *verb, FILE *out)
{
    fprintf(out, "complete -c isle -n 'contains -- %s (commandline -opc)[2]'", verb);
}

// Where one of these words is there; `which` is "; and" or "; and not".
static void fish_line_with(const char *verb, const char *which, const char *words, FILE *out)
{
    fprintf(out,
            "complete -c isle -n 'contains -- %s (commandline -opc)[2]%s"
            " __fish_seen_subcommand_from %s'",
            verb, which, words);
}

static void fish_values(const char *values, FILE *out)
{
    char room[WORDS_MAX];
    const char *words = words_of(values, room);
    if (words) {
        fprintf(out, " -x -a '%s'", words);
    } else {
        fputs(by_kind(values, " -r -F", " -x -a '(__fish_complete_directories)'", " -x"), out);
    }
}

static void fish_option(const struct verb *v, const struct verb_option *o, FILE *out)
{
    fish_line(v->name, out);
    fprintf(out, " -l %s", o->name + 2);
    if (o->other) {
        fprintf(out, " -s %s", o->other + 1);
    }
    if (o->argument) {
        fish_values(o->values, out);
    }
    fputs(" -d '", out);
    put_quoted(out, o->help, "\\", "\\'");
    fputs("'\n", out);
}

static void fish_operands(const struct verb *v, FILE *out)
{
    char room[WORDS_MAX];
    const char *words = words_of(v->operands, room);
    if (!v->operands || !*v->operands) {
        return;
    }
    if (words && v->file_words) {
        fish_line_with(v->name, "; and not", words, out);
        fprintf(out, " -a '%s'\n", words);
        fish_line_with(v->name, "; and", v->file_words, out);
        fputs(" -F\n", out);
        return;
    }
    fish_line(v->name, out);
    if (words) {
        fprintf(out, " -a '%s'\n", words);
    } else {
        fputs(" -F\n", out);
    }
}

static void print_fish(FILE *out)
{
    struct verb_option o;
    char room[WORDS_MAX];
    fputs("# fish completion of isle, made by `isle completion fish`\n"
          "complete -c isle -f\n",
          out);
    for (size_t i = 0; verbs[i]; i++) {
        fprintf(out, "complete -c isle -n __fish_use_subcommand -a %s -d '", verbs[i]->name);
        put_quoted(out, verbs[i]->summary, "\\", "\\'");
        fputs("'\n", out);
    }
    fputs("complete -c isle -n __fish_use_subcommand -a help -d 'what the verbs are'\n", out);
    fish_line("help", out);
    fprintf(out, " -a '%s'\n", join_verbs(room));
    fputs("complete -c isle -n __fish_use_subcommand -l help -s h -d 'what the verbs are'\n"
          "complete -c isle -n __fish_use_subcommand -l version -d 'the version'\n",
          out);
    for (size_t i = 0; verbs[i]; i++) {
        for (size_t k = 0; k < verb_n_options(verbs[i]); k++) {
            verb_option_at(verbs[i], k, &o);
            fish_option(verbs[i], &o, out);
        }
        fish_operands(verbs[i], out);
    }
}

// ---- The verb

static const struct {
    const char *name;
    void (*print)(FILE *out);
} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

int completion_print(const char *shell, FILE *out)
{
    for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
        if (strcmp(shell, shells[i].name) == 0) {
            shells[i].print(out);
            return 0;
        }
    }
    return -EINVAL;
}

struct options {
    bool help;
};

static const struct option option_rows[] = {VERB_HELP(struct options, help)};

static int completion_main(int argc, char **argv, const struct cli_places *places)
{
    (void)argc, (void)places;
    struct options o = {};
    struct option_rest rest;
    int status = 0;
    if (!verb_begin(&verb_completion, argv, &o, &rest, &status)) {
        return status;
    }
    if (rest.n_operands != 1 || rest.command) {
        return verb_complain("completion", "one word is needed: bash, zsh or fish");
    }
    if (completion_print(rest.operands[0], stdout)) {
        return verb_complain("completion", "%.60s: unknown shell; bash, zsh or fish",
                             rest.operands[0]);
    }
    return verb_end_output("completion");
}

static const struct verb_form forms[] = {{"bash|zsh|fish", NULL}, {NULL, NULL}};

static const struct verb_status statuses[] = {
    {"0", "printed"}, {"125", "an unknown shell, output that could not be written"}, {NULL, NULL}};

static const char *const examples[] = {
    "source <(isle completion bash)                    # in ~/.bashrc",
    "eval \"$(isle completion zsh)\"                     # in ~/.zshrc, after compinit",
    "isle completion fish > ~/.config/fish/completions/isle.fish",
    NULL,
};

const struct verb verb_completion = {
    .name = "completion",
    .summary = "print the completion script of a shell",
    .forms = forms,
    .about = "Prints a script that makes a shell complete isle's verbs, options and their values.",
    .notes =
        "An installed isle has brought them along: this is for a build tree, or another shell.",
    .options = option_rows,
    .n_options = ARRAY_LEN(option_rows),
    .operands = "bash zsh fish",
    .statuses = statuses,
    .examples = examples,
    .run = completion_main,
};
