#include "conf/conf.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MB_OF_DISK 102400

const struct setting_spec setting_specs[SETTING_COUNT] = {
    [SETTING_PRESET] = {.name = "SANDBOX_PRESET",
                        .type = SETTING_CHOICE,
                        .initial = "",
                        .choices = "",
                        .lacking = "the platform's own defaults are not available; unset it",
                        .help = "unset: the defaults of this table"},
    [SETTING_RUNTIME_ENABLED] = {.name = "SANDBOX_RUNTIME_ENABLED",
                                 .type = SETTING_BOOL,
                                 .initial = "true",
                                 .help = "false refuses every job"},
    [SETTING_FILESYSTEM_ISOLATION_ENABLED] = {.name = "SANDBOX_FILESYSTEM_ISOLATION_ENABLED",
                                              .type = SETTING_BOOL,
                                              .initial = "true",
                                              .choices = "true",
                                              .lacking = "jobs without isolation are not available",
                                              .help = "jobs run in namespaces of their own"},
    [SETTING_FILESYSTEM_ISOLATION_BINARY] = {.name = "SANDBOX_FILESYSTEM_ISOLATION_BINARY",
                                             .type = SETTING_PATH,
                                             .initial = "",
                                             .choices = "bwrap", // the platform's own default
                                             .help = "the Bubblewrap that makes the sandboxes; "
                                                     "bwrap: the runtime root's; unset: isle's own "
                                                     "launcher"},
    [SETTING_LEGACY_FALLBACK_ENABLED] =
        {.name = "SANDBOX_LEGACY_FALLBACK_ENABLED",
         .type = SETTING_BOOL,
         .initial = "false",
         .choices = "false",
         .lacking = "running a job without isolation after a failure is not available",
         .help = "what cannot be isolated does not run"},
    [SETTING_REQUIRE_USER_NAMESPACE] =
        {.name = "SANDBOX_REQUIRE_USER_NAMESPACE",
         .type = SETTING_BOOL,
         .initial = "false",
         .help =
             "true refuses jobs on a host where they cannot have a user namespace of their own"},
    [SETTING_NETWORK_DEFAULT] = {.name = "SANDBOX_NETWORK_DEFAULT",
                                 .type = SETTING_CHOICE,
                                 .initial = "none",
                                 .choices = "none host",
                                 .lacking = "there is no such network",
                                 .help = "network of jobs that do not say: none (a loopback of "
                                         "their own) or host (the host's)"},
    [SETTING_NETWORK_ALLOW_HOST] = {.name = "SANDBOX_NETWORK_ALLOW_HOST",
                                    .type = SETTING_BOOL,
                                    .initial = "false",
                                    .help = "true lets jobs have the host's network, which their "
                                            "results list as a downgrade"},
    [SETTING_ALLOW_UNISOLATED] = {.name = "SANDBOX_ALLOW_UNISOLATED",
                                  .type = SETTING_BOOL,
                                  .initial = "false",
                                  .choices = "false",
                                  .lacking = "jobs without isolation are not available",
                                  .help = "no job runs without isolation"},
    [SETTING_DEFAULT_PYTHON_BINARIES] =
        {.name = "SANDBOX_DEFAULT_PYTHON_BINARIES",
         .type = SETTING_CHOICE,
         .initial = "",
         .choices = "",
         .lacking = "Python jobs run by the runtime root's python3.13; unset it",
         .help = "unset: /usr/bin/python3.13 of the runtime root"},
    [SETTING_RUNTIME_ROOT] = {.name = "SANDBOX_RUNTIME_ROOT",
                              .type = SETTING_PATH,
                              .initial = "/var/lib/isle/runtime/current",
                              .help = "the system that jobs see as /usr"},
    [SETTING_WORKSPACE_ROOT] = {.name = "SANDBOX_WORKSPACE_ROOT",
                                .type = SETTING_PATH,
                                .initial = "/var/lib/isle/data",
                                .help = "data folder: workspaces of jobs"},
    [SETTING_PACKAGES_ROOT] =
        {.name = "SANDBOX_PACKAGES_ROOT",
         .type = SETTING_PATH,
         .initial = "",
         .help = "folder of package sets, one folder each; unset: jobs can name none"},
    [SETTING_RUN_DIR] = {.name = "SANDBOX_RUN_DIR",
                         .type = SETTING_PATH,
                         .initial = "/run/isle",
                         .help = "lock files; one folder for all data folders of a host"},
    [SETTING_HOSTNAME] = {.name = "SANDBOX_HOSTNAME",
                          .type = SETTING_NAME,
                          .initial = "clouisle-sandbox",
                          .help = "host name inside"},
    [SETTING_SECCOMP_ALLOW] =
        {.name = "SANDBOX_SECCOMP_ALLOW",
         .type = SETTING_CALLS,
         .initial = "",
         .help =
             "system calls that jobs may make, with any arguments, besides those of the policy"},
    [SETTING_MAX_DISK_MB] = {.name = "SANDBOX_MAX_DISK_MB",
                             .type = SETTING_NUMBER,
                             .unit = "MB",
                             .initial = "8192",
                             .min = 0,
                             .max = MB_OF_DISK,
                             .help = "largest disk_mb a job may ask for"},
    [SETTING_TMPFS_WORKSPACE_MB] =
        {.name = "SANDBOX_TMPFS_WORKSPACE_MB",
         .type = SETTING_NUMBER,
         .unit = "MB",
         .initial = "64",
         .min = 0,
         .max = 65536,
         .help = "one-shot workspaces up to this disk_mb are in memory, larger ones on disk"},
    [SETTING_ARTIFACT_MAX_FILE_SIZE_MB] = {.name = "SANDBOX_ARTIFACT_MAX_FILE_SIZE_MB",
                                           .type = SETTING_NUMBER,
                                           .unit = "MB",
                                           .initial = "10",
                                           .min = 1,
                                           .max = 1024,
                                           .help = "largest artifact"},
    [SETTING_ARTIFACT_MAX_TOTAL_SIZE_MB] = {.name = "SANDBOX_ARTIFACT_MAX_TOTAL_SIZE_MB",
                                            .type = SETTING_NUMBER,
                                            .unit = "MB",
                                            .initial = "10",
                                            .min = 1,
                                            .max = 4096,
                                            .help = "all artifacts of one job together"},
    [SETTING_INSTANCE_MEMORY_MB] =
        {.name = "SANDBOX_INSTANCE_MEMORY_MB",
         .type = SETTING_NUMBER,
         .unit = "MB",
         .initial = "0",
         .min = 0,
         .max = 16777216,
         .help = "memory of isle and all its jobs together; 0: no bound of its own"},
    [SETTING_INSTANCE_PIDS] =
        {.name = "SANDBOX_INSTANCE_PIDS",
         .type = SETTING_NUMBER,
         .unit = "processes",
         .initial = "0",
         .min = 0,
         .max = 4194304,
         .help = "processes of isle and all its jobs together; 0: no bound of its own"},
    [SETTING_TEST_REFUSE_RUNGS] = {.name = "ISLE_TEST_REFUSE_RUNGS",
                                   .type = SETTING_NUMBER,
                                   .initial = "0",
                                   .min = 0,
                                   .max = 255,
                                   .help =
                                       "tests: ways to make the job's user namespace not to use",
                                   .hidden = true},
};

