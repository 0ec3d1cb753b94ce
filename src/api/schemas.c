// schemas.c: the list of all objects of the API, the parameters of queries, and the small objects
// of the service itself.
#include "api/schema.h"

#include "base/fd.h"
#include "store/store.h"

#include <string.h>

const struct schema *const schemas[] = {
    &schema_execute_code,
    &schema_execute_answer,
    &schema_tool_execute,
    &schema_tool_answer,
    &schema_tool_run,
    &schema_function_list,
    &schema_function_left_out,
    &schema_sandbox_job,
    &schema_sandbox_result,
    &schema_input_file,
    &schema_artifact_wish,
    &schema_artifact_limits,
    &schema_artifact,
    &schema_truncated,
    &schema_usage,
    &schema_isolation,
    &schema_metadata,
    &schema_job_accepted,
    &schema_job_list,
    &schema_job_entry,
    &schema_job_cancelled,
    &schema_session_create,
    &schema_session_extend,
    &schema_session,
    &schema_session_list,
    &schema_session_deleted,
    &schema_file,
    &schema_file_list,
    &schema_file_move,
    &schema_file_done,
    &schema_agent_bash,
    &schema_agent_bash_answer,
    &schema_agent_read,
    &schema_agent_read_answer,
    &schema_agent_write,
    &schema_agent_write_answer,
    &schema_agent_edit,
    &schema_agent_edit_one,
    &schema_agent_edit_answer,
    &schema_agent_edit_change,
    &schema_agent_artifact,
    &schema_agent_artifact_wish,
    &schema_agent_artifact_answer,
    &schema_agent_artifact_file,
    &schema_tool_create,
    &schema_tool_update,
    &schema_tool,
    &schema_tool_entry,
    &schema_tool_list,
    &schema_tool_deleted,
    &schema_tool_toggle,
    &schema_tool_parameter,
    &schema_tool_config,
    &schema_tool_version,
    &schema_tool_version_entry,
    &schema_tool_version_list,
    &schema_tool_restore,
    &schema_tool_share_with,
    &schema_tool_share,
    &schema_tool_share_entry,
    &schema_tool_share_list,
    &schema_tool_unshared,
    &schema_tool_export,
    &schema_tool_import,
    &schema_tool_imported,
    &schema_tool_imported_entry,
    &schema_code_node,
    &schema_code_node_input,
    &schema_code_node_output,
    &schema_code_node_answer,
    &schema_code_node_check,
    &schema_code_node_check_input,
    &schema_code_node_verdict,
    &schema_code_node_fault,
    &schema_key_create,
    &schema_key,
    &schema_key_created,
    &schema_key_list,
    &schema_key_revoked,
    &schema_health,
    &schema_ready,
    &schema_trial,
    NULL,
};

static const struct schema_field queries[] = {
    {.name = "wait",
     .type = SCHEMA_INT,
     .min = 0,
     .max = 600,
     .initial = "0",
     .help = "seconds to wait for the job's end; what is not done by then is answered as it is"},
    {.name = "status",
     .type = SCHEMA_TEXT,
     .choices = status_names_listed,
     .help = "only jobs of this status"},
    {.name = "limit",
     .type = SCHEMA_INT,
     .min = 1,
     .max = STORE_LIST_MAX,
     .help = "how many at most; absent: 50, of files and keys 1000"},
    {.name = "cursor",
     .type = SCHEMA_TEXT,
     .max = 8192,
     .help = "`next_cursor` of the page before"},
    {.name = "path",
     .type = SCHEMA_TEXT,
     .initial = "\"/workspace\"",
     .max = 4096,
     .help = "a folder, absolute or below /workspace"},
    {.name = "team", .type = SCHEMA_TEXT, .form = SCHEMA_FORM_TEAM, .help = "only this team's"},
    {.name = "id",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_ID,
     .help = "only the one with this id"},
    {.name = "format",
     .type = SCHEMA_TEXT,
     .choices = function_formats,
     .initial = "\"openai\"",
     .help = "whose form the schemas have"},
    {.name = "shared",
     .type = SCHEMA_BOOL,
     .initial = "false",
     .help = "also those that other teams share with this one: their descriptions are other "
             "people's text"},
    {.name = "recursive",
     .type = SCHEMA_BOOL,
     .initial = "false",
     .help = "with everything below it"},
    {.name = "escaped",
     .type = SCHEMA_BOOL,
     .initial = "false",
     .help = "the path is written as a list gives it where it says `escaped`"},
};
static const struct schema_field headers[] = {
    {.name = "Idempotency-Key",
     .type = SCHEMA_TEXT,
     .min = 1,
     .max = 255,
     .help = "printable ASCII; the same key and body give the same job"},
    {.name = "Last-Event-ID", .type = SCHEMA_TEXT, .max = 255, .help = "go on behind this event"},
    {.name = "If-Match",
     .type = SCHEMA_TEXT,
     .max = 4096,
     .help = "only if what is there has this entity tag"},
    {.name = "If-None-Match",
     .type = SCHEMA_TEXT,
     .max = 4096,
     .help = "only if what is there has another entity tag; `*`: nothing"},
    {.name = "Range", .type = SCHEMA_TEXT, .max = 255, .help = "`bytes=FIRST-LAST`"},
};

