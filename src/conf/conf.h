// conf.h: every setting in one table: name, type, unit, default, bounds, help. Today they come from
// the environment. A bad value is an error that names setting, value and bound; what a later
// version will do is refused, never ignored.
#ifndef ISLE_CONF_CONF_H
#define ISLE_CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum setting {
    SETTING_PRESET,
    SETTING_RUNTIME_ENABLED,
    SETTING_FILESYSTEM_ISOLATION_ENABLED,
    SETTING_FILESYSTEM_ISOLATION_BINARY,
    SETTING_LEGACY_FALLBACK_ENABLED,
    SETTING_REQUIRE_USER_NAMESPACE,
    SETTING_NETWORK_DEFAULT,
    SETTING_NETWORK_ALLOW_HOST,
    SETTING_ALLOW_UNISOLATED,
    SETTING_DEFAULT_PYTHON_BINARIES,
    SETTING_RUNTIME_ROOT,
    SETTING_WORKSPACE_ROOT,
    SETTING_PACKAGES_ROOT,
    SETTING_RUN_DIR,
    SETTING_HOSTNAME,
    SETTING_SECCOMP_ALLOW,
    SETTING_MAX_DISK_MB,
    SETTING_TMPFS_WORKSPACE_MB,
    SETTING_ARTIFACT_MAX_FILE_SIZE_MB,
    SETTING_ARTIFACT_MAX_TOTAL_SIZE_MB,
    SETTING_INSTANCE_MEMORY_MB,
    SETTING_INSTANCE_PIDS,
    SETTING_WORKER_CONCURRENCY,
    SETTING_TEAM_CONCURRENCY,
    SETTING_QUEUE_LIMIT,
    SETTING_QUEUE_TEAM_LIMIT,
    SETTING_QUEUE_TIMEOUT_SECONDS,
    SETTING_DRAIN_SECONDS,
    SETTING_RESULT_TTL_SECONDS,
    SETTING_SESSION_TTL_HOURS,
    SETTING_SESSION_CLEANUP_BATCH_SIZE,
    SETTING_STREAM_TOOL_TIMEOUT_CODE,
    SETTING_LISTEN,
    SETTING_SOCKET,
    SETTING_ALLOWED_HOSTS,
    SETTING_ALLOWED_ORIGINS,
    SETTING_TRUSTED_PROXIES,
    SETTING_LOG_FORMAT,
    SETTING_LOG_LEVEL,
    SETTING_AUDIT_LOG,
    SETTING_TEST_REFUSE_RUNGS,
    SETTING_COUNT,
};

enum setting_type {
    SETTING_BOOL,   // true false yes no on off 1 0
    SETTING_NUMBER, // whole, min..max
    SETTING_PATH,   // absolute, or one of `choices`; unset where `initial` is
    SETTING_NAME,   // a host name's label: letters, digits, -, at most 63
    SETTING_CHOICE, // one of `choices`
    SETTING_WORDS,  // words with commas between, at most `max` of SETTING_MAX_WORD bytes each
    SETTING_CALLS,  // names of system calls, separated by commas; who they are is cli/calls.h's
};

enum { SETTING_MAX_WORD = 255 };

struct setting_spec {
    const char *name; // of the environment variable
    enum setting_type type;
    const char *unit;    // or NULL
    const char *initial; // as it would be written; "" for unset
    int64_t min, max;    // NUMBER
    const char *choices; // CHOICE, and BOOL where one value is not available yet: "true"
    const char *lacking; // what an unavailable choice is missing, for the message
    const char *help;
    bool secret; // never printed
    bool hidden; // for tests: not in help and reference
};

extern const struct setting_spec setting_specs[SETTING_COUNT];

struct conf {
    const char *text[SETTING_COUNT]; // the caller's environment or a literal; never NULL
    int64_t number[SETTING_COUNT];   // BOOL and NUMBER
    bool given[SETTING_COUNT];
};

struct conf_error {
    char text[512]; // "SANDBOX_MAX_DISK_MB: 200000 is above the maximum of 102400 MB"
};

// Reads the settings out of an environment ("NAME=VALUE", NULL-terminated), which must outlive
// *ret. An empty value counts as unset. 0 or -EINVAL with *ret_error.
int conf_load(struct conf *ret, char *const *environment, struct conf_error *ret_error);

static inline bool conf_bool(const struct conf *c, enum setting s) { return c->number[s] != 0; }

// The settings that were given, as an environment: all that the re-executed image gets of the
// caller's. malloc'ed, NULL-terminated, strings included (free with conf_environment_free()); NULL
// without memory.
char **conf_environment(const struct conf *c);
void conf_environment_free(char **environment);

#endif
