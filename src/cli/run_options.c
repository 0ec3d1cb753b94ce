#include "cli/run_options.h"

#include "base/fd.h"
#include "cli/remote.h"

#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct run_options, field)

const struct option run_own_options[] = {
    {"--language", "-l", "LANG", OPTION_TEXT, AT(language),
     "python, javascript or bash; else by FILE's extension or #! line", "python javascript bash"},
    {"--code", "-c", "CODE", OPTION_TEXT, AT(code), "the code itself", NULL},
    {"--params", NULL, "JSON|@FILE", OPTION_TEXT, AT(params),
     "a snippet's `params`, an object; every digit is kept", NULL},
    {"--stdin", NULL, "FILE|-", OPTION_TEXT, AT(input),
     "standard input of the job; without it, empty", VALUES_FILE},
    {"--env", NULL, "NAME=VALUE", OPTION_LIST, AT(env), "a variable of the job's environment",
     NULL},
    {"--cwd", NULL, "DIR", OPTION_TEXT, AT(cwd), "working folder, below /workspace", NULL},
    {"--file", NULL, "SRC[:DEST]", OPTION_LIST, AT(files),
     "puts a copy of SRC into /workspace (at DEST; the last colon counts)", VALUES_FILE},
    {"--artifact", NULL, "PATH[?]", OPTION_LIST, AT(artifacts),
     "a file the job makes; with ? it may be missing", NULL},
    {"--package-set", NULL, "NAME", OPTION_LIST, AT(sets),
     "a folder of packages below SANDBOX_PACKAGES_ROOT; the first counts first"},
    {"--network", NULL, "none|host", OPTION_TEXT, AT(network),
     "none: a loopback of its own; host: this host's, with SANDBOX_NETWORK_ALLOW_HOST=true",
     "none host"},
    {"--output-dir", NULL, "DIR", OPTION_TEXT, AT(output_dir),
     "where artifacts go, under their path in /workspace; without it only --json lists them",
     VALUES_FOLDER},
    {"--launcher", NULL, "NAME", OPTION_TEXT, AT(launcher),
     "native or bwrap: what makes the sandbox; else what SANDBOX_FILESYSTEM_ISOLATION_BINARY says",
     "native bwrap"},
    {"--url", NULL, "URL", OPTION_TEXT, AT(url),
     "a service runs it: http://, https:// or unix:/PATH (isle serve)", NULL},
    {"--key", NULL, "KEY", OPTION_TEXT, AT(key), REMOTE_KEY_HELP, NULL},
    {"--session", NULL, "ID", OPTION_TEXT, AT(session),
     "a service runs it in that session (isle sessions); without --url where ISLE_URL says", NULL},
    {"--json", NULL, NULL, OPTION_FLAG, AT(json), "one line: the whole result; nothing live", NULL},
    {"--show-plan", NULL, NULL, OPTION_FLAG, AT(show_plan),
     "prints what would happen (with --json as JSON); runs nothing", NULL},
    FRONT_OPTIONS(struct run_options, given),
    VERB_HELP(struct run_options, help),
};

_Static_assert(ARRAY_LEN(run_own_options) == RUN_N_OWN_OPTIONS, "as the header says");

enum { N_OWN = RUN_N_OWN_OPTIONS, N_OPTIONS = N_OWN + LIMIT_COUNT };

// The limits' rows come from their own table.
static void fill_table(struct option table[N_OPTIONS])
{
    memcpy(table, run_own_options, N_OWN * sizeof *table);
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        table[N_OWN + i] = (struct option){limit_specs[i].option,
                                           NULL,
                                           limit_specs[i].unit,
                                           OPTION_TEXT,
                                           AT(limit) + i * sizeof(const char *),
                                           limit_specs[i].help,
                                           NULL};
    }
}

// One thing to run.
static int choose(struct run_options *o, const struct option_rest *rest, struct option_error *e)
{
    if (rest->n_operands > 1) {
        return option_refuse(e, "%.100s: one FILE is enough; words of a command go behind --",
                             rest->operands[1]);
    }
    o->file = rest->n_operands ? rest->operands[0] : NULL;
    o->command = rest->command;
    int n = (o->file != NULL) + (o->code != NULL) + (o->command != NULL);
    if (n == 0) {
        return option_refuse(e, "nothing to run: give FILE, -c CODE, - or -- CMD");
    }
    if (o->file && o->code) {
        // "-c return 1" lost its quotes, "python3 -c CODE" its --
        return option_refuse(e,
                             "%.100s: give either FILE or -c CODE; code with spaces is one word in "
                             "quotes, a command goes behind --",
                             o->file);
    }
    if (n > 1) {
        return option_refuse(e, "give only one of FILE, -c CODE, - and -- CMD");
    }
    if (o->command && !o->command[0]) {
        return option_refuse(e, "--: a command must follow");
    }
    if (o->key && !o->url && !o->session) {
        return option_refuse(e, "--key: nobody is asked without --url or --session");
    }
    if (o->file && strcmp(o->file, "-") == 0 && o->input && strcmp(o->input, "-") == 0) {
        return option_refuse(e, "--stdin: - cannot be both the code and its input");
    }
    return 0;
}

int run_options_parse(char **argv, struct run_options *ret, struct option_error *ret_error)
{
    struct option table[N_OPTIONS];
    struct option_rest rest = {.takes_command = true};
    *ret = (struct run_options){};
    fill_table(table);
    int e = options_parse(table, N_OPTIONS, argv, ret, &rest, ret_error);
    return e || ret->help ? e : choose(ret, &rest, ret_error);
}

void run_options_done(struct run_options *o)
{
    free(o->env.words);
    free(o->files.words);
    free(o->artifacts.words);
    free(o->sets.words);
    free(o->given.set.words);
    *o = (struct run_options){};
}

const char *run_options_of_field(const char *field)
{
    static const struct {
        const char *prefix, *option;
    } rows[] = {{"params", "--params"},
                {"env", "--env"},
                {"cwd", "--cwd"},
                {"input_files", "--file"},
                {"artifacts", "--artifact"},
                {"network", "--network"},
                {"package_sets", "--package-set"},
                {"language", "-l"},
                {"stdin_fd", "--stdin"},
                {"stdin_base64", "--stdin"},
                {"session_id", "--session"}};
    if (strncmp(field, "limits.", 7) == 0) {
        int which = limit_find(field + 7);
        return which < 0 ? NULL : limit_specs[which].option;
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t n = strlen(rows[i].prefix);
        if (strncmp(field, rows[i].prefix, n) == 0 && (!field[n] || strchr(".[", field[n]))) {
            return rows[i].option;
        }
    }
    return NULL;
}
