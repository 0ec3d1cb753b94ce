// config.h: `isle config`, and what a setting can be, in words.
#ifndef ISLE_CLI_CONFIG_H
#define ISLE_CLI_CONFIG_H

#include "cli/verb.h"
#include "conf/conf.h"

extern const struct verb verb_config;

// "0 to 102400 MB", "true, false": in `text` or a literal.
const char *config_values(const struct setting_spec *s, char *text, size_t size);

#endif
