#include "cli/cli.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

#ifndef ISLE_VERSION
#define ISLE_VERSION "unknown"
#endif

static const struct verb {
    const char *name;
    int (*run)(int argc, char **argv, const struct cli_places *places);
    const char *help;
} verbs[] = {
    {"run", cli_run, "run one job: a snippet, a script or a command"},
};

static void print_help(FILE *out)
{
    fputs("isle runs untrusted code, each job in a sandbox of its own.\n\nUsage: isle VERB ...\n\n",
          out);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].help);
    }
    fputs("\n  --help     this text; isle VERB --help says more\n  --version  the version\n\n"
          "Example: isle run -l python -c 'return 6 * 7'\n",
          out);
}

static int end_of_output(void) { return fflush(stdout) || ferror(stdout) ? CLI_REFUSED : 0; }

int cli_main(int argc, char **argv, const struct cli_places *places)
{
    const char *word = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(word, verbs[i].name) == 0) {
            return verbs[i].run(argc - 1, argv + 1, places);
        }
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        print_help(stdout);
        return end_of_output();
    }
    if (strcmp(word, "--version") == 0) {
        puts("isle " ISLE_VERSION);
        return end_of_output();
    }
    if (*word) {
        char shown[64];
        snprintf(shown, sizeof shown, "%.60s", word);
        text_no_controls(shown);
        fprintf(stderr,
                "isle: unknown verb %s; `isle --help` lists them (a job is run by `isle run`)\n",
                shown);
    } else {
        print_help(stderr);
    }
    return CLI_REFUSED;
}
