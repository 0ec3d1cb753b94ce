// limits.h: every limit of a job in one table: name, unit, default, bounds, what happens when it is
// hit. The option parser, the JSON parser, `--show-plan`, --help and docs/jobs.md all read this
// table.
#ifndef ISLE_MODEL_LIMITS_H
#define ISLE_MODEL_LIMITS_H

#include <stddef.h>
#include <stdint.h>

enum limit {
    LIMIT_TIMEOUT, // ms (given in seconds, fractions allowed)
    LIMIT_CPU,     // ms of CPU time of all processes; 0: none
    LIMIT_MEMORY,  // MB
    LIMIT_CPUS,    // hundredths of a CPU (given as CPUs, fractions allowed)
    LIMIT_PIDS,
    LIMIT_NOFILE,
    LIMIT_DISK,   // MB
    LIMIT_STDOUT, // KiB
    LIMIT_STDERR, // KiB
    LIMIT_COUNT,
};

enum { LIMIT_TIMEOUT_MAX_SECONDS = 600 };

// Who set the effective value: the smallest wins.
enum limit_source {
    LIMIT_FROM_DEFAULT,
    LIMIT_FROM_JOB,
    LIMIT_FROM_TOOL,
    LIMIT_FROM_TEAM,
    LIMIT_FROM_HOST
};
extern const char *const limit_source_names[]; // "default", "job", "tool", "team", "host"

struct limit_spec {
    const char *name;   // "timeout_seconds": JSON field and documentation
    const char *option; // "--timeout", or NULL
    const char *unit;   // for messages: "s", "MB", ...
    int digits;         // decimals accepted; the stored value is scaled by 10^digits
    int64_t initial;    // stored scale; 0 with `optional`: none
    int64_t min, max;   // stored scale
    int optional;       // may be absent altogether
    const char *on_hit; // one phrase for docs
    const char *help;   // one phrase
};

extern const struct limit_spec limit_specs[LIMIT_COUNT];

struct limits {
    int64_t value[LIMIT_COUNT];
    uint8_t source[LIMIT_COUNT];
};

void limits_init(struct limits *l); // the defaults
// The index of a JSON name, or -1.
int limit_find(const char *name);
// Lowers l to `cap` where cap is smaller (or where there was no limit); notes `source` there.
void limits_lower(struct limits *l, enum limit which, int64_t cap, enum limit_source source);
// "timeout_seconds: 601 is above the maximum of 600 s" and the like. Writes into text. 0 or
// -ERANGE.
int limit_check(enum limit which, int64_t value, char *text, size_t size);
// A stored value as its owner wrote it: 2500 with digits 3 is "2.5".
void limit_format(enum limit which, int64_t value, char *text, size_t size);

#endif
