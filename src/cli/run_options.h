// run_options.h: what `isle run` was told, and its row among the verbs.
#ifndef ISLE_CLI_RUN_OPTIONS_H
#define ISLE_CLI_RUN_OPTIONS_H

#include "cli/front.h"
#include "cli/verb.h"
#include "model/limits.h"

extern const struct verb verb_run;
// run.c
int run_main(int argc, char **argv, const struct cli_places *places);

struct run_options {
    const char *language;
    const char *code; // -c
    const char *file; // FILE, or "-"
    char **command;   // after "--"
    const char *params;
    const char *input; // --stdin
    const char *limit[LIMIT_COUNT];
    struct option_list env, files, artifacts, sets;
    const char *cwd;
    const char *output_dir, *network;
    const char *launcher; // "native", "bwrap", or NULL
    struct front_given given;
    bool json, show_plan, help;
};

// Exactly one of code, file and command is set unless help is. 0, -EINVAL with *ret_error, -ENOMEM;
// run_options_done() either way.
int run_options_parse(char **argv, struct run_options *ret, struct option_error *ret_error);
void run_options_done(struct run_options *o);

// The option that sets this field of a job ("limits.memory_mb" is "--memory"), or NULL.
const char *run_options_of_field(const char *field);

#endif