static const struct schema_field *find(const struct schema_field *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return &list[i];
        }
    }
    return NULL;
}

const struct schema_field *schema_query(const char *name)
{
    return find(queries, ARRAY_LEN(queries), name);
}

const struct schema_field *schema_header(const char *name)
{
    return find(headers, ARRAY_LEN(headers), name);
}

static const struct schema_field health[] = {
    {.name = "status", .type = SCHEMA_TEXT, .required = true, .help = "`ok`"},
};
SCHEMA_ANSWER(health, "Health", "The process answers.");

static const struct schema_field trial[] = {
    {.name = "at",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_TIME,
     .required = true,
     .help = "when it began"},
    {.name = "took_ms", .type = SCHEMA_INT, .required = true, .help = "how long it took"},
    {.name = "runs", .type = SCHEMA_INT, .required = true, .help = "trial runs so far"},
};
SCHEMA_ANSWER(trial, "Trial", "The last trial run: the self-test, or one small job.");

static const struct schema_field ready[] = {
    {.name = "ready", .type = SCHEMA_BOOL, .required = true, .help = "jobs can run"},
    {.name = "why",
     .type = SCHEMA_TEXT,
     .required = true,
     .null = true,
     .help = "what is in the way"},
    {.name = "downgrades",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_TEXT,
     .required = true,
     .help = "layers of isolation that this host lacks, by name"},
    {.name = "trial",
     .type = SCHEMA_OBJECT,
     .of = &schema_trial,
     .null = true,
     .help = "the last trial run"},
};
SCHEMA_ANSWER(ready, "Readiness", "Whether jobs can run, and with what isolation.");

static const struct schema_field key_create[] = {
    {.name = "team",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_TEAM,
     .required = true,
     .help = "whose jobs and sessions its holder sees"},
    {.name = "name",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_LINE,
     .required = true,
     .min = 1,
     .max = 128,
     .help = "what it is for; for people"},
    {.name = "admin",
     .type = SCHEMA_BOOL,
     .initial = "false",
     .help = "may manage keys and read the metrics"},
};
SCHEMA_REQUEST(key_create, "KeyCreate", "A new key.");

#define KEY_FIELDS                                                                                 \
    {.name = "id",                                                                                 \
     .type = SCHEMA_TEXT,                                                                          \
     .form = SCHEMA_FORM_KEY_ID,                                                                   \
     .required = true,                                                                             \
     .help = "its public part: the digits after `isle_`"},                                         \
        {.name = "team", .type = SCHEMA_TEXT, .required = true, .help = "whose it is"},            \
        {.name = "name", .type = SCHEMA_TEXT, .required = true, .help = "what it is for"},         \
        {.name = "admin", .type = SCHEMA_BOOL, .required = true, .help = "manages keys"},          \
        {.name = "created_at",                                                                     \
         .type = SCHEMA_TEXT,                                                                      \
         .form = SCHEMA_FORM_TIME,                                                                 \
         .required = true,                                                                         \
         .help = "when it was made"},                                                              \
        {.name = "revoked_at",                                                                     \
         .type = SCHEMA_TEXT,                                                                      \
         .form = SCHEMA_FORM_TIME,                                                                 \
         .required = true,                                                                         \
         .null = true,                                                                             \
         .help = "since when it opens nothing"},                                                   \
    {                                                                                              \
        .name = "last_used_at", .type = SCHEMA_TEXT, .form = SCHEMA_FORM_TIME, .required = true,   \
        .null = true, .help = "to about a minute"                                                  \
    }

static const struct schema_field key[] = {KEY_FIELDS};
SCHEMA_ANSWER(key, "Key", "What is known of a key; the key itself is kept nowhere.");

static const struct schema_field key_created[] = {
    {.name = "key", .type = SCHEMA_TEXT, .required = true, .help = "the key; shown this once"},
    KEY_FIELDS,
};
SCHEMA_ANSWER(key_created, "KeyCreated", "A key that was just made.");

static const struct schema_field key_list[] = {
    {.name = "items",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_OBJECT,
     .of = &schema_key,
     .required = true,
     .help = "oldest first, revoked ones too"},
    {.name = "next_cursor",
     .type = SCHEMA_TEXT,
     .required = true,
     .null = true,
     .help = "for the next page; null: this is the last"},
};
SCHEMA_ANSWER(key_list, "KeyList", "Keys of all teams.");

static const struct schema_field key_revoked[] = {
    {.name = "id",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_KEY_ID,
     .required = true,
     .help = "opens nothing any more"},
};
SCHEMA_ANSWER(key_revoked, "KeyRevoked", "A key that was revoked, now or before.");
