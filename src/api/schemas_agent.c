// schemas_agent.c: the tools of agents. A request's texts are read by models: they say when to use
// the tool, and what to do when it refuses.
#include "api/agent.h"

#include "agent/edit.h"
#include "agent/read.h"
#include "base/fd.h"
#include "model/job.h"

#include <assert.h>

static_assert(READ_MAX_CHARS == 200000 && AGENT_WRITE_MAX_CHARS == 1000000 &&
                  AGENT_ARTIFACT_MB == 10,
              "as texts below have them");

#define TEXT(n, h)                                                                                 \
    {                                                                                              \
        .name = (n), .type = SCHEMA_TEXT, .null = true, .help = (h)                                \
    }
#define INT(n, h)                                                                                  \
    {                                                                                              \
        .name = (n), .type = SCHEMA_INT, .null = true, .help = (h)                                 \
    }
#define SUCCESS                                                                                    \
    {.name = "success",                                                                            \
     .type = SCHEMA_BOOL,                                                                          \
     .required = true,                                                                             \
     .help = "it was done; else `error` says why not, and what to do"},                            \
    {                                                                                              \
        .name = "error", .type = SCHEMA_TEXT, .required = true, .null = true,                      \
        .help = "for the model"                                                                    \
    }
#define PATH                                                                                       \
    {                                                                                              \
        .name = "path", .type = SCHEMA_TEXT, .required = true, .min = 1, .max = JOB_MAX_PATH,      \
        .help = "the file, in /workspace or relative to it"                                        \
    }
#define PATH_TOLD TEXT("path", "the file, from /workspace on")
#define TAG_TOLD(h) TEXT("tag", h)

static const struct schema_field agent_bash[] = {
    {.name = "command",
     .type = SCHEMA_TEXT,
     .required = true,
     .min = 1,
     .max = JOB_MAX_CODE_BYTES,
     .help = "a bash script; it has no terminal and no input"},
    {.name = "timeout",
     .type = SCHEMA_INT,
     .min = 1,
     .max = LIMIT_TIMEOUT_MAX_SECONDS,
     .initial = "30",
     .help = "seconds, after which it is ended with everything it has started; the whole call ends "
             "after 60, unless the operator gives it longer (STREAM_TOOL_TIMEOUT_CODE)"},
    {.name = "cwd",
     .type = SCHEMA_TEXT,
     .min = 1,
     .max = JOB_MAX_PATH,
     .initial = "\"/workspace\"",
     .help = "the folder it begins in, in /workspace or relative to it"},
};
SCHEMA_REQUEST(
    agent_bash, "AgentBash",
    "Runs a bash command in the session's sandbox. Files in /workspace stay for the next "
    "calls; processes, variables and the current folder do not. To look at a file or "
    "change it, read and edit are better.");

static const struct schema_field agent_bash_answer[] = {
    SUCCESS,
    TEXT("stdout", "what it printed, made fit to read: no escape sequences, no repeated lines"),
    TEXT("stderr", "the same of its errors"),
    INT("exit_code", "its exit status; null: it was ended, or did not run"),
    INT("signal", "the signal that ended it"),
    {.name = "timed_out", .type = SCHEMA_BOOL, .null = true, .help = "ended by its timeout"},
    TEXT("reason", "why it ended, as a job's `reason`"),
    {.name = "truncated",
     .type = SCHEMA_BOOL,
     .null = true,
     .help = "there was more output than is told"},
    INT("duration_ms", "how long it ran"),
    TEXT("job_id", "the job that it was"),
    TEXT("command", "what was run, where it is not what was asked for"),
};
SCHEMA_ANSWER(agent_bash_answer, "AgentBashAnswer", "How a command went.");

static const struct schema_field agent_read[] = {
    PATH,
    {.name = "start_line",
     .type = SCHEMA_INT,
     .min = 1,
     .max = TEXT_MAX_LINES,
     .initial = "1",
     .help = "the first line"},
    {.name = "end_line",
     .type = SCHEMA_INT,
     .min = 1,
     .max = TEXT_MAX_LINES,
     .help = "the last line; absent: to the file's end"},
    {.name = "search",
     .type = SCHEMA_TEXT,
     .min = 1,
     .max = READ_SEARCH_MAX,
     .help = "show only the lines that contain this text, exactly as it is written"},
    {.name = "max_chars",
     .type = SCHEMA_INT,
     .min = 1,
     .max = READ_MOST_CHARS,
     .initial = "200000",
     .help = "characters at most; a note says where to go on"},
};
SCHEMA_REQUEST(
    agent_read, "AgentRead",
    "Shows a text file of the session, or some lines of it, as `LINE#TAG| text`. TAG names "
    "the file's content: `LINE#TAG` is what edit takes to say which line it means. Only "
    "lines that were shown can be edited.");

