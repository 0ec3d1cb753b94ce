// tool_value.c: faults; a value against its parameter; a call's arguments against all of them.
#include "tools/tool_inner.h"

#include "base/fd.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "model/refuse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// ---- Faults

void tool_fault(struct tool_faults *f, const char *path, const char *format, ...)
{
    char text[400];
    va_list args;
    if (++f->n > TOOL_FAULTS_MAX) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    buf_printf(f->out, "%s%s: %s", f->out->len > 0 ? "; " : "", path, text);
}

int tool_faults_end(struct tool_faults *f)
{
    if (f->n > TOOL_FAULTS_MAX) {
        buf_printf(f->out, "; and %u more", f->n - TOOL_FAULTS_MAX);
    }
    return f->out->error == -ENOMEM ? -ENOMEM : f->n ? -EINVAL : 0;
}

static bool is_word(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9')) {
            return false;
        }
    }
    return len > 0 && len <= TOOL_NAME_MAX;
}

const char *tool_path(const char *path, const char *name, size_t len, char at[TOOL_PATH_BYTES])
{
    char shown[SHOWN_BYTES];
    if (is_word(name, len)) {
        snprintf(at, TOOL_PATH_BYTES, "%s%s%.*s", path, *path ? "." : "", (int)len, name);
    } else {
        snprintf(at, TOOL_PATH_BYTES, "%s[%s]", path, job_show_text(name, len, shown));
    }
    return at;
}

void tool_fault_unknown(struct tool_faults *f, const char *path, yyjson_val *v,
                        const char *const *names)
{
    size_t i, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(v, i, count, key, value)
    {
        const char *near = NULL;
        const char *const *one = names;
        for (; *one && !yyjson_equals_str(key, *one); one++) {
            bool is_near = !near && job_is_near(yyjson_get_str(key), yyjson_get_len(key), *one);
            near = is_near ? *one : near;
        }
        if (!*one) {
            char at[TOOL_PATH_BYTES], shown[SHOWN_BYTES], meant[MEANT_BYTES];
            tool_fault(f, tool_path(path, yyjson_get_str(key), yyjson_get_len(key), at),
                       "unknown field (value %s)%s", job_show(value, shown),
                       job_show_meant(near, meant));
        }
        if (f->n > TOOL_FAULTS_MAX) {
            return;
        }
    }
}

// ---- Values

const char *const tool_type_names[TOOL_TYPES + 1] = {
    [TOOL_STRING] = "string",   [TOOL_NUMBER] = "number", [TOOL_INTEGER] = "integer",
    [TOOL_BOOLEAN] = "boolean", [TOOL_OBJECT] = "object", [TOOL_ARRAY] = "array",
};

static const char *const wanted[TOOL_TYPES] = {
    [TOOL_STRING] = "a string",
    [TOOL_NUMBER] = "a number",
    [TOOL_INTEGER] = "an integer, written without fraction and exponent",
    [TOOL_BOOLEAN] = "true or false",
    [TOOL_OBJECT] = "an object",
    [TOOL_ARRAY] = "an array",
};

static bool has_type(enum tool_type type, yyjson_val *v)
{
    switch (type) {
    case TOOL_STRING:
        return yyjson_is_str(v);
    case TOOL_NUMBER:
        return yyjson_is_raw(v);
    case TOOL_INTEGER:
        return json_is_integer(v);
    case TOOL_BOOLEAN:
        return yyjson_is_bool(v);
    case TOOL_OBJECT:
        return yyjson_is_obj(v);
    case TOOL_ARRAY:
        return yyjson_is_arr(v);
    case TOOL_TYPES:
        break;
    }
    return true;
}

// A number that none can hold would arrive as an infinity, and go back as null.
static bool is_sound(enum tool_type type, yyjson_val *v)
{
    return has_type(type, v) && (type != TOOL_NUMBER || json_number_fits(v));
}

static void fault_of_type(struct tool_faults *f, enum tool_type type, const char *path,
                          yyjson_val *v)
{
    char shown[SHOWN_BYTES];
    if (has_type(type, v)) {
        tool_fault(f, path, "%s is beyond what a number can hold", job_show(v, shown));
    } else {
        tool_fault(f, path, "must be %s, not %s", wanted[type], job_show(v, shown));
    }
}

static void check_items(struct tool_faults *f, enum tool_type type, const char *path, yyjson_val *v)
{
    size_t i, count;
    yyjson_val *one;
    yyjson_arr_foreach(v, i, count, one)
    {
        char at[TOOL_PATH_BYTES];
        if (!is_sound(type, one)) {
            snprintf(at, sizeof at, "%s[%zu]", path, i);
            fault_of_type(f, type, at, one);
        }
    }
}

