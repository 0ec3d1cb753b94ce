// tool_parse.c: a definition: what it is called, its parameters. Its code_config: tool_config.c.
#include "tools/tool_inner.h"

#include "base/fd.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "model/refuse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

const char *const tool_builtin_names[] = {"bash",     "read",       "write",          "edit",
                                          "artifact", "run_python", "run_javascript", NULL};

struct parsing {
    yyjson_val *v, *base;
    struct tool *t;
    struct tool_faults f;
    bool no_memory;
};

// NULL: absent, or null.
static yyjson_val *given(yyjson_val *object, const char *name)
{
    yyjson_val *v = yyjson_obj_get(object, name);
    return yyjson_is_null(v) ? NULL : v;
}

static yyjson_val *field(const struct parsing *p, const char *name)
{
    return given(yyjson_obj_get(p->v, name) ? p->v : p->base, name);
}

static void wrong_type(struct parsing *p, const char *path, const char *wanted, yyjson_val *v)
{
    char shown[SHOWN_BYTES];
    tool_fault(&p->f, path, "must be %s, not %s", wanted, job_show(v, shown));
}

// ---- Texts

enum text_form { TEXT_LINE, TEXT_ANY };

// An empty one is none.
static void read_text(struct parsing *p, const char *path, yyjson_val *v, size_t max,
                      enum text_form form, char **ret)
{
    size_t len = yyjson_get_len(v);
    const char *text = yyjson_get_str(v);
    if (!v) {
        return;
    }
    if (!yyjson_is_str(v)) {
        wrong_type(p, path, "a string", v);
    } else if (len > max) {
        tool_fault(&p->f, path, "%zu bytes are above the maximum of %zu", len, max);
    } else if (form == TEXT_LINE && !utf8_is_line(text, len)) {
        wrong_type(p, path, "one line without control characters", v);
    } else if (memchr(text, 0, len)) {
        tool_fault(&p->f, path, "contains a NUL");
    } else if (len > 0) {
        *ret = strdup(text);
        p->no_memory |= !*ret;
    }
}

static void read_flag(struct parsing *p, const char *path, yyjson_val *v, bool *ret)
{
    if (v && !yyjson_is_bool(v)) {
        wrong_type(p, path, "true or false", v);
    } else if (v) {
        *ret = yyjson_is_true(v);
    }
}

bool tool_is_name(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && text[i] && strchr(i ? LETTERS DIGITS "_" : LETTERS, text[i])) {
        i++;
    }
    return len > 0 && i == len;
}

const char *tool_builtin_of(const char *name)
{
    const char *const *one = tool_builtin_names;
    while (*one && strcasecmp(*one, name) != 0) {
        one++;
    }
    return *one;
}

static void read_name(struct parsing *p)
{
    yyjson_val *v = field(p, "name");
    const char *text = yyjson_get_str(v);
    size_t len = yyjson_get_len(v);
    char shown[SHOWN_BYTES];
    if (!v) {
        tool_fault(&p->f, "name", "is missing");
        return;
    }
    if (!text) {
        wrong_type(p, "name", "a string", v);
        return;
    }
    if (len > TOOL_NAME_MAX) {
        tool_fault(&p->f, "name", "%zu bytes are above the maximum of %d", len, TOOL_NAME_MAX);
        return;
    }
    if (!tool_is_name(text, len)) {
        tool_fault(&p->f, "name",
                   "%s is not a name of a tool: letters, digits and _, a letter first",
                   job_show(v, shown));
        return;
    }
    // One that the base has stays: it was given before there was a built-in one of that name.
    const char *taken = tool_builtin_of(text);
    if (taken && !yyjson_equals_str(given(p->base, "name"), text)) {
        tool_fault(&p->f, "name", "%s is the name of the built-in tool %s", job_show(v, shown),
                   taken);
    }
    memcpy(p->t->name, text, len + 1);
}

// ---- Parameters

static enum tool_type type_of(yyjson_val *v)
{
    int i = 0;
    while (i < TOOL_TYPES && !yyjson_equals_str(v, tool_type_names[i])) {
        i++;
    }
    return (enum tool_type)i;
}

static void fault_type(struct parsing *p, const char *path, yyjson_val *v)
{
    char shown[SHOWN_BYTES];
    tool_fault(&p->f, path, "%s is none of string, number, integer, boolean, object, array",
               job_show(v, shown));
}

static void read_parameter_name(struct parsing *p, const char *path, yyjson_val *v, size_t at)
{
    struct tool_parameter *a = &p->t->parameters[at];
    unsigned before = p->f.n;
    read_text(p, path, v, TOOL_PARAMETER_NAME_MAX, TEXT_LINE, &a->name);
    if (!a->name) {
        if (p->f.n == before) {
            tool_fault(&p->f, path, "is missing");
        }
        return;
    }
    if (a->name[0] == ' ' || a->name[strlen(a->name) - 1] == ' ') {
        wrong_type(p, path, "a name without spaces around it", v);
    }
    for (size_t i = 0; i < at; i++) {
        if (p->t->parameters[i].name && strcmp(p->t->parameters[i].name, a->name) == 0) {
            char shown[SHOWN_BYTES];
            tool_fault(&p->f, path, "%s is the name of parameters[%zu], too", job_show(v, shown),
                       i);
        }
    }
}

