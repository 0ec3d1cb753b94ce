#include "model/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct limit_spec limit_specs[LIMIT_COUNT] = {
    [LIMIT_TIMEOUT] = {"timeout_seconds", "--timeout", "s", 3, 30000, 1000,
                       LIMIT_TIMEOUT_MAX_SECONDS * 1000, 0, "the job ends as `timeout`",
                       "wall time, counted from the program's start"},
    [LIMIT_CPU] = {"cpu_seconds", "--cpu-seconds", "s", 3, 0, 1000, 3600000, 1,
                   "the job ends as `cpu_limit`", "CPU time of all its processes together"},
    [LIMIT_MEMORY] = {"memory_mb", "--memory", "MB", 0, 512, 32, 65536, 0,
                      "the job ends as `memory_limit`", "memory of the whole job"},
    [LIMIT_CPUS] = {"cpus", "--cpus", "CPUs", 2, 100, 10, 409600, 0, "throttled",
                    "share of the processors"},
    [LIMIT_PIDS] = {"pids", "--pids", "processes", 0, 128, 8, 4096, 0, "EAGAIN inside",
                    "processes and threads at once"},
    [LIMIT_NOFILE] = {"nofile", "--nofile", "descriptors", 0, 1024, 64, 65536, 0, "EMFILE inside",
                      "open files of one process"},
    [LIMIT_DISK] = {"disk_mb", "--disk", "MB", 0, 1024, 0, 102400, 0,
                    "ENOSPC inside, or the job ends as `disk_limit`",
                    "files below /workspace (0: staged files only)"},
    [LIMIT_STDOUT] = {"max_stdout_kb", "--max-stdout-kb", "KiB", 0, 256, 16, 8192, 0,
                      "the head is kept, the rest counted; `truncated`", "standard output kept"},
    [LIMIT_STDERR] = {"max_stderr_kb", "--max-stderr-kb", "KiB", 0, 256, 16, 8192, 0,
                      "the head is kept, the rest counted; `truncated`", "standard error kept"},
};

const char *const limit_source_names[] = {"default", "job", "tool", "team", "host"};

void limits_init(struct limits *l)
{
    *l = (struct limits){};
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        l->value[i] = limit_specs[i].initial;
        l->source[i] = LIMIT_FROM_DEFAULT;
    }
}

int limit_find(const char *name)
{
    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (strcmp(limit_specs[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

void limits_lower(struct limits *l, enum limit which, int64_t cap, enum limit_source source)
{
    // Of an optional limit 0 means none, which any cap lowers.
    int none = limit_specs[which].optional && l->value[which] == 0;
    if (none || cap < l->value[which]) {
        l->value[which] = cap;
        l->source[which] = (uint8_t)source;
    }
}

void limit_format(enum limit which, int64_t value, char *text, size_t size)
{
    int digits = limit_specs[which].digits;
    int64_t scale = 1;
    for (int i = 0; i < digits; i++) {
        scale *= 10;
    }
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint64_t rest = magnitude % (uint64_t)scale;
    while (digits > 0 && rest % 10 == 0) {
        rest /= 10;
        digits--;
    }
    const char *sign = value < 0 ? "-" : "";
    unsigned long long whole = magnitude / (uint64_t)scale;
    if (digits == 0) {
        snprintf(text, size, "%s%llu", sign, whole);
    } else {
        snprintf(text, size, "%s%llu.%0*llu", sign, whole, digits, (unsigned long long)rest);
    }
}

int limit_check(enum limit which, int64_t value, char *text, size_t size)
{
    const struct limit_spec *s = &limit_specs[which];
    if (value >= s->min && value <= s->max) {
        return 0;
    }
    char given[32], bound[32];
    limit_format(which, value, given, sizeof given);
    limit_format(which, value < s->min ? s->min : s->max, bound, sizeof bound);
    snprintf(text, size, "%s: %s is %s of %s %s", s->name, given,
             value < s->min ? "below the minimum" : "above the maximum", bound, s->unit);
    return -ERANGE;
}
