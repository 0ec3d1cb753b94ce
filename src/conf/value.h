// value.h: one value against its row of the table.
#ifndef ISLE_CONF_VALUE_H
#define ISLE_CONF_VALUE_H

#include "conf/conf.h"

// *ret_number is set for BOOL and NUMBER only. 0, or -EINVAL with "NAME: VALUE is ..." in *e: never
// a secret's value, nothing that a terminal obeys.
int conf_value_check(enum setting n, const char *value, int64_t *ret_number, struct conf_error *e);

#endif