// "string", or as JSON Schema has it {"type": "string"}; {}: any.
static void read_items(struct parsing *p, const char *path, yyjson_val *v, struct tool_parameter *a)
{
    static const char *const names[] = {"type", NULL};
    if (yyjson_is_obj(v)) {
        tool_fault_unknown(&p->f, path, v, names);
        v = given(v, "type");
    }
    if (!v) {
        return;
    }
    a->items = type_of(v);
    if (a->items == TOOL_TYPES) {
        fault_type(p, path, v);
    } else if (a->type < TOOL_TYPES && a->type != TOOL_ARRAY) {
        tool_fault(&p->f, path, "only a parameter of type array has items");
    }
}

// Small, and not so deep that what holds it could not be read back.
static bool is_small(struct parsing *p, const char *path, yyjson_val *v)
{
    AUTO_BUF struct buf text = BUF_INIT(TOOL_VALUE_MAX);
    if (json_depth(v) > JSON_MAX_DEPTH) {
        tool_fault(&p->f, path, "nested deeper than %d levels", JSON_MAX_DEPTH);
        return false;
    }
    if (json_write(&text, v) == -EMSGSIZE) {
        tool_fault(&p->f, path, "above the maximum of %d bytes", TOOL_VALUE_MAX);
        return false;
    }
    return true;
}

static void check_choice(struct parsing *p, const char *path, const struct tool_parameter *a,
                         yyjson_val *choices, size_t at)
{
    char here[TOOL_PATH_BYTES], shown[SHOWN_BYTES];
    yyjson_val *v = yyjson_arr_get(choices, at), *other;
    size_t i, count;
    snprintf(here, sizeof here, "%s[%zu]", path, at);
    tool_check_value(&p->f, a, here, v);
    yyjson_arr_foreach(choices, i, count, other)
    {
        if (i == at) {
            return;
        }
        if (json_equal(v, other)) {
            tool_fault(&p->f, here, "%s is there twice", job_show(v, shown));
            return;
        }
    }
}

static void read_choices(struct parsing *p, const char *path, yyjson_val *v,
                         struct tool_parameter *a)
{
    size_t n = yyjson_arr_size(v);
    if (!v || (yyjson_is_arr(v) && n == 0)) {
        return;
    }
    if (!yyjson_is_arr(v)) {
        wrong_type(p, path, "an array", v);
    } else if (n > TOOL_CHOICES_MAX) {
        tool_fault(&p->f, path, "%zu values are above the maximum of %d", n, TOOL_CHOICES_MAX);
    } else if (is_small(p, path, v)) {
        for (size_t i = 0; i < n; i++) {
            check_choice(p, path, a, v, i);
        }
        a->choices = v;
    }
}

static void read_parameter(struct parsing *p, yyjson_val *v, size_t at)
{
    static const char *const names[] = {"name",    "type", "description", "required",
                                        "default", "enum", "items",       NULL};
    struct tool_parameter *a = &p->t->parameters[at];
    char path[32], one[64];
    snprintf(path, sizeof path, "parameters[%zu]", at);
#define IN(name) (snprintf(one, sizeof one, "%s." name, path), one), given(v, name)
    *a = (struct tool_parameter){.type = TOOL_TYPES, .items = TOOL_TYPES};
    if (!yyjson_is_obj(v)) {
        wrong_type(p, path, "an object", v);
        return;
    }
    tool_fault_unknown(&p->f, path, v, names);
    read_parameter_name(p, IN("name"), at);
    read_text(p, IN("description"), TOOL_DESCRIPTION_MAX, TEXT_ANY, &a->description);
    read_flag(p, IN("required"), &a->required);
    yyjson_val *type = given(v, "type"), *initial = given(v, "default");
    a->type = type ? type_of(type) : TOOL_TYPES;
    snprintf(one, sizeof one, "%s.type", path);
    if (!type) {
        tool_fault(&p->f, one, "is missing");
    } else if (a->type == TOOL_TYPES) {
        fault_type(p, one, type);
    }
    read_items(p, IN("items"), a);
    if (a->type == TOOL_TYPES) { // no value can be held against it
        return;
    }
    read_choices(p, IN("enum"), a);
    snprintf(one, sizeof one, "%s.default", path);
    if (initial && is_small(p, one, initial)) {
        tool_check_value(&p->f, a, one, initial);
        a->initial = initial;
    }
#undef IN
}

