// node_inner.h: what the parts of the node's types share. Inside tools/ only.
#ifndef ISLE_TOOLS_NODE_INNER_H
#define ISLE_TOOLS_NODE_INNER_H

#include "tools/node.h"

#include <stdbool.h>

enum node_base {
    NODE_STRING,
    NODE_NUMBER,
    NODE_INTEGER,
    NODE_BOOLEAN,
    NODE_OBJECT,
    NODE_ARRAY,
    NODE_ANY,
    NODE_BASES
};
extern const char *const node_base_names[NODE_BASES];

// The name of a type, within a text that outlives it. text NULL: nothing is said.
struct node_name {
    const char *text;
    size_t len;
};
struct node_name node_name_of(yyjson_val *v); // of a string; else nothing is said
bool node_name_equals(struct node_name a, struct node_name b);

// What a value is to be. Members of the spec as they stand there, or NULL.
struct node_want {
    enum node_base base;
    struct node_name type, item; // item: of array[...]
    yyjson_val *properties, *required, *items, *choices;
    bool nullable;
};
// The base of a type's name and what stands in its brackets; false: there is no such type.
bool node_type_read(struct node_name type, enum node_base *ret, struct node_name *ret_item);
// `type`: what is said outside of the spec; spec may be NULL. Of unsound specs something harmless.
struct node_want node_want(struct node_name type, yyjson_val *spec);

bool node_fits(enum node_base base, yyjson_val *v);
const char *node_kind(yyjson_val *v); // "a string" without the article

struct node_check {
    struct buf *faults;
    unsigned n;
    struct buf path; // where we are: cut by setting its len
};
enum { NODE_PATH_BYTES = 16384, NODE_STEP_BYTES = 64 };

bool node_is_full(const struct node_check *c); // more would not be said
void node_fault(struct node_check *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void node_path_to(struct node_check *c, size_t len);            // back to where it was so long
void node_path_key(struct node_check *c, struct node_name key); // .name or ["another name"]
void node_path_index(struct node_check *c, size_t i);
// 0, -EINVAL or -ENOMEM; frees the path.
int node_check_end(struct node_check *c);

#endif
