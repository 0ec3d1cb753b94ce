// schema.h: what an object of the API looks like, declared once: a table of fields. From it come
// the check of a request (every fault by name), its JSON Schema in openapi.json, and the tables of
// /docs. Numbers are those of the code that obeys them (model/limits.h, model/job.h, ...), never
// typed again.
#ifndef ISLE_API_SCHEMA_H
#define ISLE_API_SCHEMA_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <yyjson.h>

enum schema_type {
    SCHEMA_ANY,    // any JSON value
    SCHEMA_TEXT,   // min, max: bytes of UTF-8
    SCHEMA_INT,    // min, max: its value
    SCHEMA_NUMBER, // whole numbers as bounds
    SCHEMA_BOOL,
    SCHEMA_OBJECT,         // `of`; NULL: any object
    SCHEMA_ARRAY,          // of `items`; min, max: how many
    SCHEMA_MAP,            // an object whose names are free, its values of `items`; max: how many
    SCHEMA_TEXT_OR,        // a text, or an object `of`
    SCHEMA_TEXT_OR_INT,    // a text or a whole number
    SCHEMA_OBJECT_OR_LIST, // any object, or an array of objects `of`; max: how many
    SCHEMA_LIMITS,         // the limits of a job: model/limits.h
    SCHEMA_TYPES
};

// What a text must look like.
enum schema_form {
    SCHEMA_FORM_NONE,
    SCHEMA_FORM_ID,     // of a job, a session, a tool: a UUID in lower case
    SCHEMA_FORM_KEY_ID, // 16 hexadecimal digits
    SCHEMA_FORM_TEAM,
    SCHEMA_FORM_TOOL, // name of a code tool
    SCHEMA_FORM_LINE, // no control character
    SCHEMA_FORM_BASE64,
    SCHEMA_FORM_SHA256, // hexadecimal, in either case, with or without "sha256:"
    SCHEMA_FORM_TIME,   // RFC 3339; answers only
    SCHEMA_FORMS
};

struct schema;

struct schema_field {
    const char *name;
    enum schema_type type, items;
    enum schema_form form;      // TEXT, and ARRAY of TEXT: of each
    bool required;              // else it may be absent, and null says the same
    bool null;                  // an answer's: is there, but may be null
    int64_t min, max;           // both 0: no bound but the body's
    int64_t chars;              // TEXT whose handler counts characters: told instead of max
    bool judged;                // declared for the reader; what it may hold is its handler's to say
    const char *initial;        // what it is when absent, as JSON; for the reader
    const char *const *choices; // TEXT: one of these, ended by NULL
    const char *elsewhere;      // where what is none of the choices can be had; NULL: nowhere
    const struct schema *of;
    const char *help; // one phrase
};

struct schema {
    const char *name; // components/schemas/NAME
    const char *help;
    const struct schema_field *fields;
    size_t n_fields;
    bool open; // an answer's: more fields may come with later versions
};

enum { SCHEMA_MAX_FAULTS = 20 };

// Checks a value. Each fault is appended to `faults` as "PATH: what is wrong", "; " between them,
// at most SCHEMA_MAX_FAULTS and how many more. TOO_LARGE: the only faults are texts of too many
// bytes.
enum schema_verdict { SCHEMA_SOUND, SCHEMA_FAULTY, SCHEMA_TOO_LARGE };
enum schema_verdict schema_check(const struct schema *s, yyjson_val *v, struct buf *faults);
// The same, a line for each fault, "PATH\tWHAT": a path may hold ": ", and no control character.
enum schema_verdict schema_check_lines(const struct schema *s, yyjson_val *v, struct buf *faults);
// A value of the query, which is text: whole numbers, true and false are read out of it. The number
// of faults.
unsigned schema_check_query(const struct schema_field *f, const char *text, struct buf *faults);
// One text, as `form` has it.
bool schema_has_form(enum schema_form form, const char *text, size_t len);

// JSON Schema (2020-12, as OpenAPI 3.1 takes it). Other objects are named by $ref.
void schema_write(struct buf *out, const char *key, const struct schema *s);
// The same in one piece, as models are given it: no $ref, no null. `only`: of these fields, ended
// by NULL; NULL: of all.
void schema_write_whole(struct buf *out, const char *key, const struct schema *s,
                        const char *const *only);
void schema_field_write(struct buf *out, const char *key, const struct schema_field *f);
// For a person: "integer 1 to 60", "array of text, up to 100".
void schema_field_describe(struct buf *out, const struct schema_field *f);

#define SCHEMA_LIMITS_NAME "JobLimits"
void schema_limits_write(struct buf *out);              // SCHEMA_LIMITS, named so
const char *schema_form_pattern(enum schema_form form); // NULL: none
const char *schema_form_help(enum schema_form form);

// A parameter of the query, or a header field, by its name: they mean the same everywhere. NULL:
// none.
const struct schema_field *schema_query(const char *name);
const struct schema_field *schema_header(const char *name);

// Declares schema_FIELDS from a table `fields`.
#define SCHEMA_REQUEST(fields, title, text)                                                        \
    const struct schema schema_##fields = {title, text, fields, ARRAY_LEN(fields), false}
#define SCHEMA_ANSWER(fields, title, text)                                                         \
    const struct schema schema_##fields = {title, text, fields, ARRAY_LEN(fields), true}

extern const char *const status_names_listed[]; // enum job_status, ended by NULL

// All objects, for components/schemas; each is named here once.
extern const struct schema schema_execute_code, schema_execute_answer, schema_input_file,
    schema_artifact_wish, schema_artifact_limits, schema_sandbox_job, schema_sandbox_result,
    schema_artifact, schema_truncated, schema_usage, schema_isolation, schema_metadata,
    schema_job_accepted, schema_job_list, schema_job_entry, schema_job_cancelled;
extern const struct schema schema_tool_execute, schema_tool_answer, schema_tool_run,
    schema_function_list, schema_function_left_out;
extern const char *const function_formats[], *const snippet_languages[]; // ended by NULL
extern const struct schema schema_session_create, schema_session_extend, schema_session,
    schema_session_list, schema_session_deleted, schema_file, schema_file_list, schema_file_move,
    schema_file_done;
extern const struct schema schema_agent_bash, schema_agent_bash_answer, schema_agent_read,
    schema_agent_read_answer, schema_agent_write, schema_agent_write_answer, schema_agent_edit,
    schema_agent_edit_one, schema_agent_edit_answer, schema_agent_edit_change,
    schema_agent_artifact, schema_agent_artifact_wish, schema_agent_artifact_answer,
    schema_agent_artifact_file;
extern const struct schema schema_tool_config, schema_tool_parameter, schema_tool_create,
    schema_tool_update, schema_tool, schema_tool_entry, schema_tool_list, schema_tool_deleted,
    schema_tool_toggle, schema_tool_version_entry, schema_tool_version_list, schema_tool_version,
    schema_tool_restore, schema_tool_share_with, schema_tool_share, schema_tool_unshared,
    schema_tool_share_entry, schema_tool_share_list, schema_tool_export, schema_tool_import,
    schema_tool_imported_entry, schema_tool_imported;
extern const struct schema schema_code_node, schema_code_node_input, schema_code_node_output,
    schema_code_node_answer, schema_code_node_check, schema_code_node_check_input,
    schema_code_node_fault, schema_code_node_verdict;
extern const struct schema schema_key_create, schema_key, schema_key_created, schema_key_list,
    schema_key_revoked, schema_health, schema_ready, schema_trial;
extern const struct schema *const schemas[]; // ended by NULL

#endif
