// cli.h: the front of `isle`: what a user types. Called by main() (app/main.c), which is also the
// service's. Verbs: verb.h.
#ifndef ISLE_CLI_CLI_H
#define ISLE_CLI_CLI_H

enum {
    CLI_REFUSED = 125, // bad arguments, and whatever else is not the job's own end
};

// The one-shot workspace that the front makes while the service starts, below once/.
#define CLI_READY_WORKSPACE "ready"

struct cli_places {
    const char *libexec_dir; // isle-launcher, isle-shim
    const char *guest_dir;   // wrappers
    int found;               // 0: isle-launcher is not there: not installed as a whole
};

// Exit status of the process. Settings come from `environ`.
int cli_main(int argc, char **argv, const struct cli_places *places);

#endif
