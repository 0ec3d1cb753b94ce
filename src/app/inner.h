// inner.h: what the services of all programs have in common: the image that was executed again, up
// to the pipeline's configuration.
#ifndef ISLE_APP_INNER_H
#define ISLE_APP_INNER_H

#include "conf/conf.h"
#include "job/pipeline.h"
#include "start/start.h"

// Which service: the first word that start_front() was given.
struct inner_service {
    const char *word;
    int (*run)(const struct seat *seat, struct conf *conf, const struct pipeline_config *config);
};

// What of the configuration is the settings': also when they have changed (SIGHUP).
void inner_use_settings(struct pipeline_config *c, const struct conf *conf);

// main() of that image: drops, loads the settings, runs one of the `n` services. The exit status.
int inner_main(int argc, char **argv, const struct inner_service *services, size_t n);

// First thing in main(), of the front too: a caller's small stack limit ends us in the middle of
// something.
void inner_raise_stack_limit(void);

#endif
