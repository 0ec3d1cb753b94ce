// schema_json.c: declared objects as JSON Schema (2020-12, as OpenAPI 3.1 takes it), and in words.
#include "api/schema.h"

#include "base/fd.h"
#include "codec/json_out.h"
#include "model/limits.h"

#include <stdio.h>
#include <string.h>

static const char *const json_types[SCHEMA_TYPES] = {
    [SCHEMA_TEXT] = "string",    [SCHEMA_INT] = "integer",        [SCHEMA_NUMBER] = "number",
    [SCHEMA_BOOL] = "boolean",   [SCHEMA_OBJECT] = "object",      [SCHEMA_ARRAY] = "array",
    [SCHEMA_MAP] = "object",     [SCHEMA_LIMITS] = "object",      [SCHEMA_ANY] = NULL,
    [SCHEMA_TEXT_OR] = "string", [SCHEMA_TEXT_OR_INT] = "string", [SCHEMA_OBJECT_OR_LIST] = NULL,
};

// Objects by name, for openapi.json; or all of it in one piece, for models: then what may be absent
// is left out and never null.
enum form { NAMED, WHOLE };

static bool may_be_null(const struct schema_field *f, enum form form)
{
    return form == NAMED && (!f->required || f->null);
}

static void put_object(struct buf *out, const struct schema *s, enum form form,
                       const char *const *only);
static void put_limits(struct buf *out);
static void put_field(struct buf *out, const char *key, const struct schema_field *f,
                      enum form form);

static void put_reference(struct buf *out, const char *name)
{
    char path[96];
    snprintf(path, sizeof path, "#/components/schemas/%s", name);
    json_put_text(out, "$ref", path);
}

static const char *name_of(const struct schema_field *f)
{
    return f->type == SCHEMA_LIMITS ? SCHEMA_LIMITS_NAME : f->of ? f->of->name : NULL;
}

static void put_named(struct buf *out, const struct schema_field *f, enum form form)
{
    if (form == NAMED) {
        put_reference(out, name_of(f));
    } else if (f->of) {
        put_object(out, f->of, form, NULL);
    } else {
        put_limits(out);
    }
}

// What may stand there beside null: one object, or a text or one, or any or a list of them.
static void put_choice(struct buf *out, const struct schema_field *f, enum form form)
{
    const bool list = f->type == SCHEMA_OBJECT_OR_LIST;
    if (f->type != SCHEMA_TEXT_OR && !list && !may_be_null(f, form)) {
        put_named(out, f, form);
        return;
    }
    json_begin(out, "anyOf", '[');
    if (f->type == SCHEMA_TEXT_OR || list) {
        json_begin(out, NULL, '{');
        json_put_text(out, "type", list ? "object" : "string");
        json_end(out, '}');
    }
    if (list) {
        put_field(out, NULL,
                  &(struct schema_field){.type = SCHEMA_ARRAY,
                                         .items = SCHEMA_OBJECT,
                                         .of = f->of,
                                         .max = f->max,
                                         .required = true},
                  form);
    } else {
        json_begin(out, NULL, '{');
        put_named(out, f, form);
        json_end(out, '}');
    }
    if (may_be_null(f, form)) {
        json_begin(out, NULL, '{');
        json_put_text(out, "type", "null");
        json_end(out, '}');
    }
    json_end(out, ']');
}

static void put_type(struct buf *out, const struct schema_field *f, enum form form)
{
    if (!json_types[f->type]) {
        return;
    }
    bool number = f->type == SCHEMA_TEXT_OR_INT;
    if (!may_be_null(f, form) && !number) {
        json_put_text(out, "type", json_types[f->type]);
        return;
    }
    json_begin(out, "type", '[');
    json_put_text(out, NULL, json_types[f->type]);
    if (number) {
        json_put_text(out, NULL, "integer");
    }
    if (may_be_null(f, form)) {
        json_put_text(out, NULL, "null");
    }
    json_end(out, ']');
}

