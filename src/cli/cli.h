// cli.h: the front of `isle`: what a user types. Called by main() (app/main.c), which is also the
// service's.
#ifndef ISLE_CLI_CLI_H
#define ISLE_CLI_CLI_H

struct cli_places {
    const char *libexec_dir; // isle-launcher, isle-shim
    const char *guest_dir;   // wrappers
    int found;               // 0: isle-launcher is not there: not installed as a whole
};

// Exit status of the process.
int cli_main(int argc, char **argv, const struct cli_places *places);

#endif
