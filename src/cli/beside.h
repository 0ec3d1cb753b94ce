// beside.h: another of isle's programs takes this one's place: the same process, with its terminal,
// its standard streams and its parent.
#ifndef ISLE_CLI_BESIDE_H
#define ISLE_CLI_BESIDE_H

#include "cli/cli.h"

// Executes `program` of the folder where isle's programs are, with argv (argv[0] is what it will
// call itself) and `environ`. Returns only when it could not: CLI_REFUSED, after a complaint of
// `verb`.
int beside_execute(const struct cli_places *places, const char *verb, const char *program,
                   char **argv);

#endif
