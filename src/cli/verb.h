// verb.h: a verb of `isle` is one file and one row. The row is what --help, the man page and the
// completions of shells are made from; cli.c lists the rows.
#ifndef ISLE_CLI_VERB_H
#define ISLE_CLI_VERB_H

#include "cli/cli.h"
#include "cli/options.h"

#include <stdbool.h>
#include <stdio.h>

struct verb_form {
    const char *words; // what follows "isle NAME "; "" for nothing
    const char *what;  // or NULL
};

struct verb_status {
    const char *status; // "124", "128 + n", "its own"
    const char *when;
};

struct verb {
    const char *name;
    const char *summary;           // one phrase
    const struct verb_form *forms; // ends with words NULL
    const char *about;             // one sentence, above the forms
    const char *notes;             // paragraphs separated by "\n", or NULL
    const struct option *options;  // n_options, VERB_HELP among them
    size_t n_options;
    bool limits;                        // the limits of a job are options of it as well
    const char *operands;               // how they are completed, as option.values
    const char *file_words;             // behind these of them, with spaces between, stand files
    const struct verb_status *statuses; // ends with status NULL
    const char *const *examples;        // whole commands; ends with NULL
    // argv[0] is the verb's name. Exit status of the process. Settings come from `environ`. NULL:
    // another program does it (remote.h).
    int (*run)(int argc, char **argv, const struct cli_places *places);
    // The options that go with a first operand, names with spaces between, so that its help is of
    // these alone; NULL: it is none that has a help of its own. NULL: no operand has.
    const char *(*options_of)(const struct verb *v, const char *word);
};

extern const struct verb *const verbs[]; // ends with NULL
const struct verb *verb_find(const char *name);

// The row that every verb has; FIELD is a bool of the verb's target TYPE.
#define VERB_HELP(TYPE, FIELD)                                                                     \
    {                                                                                              \
        .name = "--help", .other = "-h", .kind = OPTION_FLAG, .offset = offsetof(TYPE, FIELD),     \
        .help = "this text"                                                                        \
    }

// For verbs whose rules are the table's. True: go on, with *target and *ret_rest filled (lists are
// the caller's to free). False: help was printed, or a refusal; *ret_status is the process's.
bool verb_begin(const struct verb *v, char **argv, void *target, struct option_rest *ret_rest,
                int *ret_status);

// Is `word` one of those in `list`, which have spaces between?
bool verb_is_among(const char *word, const char *list);

// The help of one verb, of all.
void verb_help(const struct verb *v, FILE *out);
void verb_help_all(FILE *out);

// "isle NAME: TEXT" on stderr, one line without control characters (what it quotes may come from a
// stranger). Returns CLI_REFUSED. NAME NULL: "isle: TEXT".
int verb_complain(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The same for options: says where all of them are to be read.
int verb_complain_option(const struct verb *v, const struct option_error *why);

// What was printed on stdout arrived: 0, or CLI_REFUSED after a complaint.
int verb_end_output(const char *name);

// Every option of a verb in the order of its help, the limits' last; help with bounds and default.
struct verb_option {
    const char *name, *other, *argument, *values; // as in struct option
    bool limit, many;                             // many: it may be given again
    char help[240];
};
size_t verb_n_options(const struct verb *v);
void verb_option_at(const struct verb *v, size_t i, struct verb_option *ret);

#endif
