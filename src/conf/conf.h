// conf.h: every setting in one table: name, type, unit, default, bounds, help. They come from a
// file, the environment and options, the last one counts, and each value knows where it is from. A
// bad value is an error that names place, setting, value and bound, wherever it comes from.
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
    SETTING_TEAM_DISK_MB,
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
    SETTING_PUBLIC_URL,
    SETTING_LOG_FORMAT,
    SETTING_LOG_LEVEL,
    SETTING_AUDIT_LOG,
    SETTING_ARTIFACT_UPLOAD_BASE_URL,
    SETTING_ARTIFACT_UPLOAD_API_KEY,
    SETTING_SECRET_KEY,
    SETTING_REDIS_HOST,
    SETTING_REDIS_PORT,
    SETTING_REDIS_PASSWORD,
    SETTING_TEST_REFUSE_RUNGS,
    SETTING_COUNT,
};

enum setting_type {
    SETTING_BOOL,   // true false yes no on off 1 0
    SETTING_NUMBER, // whole, min..max
    SETTING_PATH,   // absolute, or one of `choices`; unset where `initial` is
    SETTING_NAME,   // a host name's label: letters, digits, -, at most 63
    SETTING_CHOICE, // one of `choices`
    SETTING_TEXT,   // at most `max` bytes
    SETTING_WORDS,  // `words` with commas between, at most `max` of SETTING_MAX_WORD bytes each
    SETTING_CALLS,  // names of system calls, separated by commas; who they are is cli/calls.h's
};

enum { SETTING_MAX_WORD = 255 };
enum setting_word {
    SETTING_W_LISTEN,  // 127.0.0.1:4753, [::1]:4753, localhost:4753, *:4753
    SETTING_W_HOST,    // as a Host field has it: name, address or [address], perhaps with a port
    SETTING_W_ORIGIN,  // http://HOST, https://HOST
    SETTING_W_URL,     // an origin, perhaps with a path: https://HOST/isle
    SETTING_W_NETWORK, // address, or network with its prefix's length
    SETTING_W_PROGRAM, // its name, or its absolute path
    SETTING_N_WORDS,
};
extern const char *const setting_word_names[SETTING_N_WORDS]; // "host names or addresses"

struct setting_spec {
    const char *name; // of the environment variable
    enum setting_type type;
    const char *unit;        // or NULL
    const char *initial;     // as it would be written; "" for unset
    int64_t min, max;        // NUMBER
    enum setting_word words; // WORDS
    const char *choices;     // CHOICE, and BOOL where one value is not available yet: "true"
    const char *lacking;     // what an unavailable choice is missing, for the message
    const char *help;
    // The default that the platform documents ("" for unset; NULL: it has no such setting), and why
    // isle's is another one, where it is: SANDBOX_PRESET=platform restores those.
    const char *platform, *why;
    bool live;   // SIGHUP changes it; else a restart does
    bool secret; // never printed
    bool idle;   // the platform's, for what a later version does: checked, and not used
    bool hidden; // for tests: not in help and reference
};

extern const struct setting_spec setting_specs[SETTING_COUNT];

struct conf_error {
    char text[512]; // "SANDBOX_MAX_DISK_MB: 200000 is above the maximum of 102400 MB"
};

// By name. 0, or -EINVAL with "NAME is no setting; did you mean ...?" in ret_why.
enum { CONF_UNKNOWN_MAX = 200 };
int conf_setting_find(const char *name, enum setting *ret, char ret_why[CONF_UNKNOWN_MAX]);

// Where a value comes from: what stands later here outweighs what stands before it.
enum conf_origin {
    CONF_DEFAULT,
    CONF_PRESET, // SANDBOX_PRESET
    CONF_FILE,
    CONF_ENVIRONMENT,
    CONF_OPTION,
    CONF_N_ORIGINS,
};
extern const char *const conf_origin_names[CONF_N_ORIGINS];

struct conf_option {
    enum setting setting;
    const char *value; // NULL or "": not given
};

// "NAME=VALUE" of an option; *ret points into text. No secrets: every user of a host sees command
// lines. 0, or -EINVAL with *ret_error.
int conf_option_parse(const char *text, struct conf_option *ret, struct conf_error *ret_error);

struct conf_sources {
    char *const *environment; // NULL-terminated
    const char *file;         // NULL: none
    bool file_must_exist;     // it was named; else only where it is there
    const struct conf_option *options;
    size_t n_options;
};

struct conf {
    const char *text[SETTING_COUNT]; // of the sources, a literal, or `owned`; never NULL
    int64_t number[SETTING_COUNT];   // BOOL and NUMBER
    enum conf_origin origin[SETTING_COUNT];
    char *owned[SETTING_COUNT]; // of the file
    char *file;                 // that was read or looked for; NULL: none
    bool file_read;
};

// Reads the settings. The environment and the options must outlive *ret, the file need not. An
// empty value counts as unset. 0 (then conf_done() is due), or a negative errno with *ret_error.
int conf_load(const struct conf_sources *from, struct conf *ret, struct conf_error *ret_error);
void conf_done(struct conf *c); // also of a zeroed one

static inline bool conf_bool(const struct conf *c, enum setting s) { return c->number[s] != 0; }
static inline bool conf_given(const struct conf *c, enum setting s)
{
    return c->origin[s] != CONF_DEFAULT;
}
// Does it differ from what the platform documents as its default?
bool conf_departs(const struct conf *c, enum setting s);
// Given, and of use to a later version only.
static inline bool conf_is_idle(const struct conf *c, enum setting s)
{
    return setting_specs[s].idle && conf_given(c, s);
}

// ---- The service's side

// The settings that were given, as an environment: all that the re-executed image gets of the
// caller's. malloc'ed, NULL-terminated, strings included (free with conf_environment_free()); NULL
// without memory.
char **conf_environment(const struct conf *c);
void conf_environment_free(char **environment);
// In that image: settings, origins and the file's name as they were where `environment` was made.
int conf_load_passed(char *const *environment, struct conf *ret, struct conf_error *ret_error);

struct conf_changes {
    size_t n;
    struct conf_change {
        enum setting setting;
        bool taken; // false: differs now, and needs a restart
    } rows[SETTING_COUNT];
};

// SIGHUP: fd is c->file, opened by whoever can (the caller's to close). Values of the environment
// and of options stay. What is live changes in *c (texts of it are others from here on); what is
// not, and differs, is told as well. 0, or a negative errno with *ret_error: then nothing has
// changed.
int conf_reload(struct conf *c, int fd, struct conf_changes *ret, struct conf_error *ret_error);

#endif
