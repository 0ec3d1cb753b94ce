// schemas_tools.c: code tools as their teams keep them. What they run (ToolConfig) is a part of a
// job: schemas_jobs.c.
#include "api/schema.h"
#include "api/tool_call.h"

#include "base/fd.h"
#include "store/store.h"
#include "tools/tool.h"

#define TITLE(n, h)                                                                                \
    {                                                                                              \
        .name = (n), .type = SCHEMA_TEXT, .form = SCHEMA_FORM_LINE, .max = TOOL_TITLE_MAX,         \
        .help = (h)                                                                                \
    }
#define TIME(n, h)                                                                                 \
    {                                                                                              \
        .name = (n), .type = SCHEMA_TEXT, .form = SCHEMA_FORM_TIME, .required = true, .help = (h)  \
    }
#define ID                                                                                         \
    {                                                                                              \
        .name = "id", .type = SCHEMA_TEXT, .form = SCHEMA_FORM_ID, .required = true,               \
        .help = "of the tool"                                                                      \
    }
#define TEXT_NULL(n, h)                                                                            \
    {                                                                                              \
        .name = (n), .type = SCHEMA_TEXT, .required = true, .null = true, .help = (h)              \
    }
#define COUNT(n, h)                                                                                \
    {                                                                                              \
        .name = (n), .type = SCHEMA_INT, .required = true, .help = (h)                             \
    }
#define ITEMS(schema, h)                                                                           \
    {                                                                                              \
        .name = "items", .type = SCHEMA_ARRAY, .items = SCHEMA_OBJECT, .of = (schema),             \
        .required = true, .help = (h)                                                              \
    }

// ---- The definition

static const struct schema_field tool_parameter[] = {
    {.name = "name",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_LINE,
     .required = true,
     .min = 1,
     .max = TOOL_PARAMETER_NAME_MAX,
     .help = "what the code finds it by in `params`"},
    {.name = "type",
     .type = SCHEMA_TEXT,
     .choices = tool_type_names,
     .required = true,
     .help = "integer: digits alone, of any length"},
    {.name = "description",
     .type = SCHEMA_TEXT,
     .max = TOOL_DESCRIPTION_MAX,
     .help = "for the model"},
    {.name = "required",
     .type = SCHEMA_BOOL,
     .initial = "false",
     .help = "a call without it is refused, unless there is a default"},
    {.name = "default", .type = SCHEMA_ANY, .help = "what it is when absent"},
    {.name = "enum",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_ANY,
     .max = TOOL_CHOICES_MAX,
     .help = "it is one of these"},
    {.name = "items",
     .type = SCHEMA_ANY,
     .help = "of an array: the type of its elements, as text or as {\"type\": ...}"},
};
SCHEMA_REQUEST(tool_parameter, "ToolParameter", "What a tool takes by one name.");

#define NAME(needed)                                                                               \
    {                                                                                              \
        .name = "name", .type = SCHEMA_TEXT, .form = SCHEMA_FORM_TOOL, .required = (needed),       \
        .min = 1, .max = TOOL_NAME_MAX, .help = "how it is called; one of a kind in the team"      \
    }
#define DEFINITION                                                                                 \
    TITLE("display_name", "its name for people"),                                                  \
        {.name = "description",                                                                    \
         .type = SCHEMA_TEXT,                                                                      \
         .max = TOOL_DESCRIPTION_MAX,                                                              \
         .help = "what it does, for the model"},                                                   \
        TITLE("icon", "for people"), TITLE("category", "for people"),                              \
    {                                                                                              \
        .name = "parameters", .type = SCHEMA_ARRAY, .items = SCHEMA_OBJECT,                        \
        .of = &schema_tool_parameter, .max = TOOL_PARAMETERS_MAX, .initial = "[]",                 \
        .help = "what it takes"                                                                    \
    }
#define CONFIG(needed)                                                                             \
    {                                                                                              \
        .name = "code_config", .type = SCHEMA_OBJECT, .of = &schema_tool_config,                   \
        .required = (needed), .help = "what it runs"                                               \
    }
#define ENABLED(...)                                                                               \
    {                                                                                              \
        .name = "is_enabled", .type = SCHEMA_BOOL, __VA_ARGS__                                     \
    }

static const struct schema_field tool_create[] = {
    NAME(true), DEFINITION, CONFIG(true),
    ENABLED(.initial = "true", .help = "false: kept, but neither shown to models nor run")};
