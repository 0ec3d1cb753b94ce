// signals.h: signals that end a verb.
#ifndef ISLE_CLI_SIGNALS_H
#define ISLE_CLI_SIGNALS_H

#include <signal.h>

// From here on they wait in a descriptor: a Ctrl-C in the middle of something must not leave half
// of it behind. Children reset their own masks; *ret_before is what the caller had. A signalfd (not
// blocking), or -1.
int signals_hold(sigset_t *ret_before);

#endif
