// completion.h: `isle completion SHELL`: scripts that complete verbs, options and their values,
// made from the rows of the verbs.
#ifndef ISLE_CLI_COMPLETION_H
#define ISLE_CLI_COMPLETION_H

#include "cli/verb.h"

extern const struct verb verb_completion;

// SHELL is bash, zsh or fish. 0 or -EINVAL.
int completion_print(const char *shell, FILE *out);

#endif
