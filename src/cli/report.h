// report.h: what is left of a job when it is over: its result for programs, one line for people,
// the exit status.
#ifndef ISLE_CLI_REPORT_H
#define ISLE_CLI_REPORT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdio.h>

struct report {
    bool json;      // the whole result as one line on `out`
    bool snippet;   // what it returned is printed; a command's `result` only repeats its output
    bool terminal;  // `err` is a terminal: a summary always, and what isolation lacks
    bool quiet;     // nothing for people: nobody reads any more
    bool line_open; // the job's output did not end its line
    FILE *out, *err;
};

// `final`: JSON of a SandboxResult. The exit status, or -EBADMSG when it is none (nothing was
// printed).
int report_print(const struct report *r, const struct buf *final);

#endif