SCHEMA_REQUEST(tool_create, "ToolCreate", "A tool's definition.");

static const struct schema_field tool_update[] = {
    NAME(false),
    DEFINITION,
    CONFIG(false),
    ENABLED(.help = "on or off"),
    {.name = "version",
     .type = SCHEMA_INT,
     .min = 1,
     .max = INT32_MAX,
     .help = "the version that this is a change of: 412 if there is another by now"}};
SCHEMA_REQUEST(tool_update, "ToolUpdate", "What is to change; the rest stays.");

#define KEPT                                                                                       \
    ENABLED(.required = true, .help = "off: neither shown to models nor run"),                     \
        COUNT("version", "one more with each change of the definition"),                           \
        {.name = "permission",                                                                     \
         .type = SCHEMA_TEXT,                                                                      \
         .choices = tool_permission_names,                                                         \
         .required = true,                                                                         \
         .help = "what the caller's team may do with it"},                                         \
        TEXT_NULL("shared_by", "the team that shares it; null: it is the caller's own"),           \
        TIME("created_at", "when it was made"), TIME("updated_at", "when it was changed last")

static const struct schema_field tool[] = {ID, NAME(true), DEFINITION, CONFIG(true), KEPT};
SCHEMA_ANSWER(tool, "Tool", "A tool. Of its definition, what it does not have is absent.");

static const struct schema_field tool_entry[] = {
    ID,
    NAME(true),
    TEXT_NULL("display_name", "its name for people"),
    TEXT_NULL("description", "what it does"),
    TEXT_NULL("icon", "for people"),
    TEXT_NULL("category", "for people"),
    KEPT,
};
SCHEMA_ANSWER(tool_entry, "ToolEntry", "A tool in a list.");

static const struct schema_field tool_list[] = {
    ITEMS(&schema_tool_entry, "in the order in which the team made them, or was given them"),
    TEXT_NULL("next_cursor", "for the next page; null: this is the last"),
};
SCHEMA_ANSWER(tool_list, "ToolList", "Tools that the key's team sees.");

static const struct schema_field tool_deleted[] = {ID};
SCHEMA_ANSWER(tool_deleted, "ToolDeleted", "A tool that was deleted.");

static const struct schema_field tool_toggle[] = {ENABLED(.help = "absent: the other way")};
SCHEMA_REQUEST(tool_toggle, "ToolToggle", "On or off.");

// ---- Versions

static const struct schema_field tool_version_entry[] = {
    COUNT("version", "its number"),
    NAME(true),
    TIME("created_at", "when it was made"),
};
SCHEMA_ANSWER(tool_version_entry, "ToolVersionEntry", "A version of a tool in a list.");

static const struct schema_field tool_version_list[] = {
    ITEMS(&schema_tool_version_entry, "newest first"),
};
SCHEMA_ANSWER(tool_version_list, "ToolVersionList", "Versions of a tool.");

static const struct schema_field tool_version[] = {
    ID,
    NAME(true),
    DEFINITION,
    CONFIG(true),
    COUNT("version", "its number"),
    TIME("created_at", "when this version was made"),
};
SCHEMA_ANSWER(tool_version, "ToolVersion", "What a tool was at a version.");

static const struct schema_field tool_restore[] = {
    {.name = "version",
     .type = SCHEMA_INT,
     .required = true,
     .min = 1,
     .max = INT32_MAX,
     .help = "one of its versions"},
};
SCHEMA_REQUEST(tool_restore, "ToolRestore", "The version that is to be the newest again.");

// ---- Shares

#define TEAM                                                                                       \
    {                                                                                              \
        .name = "team_id", .type = SCHEMA_TEXT, .form = SCHEMA_FORM_TEAM, .required = true,        \
        .help = "another team"                                                                     \
    }
#define PERMISSION                                                                                 \
    {                                                                                              \
        .name = "permission", .type = SCHEMA_TEXT,                                                 \
        .choices = tool_permission_names + STORE_MAY_READ, .required = true,                       \
        .help = "read_only: to be seen and copied; read_execute: to be run, too"                   \
    }
static const struct schema_field tool_share_with[] = {TEAM, PERMISSION};
SCHEMA_REQUEST(tool_share_with, "ToolShareWith", "With whom, and what they may do.");

static const struct schema_field tool_share[] = {ID, TEAM, PERMISSION};
SCHEMA_ANSWER(tool_share, "ToolShare", "A tool is shared with a team.");