static int refuse(struct conf_error *e, const struct setting_spec *s, const char *value,
                  const char *why)
{
    const char *shown = s->secret ? "the value" : value;
    snprintf(e->text, sizeof e->text, "%s: %.80s%s %s", s->name, shown,
             strlen(shown) > 80 ? "..." : "", why);
    text_no_controls(e->text); // messages go to terminals
    return -EINVAL;
}

// In a list of words; the empty value is in the empty list.
static bool is_choice(const char *choices, const char *value)
{
    size_t n = strlen(value);
    if (n == 0) {
        return true;
    }
    for (const char *at = choices; (at = strstr(at, value)); at++) {
        bool begins = at == choices || at[-1] == ' ';
        if (begins && (at[n] == '\0' || at[n] == ' ')) {
            return true;
        }
    }
    return false;
}

static int refuse_choice(struct conf_error *e, const struct setting_spec *s, const char *value)
{
    char why[200];
    const char *separator = *s->choices ? "; the value can be: " : "";
    snprintf(why, sizeof why, "is refused: %s%s%s", s->lacking, separator, s->choices);
    return refuse(e, s, value, why);
}

static int read_bool(struct conf *c, enum setting n, const char *value, struct conf_error *e)
{
    static const struct {
        const char *word;
        int value;
    } words[] = {{"true", 1},  {"yes", 1}, {"on", 1},  {"1", 1},
                 {"false", 0}, {"no", 0},  {"off", 0}, {"0", 0}};
    const struct setting_spec *s = &setting_specs[n];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(value, words[i].word) == 0) {
            bool available =
                !s->choices || is_choice(s->choices, words[i].value ? "true" : "false");
            c->number[n] = words[i].value;
            return available ? 0 : refuse_choice(e, s, value);
        }
    }
    return refuse(e, s, value, "is neither true nor false");
}

