// schemas_jobs.c: jobs and their results.
#include "api/schema.h"

#include "base/fd.h"
#include "model/job.h"
#include "model/result.h"

#define TEXT(n, h)                                                                                 \
    {                                                                                              \
        .name = (n), .type = SCHEMA_TEXT, .required = true, .help = (h)                            \
    }
#define TEXT_NULL(n, h)                                                                            \
    {                                                                                              \
        .name = (n), .type = SCHEMA_TEXT, .required = true, .null = true, .help = (h)              \
    }
#define INT(n, h)                                                                                  \
    {                                                                                              \
        .name = (n), .type = SCHEMA_INT, .required = true, .help = (h)                             \
    }
#define INT_NULL(n, h)                                                                             \
    {                                                                                              \
        .name = (n), .type = SCHEMA_INT, .required = true, .null = true, .help = (h)               \
    }
#define BOOL(n, h)                                                                                 \
    {                                                                                              \
        .name = (n), .type = SCHEMA_BOOL, .required = true, .help = (h)                            \
    }
#define TIME_NULL(n, h)                                                                            \
    {                                                                                              \
        .name = (n), .type = SCHEMA_TEXT, .form = SCHEMA_FORM_TIME, .required = true,              \
        .null = true, .help = (h)                                                                  \
    }
#define ID(n, h)                                                                                   \
    {                                                                                              \
        .name = (n), .type = SCHEMA_TEXT, .form = SCHEMA_FORM_ID, .required = true, .help = (h)    \
    }

const char *const status_names_listed[] = {"queued",    "preparing", "running",   "collecting",
                                           "completed", "failed",    "cancelled", NULL};
static const char *const job_languages[] = {"python", "javascript", "bash", NULL};
const char *const snippet_languages[] = {"python", "javascript", NULL};
static const char *const networks[] = {"none", "proxy", "host", NULL};

// ---- What a job brings.

static const struct schema_field input_file[] = {
    {.name = "target_path",
     .type = SCHEMA_TEXT,
     .required = true,
     .min = 1,
     .max = JOB_MAX_PATH,
     .help = "where it goes, below /workspace"},
    {.name = "content_base64",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_BASE64,
     .required = true,
     .help = "its content"},
    {.name = "expected_checksum",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_SHA256,
     .help = "SHA-256 that the content must have"},
    {.name = "expected_size",
     .type = SCHEMA_INT,
     .max = JOB_MAX_JSON_BYTES,
     .help = "bytes that the content must have"},
    {.name = "mode", .type = SCHEMA_ANY, .initial = "\"0644\"", .help = "\"0644\" or \"0755\""},
};
SCHEMA_REQUEST(input_file, "InputFile", "A file that is in the workspace before the job starts.");

static const struct schema_field artifact_wish[] = {
    {.name = "path",
     .type = SCHEMA_TEXT,
     .required = true,
     .min = 1,
     .max = JOB_MAX_PATH,
     .help = "below /workspace"},
    {.name = "optional",
     .type = SCHEMA_BOOL,
     .initial = "false",
     .help = "the job does not fail when it is not there"},
    {.name = "description",
     .type = SCHEMA_TEXT,
     .max = JOB_MAX_DESCRIPTION,
     .help = "comes back in the result"},
};
SCHEMA_REQUEST(artifact_wish, "ArtifactWish", "A file that the job is to leave for its caller.");

static const struct schema_field artifact_limits[] = {
    {.name = "max_size_mb",
     .type = SCHEMA_NUMBER,
     .min = 0,
     .max = JOB_MAX_ARTIFACT_MB,
     .help = "of one file; above 0; the operator's bound if that is less"},
    {.name = "max_total_size_mb",
     .type = SCHEMA_NUMBER,
     .min = 0,
     .max = JOB_MAX_ARTIFACTS_MB,
     .help = "of all files; above 0; the operator's bound if that is less"},
};
SCHEMA_REQUEST(artifact_limits, "ArtifactLimits", "How large artifacts may be, in MB.");