static void read_parameters(struct parsing *p)
{
    yyjson_val *v = field(p, "parameters"), *one;
    size_t n = yyjson_arr_size(v), i, count;
    if (!v || (yyjson_is_arr(v) && n == 0)) {
        return;
    }
    if (!yyjson_is_arr(v)) {
        wrong_type(p, "parameters", "an array", v);
        return;
    }
    if (n > TOOL_PARAMETERS_MAX) {
        tool_fault(&p->f, "parameters", "%zu are above the maximum of %d", n, TOOL_PARAMETERS_MAX);
        return;
    }
    p->t->parameters = calloc(n, sizeof *p->t->parameters);
    if (!p->t->parameters) {
        p->no_memory = true;
        return;
    }
    p->t->n_parameters = n;
    yyjson_arr_foreach(v, i, count, one) { read_parameter(p, one, i); }
}

// ---- The whole

// Defaults and choices come to lie in a document of the tool's own, until then they are the
// caller's.
static int keep_values(struct tool *t)
{
    AUTO_BUF struct buf text = BUF_INIT((size_t)TOOL_PARAMETERS_MAX * (2 * TOOL_VALUE_MAX + 16));
    struct json_error ignored;
    buf_putc(&text, '[');
    for (size_t i = 0; i < t->n_parameters; i++) {
        const struct tool_parameter *a = &t->parameters[i];
        yyjson_val *const both[] = {a->initial, a->choices};
        for (size_t k = 0; k < ARRAY_LEN(both); k++) {
            buf_puts(&text, text.len > 1 ? "," : "");
            if (both[k]) {
                json_write(&text, both[k]);
            } else {
                buf_puts(&text, "null");
            }
        }
    }
    if (buf_putc(&text, ']')) {
        return -ENOMEM;
    }
    t->doc = json_parse_envelope(text.data, text.len, &ignored);
    if (!t->doc) {
        return -ENOMEM;
    }
    yyjson_arr_iter values = yyjson_arr_iter_with(yyjson_doc_get_root(t->doc));
    for (size_t i = 0; i < t->n_parameters; i++) {
        yyjson_val *initial = yyjson_arr_iter_next(&values);
        yyjson_val *choices = yyjson_arr_iter_next(&values);
        t->parameters[i].initial = yyjson_is_null(initial) ? NULL : initial;
        t->parameters[i].choices = yyjson_is_null(choices) ? NULL : choices;
    }
    return 0;
}

static void check_bytes(struct parsing *p)
{
    AUTO_BUF struct buf text = BUF_INIT(TOOL_BYTES_MAX);
    if (tool_write(&text, p->t) == -EMSGSIZE) {
        tool_fault(&p->f, "code_config", "the whole definition is above the maximum of %d bytes",
                   TOOL_BYTES_MAX);
    }
    p->no_memory |= text.error == -ENOMEM;
}

static void read_all(struct parsing *p)
{
    struct tool *t = p->t;
    yyjson_val *enabled = field(p, "is_enabled"), *config = field(p, "code_config");
    read_name(p);
    read_text(p, "display_name", field(p, "display_name"), TOOL_TITLE_MAX, TEXT_LINE,
              &t->display_name);
    read_text(p, "description", field(p, "description"), TOOL_DESCRIPTION_MAX, TEXT_ANY,
              &t->description);
    read_text(p, "icon", field(p, "icon"), TOOL_TITLE_MAX, TEXT_LINE, &t->icon);
    read_text(p, "category", field(p, "category"), TOOL_TITLE_MAX, TEXT_LINE, &t->category);
    t->enabled = true;
    t->enabled_given = enabled != NULL;
    read_flag(p, "is_enabled", enabled, &t->enabled);
    read_parameters(p);
    p->no_memory |= tool_parse_config(config, t, &p->f) == -ENOMEM;
}

int tool_parse(yyjson_val *v, yyjson_val *base, struct tool *ret, struct buf *faults)
{
    struct parsing p = {.v = v, .base = base, .t = ret, .f = {.out = faults}};
    *ret = (struct tool){0};
    if (yyjson_is_obj(v) || (!v && base)) {
        read_all(&p);
    } else {
        wrong_type(&p, "tool", "an object", v);
    }
    if (p.f.n == 0 && !p.no_memory) {
        p.no_memory = keep_values(ret) != 0;
    }
    if (p.f.n == 0 && !p.no_memory) {
        check_bytes(&p);
    }
    int e = tool_faults_end(&p.f);
    return p.no_memory ? -ENOMEM : e;
}

void tool_done(struct tool *t)
{
    for (size_t i = 0; i < t->n_parameters; i++) {
        free(t->parameters[i].name);
        free(t->parameters[i].description);
    }
    free(t->parameters);
    free(t->display_name);
    free(t->description);
    free(t->icon);
    free(t->category);
    free(t->code_config);
    yyjson_doc_free(t->doc);
    *t = (struct tool){0};
}
