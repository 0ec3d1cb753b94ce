// tool.h: a code tool as its team saves it: what it is called, what it takes, what it runs.
//
// The definition is JSON, and the store keeps it as such: tool_parse() reads what a caller gives
// (and what older platforms have saved), tool_write() gives its one canonical form.
#ifndef ISLE_TOOLS_TOOL_H
#define ISLE_TOOLS_TOOL_H

#include "base/buf.h"
#include "model/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <yyjson.h>

enum {
    TOOL_NAME_MAX = 100,         // ^[a-zA-Z][a-zA-Z0-9_]*$
    TOOL_TITLE_MAX = 200,        // display_name, category, icon
    TOOL_DESCRIPTION_MAX = 8192, // of the tool, and of a parameter
    TOOL_PARAMETERS_MAX = 64,
    TOOL_PARAMETER_NAME_MAX = 64, // one line, no space around it
    TOOL_CHOICES_MAX = 100,       // values of an enum
    TOOL_VALUE_MAX = 16 << 10,    // bytes of a default, and of an enum
    TOOL_BYTES_MAX = 2 << 20,     // of the canonical form
    TOOL_FAULTS_MAX = 20,         // that are told; then how many more
    TOOL_FAULTS_BYTES = 16 << 10, // room that so many need
};

enum tool_type { // of a parameter; names as JSON Schema has them
    TOOL_STRING,
    TOOL_NUMBER,
    TOOL_INTEGER, // of any length, digits alone: 1.0 is none, as the code would get a float of it
    TOOL_BOOLEAN,
    TOOL_OBJECT,
    TOOL_ARRAY,
    TOOL_TYPES
};
extern const char *const tool_type_names[TOOL_TYPES + 1]; // ended by NULL
// ^[a-zA-Z][a-zA-Z0-9_]*$, of any length
bool tool_is_name(const char *text, size_t len);
// What no code tool may be called, as there is a built-in one of that name; ended by NULL.
extern const char *const tool_builtin_names[];
// The one of these that is this name, in upper or lower case: models mix up names that differ in
// nothing else. NULL: none.
const char *tool_builtin_of(const char *name);
// What code_config may have, in the order of the canonical form; ended by NULL. Beside these
// `dependencies`, which older platforms saved: [text | {name, version}].
extern const char *const tool_config_names[];

struct tool_parameter {
    char *name, *description;   // description NULL: none
    enum tool_type type, items; // items: of ARRAY; TOOL_TYPES: any
    bool required;       // where there is a default, it stands for what is absent all the same
    yyjson_val *initial; // default; fits the type and the choices; NULL: none
    yyjson_val *choices; // array of different values that fit the type; NULL: any
};

struct tool {
    char name[TOOL_NAME_MAX + 1];
    char *display_name, *description, *icon, *category; // NULL: none
    struct tool_parameter *parameters;
    size_t n_parameters;
    bool enabled; // is_enabled; the record has it, not the definition: a toggle is no new version
    bool enabled_given;
    // code_config, checked as a job is; `dependencies` of older platforms have become packages of
    // the language. What a job parses (job.h), without params.
    char *code_config; // canonical JSON object
    size_t code_config_len;
    int64_t timeout_ms; // limits.timeout_seconds as saved; 0: none
    yyjson_doc *doc;    // what initial and choices lie in
};

// Reads a definition: {name, display_name?, description?, icon?, category?, parameters?,
// code_config, is_enabled?}. `base` (may be NULL): a definition, such as the store has; what is
// absent of v is taken from it, field by field of the outermost object; v NULL: all, as it is to
// run. A name of the base may be a built-in one's: it was there first. null is none, and for
// is_enabled true. Fields of v that are none of these are the caller's to judge. Each fault is
// appended to `faults` as "PATH: what is wrong", "; " between them. 0, -EINVAL with faults, or
// -ENOMEM; *ret is tool_done()-able either way, and needs neither v nor base any more.
int tool_parse(yyjson_val *v, yyjson_val *base, struct tool *ret, struct buf *faults);
void tool_done(struct tool *t);
// The definition's one form, without is_enabled; what the store keeps, and tool_parse() reads. 0 or
// -errno.
int tool_write(struct buf *out, const struct tool *t);

// The parameters as a JSON Schema object: {"type":"object","properties":{...},"required":[...],
// "additionalProperties":false}. The bare value: what is before it is the caller's.
int tool_write_schema(struct buf *out, const struct tool *t);

// Arguments (NULL: none) against the parameters: type, enum, required; unknown names are faults,
// null is absent. Appends the whole arguments, defaults filled in, digits as they came, to
// *ret_params (JSON). Every fault to `faults`, as above ("arguments.n: ..."). 0, -EINVAL, -EMSGSIZE
// (they are sound, and more than *ret_params may hold; told as a fault), -ENOMEM.
int tool_arguments(const struct tool *t, yyjson_val *arguments, struct buf *ret_params,
                   struct buf *faults);

// What runs: the job of a call. params: of tool_arguments(), taken. The saved timeout wins over
// timeout_ms (0: none given). session: an id, or NULL. 0, -EINVAL with *ret_why (packages that
// nothing installs, and the like), -ENOMEM; *ret is job_done()-able either way.
int tool_job(const struct tool *t, struct buf *params, int64_t timeout_ms, const char *session,
             struct job *ret, struct job_error *ret_why);

#endif