static void check_choices(struct tool_faults *f, yyjson_val *choices, const char *path,
                          yyjson_val *v)
{
    char shown[SHOWN_BYTES];
    AUTO_BUF struct buf list = BUF_INIT(1024);
    size_t i, count;
    yyjson_val *one;
    yyjson_arr_foreach(choices, i, count, one)
    {
        if (json_equal(one, v)) {
            return;
        }
        if (list.len < SHOWN_BYTES * 2) {
            buf_printf(&list, "%s%s", i ? ", " : "", job_show(one, shown));
        } else if (buf_text(&list)[list.len - 1] != '.') {
            buf_puts(&list, ", ...");
        }
    }
    tool_fault(f, path, "%s is none of %s", job_show(v, shown), buf_text(&list));
}

void tool_check_value(struct tool_faults *f, const struct tool_parameter *p, const char *path,
                      yyjson_val *v)
{
    if (!is_sound(p->type, v)) {
        fault_of_type(f, p->type, path, v);
        return;
    }
    if (p->type == TOOL_ARRAY && p->items != TOOL_TYPES) {
        check_items(f, p->items, path, v);
    }
    if (p->choices) {
        check_choices(f, p->choices, path, v);
    }
}

// ---- Arguments

static size_t find(const struct tool *t, yyjson_val *key)
{
    size_t i = 0;
    while (i < t->n_parameters && !yyjson_equals_str(key, t->parameters[i].name)) {
        i++;
    }
    return i;
}

static void fault_unknown(struct tool_faults *f, const struct tool *t, yyjson_val *key,
                          yyjson_val *value)
{
    char at[TOOL_PATH_BYTES], shown[SHOWN_BYTES], meant[MEANT_BYTES];
    const char *near = NULL;
    for (size_t i = 0; i < t->n_parameters && !near && f->n < TOOL_FAULTS_MAX; i++) {
        const char *name = t->parameters[i].name;
        near = job_is_near(yyjson_get_str(key), yyjson_get_len(key), name) ? name : NULL;
    }
    tool_fault(f, tool_path("arguments", yyjson_get_str(key), yyjson_get_len(key), at),
               "the tool has no such parameter (value %s)%s", job_show(value, shown),
               job_show_meant(near, meant));
}

// given[i]: what parameter i is given, or NULL.
static void match(struct tool_faults *f, const struct tool *t, yyjson_val *arguments,
                  yyjson_val **given)
{
    char at[TOOL_PATH_BYTES];
    size_t i, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(arguments, i, count, key, value)
    {
        size_t which = find(t, key);
        if (which == t->n_parameters) {
            fault_unknown(f, t, key, value);
        } else if (!yyjson_is_null(value)) {
            const struct tool_parameter *p = &t->parameters[which];
            given[which] = value;
            tool_check_value(f, p, tool_path("arguments", p->name, strlen(p->name), at), value);
        }
    }
    for (i = 0; i < t->n_parameters; i++) {
        const struct tool_parameter *p = &t->parameters[i];
        if (!given[i] && !p->initial && p->required) {
            tool_fault(f, tool_path("arguments", p->name, strlen(p->name), at), "is missing");
        }
    }
}

static int write_params(const struct tool *t, yyjson_val *const *given, struct buf *out)
{
    bool first = true;
    buf_putc(out, '{');
    for (size_t i = 0; i < t->n_parameters; i++) {
        const struct tool_parameter *p = &t->parameters[i];
        yyjson_val *v = given[i] ? given[i] : p->initial;
        if (v) {
            buf_puts(out, first ? "" : ",");
            utf8_json_string(out, p->name, strlen(p->name));
            buf_putc(out, ':');
            json_write(out, v);
            first = false;
        }
    }
    return buf_putc(out, '}');
}

int tool_arguments(const struct tool *t, yyjson_val *arguments, struct buf *ret_params,
                   struct buf *faults)
{
    struct tool_faults f = {.out = faults};
    yyjson_val *given[TOOL_PARAMETERS_MAX] = {0};
    char shown[SHOWN_BYTES];
    if (!arguments || yyjson_is_null(arguments) || yyjson_is_obj(arguments)) {
        match(&f, t, arguments, given);
    } else {
        tool_fault(&f, "arguments", "must be an object, not %s", job_show(arguments, shown));
    }
    int e = tool_faults_end(&f);
    e = e ? e : write_params(t, given, ret_params);
    if (e == -EMSGSIZE) {
        tool_fault(&f, "arguments", "above the maximum of %zu bytes", ret_params->max);
    }
    return e;
}
