// run_options.h: what `isle run` was told.
#ifndef ISLE_CLI_RUN_OPTIONS_H
#define ISLE_CLI_RUN_OPTIONS_H

#include "cli/front.h"
#include "cli/verb.h"
#include "model/limits.h"

// run.c
extern const struct verb verb_run;

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
    const char *url, *key, *session; // url or session: a service runs it
    bool json, show_plan, help;
};

// Exactly one of code, file and command is set unless help is. 0, -EINVAL with *ret_error, -ENOMEM;
// run_options_done() either way.
int run_options_parse(char **argv, struct run_options *ret, struct option_error *ret_error);
void run_options_done(struct run_options *o);

// Its own options, for the row among the verbs; the limits' come from their own table.
extern const struct option run_own_options[];
enum { RUN_N_OWN_OPTIONS = 20 };

// The option that sets this field of a job ("limits.memory_mb" is "--memory"), or NULL.
const char *run_options_of_field(const char *field);

#endif
