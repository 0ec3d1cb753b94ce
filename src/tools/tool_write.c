// tool_write.c: a definition's canonical form, and its parameters as JSON Schema.
#include "tools/tool_inner.h"

#include "codec/json.h"
#include "codec/json_out.h"
#include "codec/utf8.h"

#include <string.h>

static void put_value(struct buf *out, const char *key, const yyjson_val *v)
{
    if (v) {
        buf_printf(out, ",\"%s\":", key); // never the first of its object
        json_write(out, v);
    }
}

static void put_given(struct buf *out, const char *key, const char *text)
{
    if (text) {
        json_put_text(out, key, text);
    }
}

static void put_items(struct buf *out, const struct tool_parameter *p)
{
    if (p->type == TOOL_ARRAY) { // some that read a schema want `items` of every array
        json_begin(out, "items", '{');
        if (p->items != TOOL_TYPES) {
            json_put_text(out, "type", tool_type_names[p->items]);
        }
        json_end(out, '}');
    }
}

static void put_parameter(struct buf *out, const struct tool_parameter *p)
{
    json_begin(out, NULL, '{');
    json_put_text(out, "name", p->name);
    json_put_text(out, "type", tool_type_names[p->type]);
    put_given(out, "description", p->description);
    json_put_bool(out, "required", p->required);
    put_value(out, "default", p->initial);
    put_value(out, "enum", p->choices);
    put_items(out, p);
    json_end(out, '}');
}

int tool_write(struct buf *out, const struct tool *t)
{
    json_begin(out, NULL, '{');
    json_put_text(out, "name", t->name);
    put_given(out, "display_name", t->display_name);
    put_given(out, "description", t->description);
    put_given(out, "icon", t->icon);
    put_given(out, "category", t->category);
    json_begin(out, "parameters", '[');
    for (size_t i = 0; i < t->n_parameters; i++) {
        put_parameter(out, &t->parameters[i]);
    }
    json_end(out, ']');
    json_put_json(out, "code_config", t->code_config);
    json_end(out, '}');
    return out->error;
}

int tool_write_schema(struct buf *out, const struct tool *t)
{
    buf_puts(out, "{\"type\":\"object\",\"properties\":{");
    for (size_t i = 0; i < t->n_parameters; i++) {
        const struct tool_parameter *p = &t->parameters[i];
        buf_puts(out, i ? "," : "");
        utf8_json_string(out, p->name, strlen(p->name));
        buf_puts(out, ":{");
        json_put_text(out, "type", tool_type_names[p->type]);
        put_given(out, "description", p->description);
        put_value(out, "enum", p->choices);
        put_value(out, "default", p->initial);
        put_items(out, p);
        buf_putc(out, '}');
    }
    buf_puts(out, "},\"required\":[");
    for (size_t i = 0, n = 0; i < t->n_parameters; i++) {
        const struct tool_parameter *p = &t->parameters[i];
        if (p->required && !p->initial) {
            buf_puts(out, n++ ? "," : "");
            utf8_json_string(out, p->name, strlen(p->name));
        }
    }
    return buf_puts(out, "],\"additionalProperties\":false}");
}