static const struct schema_field agent_read_answer[] = {
    SUCCESS,
    TEXT("content", "the lines, and notes in brackets behind them"),
    PATH_TOLD,
    TAG_TOLD("names the content; the same in every line"),
    INT("first_line", "the first that is shown; 0: none"),
    INT("last_line", "the last that is shown"),
    INT("total_lines", "of the file"),
    INT("shown", "how many lines are shown"),
    INT("matched", "how many there are of those asked for, shown or not"),
    INT("next_line", "start_line to go on with; null: nothing was left out"),
    INT("size_bytes", "of the file"),
    {.name = "truncated",
     .type = SCHEMA_BOOL,
     .null = true,
     .help = "max_chars left something out"},
};
SCHEMA_ANSWER(agent_read_answer, "AgentReadAnswer", "Lines of a file.");

static const struct schema_field agent_write[] = {
    PATH,
    {.name = "content",
     .type = SCHEMA_TEXT,
     .required = true,
     .max = AGENT_WRITE_MAX_BYTES,
     .chars = AGENT_WRITE_MAX_CHARS,
     .help = "the whole content, at most 1,000,000 characters"},
};
SCHEMA_REQUEST(agent_write, "AgentWrite",
               "Writes a file of the session whole: a new one, or in the place of what was there. "
               "Folders above it are made. To change a part of a file, use edit.");

static const struct schema_field agent_write_answer[] = {
    SUCCESS,
    PATH_TOLD,
    TAG_TOLD("names the content: its lines may be edited as if they had been read"),
    INT("bytes", "of the file"),
    INT("total_lines", "of the file"),
    {.name = "created", .type = SCHEMA_BOOL, .null = true, .help = "there was no such file before"},
};
SCHEMA_ANSWER(agent_write_answer, "AgentWriteAnswer", "A file that was written.");

const char *const agent_edit_ops[] = {
    "replace",      "replace_block",      "cut",         "cut_block",   "insert_before",
    "insert_after", "insert_block_after", "insert_head", "insert_tail", "paste_before",
    "paste_after",  "paste_block_after",  "paste_head",  "paste_tail",  NULL,
};
static const struct schema_field agent_edit_one[] = {
    {.name = "op",
     .type = SCHEMA_TEXT,
     .required = true,
     .choices = agent_edit_ops,
     .help = "replace: `line` to `end_line` become `new` (empty: they go). cut: they go into the "
             "register. insert_before, insert_after: `new` stands before, behind `line`. "
             "insert_head, insert_tail: at the file's beginning, end; no `line`. paste_...: as "
             "insert_..., with what is in the register. ..._block...: the block (function, class, "
             "section, indented lines) that begins at `line`"},
    {.name = "line",
     .type = SCHEMA_TEXT_OR_INT,
     .help =
         "LINE#TAG as read shows it, such as \"12#ab3f\"; or the number alone, with `tag` given "
         "for all edits"},
    {.name = "end_line",
     .type = SCHEMA_TEXT_OR_INT,
     .help = "the last line of the range, written the same way; absent: `line` alone"},
    {.name = "new",
     .type = SCHEMA_TEXT,
     .max = EDIT_NEW_MAX,
     .help = "the new lines, without the `LINE#TAG| ` in front"},
    {.name = "register",
     .type = SCHEMA_TEXT,
     .min = 1,
     .max = MEMORY_REGISTER_NAME_MAX,
     .initial = "\"default\"",
     .help = "where cut lines go, and pasted ones come from; letters, digits, _ and -"},
};
SCHEMA_REQUEST(agent_edit_one, "AgentEditOne", "One edit.");

static const struct schema_field agent_edit[] = {
    PATH,
    {.name = "tag",
     .type = SCHEMA_TEXT,
     .min = TEXT_TAG_SIZE - 1,
     .max = TEXT_TAG_SIZE - 1,
     .help = "the tag of lines that are given by number alone"},
    {.name = "edits",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_OBJECT,
     .of = &schema_agent_edit_one,
     .required = true,
     .min = 1,
     .max = EDIT_MAX,
     .help = "all of them are made, or none; line numbers are those that read has shown, and edits "
             "do not move each other"},
};
SCHEMA_REQUEST(
    agent_edit, "AgentEdit",
    "Changes lines of a file of the session that read has shown. The answer has the new "
    "tag; lines that were written or shown can be edited again under it without another "
    "read. When it refuses, nothing was changed, and the message says what to read again.");