#define PACKAGES                                                                                   \
    {.name = "python_packages",                                                                    \
     .type = SCHEMA_ARRAY,                                                                         \
     .items = SCHEMA_TEXT,                                                                         \
     .max = JOB_MAX_PACKAGES,                                                                      \
     .initial = "[]",                                                                              \
     .help = "NAME==VERSION; refused until isle installs "                                         \
             "packages"},                                                                          \
        {.name = "js_packages",                                                                    \
         .type = SCHEMA_ARRAY,                                                                     \
         .items = SCHEMA_TEXT,                                                                     \
         .max = JOB_MAX_PACKAGES,                                                                  \
         .initial = "[]",                                                                          \
         .help = "NAME@VERSION; refused until isle installs packages"},                            \
        {.name = "python_package_index_url",                                                       \
         .type = SCHEMA_TEXT,                                                                      \
         .max = 2048,                                                                              \
         .help = "only together with packages"},                                                   \
    {                                                                                              \
        .name = "node_package_registry_url", .type = SCHEMA_TEXT, .max = 2048,                     \
        .help = "only together with packages"                                                      \
    }

#define ARTIFACTS                                                                                  \
    {                                                                                              \
        .name = "artifacts", .type = SCHEMA_ARRAY, .items = SCHEMA_TEXT_OR,                        \
        .of = &schema_artifact_wish, .max = JOB_MAX_ARTIFACTS, .initial = "[]",                    \
        .help = "files to keep: paths, or objects"                                                 \
    }
#define LIMITS                                                                                     \
    {                                                                                              \
        .name = "limits", .type = SCHEMA_LIMITS, .initial = "{}", .help = "what it may use"        \
    }
#define NETWORK                                                                                    \
    {                                                                                              \
        .name = "network", .type = SCHEMA_TEXT, .choices = networks,                               \
        .help = "what the operator does not allow is refused by name"                              \
    }
#define SHARED                                                                                     \
    ARTIFACTS,                                                                                     \
        {.name = "input_files",                                                                    \
         .type = SCHEMA_ARRAY,                                                                     \
         .items = SCHEMA_OBJECT,                                                                   \
         .of = &schema_input_file,                                                                 \
         .max = JOB_MAX_FILES,                                                                     \
         .initial = "[]",                                                                          \
         .help = "files to bring"},                                                                \
        LIMITS,                                                                                    \
        {.name = "session_id",                                                                     \
         .type = SCHEMA_TEXT,                                                                      \
         .form = SCHEMA_FORM_ID,                                                                   \
         .help = "run in that session's workspace"},                                               \
        NETWORK
#define SURROUNDINGS                                                                               \
    {.name = "cwd",                                                                                \
     .type = SCHEMA_TEXT,                                                                          \
     .max = JOB_MAX_PATH,                                                                          \
     .initial = "\"/workspace\"",                                                                  \
     .help = "where it starts, below /workspace"},                                                 \
        {.name = "env",                                                                            \
         .type = SCHEMA_MAP,                                                                       \
         .items = SCHEMA_TEXT,                                                                     \
         .max = JOB_MAX_ENV_NAMES,                                                                 \
         .initial = "{}",                                                                          \
         .help = "its environment; what steers loaders is refused"},                               \
    {                                                                                              \
        .name = "package_sets", .type = SCHEMA_ARRAY, .items = SCHEMA_TEXT, .max = JOB_MAX_SETS,   \
        .initial = "[]", .help = "folders of packages that the operator prepared"                  \
    }
#define ARTIFACT_LIMITS                                                                            \
    {                                                                                              \
        .name = "artifact_limits", .type = SCHEMA_OBJECT, .of = &schema_artifact_limits,           \
        .initial = "{}", .help = "bounds of the artifacts"                                         \
    }

