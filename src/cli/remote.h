// remote.h: verbs that speak to a service: their rows, one parser of their words, and the way to
// the program that does the talking (isle-client), so that `isle` itself needs no HTTP library.
#ifndef ISLE_CLI_REMOTE_H
#define ISLE_CLI_REMOTE_H

#include "cli/verb.h"

#define REMOTE_PROGRAM "isle-client"
#define REMOTE_DEFAULT_URL "http://127.0.0.1:4753"
#define REMOTE_URL_HELP                                                                            \
    "http://, https:// or unix:/PATH; else ISLE_URL, this host's socket, " REMOTE_DEFAULT_URL
#define REMOTE_KEY_HELP "who asks; better in ISLE_KEY, which other users of this host cannot see"

extern const struct verb verb_jobs, verb_sessions, verb_files, verb_artifacts, verb_tools, verb_key;

// Every option of all of them; which of them an action takes is the table's to say.
struct remote_options {
    const char *url, *key;
    const char *status, *limit, *cursor, *wait, *idempotency_key; // jobs
    const char *conversation, *agent, *user, *ttl;                // sessions
    const char *if_match;                                         // files
    const char *output_dir;                                       // artifacts
    const char *team, *name;                                      // keys
    const char *description, *language, *timeout, *if_version;    // tools
    const char *permission, *arguments, *session, *format, *on_conflict;
    struct option_list parameters, artifacts;
    bool recursive, new, replace, admin, shared;
    bool json, help;
};

struct remote_action {
    const char *name;
    const char *operands; // what must follow, then in brackets what may: "JOB [NAME]"; "[NAME...]"
                          // is any number
    const char *options;  // those beside --url, --key and --json; names with spaces between
    const char *must;     // those of them that it cannot do without, or NULL
};

enum { REMOTE_MAX_OPERANDS = OPERANDS_MAX - 2 };

struct remote_command {
    const struct verb *verb;
    const struct remote_action *action;
    struct remote_options options;
    const char *operands[REMOTE_MAX_OPERANDS];
    size_t n_operands;
};

// The verb of that name, if it is one of these; NULL.
const struct verb *remote_find(const char *name);

// argv[0] is the verb's name. True: *ret is whole. False: help was printed, or a refusal;
// *ret_status is the process's. remote_done() either way.
bool remote_parse(const struct verb *v, char **argv, struct remote_command *ret, int *ret_status);
void remote_done(struct remote_command *c);

// What `isle` does for these verbs: checks the words, then remote_execute().
int remote_main(int argc, char **argv, const struct cli_places *places);

// isle-client takes this process's place with the same words. Address and key go by environment: a
// key never stands on the command line of a process that lives on. url, key: the options' values,
// or NULL. Returns as beside_execute().
int remote_execute(const struct cli_places *places, char **argv, const char *url, const char *key);

#endif