static const struct schema_field tool_unshared[] = {ID, TEAM};
SCHEMA_ANSWER(tool_unshared, "ToolUnshared", "A tool is not shared with that team any more.");

static const struct schema_field tool_share_entry[] = {
    TEAM, PERMISSION, TIME("created_at", "when it was shared with that team first")};
SCHEMA_ANSWER(tool_share_entry, "ToolShareEntry", "A team that a tool is shared with.");

static const struct schema_field tool_share_list[] = {
    ITEMS(&schema_tool_share_entry, "oldest share first"),
};
SCHEMA_ANSWER(tool_share_list, "ToolShareList", "Teams that a tool is shared with.");

// ---- Many at once

static const struct schema_field tool_export[] = {
    {.name = "tools",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_OBJECT,
     .of = &schema_tool_create,
     .required = true,
     .help = "by name"},
};
SCHEMA_ANSWER(tool_export, "ToolExport", "Definitions of tools.");

static const struct schema_field tool_import[] = {
    {.name = "tools",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_OBJECT,
     .of = &schema_tool_create,
     .required = true,
     .max = STORE_TOOLS_MAX,
     .help = "definitions, as export gives them"},
    {.name = "on_conflict",
     .type = SCHEMA_TEXT,
     .choices = tool_conflict_names,
     .initial = "\"refuse\"",
     .help = "where the team has a tool of that name. refuse: nothing is written; skip: that one "
             "stays; replace: that one gets a new version"},
};
SCHEMA_REQUEST(tool_import, "ToolImport", "Tools to save.");

static const struct schema_field tool_imported_entry[] = {
    NAME(true),
    ID,
    {.name = "outcome",
     .type = SCHEMA_TEXT,
     .choices = tool_outcome_names,
     .required = true,
     .help = "what was done"},
    COUNT("version", "that it is at now"),
};
SCHEMA_ANSWER(tool_imported_entry, "ToolImportedEntry", "A tool that was imported.");

static const struct schema_field tool_imported[] = {
    ITEMS(&schema_tool_imported_entry, "in the order of the request"),
    COUNT("created", "how many are new"),
    COUNT("updated", "how many were there, and have this definition now"),
    COUNT("skipped", "how many were there, and stayed"),
};
SCHEMA_ANSWER(tool_imported, "ToolImported", "What became of each tool.");

// ---- Calls

static const struct schema_field tool_execute[] = {
    {.name = "name",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_TOOL,
     .min = 1,
     .max = TOOL_NAME_MAX,
     .help =
         "of the tool: the team's own, or else the one that is shared with it; this or tool_id"},
    {.name = "tool_id", .type = SCHEMA_TEXT, .form = SCHEMA_FORM_ID, .help = "of the tool"},
    {.name = "arguments",
     .type = SCHEMA_OBJECT,
     .initial = "{}",
     .help = "held against the tool's parameters; what the code sees as `params`, digit for digit; "
             "up to 8 MiB"},
    {.name = "timeout",
     .type = SCHEMA_INT,
     .min = 1,
     .max = LIMIT_TIMEOUT_MAX_SECONDS,
     .initial = "30",
     .help = "seconds; what the tool has saved as limits.timeout_seconds wins"},
    {.name = "session_id",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_ID,
     .help = "run in that session's workspace"},
};
SCHEMA_REQUEST(tool_execute, "ToolExecute", "A call of a saved tool.");

static const struct schema_field tool_run[] = {
    ID,
    NAME(true),
    COUNT("version", "that has run"),
};
SCHEMA_ANSWER(tool_run, "ToolRun", "The tool that has run.");

// ---- What models are told

static const struct schema_field function_left_out[] = {
    NAME(true),
    {.name = "why", .type = SCHEMA_TEXT, .required = true, .help = "what is against it"},
};
SCHEMA_ANSWER(function_left_out, "FunctionLeftOut", "A tool that is not among the functions.");

const char *const function_formats[] = {"openai", "anthropic", "mcp", NULL};
static const struct schema_field function_list[] = {
    {.name = "format",
     .type = SCHEMA_TEXT,
     .choices = function_formats,
     .required = true,
     .help = "as asked for"},
    {.name = "tools",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_ANY,
     .required = true,
     .help =
         "as a request to a model's API takes them, or tools/list answers: built-in ones first"},
    {.name = "left_out",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_OBJECT,
     .of = &schema_function_left_out,
     .required = true,
     .help = "tools that are enabled and yet not among them"},
};
SCHEMA_ANSWER(function_list, "FunctionList", "What a model may call.");
