// schemas_sessions.c: sessions and their files.
#include "api/schema.h"

#include "base/fd.h"
#include "model/job.h"
#include "serve/sessions.h"
#include "store/store.h"

#define NAME(n, h)                                                                                 \
    {                                                                                              \
        .name = (n), .type = SCHEMA_TEXT, .form = SCHEMA_FORM_LINE, .min = 1,                      \
        .max = STORE_NAME_MAX, .help = (h)                                                         \
    }
#define NAME_NULL(n, h)                                                                            \
    {                                                                                              \
        .name = (n), .type = SCHEMA_TEXT, .required = true, .null = true, .help = (h)              \
    }
#define TIME(n, h)                                                                                 \
    {                                                                                              \
        .name = (n), .type = SCHEMA_TEXT, .form = SCHEMA_FORM_TIME, .required = true, .help = (h)  \
    }
#define TTL                                                                                        \
    {                                                                                              \
        .name = "ttl_hours", .type = SCHEMA_INT, .min = SESSIONS_MIN_TTL_HOURS,                    \
        .max = SESSIONS_MAX_TTL_HOURS,                                                             \
        .help = "how long it lives from now; absent: SANDBOX_SESSION_TTL_HOURS"                    \
    }

static const struct schema_field session_create[] = {
    NAME("conversation_id", "the same conversation, agent, team and user give the same session"),
    NAME("agent_id", "of the agent"),
    NAME("user_id", "of the user"),
    TTL,
};
SCHEMA_REQUEST(session_create, "SessionCreate", "A workspace that outlives a job.");

static const struct schema_field session_extend[] = {TTL};
SCHEMA_REQUEST(session_extend, "SessionExtend", "A later end.");

static const struct schema_field session[] = {
    {.name = "session_id",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_ID,
     .required = true,
     .help = "its id"},
    NAME_NULL("conversation_id", "as given"),
    NAME_NULL("agent_id", "as given"),
    NAME_NULL("team_id", "of the key that made it"),
    NAME_NULL("user_id", "as given"),
    TIME("created_at", "its begin"),
    TIME("expires_at", "its end, whatever happens in between"),
    {.name = "disk_usage_bytes",
     .type = SCHEMA_INT,
     .required = true,
     .help = "as last measured, after a job or a change"},
    TIME("last_accessed_at", "last used"),
};
SCHEMA_ANSWER(session, "SandboxSession", "A session.");

static const struct schema_field session_list[] = {
    {.name = "items",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_OBJECT,
     .of = &schema_session,
     .required = true,
     .help = "newest first; only those that live"},
    NAME_NULL("next_cursor", "for the next page; null: this is the last"),
};
SCHEMA_ANSWER(session_list, "SessionList", "Sessions of the key's team.");

static const struct schema_field session_deleted[] = {
    {.name = "session_id",
     .type = SCHEMA_TEXT,
     .form = SCHEMA_FORM_ID,
     .required = true,
     .help = "nothing begins in it any more; its files go in the background"},
};
SCHEMA_ANSWER(session_deleted, "SessionDeleted", "A session that was ended.");

#define PATH                                                                                       \
    {.name = "path",                                                                               \
     .type = SCHEMA_TEXT,                                                                          \
     .required = true,                                                                             \
     .help = "/workspace and what is below it"},                                                   \
    {                                                                                              \
        .name = "escaped", .type = SCHEMA_BOOL, .required = true,                                  \
        .help = "the name is no plain text: bytes of it, and %, stand as %XX"                      \
    }

static const char *const file_types[] = {"file", "directory", "link", "other", NULL};
static const struct schema_field file[] = {
    PATH,
    {.name = "type",
     .type = SCHEMA_TEXT,
     .choices = file_types,
     .required = true,
     .help = "links are told, never followed; other: a FIFO, a socket, a device"},
    {.name = "size",
     .type = SCHEMA_INT,
     .required = true,
     .help = "bytes; 0 of what is not a file"},
    TIME("modified_at", "as the file system has it"),
};
SCHEMA_ANSWER(file, "SessionFile", "A file or folder of a session.");

static const struct schema_field file_list[] = {
    {.name = "items",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_OBJECT,
     .of = &schema_file,
     .required = true,
     .help = "in no particular order"},
    {.name = "truncated",
     .type = SCHEMA_BOOL,
     .required = true,
     .help = "there is more: behind next_cursor, or in folders too deep to be entered"},
    NAME_NULL("next_cursor", "for the next page; null: this is the last"),
};
SCHEMA_ANSWER(file_list, "SessionFileList", "What is in a folder of a session.");

static const struct schema_field file_move[] = {
    {.name = "from",
     .type = SCHEMA_TEXT,
     .required = true,
     .min = 1,
     .max = JOB_MAX_PATH,
     .help = "below /workspace"},
    {.name = "to",
     .type = SCHEMA_TEXT,
     .required = true,
     .min = 1,
     .max = JOB_MAX_PATH,
     .help = "below /workspace"},
    {.name = "overwrite",
     .type = SCHEMA_BOOL,
     .initial = "false",
     .help = "a file that is there is replaced"},
    {.name = "escaped",
     .type = SCHEMA_BOOL,
     .initial = "false",
     .help = "both paths are written as a list gives them where it says `escaped`"},
};
SCHEMA_REQUEST(file_move, "FileMove", "Another name for a file or folder.");

static const struct schema_field file_done[] = {
    PATH,
    {.name = "size", .type = SCHEMA_INT, .null = true, .help = "bytes, of a file that was written"},
    {.name = "checksum",
     .type = SCHEMA_TEXT,
     .null = true,
     .help = "SHA-256, of a file that was written"},
};
SCHEMA_ANSWER(file_done, "FileDone", "A file that was written, moved or removed.");
