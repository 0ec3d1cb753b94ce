// passed.h: the descriptors that the front hands to its service: listening sockets, and the audit
// log.
#ifndef ISLE_APP_PASSED_H
#define ISLE_APP_PASSED_H

#include "http/http.h"
#include "start/start.h"

#include <stdbool.h>

// Adds the listeners to those of `c`. *ret_audit is the one that is no socket, or stays. True:
// every TCP listener is on loopback. All stay the seat's.
bool passed_sort(const struct seat *seat, struct http_config *c, int *ret_audit);

#endif