static const struct schema_field execute_code[] = {
    {.name = "language",
     .type = SCHEMA_TEXT,
     .choices = snippet_languages,
     .elsewhere = "for bash and commands: POST /api/v1/sandbox/jobs",
     .required = true,
     .help = "of the code"},
    {.name = "code",
     .type = SCHEMA_TEXT,
     .required = true,
     .max = JOB_MAX_CODE_BYTES,
     .help = "the program; `return` gives the result"},
    {.name = "params",
     .type = SCHEMA_OBJECT,
     .initial = "{}",
     .help = "what the code sees as `params`, digit for digit; up to 8 MiB"},
    {.name = "timeout",
     .type = SCHEMA_INT,
     .min = 1,
     .max = JOB_MAX_EXECUTE_SECONDS,
     .initial = "30",
     .help = "seconds; used when limits.timeout_seconds is absent"},
    {.name = "command",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_TEXT,
     .max = JOB_MAX_ARGV,
     .initial = "[]",
     .help = "the interpreter alone: python, python3, javascript, node or nodejs"},
    PACKAGES,
    SHARED,
};
SCHEMA_REQUEST(execute_code, "ExecuteCode", "A snippet that is run while its caller waits.");

static const struct schema_field sandbox_job[] = {
    {.name = "language",
     .type = SCHEMA_TEXT,
     .choices = job_languages,
     .help = "of the code; needed with it"},
    {.name = "code",
     .type = SCHEMA_TEXT,
     .max = JOB_MAX_CODE_BYTES,
     .help = "the program: this or `command`"},
    {.name = "code_name",
     .type = SCHEMA_TEXT,
     .min = 1,
     .max = 255,
     .help = "its file name in tracebacks"},
    {.name = "params",
     .type = SCHEMA_OBJECT,
     .initial = "{}",
     .help = "what a snippet sees as `params`; up to 8 MiB"},
    {.name = "metadata",
     .type = SCHEMA_OBJECT,
     .initial = "{}",
     .help = "`params` in it is read as `params`; the rest is not looked at"},
    {.name = "command",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_TEXT,
     .max = JOB_MAX_ARGV,
     .initial = "[]",
     .help = "program and arguments: this or `code`"},
    {.name = "shell",
     .type = SCHEMA_BOOL,
     .initial = "false",
     .help = "true needs a command; which is run as it is"},
    SURROUNDINGS,
    {.name = "stdin_base64",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_BASE64,
     .help = "its standard input; empty when absent"},
    PACKAGES,
    SHARED,
    ARTIFACT_LIMITS,
    {.name = "source", .type = SCHEMA_TEXT, .max = 64, .help = "accepted, not used"},
    {.name = "runtime_profile", .type = SCHEMA_TEXT, .max = 64, .help = "accepted, not used"},
    {.name = "tenant_id",
     .type = SCHEMA_TEXT,
     .max = 256,
     .help = "accepted, not used: the key says whose job it is"},
};
SCHEMA_REQUEST(sandbox_job, "SandboxJob", "A job.");

// tools/tool.h has the names; what a call brings (params, files, a session) is not among them.
static const struct schema_field tool_config[] = {
    {.name = "language",
     .type = SCHEMA_TEXT,
     .choices = snippet_languages,
     .required = true,
     .help = "of the code"},
    {.name = "code",
     .type = SCHEMA_TEXT,
     .required = true,
     .max = JOB_MAX_CODE_BYTES,
     .help = "the program; it finds the arguments in `params`"},
    {.name = "command",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_TEXT,
     .max = JOB_MAX_ARGV,
     .initial = "[]",
     .help = "the interpreter alone"},
    SURROUNDINGS,
    PACKAGES,
    {.name = "dependencies",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_ANY,
     .max = JOB_MAX_PACKAGES,
     .initial = "[]",
     .help = "of older platforms: texts, or {name, version}; kept as packages of the language"},
    ARTIFACTS,
    ARTIFACT_LIMITS,
    LIMITS,
    NETWORK,
};
SCHEMA_REQUEST(tool_config, "ToolConfig", "What a tool runs.");

// ---- What it leaves.

static const struct schema_field truncated[] = {
    BOOL("stdout", "more came than max_stdout_kb"),
    BOOL("stderr", "more came than max_stderr_kb"),
    BOOL("artifacts", "some were left out, as they went over a cap; those that came are whole"),
};
SCHEMA_ANSWER(truncated, "Truncated", "What was cut.");

