#include "base/fd.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "tools/node_inner.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const node_base_names[NODE_BASES] = {
    [NODE_STRING] = "string",   [NODE_NUMBER] = "number", [NODE_INTEGER] = "integer",
    [NODE_BOOLEAN] = "boolean", [NODE_OBJECT] = "object", [NODE_ARRAY] = "array",
    [NODE_ANY] = "any",
};

struct node_name node_name_of(yyjson_val *v)
{
    return (struct node_name){yyjson_get_str(v), yyjson_is_str(v) ? yyjson_get_len(v) : 0};
}

bool node_name_equals(struct node_name a, struct node_name b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.text, b.text, a.len) == 0);
}

bool node_type_read(struct node_name type, enum node_base *ret, struct node_name *ret_item)
{
    static const char array[] = "array[";
    const size_t before = sizeof array - 1;
    if (type.len > before + 1 && memcmp(type.text, array, before) == 0 &&
        type.text[type.len - 1] == ']') {
        *ret = NODE_ARRAY;
        *ret_item = (struct node_name){type.text + before, type.len - before - 1};
        return true;
    }
    for (int i = 0; i < NODE_BASES; i++) {
        const struct node_name name = {node_base_names[i], strlen(node_base_names[i])};
        if (type.text && node_name_equals(type, name)) {
            *ret = (enum node_base)i;
            *ret_item = (struct node_name){0};
            return true;
        }
    }
    return false;
}

struct node_want node_want(struct node_name type, yyjson_val *spec)
{
    struct node_want w = {
        .base = NODE_ANY,
        .properties = yyjson_obj_get(spec, "properties"),
        .required = yyjson_obj_get(spec, "required"),
        .items = yyjson_obj_get(spec, "items"),
        .choices = yyjson_obj_get(spec, "enum"),
        .nullable = yyjson_is_true(yyjson_obj_get(spec, "nullable")),
    };
    struct node_name own = node_name_of(yyjson_is_str(spec) ? spec : yyjson_obj_get(spec, "type"));
    w.type = own.text ? own : type;
    if (!w.type.text) {
        w.base = w.properties || w.required ? NODE_OBJECT : w.items ? NODE_ARRAY : NODE_ANY;
        w.type = (struct node_name){node_base_names[w.base], strlen(node_base_names[w.base])};
    } else {
        (void)node_type_read(w.type, &w.base, &w.item);
    }
    return w;
}

bool node_fits(enum node_base base, yyjson_val *v)
{
    switch (base) {
    case NODE_STRING:
        return yyjson_is_str(v);
    case NODE_NUMBER:
        return yyjson_is_raw(v);
    case NODE_INTEGER:
        return json_is_integer(v);
    case NODE_BOOLEAN:
        return yyjson_is_bool(v);
    case NODE_OBJECT:
        return yyjson_is_obj(v);
    case NODE_ARRAY:
        return yyjson_is_arr(v);
    case NODE_ANY:
    case NODE_BASES:
        break;
    }
    return true;
}

const char *node_kind(yyjson_val *v)
{
    return yyjson_is_raw(v)    ? "number"
           : yyjson_is_bool(v) ? "boolean"
           : yyjson_is_str(v)  ? "string"
           : yyjson_is_arr(v)  ? "array"
           : yyjson_is_obj(v)  ? "object"
                               : "null";
}

bool node_is_full(const struct node_check *c) { return c->n > NODE_FAULTS_MAX; }

void node_fault(struct node_check *c, const char *format, ...)
{
    char text[512];
    va_list args;
    if (node_is_full(c)) {
        return;
    }
    buf_puts(c->faults, c->n > 0 ? "\n" : "");
    if (++c->n > NODE_FAULTS_MAX) {
        buf_puts(c->faults, "and more");
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    buf_printf(c->faults, "%s\t%s", buf_text(&c->path), text);
}

void node_path_to(struct node_check *c, size_t len)
{
    if (len < c->path.len) {
        c->path.len = len;
        c->path.data[len] = '\0';
    }
}

void node_path_key(struct node_check *c, struct node_name key)
{
    size_t shown = key.len < NODE_STEP_BYTES ? key.len : utf8_cut(key.text, NODE_STEP_BYTES);
    bool plain = key.len > 0 && shown == key.len && !(key.text[0] >= '0' && key.text[0] <= '9');
    for (size_t i = 0; i < shown && plain; i++) {
        char k = key.text[i];
        plain =
            k == '_' || (k >= 'a' && k <= 'z') || (k >= 'A' && k <= 'Z') || (k >= '0' && k <= '9');
    }
    if (plain) {
        buf_putc(&c->path, '.');
        buf_add(&c->path, key.text, key.len);
        return;
    }
    buf_putc(&c->path, '[');
    utf8_json_string(&c->path, key.text ? key.text : "", shown);
    buf_puts(&c->path, shown < key.len ? "...]" : "]");
}

void node_path_index(struct node_check *c, size_t i) { buf_printf(&c->path, "[%zu]", i); }

int node_check_end(struct node_check *c)
{
    int e = c->path.error ? c->path.error : c->faults->error;
    buf_free(&c->path);
    return e ? -ENOMEM : c->n > 0 ? -EINVAL : 0;
}
