// serve.h: the verb that starts the service, and its options, which isled (app/isled.c) reads
// again.
#ifndef ISLE_CLI_SERVE_H
#define ISLE_CLI_SERVE_H

#include "cli/front.h"
#include "cli/verb.h"

extern const struct verb verb_serve;

enum { SERVE_N_OPTIONS = 5 };
struct serve_options {
    struct front_given given;
    struct option_list listen;
    const char *data, *socket, *log_format, *log_level;
    bool help;
    // what the options with names of their own say, for `given`
    struct conf_option own[SERVE_N_OPTIONS];
    char *listen_words, *data_dir;
};

// argv[0] is skipped. True: *ret is filled (serve_options_done() is due). False: help was printed,
// or a refusal; *ret_status is the process's.
bool serve_options_parse(char **argv, struct serve_options *ret, int *ret_status);
void serve_options_done(struct serve_options *o);

#endif
