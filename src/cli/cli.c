#include "cli/cli.h"

#include "cli/bench.h"
#include "cli/completion.h"
#include "cli/config.h"
#include "cli/doctor.h"
#include "cli/remote.h"
#include "cli/run_options.h"
#include "cli/serve.h"
#include "cli/verb.h"
#include "model/refuse.h"

#include <string.h>

#ifndef ISLE_VERSION
#define ISLE_VERSION "unknown"
#endif

// In the order of the help.
const struct verb *const verbs[] = {&verb_run,   &verb_serve,    &verb_doctor, &verb_bench,
                                    &verb_jobs,  &verb_sessions, &verb_files,  &verb_artifacts,
                                    &verb_tools, &verb_key,      &verb_config, &verb_completion,
                                    NULL};

const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; verbs[i]; i++) {
        if (strcmp(verbs[i]->name, name) == 0) {
            return verbs[i];
        }
    }
    return NULL;
}

void verb_help_all(FILE *out)
{
    fputs("isle runs untrusted code, each job in a sandbox of its own.\n\nUsage: isle VERB ...\n\n",
          out);
    for (size_t i = 0; verbs[i]; i++) {
        fprintf(out, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    }
    fputs("\n  --help     this text; isle VERB --help says more\n  --version  the version\n\n"
          "Example: isle run -l python -c 'return 6 * 7'\n",
          out);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

static int unknown_verb(const char *word)
{
    const char *near = NULL;
    for (size_t i = 0; verbs[i] && !near; i++) {
        near = job_is_near(word, strlen(word), verbs[i]->name) ? verbs[i]->name : NULL;
    }
    return verb_complain(NULL, "unknown verb %.60s%s%s%s `isle --help` lists them%s", word,
                         near ? "; did you mean " : "", near ? near : "", near ? "?" : ";",
                         near ? "" : " (a job is run by `isle run`)");
}

// `isle help`, `isle help VERB`.
static int help(const char *word)
{
    const struct verb *v = word ? verb_find(word) : NULL;
    if (v) {
        verb_help(v, stdout);
    } else if (word) {
        return unknown_verb(word);
    } else {
        verb_help_all(stdout);
    }
    return verb_end_output(NULL);
}

int cli_main(int argc, char **argv, const struct cli_places *places)
{
    const char *word = argc > 1 ? argv[1] : "";
    const struct verb *v = verb_find(word);
    if (v) {
        return (v->run ? v->run : remote_main)(argc - 1, argv + 1, places);
    }
    if (is_help(word)) {
        return help(argv[2]);
    }
    if (strcmp(word, "--version") == 0) {
        puts("isle " ISLE_VERSION);
        return verb_end_output(NULL);
    }
    if (!*word) {
        verb_help_all(stderr);
        return CLI_REFUSED;
    }
    if (*word == '-') {
        return verb_complain(NULL,
                             "unknown option %.60s; options of a verb go behind it, as in "
                             "`isle run %.60s ...`; `isle --help` lists the verbs",
                             word, word);
    }
    return unknown_verb(word);
}