static const struct schema_field usage[] = {
    INT_NULL("wall_ms", "from the program's start to its end"),
    INT_NULL("cpu_ms", "of all processes"),
    INT_NULL("memory_peak_bytes", "at most at once"),
    INT_NULL("disk_bytes", "below /workspace"),
    INT_NULL("pids_peak", "processes and threads at once"),
    INT_NULL("stdout_bytes", "written, before the cut"),
    INT_NULL("stderr_bytes", "written, before the cut"),
};
SCHEMA_ANSWER(usage, "Usage", "What the job used; null: could not be measured.");

static const char *const levels[] = {"full", "degraded", "none", NULL};
static const struct schema_field isolation[] = {
    {.name = "level",
     .type = SCHEMA_TEXT,
     .choices = levels,
     .required = true,
     .help = "none: nothing ran, or it ran without isolation"},
    TEXT_NULL("launcher", "`native`, `bwrap`, or `none`: without a sandbox"),
    TEXT_NULL("start", "`cold`"),
    TEXT_NULL("network", "`none` or `host`"),
    {.name = "downgrades",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_TEXT,
     .required = true,
     .help = "layers that were missing, by name"},
    TEXT_NULL("fallback", "why it ran without a sandbox though it should have had one"),
};
SCHEMA_ANSWER(isolation, "Isolation", "How the job was kept apart.");

static const struct schema_field artifact[] = {
    TEXT("path", "below /workspace"),
    BOOL("optional", "as asked for"),
    TEXT_NULL("description", "as asked for"),
    TEXT("file_type", "`file`"),
    INT_NULL("size", "bytes"),
    TEXT_NULL("checksum", "SHA-256, hexadecimal"),
    TEXT_NULL("content_type", "by its name"),
    TEXT_NULL("storage_path", "null"),
    TEXT_NULL("url", "where it can be fetched"),
    TEXT("filename", "its last part"),
    TEXT_NULL("asset_id", "null"),
};
SCHEMA_ANSWER(artifact, "Artifact", "A file that a job left.");

static const struct schema_field metadata[] = {
    {.name = "status",
     .type = SCHEMA_TEXT,
     .choices = status_names_listed,
     .required = true,
     .help = "as outside"},
    TEXT_NULL("stage", "where it failed"),
    TIME_NULL("queued_at", "accepted"),
    TIME_NULL("started_at", "taken"),
    TIME_NULL("prepare_started_at", ""),
    TIME_NULL("prepare_completed_at", ""),
    TIME_NULL("install_started_at", ""),
    TIME_NULL("install_completed_at", ""),
    TIME_NULL("execute_started_at", ""),
    TIME_NULL("execute_completed_at", ""),
    TIME_NULL("collect_started_at", ""),
    TIME_NULL("collect_completed_at", ""),
    TIME_NULL("completed_at", "ended"),
    INT_NULL("duration_ms", "from queued to ended"),
    INT_NULL("queue_wait_ms", ""),
    INT_NULL("prepare_ms", ""),
    INT_NULL("install_duration_ms", ""),
    INT_NULL("install_ms", ""),
    INT_NULL("execute_ms", ""),
    INT_NULL("collect_ms", ""),
    INT_NULL("total_ms", ""),
    BOOL("cache_hit_python", ""),
    BOOL("cache_hit_node", ""),
    INT_NULL("exit_code", "0: success, 1: not; the program's own is `exit_code` outside"),
    TEXT_NULL("worker_id", "null"),
};
SCHEMA_ANSWER(metadata, "Metadata", "When the job did what.");

#define OUTCOME                                                                                    \
    BOOL("success", "the program did what it should; else `reason` and `error` say what not"),     \
        {.name = "result",                                                                         \
         .type = SCHEMA_ANY,                                                                       \
         .required = true,                                                                         \
         .null = true,                                                                             \
         .help = "what the snippet returned"},                                                     \
        TEXT_NULL("error", "one line for a person")
