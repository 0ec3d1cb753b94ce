// ending.h: a job that is over, told as `isle run` tells it: what it wrote, its result on stdout, a
// line for people on stderr, the job's exit status.
#ifndef ISLE_CLIENT_ENDING_H
#define ISLE_CLIENT_ENDING_H

#include "client/client.h"

#include <stdbool.h>

// `final`: JSON of a result, or of what execute-code answers. line_open: its output, which has been
// written (but with --json), did not end its last line. Exit status.
int ending_print(const struct client *c, const struct buf *final, bool line_open);

// The same, with the output that the result holds. own_value: its result is nothing of that, even
// where it reads the same.
int ending_print_whole(const struct client *c, yyjson_val *result, bool own_value);

#endif
