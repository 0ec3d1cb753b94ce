// options.h: a table of options and one loop over argv.
#ifndef ISLE_CLI_OPTIONS_H
#define ISLE_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum option_kind {
    OPTION_FLAG, // bool
    OPTION_TEXT, // const char *; given twice, the last counts
    OPTION_LIST, // struct option_list; each one is added
};

enum {
    OPTION_LIST_MAX = 1024,
    OPERANDS_MAX = 67, // an action, a tool and its 64 arguments, and one too many
};

struct option_list {
    const char **words; // n of them, into argv
    size_t n;
};

struct option {
    const char *name;     // "--stdin"
    const char *other;    // a second spelling, or NULL
    const char *argument; // "FILE", or NULL for a flag
    enum option_kind kind;
    size_t offset; // of its field in the target
    const char *help;
    // How a shell completes its value: words with spaces between, VALUES_FILE, VALUES_FOLDER,
    // VALUES_SETTING, or NULL: not at all.
    const char *values;
};

#define VALUES_FILE "<file>"
#define VALUES_FOLDER "<folder>"
#define VALUES_SETTING "<setting>" // a name of the table

struct option_rest {
    bool takes_command; // in: words behind "--" are a command's, and a hint may say so
    const char *operands[OPERANDS_MAX]; // the first ones; one less is the most anybody takes
    size_t n_operands;
    char **command; // what followed "--" (argv's tail, NULL-terminated), or NULL without "--"
};

struct option_error {
    char text[256];
};

// Words up to "--": options in any order and operands between them. `--name VALUE`, `--name=VALUE`,
// `-l VALUE`. argv[0] is skipped; target's fields are zeroed by the caller; lists are malloc'ed
// (free .words). 0, -EINVAL with *ret_error, -ENOMEM.
int options_parse(const struct option *table, size_t n, char **argv, void *target,
                  struct option_rest *ret, struct option_error *ret_error);

// The same refusal for what no table says, such as two options that exclude each other. -EINVAL.
int option_refuse(struct option_error *ret_error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