static const struct schema_field agent_edit_change[] = {
    {.name = "edit", .type = SCHEMA_INT, .required = true, .help = "which one, from 1 on"},
    {.name = "first_line",
     .type = SCHEMA_INT,
     .required = true,
     .help = "where its new lines are, or would be"},
    {.name = "lines", .type = SCHEMA_INT, .required = true, .help = "how many it wrote"},
    {.name = "removed", .type = SCHEMA_INT, .required = true, .help = "how many it took away"},
};
SCHEMA_ANSWER(agent_edit_change, "AgentEditChange", "What one edit did.");

static const struct schema_field agent_edit_answer[] = {
    SUCCESS,
    PATH_TOLD,
    TAG_TOLD("names the new content"),
    TEXT("message", "the same as the fields that follow, in words"),
    {.name = "changes",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_OBJECT,
     .of = &schema_agent_edit_change,
     .null = true,
     .help = "one for each edit, in their order"},
    INT("lines_added", "by all edits"),
    INT("lines_removed", "by all edits"),
    INT("total_lines", "of the file now"),
    INT("bytes", "of the file now"),
};
SCHEMA_ANSWER(agent_edit_answer, "AgentEditAnswer", "A file that was edited.");

static const struct schema_field agent_artifact_wish[] = {
    PATH,
    {.name = "optional",
     .type = SCHEMA_BOOL,
     .initial = "false",
     .help = "it is no failure when it is not there"},
    {.name = "description",
     .type = SCHEMA_TEXT,
     .max = JOB_MAX_DESCRIPTION,
     .help = "for whom the file is for"},
};
SCHEMA_REQUEST(agent_artifact_wish, "AgentArtifactWish", "A file to be given out.");

static const struct schema_field agent_artifact[] = {
    {.name = "paths",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_TEXT_OR,
     .of = &schema_agent_artifact_wish,
     .required = true,
     .min = 1,
     .max = JOB_MAX_ARTIFACTS,
     .help = "files of the session, in /workspace or relative to it; a folder becomes a zip"},
    {.name = "max_size_mb",
     .type = SCHEMA_INT,
     .min = 1,
     .max = JOB_MAX_ARTIFACT_MB,
     .initial = "10",
     .help = "of one file"},
    {.name = "max_total_size_mb",
     .type = SCHEMA_INT,
     .min = 1,
     .max = JOB_MAX_ARTIFACTS_MB,
     .initial = "10",
     .help = "of all together"},
};
SCHEMA_REQUEST(agent_artifact, "AgentArtifact",
               "Gives files of the session to the user, as they are now: the answer has a link to "
               "each, and Markdown with all of them to be put into a reply.");

static const struct schema_field agent_artifact_file[] = {
    {.name = "path", .type = SCHEMA_TEXT, .required = true, .help = "from /workspace on"},
    {.name = "name", .type = SCHEMA_TEXT, .required = true, .help = "what it is saved as"},
    {.name = "url", .type = SCHEMA_TEXT, .required = true, .help = "where it can be fetched"},
    {.name = "size_bytes", .type = SCHEMA_INT, .required = true, .help = "its size"},
    {.name = "content_type", .type = SCHEMA_TEXT, .required = true, .help = "by its name"},
    {.name = "sha256", .type = SCHEMA_TEXT, .required = true, .help = "of its content"},
    TEXT("description", "as given"),
};
SCHEMA_ANSWER(agent_artifact_file, "AgentArtifactFile", "A file that was given out.");

static const struct schema_field agent_artifact_answer[] = {
    SUCCESS,
    {.name = "files",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_OBJECT,
     .of = &schema_agent_artifact_file,
     .null = true,
     .help = "in the order in which they were asked for"},
    TEXT("markdown", "links to all of them"),
    {.name = "missing",
     .type = SCHEMA_ARRAY,
     .items = SCHEMA_TEXT,
     .null = true,
     .help = "optional ones that were not there"},
    TEXT("job_id", "under which they are kept"),
};
SCHEMA_ANSWER(agent_artifact_answer, "AgentArtifactAnswer", "Files that were given out.");

const struct schema *const agent_requests[AGENT_TOOLS] = {
    [AGENT_BASH] = &schema_agent_bash,         [AGENT_READ] = &schema_agent_read,
    [AGENT_WRITE] = &schema_agent_write,       [AGENT_EDIT] = &schema_agent_edit,
    [AGENT_ARTIFACT] = &schema_agent_artifact,
};