static void put_bounds(struct buf *out, const struct schema_field *f)
{
    static const char *const names[SCHEMA_TYPES][2] = {
        [SCHEMA_TEXT] = {"minLength", "maxLength"}, // of bytes, which characters cannot be more of
        [SCHEMA_INT] = {"minimum", "maximum"},
        [SCHEMA_NUMBER] = {"minimum", "maximum"},
        [SCHEMA_ARRAY] = {"minItems", "maxItems"},
        [SCHEMA_MAP] = {"minProperties", "maxProperties"},
    };
    bool number = f->type == SCHEMA_INT || f->type == SCHEMA_NUMBER;
    if (!names[f->type][0] || (f->min == 0 && f->max == 0)) {
        return;
    }
    if (number || f->min > 0) {
        // What is counted in bytes: a text of that many may have fewer characters.
        bool one = f->type == SCHEMA_TEXT && f->min > 1;
        json_put_int(out, names[f->type][0], one ? 1 : f->min);
    }
    json_put_int(out, names[f->type][1], f->chars ? f->chars : f->max);
}

static void put_choices(struct buf *out, const struct schema_field *f, enum form form)
{
    json_begin(out, "enum", '[');
    for (const char *const *one = f->choices; *one; one++) {
        json_put_text(out, NULL, *one);
    }
    if (may_be_null(f, form)) {
        json_put_json(out, NULL, "null");
    }
    json_end(out, ']');
}

static void put_items(struct buf *out, const struct schema_field *f, enum form form)
{
    const struct schema_field each = {
        .type = f->items, .of = f->of, .form = f->form, .choices = f->choices, .required = true};
    put_field(out, f->type == SCHEMA_MAP ? "additionalProperties" : "items", &each, form);
}

static void put_form(struct buf *out, const struct schema_field *f)
{
    const char *pattern = schema_form_pattern(f->form);
    if (f->form == SCHEMA_FORM_TIME) {
        json_put_text(out, "format", "date-time");
    } else if (pattern) {
        json_put_text(out, "pattern", pattern);
    }
}

static void put_field(struct buf *out, const char *key, const struct schema_field *f,
                      enum form form)
{
    json_begin(out, key, '{');
    if (name_of(f) && f->type != SCHEMA_ARRAY && f->type != SCHEMA_MAP) {
        put_choice(out, f, form);
    } else {
        put_type(out, f, form);
        put_bounds(out, f);
        if (f->type == SCHEMA_ARRAY || f->type == SCHEMA_MAP) {
            put_items(out, f, form);
        } else if (f->choices) {
            put_choices(out, f, form);
        } else {
            put_form(out, f);
        }
    }
    if (f->initial) {
        json_put_json(out, "default", f->initial);
    }
    if (f->help && *f->help) {
        json_put_text(out, "description", f->help);
    }
    json_end(out, '}');
}

static bool is_among(const char *name, const char *const *only)
{
    while (only && *only && strcmp(name, *only) != 0) {
        only++;
    }
    return !only || *only;
}

// `only`: of these fields, ended by NULL; NULL: of all.
static void put_object(struct buf *out, const struct schema *s, enum form form,
                       const char *const *only)
{
    json_put_text(out, "type", "object");
    if (form == NAMED) {
        json_put_text(out, "description", s->help);
    }
    json_begin(out, "required", '[');
    for (size_t i = 0; i < s->n_fields; i++) {
        if (s->fields[i].required && is_among(s->fields[i].name, only)) {
            json_put_text(out, NULL, s->fields[i].name);
        }
    }
    json_end(out, ']');
    json_begin(out, "properties", '{');
    for (size_t i = 0; i < s->n_fields; i++) {
        if (is_among(s->fields[i].name, only)) {
            put_field(out, s->fields[i].name, &s->fields[i], form);
        }
    }
    json_end(out, '}');
    if (!s->open) {
        json_put_bool(out, "additionalProperties", false);
    }
}

void schema_field_write(struct buf *out, const char *key, const struct schema_field *f)
{
    put_field(out, key, f, NAMED);
}

void schema_write(struct buf *out, const char *key, const struct schema *s)
{
    json_begin(out, key, '{');
    put_object(out, s, NAMED, NULL);
    json_end(out, '}');
}

void schema_write_whole(struct buf *out, const char *key, const struct schema *s,
                        const char *const *only)
{
    json_begin(out, key, '{');
    put_object(out, s, WHOLE, only);
    json_end(out, '}');
}

