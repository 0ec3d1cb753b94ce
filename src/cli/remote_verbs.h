// remote_verbs.h: the table of verbs that speak to a service, and of what each can do there.
#ifndef ISLE_CLI_REMOTE_VERBS_H
#define ISLE_CLI_REMOTE_VERBS_H

#include "cli/remote.h"

struct remote_verb {
    const struct verb *verb;
    const struct remote_action *actions; // ends with name NULL; the first one lists
};
// struct verb's, for each of these: those of an action.
const char *remote_options_of(const struct verb *v, const char *word);

extern const struct remote_verb remote_verbs[];
extern const size_t n_remote_verbs;

#endif
