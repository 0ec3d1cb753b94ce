// man.h: isle(1) in mdoc(7), made from the rows of verbs, limits and settings. Of the build only.
#ifndef ISLE_CLI_MAN_H
#define ISLE_CLI_MAN_H

#include <stdio.h>

// `date` as "November 29, 2026".
void man_print(const char *date, FILE *out);

#endif
