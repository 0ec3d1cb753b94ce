// tool_inner.h: what the parts of tool.h share. Inside tools/tool*.c only.
//
//   tool_parse.c      a definition     tool_config.c     its code_config
//   tool_value.c      a value against its parameter; arguments
//   tool_write.c      canonical form, JSON Schema        tool_job.c   what runs
#ifndef ISLE_TOOLS_TOOL_INNER_H
#define ISLE_TOOLS_TOOL_INNER_H

#include "tools/tool.h"

enum { TOOL_PATH_BYTES = 256 };

// Faults as they are found: TOOL_FAULTS_MAX are told, all are counted.
struct tool_faults {
    struct buf *out;
    unsigned n;
};
void tool_fault(struct tool_faults *f, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// 0, or -EINVAL when there were any; says how many more than were told.
int tool_faults_end(struct tool_faults *f);
// "PATH.name", or PATH["any name"].
const char *tool_path(const char *path, const char *name, size_t len, char at[TOOL_PATH_BYTES]);
// Fields of v that are none of `names` (ended by NULL).
void tool_fault_unknown(struct tool_faults *f, const char *path, yyjson_val *v,
                        const char *const *names);

// A value against type, items and choices of a parameter; `path` is where it stands.
void tool_check_value(struct tool_faults *f, const struct tool_parameter *p, const char *path,
                      yyjson_val *v);

// Reads code_config. 0, -ENOMEM; faults as they are.
int tool_parse_config(yyjson_val *v, struct tool *t, struct tool_faults *f);

#endif
