// trace.c: the trace id of a request: the caller's, by W3C Trace Context (traceparent), or a new
// one. It is in the answer (X-Trace-Id), in the log, and in the record of the job.
#include "api/internal.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static bool is_hex(const char *text, size_t len) { return strspn(text, "0123456789abcdef") >= len; }

static bool all_zero(const char *text, size_t len) { return strspn(text, "0") >= len; }

// "00-TRACE-PARENT-FLAGS"; a later version may have more behind it.
static bool is_parent(const char *p)
{
    enum { TRACE = 3, PARENT = TRACE + 33, FLAGS = PARENT + 17, END = FLAGS + 2 };
    if (strlen(p) < END || !is_hex(p, 2) || memcmp(p, "ff", 2) == 0 || p[2] != '-' ||
        !is_hex(p + TRACE, 32) || p[PARENT - 1] != '-' || !is_hex(p + PARENT, 16) ||
        p[FLAGS - 1] != '-' || !is_hex(p + FLAGS, 2)) {
        return false;
    }
    bool end = memcmp(p, "00", 2) == 0 ? p[END] == '\0' : p[END] == '\0' || p[END] == '-';
    return end && !all_zero(p + TRACE, 32) && !all_zero(p + PARENT, 16);
}

void api_trace_take(struct api_call *c)
{
    const char *parent;
    uint64_t random[2];
    if (http_field_value(c->r, "traceparent", &parent) == 1 && is_parent(parent)) {
        memcpy(c->trace, parent + 3, 32);
    } else if (getrandom(random, sizeof random, 0) == sizeof random) {
        snprintf(c->trace, sizeof c->trace, "%016llx%016llx", (unsigned long long)random[0],
                 (unsigned long long)random[1]);
    }
    if (*c->trace) {
        http_set(c->r, "X-Trace-Id", c->trace);
    }
}
