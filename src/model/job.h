// job.h: a job as every entry of the product gives it (CLI, later HTTP, MCP, Celery): JSON in,
// checked struct out. A bad job is refused here, by name of the field, before anything runs.
#ifndef ISLE_MODEL_JOB_H
#define ISLE_MODEL_JOB_H

#include "base/buf.h"
#include "model/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <yyjson.h>

enum language {
    LANGUAGE_NONE,
    LANGUAGE_PYTHON,
    LANGUAGE_JAVASCRIPT,
    LANGUAGE_BASH,
    LANGUAGE_COUNT
};
extern const char *const language_names[LANGUAGE_COUNT]; // "python" ...

enum job_kind {
    JOB_SNIPPET, // code in python or javascript, run by the guest wrapper, with params and a result
    JOB_SCRIPT,  // bash: `code` is the script; no result but its stdout
    JOB_COMMAND, // argv
};

enum job_network {
    JOB_NETWORK_DEFAULT, // the setting's; resolved by lower_check_host()
    JOB_NETWORK_NONE,
    JOB_NETWORK_HOST,
    JOB_N_NETWORKS,
};
extern const char *const job_network_names[JOB_N_NETWORKS]; // NULL, "none", "host"

// What a snippet's result is. Whoever runs one says so: no field of the JSON does.
enum job_entry {
    JOB_ENTRY_TOP,   // what its top level returns
    JOB_ENTRY_MAIN,  // what its function main returns, called with params
    JOB_ENTRY_CHECK, // nothing runs: {"errors": [{"message", "line"}]}, what MAIN would fail by
};

enum {
    JOB_MAX_CODE_BYTES = 1 << 20,
    JOB_MAX_PARAMS_BYTES = 8 << 20,
    JOB_MAX_ARGV_BYTES = 128 << 10,
    JOB_MAX_ARGV = 4096,
    JOB_MAX_ENV_BYTES = 64 << 10,
    JOB_MAX_ENV_NAMES = 900, // with what isle sets itself, below ARGS_MAX_ENV (plan/args.h)
    JOB_MAX_FILES = 1000,
    JOB_MAX_ARTIFACTS = 100,
    JOB_MAX_ARTIFACT_MB = 1024,  // that a job may ask for; the operator's bound is another
    JOB_MAX_ARTIFACTS_MB = 4096, // of all together
    JOB_MAX_PACKAGES = 50,
    JOB_MAX_EXECUTE_SECONDS = 60, // of a snippet whose caller waits for it directly
    JOB_MAX_SETS = 8,             // PLAN_SETS_PER_JOB
    JOB_SET_NAME_MAX = 64,
    JOB_MAX_PATH = 4096,
    JOB_MAX_COMPONENTS = 64,    // of a path: each may be a folder to be made, and entered
    JOB_MAX_DESCRIPTION = 1024, // bytes, of an artifact
    JOB_MAX_JSON_BYTES = 24 << 20,
};

// Its content is a descriptor that came along or, in a job that came whole as text, bytes.
struct job_file {
    char *target; // below /workspace, normalised, relative: "input/a.csv"
    int fd;       // O_RDONLY; -1 until bound, or when there is `content`
    int fd_index; // into the descriptors that come along; -1: none
    char *content;
    size_t content_len;
    uint32_t mode; // 0644 or 0755
};

struct job_artifact {
    char *path; // below /workspace, normalised, relative
    bool optional;
    char *description; // or NULL
};

struct job {
    char id[37]; // UUIDv7 text
    enum job_kind kind;
    enum language language;
    enum job_entry entry;
    char *code;
    size_t code_len;
    char *code_name; // for tracebacks: base name of FILE, else "snippet.py", "snippet.js",
                     // "script.sh"
    char *params;    // JSON text, digit for digit; "{}" when not given
    size_t params_len;
    char **argv; // NULL-terminated; NULL unless JOB_COMMAND
    char **env;  // "K=V", NULL-terminated: the job's own, checked
    char *cwd;   // absolute, below /workspace
    enum job_network network;
    int stdin_fd;     // -1: empty
    int stdin_index;  // into the descriptors that come along; -1: none
    char *stdin_data; // instead of a descriptor; NULL: none
    size_t stdin_len;
    struct job_file *files;
    size_t n_files;
    struct job_artifact *artifacts;
    size_t n_artifacts;
    char **package_sets; // names, in the job's order: the first is looked at first
    size_t n_package_sets;
    uint64_t artifact_max_bytes, artifacts_max_bytes; // of one, of all; 0: the operator's bounds
    char session[37];                                 // "": a workspace of its own
    struct limits limits;
};

struct job_error {
    char field[64]; // "limits.timeout_seconds"
    char text[320]; // "limits.timeout_seconds: 601 is above the maximum of 600 s"
    bool too_large; // more bytes than may be: of `code`, `params`
};

// Parses and checks. JSON fields: language, code, code_name, params, command (argv), env (object of
// strings), cwd, limits (object), timeout (whole seconds, where limits says none), input_files
// [{target_path, mode?, fd (index into the descriptors that came along) or content_base64,
// expected_size?, expected_checksum?}], stdin_fd (index) or stdin_base64, artifacts [path | {path,
// optional, description}], artifact_limits {max_size_mb, max_total_size_mb}, package_sets [name],
// network ("none" or "host"), session_id, metadata (its `params`, where there are none).
// Of other callers' jobs: `shell` (needs a command), a command that only names the interpreter of
// `code`; source, runtime_profile and tenant_id are not used; python_packages, js_packages and
// where they come from are checked, and refused as long as nothing installs them. null means "not
// given". Unknown fields are refused by name. 0 or -EINVAL (-ENOMEM) with *ret_error; *ret is
// job_done()-able either way. Descriptor indices are bounded by n_fds, each used once, and bound by
// job_bind().
int job_parse(const char *json, size_t len, int n_fds, struct job *ret,
              struct job_error *ret_error);
// The same of a document that was read already, as json_parse_envelope() does: `value` is its root.
int job_parse_value(yyjson_val *value, int n_fds, struct job *ret, struct job_error *ret_error);
// The same of a job that is kept for later, as a code tool's is: it may ask for packages, which are
// refused when it is to run. `fault` is told the first fault of each field.
int job_parse_saved(yyjson_val *value, struct job *ret,
                    void (*fault)(void *ctx, const struct job_error *e), void *ctx);
// NAME==VERSION or NAME@VERSION, as the packages of a job in that language are named?
bool job_is_package(enum language language, const char *text, size_t len);
// Of two such texts: is it one package, whatever the versions?
bool job_same_package(enum language language, const char *a, size_t a_len, const char *b,
                      size_t b_len);
// Gives the descriptors (owned by the job from here on) to stdin and files; closes those that no
// field names.
void job_bind(struct job *j, int *fds, int n_fds);
void job_done(struct job *j);

// Is this a name that steers loaders or interpreters (LD_PRELOAD, PYTHONSTARTUP, NODE_OPTIONS ...)?
// Refused in `env`, so that what a job starts is what it says.
bool job_env_refused(const char *name);

// A new UUIDv7 (RFC 9562): ids sort by time.
void job_new_id(char ret[37]);

// One rule for every path a tenant names: relative to /workspace or absolute below it, normalised
// without the file system; refuses NUL, empty, "..", components over 255 bytes, more than
// JOB_MAX_PATH and JOB_MAX_COMPONENTS, and what is not /workspace. *ret is malloc'ed and relative
// ("." for /workspace itself). 0 or -EINVAL.
int job_path(const char *field, const char *path, size_t len, char **ret,
             struct job_error *ret_error);

#endif