static int read_number(struct conf *c, enum setting n, const char *value, struct conf_error *e)
{
    const struct setting_spec *s = &setting_specs[n];
    char why[120];
    const char *unit = s->unit ? s->unit : "";
    bool negative = *value == '-';
    size_t digits = strspn(value + negative, "0123456789");
    if (digits == 0 || value[negative + digits]) {
        return refuse(e, s, value, "is not a whole number");
    }
    errno = 0;
    long long number = strtoll(value, NULL, 10); // saturates where it does not fit
    if (number < s->min || number > s->max) {
        bool low = number < s->min;
        snprintf(why, sizeof why, "is %s of %lld%s%s",
                 low ? "below the minimum" : "above the maximum",
                 (long long)(low ? s->min : s->max), *unit ? " " : "", unit);
        return refuse(e, s, value, why);
    }
    c->number[n] = number;
    return 0;
}

static int read_name(const struct setting_spec *s, const char *value, struct conf_error *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    size_t n = strlen(value);
    if (n > 63) {
        return refuse(e, s, value, "is above the maximum of 63 characters");
    }
    if (strspn(value, allowed) != n || value[0] == '-' || value[n - 1] == '-') {
        return refuse(e, s, value, "is not a host name: letters, digits and - inside");
    }
    return 0;
}

static int read_calls(const struct setting_spec *s, const char *value, struct conf_error *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_,";
    return value[strspn(value, allowed)] == '\0'
               ? 0
               : refuse(e, s, value, "is no list of system calls: names with commas between");
}

static int read_path(const struct setting_spec *s, const char *value, struct conf_error *e)
{
    bool word = s->choices && is_choice(s->choices, value);
    if (value[0] != '/' && value != s->initial && !word) {
        return refuse(e, s, value, "is not an absolute path");
    }
    return strlen(value) < 4096 ? 0 : refuse(e, s, value, "is longer than 4095 bytes");
}

static int read_setting(struct conf *c, enum setting n, const char *value, struct conf_error *e)
{
    const struct setting_spec *s = &setting_specs[n];
    switch (s->type) {
    case SETTING_BOOL:
        return read_bool(c, n, value, e);
    case SETTING_NUMBER:
        return read_number(c, n, value, e);
    case SETTING_PATH:
        return read_path(s, value, e);
    case SETTING_NAME:
        return read_name(s, value, e);
    case SETTING_CALLS:
        return read_calls(s, value, e);
    case SETTING_CHOICE:
        return is_choice(s->choices, value) ? 0 : refuse_choice(e, s, value);
    }
    return -EINVAL;
}

static const char *value_of(char *const *environment, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; environment && environment[i]; i++) {
        if (strncmp(environment[i], name, n) == 0 && environment[i][n] == '=') {
            return environment[i][n + 1] ? environment[i] + n + 1 : NULL;
        }
    }
    return NULL;
}

int conf_load(struct conf *ret, char *const *environment, struct conf_error *ret_error)
{
    struct conf c = {};
    for (int n = 0; n < SETTING_COUNT; n++) {
        const struct setting_spec *s = &setting_specs[n];
        const char *value = value_of(environment, s->name);
        c.given[n] = value != NULL;
        c.text[n] = value ? value : s->initial;
        int e = read_setting(&c, (enum setting)n, c.text[n], ret_error);
        if (e) {
            return e;
        }
    }
    *ret = c;
    return 0;
}

char **conf_environment(const struct conf *c)
{
    char **environment = calloc(SETTING_COUNT + 1, sizeof *environment);
    size_t count = 0;
    for (int n = 0; environment && n < SETTING_COUNT; n++) {
        if (!c->given[n]) {
            continue;
        }
        if (asprintf(&environment[count], "%s=%s", setting_specs[n].name, c->text[n]) < 0) {
            environment[count] = NULL;
            conf_environment_free(environment);
            return NULL;
        }
        count++;
    }
    return environment;
}

void conf_environment_free(char **environment)
{
    for (size_t i = 0; environment && environment[i]; i++) {
        free(environment[i]);
    }
    free(environment);
}