#define ENDING                                                                                     \
    TEXT_NULL("reason", "why it ended so: docs/results.md has the list"),                          \
        INT_NULL("exit_code", "of the program; null when it ended by a signal or never ran"),      \
        INT_NULL("signal", "that ended it"), TEXT("stdout", "its head, as UTF-8"),                 \
        TEXT("stderr", "its head, as UTF-8"),                                                      \
        {.name = "truncated",                                                                      \
         .type = SCHEMA_OBJECT,                                                                    \
         .of = &schema_truncated,                                                                  \
         .required = true,                                                                         \
         .help = "what was cut"},                                                                  \
        {.name = "artifacts",                                                                      \
         .type = SCHEMA_ARRAY,                                                                     \
         .items = SCHEMA_OBJECT,                                                                   \
         .of = &schema_artifact,                                                                   \
         .required = true,                                                                         \
         .help = "files it left"},                                                                 \
        {.name = "usage",                                                                          \
         .type = SCHEMA_OBJECT,                                                                    \
         .of = &schema_usage,                                                                      \
         .required = true,                                                                         \
         .help = "what it used"},                                                                  \
    {                                                                                              \
        .name = "isolation", .type = SCHEMA_OBJECT, .of = &schema_isolation, .required = true,     \
        .help = "how it was kept apart"                                                            \
    }

#define EXECUTED                                                                                   \
    OUTCOME, TEXT_NULL("logs", "stdout without its last line end; null when empty"),               \
        INT_NULL("duration_ms", "from queued to ended"), ID("job_id", "of the job that this was"), \
        ENDING

static const struct schema_field execute_answer[] = {
    EXECUTED,
};
SCHEMA_ANSWER(execute_answer, "ExecuteAnswer", "How a snippet ended.");

static const struct schema_field tool_answer[] = {
    EXECUTED,
    {.name = "tool",
     .type = SCHEMA_OBJECT,
     .of = &schema_tool_run,
     .required = true,
     .help = "what was called"},
};
SCHEMA_ANSWER(tool_answer, "ToolAnswer", "How a tool's call ended.");

static const struct schema_field sandbox_result[] = {
    ID("job_id", "of the job"),
    {.name = "status",
     .type = SCHEMA_TEXT,
     .choices = status_names_listed,
     .required = true,
     .help = "where it is"},
    OUTCOME,
    ENDING,
    {.name = "packages", .type = SCHEMA_ANY, .null = true, .help = "null"},
    {.name = "metadata",
     .type = SCHEMA_OBJECT,
     .of = &schema_metadata,
     .required = true,
     .help = "when it did what"},
};
SCHEMA_ANSWER(sandbox_result, "SandboxResult", "A job as it is now; the whole once it has ended.");

static const struct schema_field job_accepted[] = {
    ID("job_id", "to ask for it by"),
    {.name = "status",
     .type = SCHEMA_TEXT,
     .choices = status_names_listed,
     .required = true,
     .help = "`queued`; of an earlier call with the same Idempotency-Key, what it is now"},
};
SCHEMA_ANSWER(job_accepted, "JobAccepted",
              "The job is stored, and will run whatever happens to the service.");

static const struct schema_field job_cancelled[] = {
    ID("job_id", "of the job"),
};
SCHEMA_ANSWER(job_cancelled, "JobCancelled", "The job is ending, or had ended before.");

static const struct schema_field job_entry[] = {
    ID("job_id", "of the job"),
    {.name = "status",
     .type = SCHEMA_TEXT,
     .choices = status_names_listed,
     .required = true,
     .help = "where it is"},
    TEXT_NULL("reason", "why it ended so; null before its end"),
    {.name = "session_id",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_ID,
     .required = true,
     .null = true,
     .help = "the session it ran in"},
    TIME_NULL("submitted_at", ""),
    TIME_NULL("started_at", ""),
    TIME_NULL("ended_at", ""),
};
SCHEMA_ANSWER(job_entry, "JobEntry", "A job in a list.");

static const struct schema_field job_list[] = {
    {.name = "items",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_OBJECT,
     .of = &schema_job_entry,
     .required = true,
     .help = "newest first"},
    TEXT_NULL("next_cursor", "for the next page; null: this is the last"),
};
SCHEMA_ANSWER(job_list, "JobList", "Jobs of the key's team.");