static void put_limit(struct buf *out, enum limit which)
{
    const struct limit_spec *s = &limit_specs[which];
    char bound[32], text[256];
    const char *type = s->digits ? "number" : "integer";
    json_begin(out, s->name, '{');
    if (s->optional) {
        const char *const types[] = {type, "null", NULL};
        json_put_texts(out, "type", types);
    } else {
        json_put_text(out, "type", type);
    }
    limit_format(which, s->min, bound, sizeof bound);
    json_put_json(out, "minimum", bound);
    limit_format(which, s->max, bound, sizeof bound);
    json_put_json(out, "maximum", bound);
    if (!s->optional) {
        limit_format(which, s->initial, bound, sizeof bound);
        json_put_json(out, "default", bound);
    }
    snprintf(text, sizeof text, "%s, in %s; on hit: %s", s->help, s->unit, s->on_hit);
    json_put_text(out, "description", text);
    json_end(out, '}');
}

static void put_limits(struct buf *out)
{
    json_put_text(out, "type", "object");
    json_put_text(out, "description", "What a job may use. The operator's bounds may be lower.");
    json_begin(out, "properties", '{');
    for (int i = 0; i < LIMIT_COUNT; i++) {
        put_limit(out, (enum limit)i);
    }
    json_end(out, '}');
    json_put_bool(out, "additionalProperties", false);
}

void schema_limits_write(struct buf *out)
{
    json_begin(out, SCHEMA_LIMITS_NAME, '{');
    put_limits(out);
    json_end(out, '}');
}

// ---- In words

static void describe_type(struct buf *out, enum schema_type type, const struct schema *of)
{
    static const char *const words[SCHEMA_TYPES] = {
        [SCHEMA_ANY] = "any value",
        [SCHEMA_TEXT] = "text",
        [SCHEMA_INT] = "whole number",
        [SCHEMA_NUMBER] = "number",
        [SCHEMA_BOOL] = "true or false",
        [SCHEMA_OBJECT] = "object",
        [SCHEMA_ARRAY] = "array",
        [SCHEMA_MAP] = "object",
        [SCHEMA_TEXT_OR] = "text or ",
        [SCHEMA_LIMITS] = SCHEMA_LIMITS_NAME,
        [SCHEMA_TEXT_OR_INT] = "text or integer",
        [SCHEMA_OBJECT_OR_LIST] = "object, or array of ",
    };
    bool named = of && type == SCHEMA_OBJECT;
    buf_puts(out, named ? of->name : words[type]);
    if (of && (type == SCHEMA_TEXT_OR || type == SCHEMA_OBJECT_OR_LIST)) {
        buf_puts(out, of->name);
    }
}

static void describe_bounds(struct buf *out, const struct schema_field *f)
{
    static const char *const units[SCHEMA_TYPES] = {[SCHEMA_TEXT] = " bytes",
                                                    [SCHEMA_ARRAY] = " elements",
                                                    [SCHEMA_MAP] = " names",
                                                    [SCHEMA_OBJECT_OR_LIST] = " elements"};
    const char *unit = f->chars ? " characters" : units[f->type] ? units[f->type] : "";
    const long long max = f->chars ? f->chars : f->max;
    if (max == 0) {
        return;
    }
    if (f->min > 0 || f->type == SCHEMA_INT || f->type == SCHEMA_NUMBER) {
        buf_printf(out, ", %lld to %lld%s", (long long)f->min, max, unit);
    } else {
        buf_printf(out, ", up to %lld%s", max, unit);
    }
}

void schema_field_describe(struct buf *out, const struct schema_field *f)
{
    describe_type(out, f->type, f->of);
    if (f->type == SCHEMA_ARRAY || f->type == SCHEMA_MAP) {
        buf_puts(out, " of ");
        describe_type(out, f->items, f->of);
    }
    describe_bounds(out, f);
    for (const char *const *one = f->choices; one && *one; one++) {
        buf_printf(out, "%s%s", one == f->choices ? ": " : ", ", *one);
    }
    if (f->form) {
        buf_printf(out, ": %s", schema_form_help(f->form));
    }
    if (f->null) {
        buf_puts(out, ", or null");
    }
}
