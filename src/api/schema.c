#include "api/schema.h"

#include "base/fd.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "model/form.h"
#include "model/job.h"
#include "model/refuse.h"
#include "tools/tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PATH_MAX_BYTES = 192 };

struct check {
    struct buf *faults;
    const char *between, *behind; // faults; the path of one
    unsigned n, large;            // faults; those of them that are too many bytes
};

static void fault(struct check *c, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void fault(struct check *c, const char *path, const char *format, ...)
{
    char text[512];
    va_list args;
    if (++c->n > SCHEMA_MAX_FAULTS) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    buf_printf(c->faults, "%s%s%s%s", c->n > 1 ? c->between : "", *path ? path : "body", c->behind,
               text);
}

static const char *const type_names[SCHEMA_TYPES] = {
    [SCHEMA_ANY] = "a value",
    [SCHEMA_TEXT] = "a string",
    [SCHEMA_INT] = "a whole number",
    [SCHEMA_NUMBER] = "a number",
    [SCHEMA_BOOL] = "true or false",
    [SCHEMA_OBJECT] = "an object",
    [SCHEMA_ARRAY] = "an array",
    [SCHEMA_MAP] = "an object",
    [SCHEMA_LIMITS] = "an object",
    [SCHEMA_TEXT_OR] = "a string or an object",
    [SCHEMA_TEXT_OR_INT] = "a string or a whole number",
    [SCHEMA_OBJECT_OR_LIST] = "an object or an array",
};

static bool has_type(enum schema_type type, yyjson_val *v)
{
    switch (type) {
    case SCHEMA_ANY:
        return true;
    case SCHEMA_TEXT:
        return yyjson_is_str(v);
    case SCHEMA_INT:
    case SCHEMA_NUMBER:
        return yyjson_is_raw(v);
    case SCHEMA_BOOL:
        return yyjson_is_bool(v);
    case SCHEMA_ARRAY:
        return yyjson_is_arr(v);
    case SCHEMA_TEXT_OR:
        return yyjson_is_str(v) || yyjson_is_obj(v);
    case SCHEMA_TEXT_OR_INT:
        return yyjson_is_str(v) || yyjson_is_raw(v);
    case SCHEMA_OBJECT_OR_LIST:
        return yyjson_is_obj(v) || yyjson_is_arr(v);
    case SCHEMA_OBJECT:
    case SCHEMA_MAP:
    case SCHEMA_LIMITS:
    case SCHEMA_TYPES:
        break;
    }
    return yyjson_is_obj(v);
}

static void check_amount(struct check *c, const struct schema_field *f, const char *path,
                         const char *unit, size_t n)
{
    if (f->max != 0 && n > (size_t)f->max) {
        c->large += f->type == SCHEMA_TEXT;
        fault(c, path, "%zu %s are above the maximum of %lld", n, unit, (long long)f->max);
    } else if (n < (size_t)f->min) {
        fault(c, path, "%zu %s are below the minimum of %lld", n, unit, (long long)f->min);
    }
}

static void check_choice(struct check *c, const struct schema_field *f, const char *path,
                         yyjson_val *v)
{
    char shown[SHOWN_BYTES], list[256] = "";
    size_t n = 0;
    for (const char *const *one = f->choices; *one; one++) {
        if (yyjson_equals_str(v, *one)) {
            return;
        }
        n += n < sizeof list
                 ? (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", *one)
                 : 0;
    }
    if (f->elsewhere) {
        fault(c, path, "%s is none of %s (%s)", job_show(v, shown), list, f->elsewhere);
    } else {
        fault(c, path, "%s is none of %s", job_show(v, shown), list);
    }
}

static void check_text(struct check *c, const struct schema_field *f, const char *path,
                       yyjson_val *v)
{
    char shown[SHOWN_BYTES];
    check_amount(c, f, path, "bytes", yyjson_get_len(v));
    if (f->choices) {
        check_choice(c, f, path, v);
    }
    if (!schema_has_form(f->form, yyjson_get_str(v), yyjson_get_len(v))) {
        fault(c, path, "%s is not %s", job_show(v, shown), schema_form_help(f->form));
    }
}

static void check_number(struct check *c, const struct schema_field *f, const char *path,
                         yyjson_val *v)
{
    char shown[SHOWN_BYTES];
    int64_t up = 0, down = 0;
    int e = f->type == SCHEMA_INT ? json_int(v, &up) : json_decimal(v, 0, &up);
    down = up;
    if (!e && f->type == SCHEMA_NUMBER) {
        e = json_decimal_down(v, 0, &down);
    }
    job_show(v, shown);
    if (e == -EINVAL) {
        fault(c, path, "must be a whole number, not %s", shown);
    } else if (f->min == 0 && f->max == 0) {
        return;
    } else if (e ? shown[0] == '-' : down < f->min) {
        fault(c, path, "%s is below the minimum of %lld", shown, (long long)f->min);
    } else if (e || up > f->max) {
        fault(c, path, "%s is above the maximum of %lld", shown, (long long)f->max);
    }
}

static void check_limits(struct check *c, const char *path, yyjson_val *v)
{
    size_t i, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(v, i, count, key, value)
    {
        struct job_error why;
        struct limits ignored;
        char at[PATH_MAX_BYTES];
        if (job_read_limit(key, value, &ignored, &why) == 0) {
            continue;
        }
        snprintf(at, sizeof at, "%s%s", path, strchr(why.field, '.') ? strchr(why.field, '.') : "");
        fault(c, at, "%s", job_error_what(&why));
    }
}

static void check_object(struct check *c, const struct schema *s, const char *path, yyjson_val *v);
static void check_value(struct check *c, const struct schema_field *f, const char *path,
                        yyjson_val *v);

// Said enough; or this element is one of those that are too many, however many they are.
static bool is_beyond(const struct check *c, const struct schema_field *f, size_t i)
{
    return c->n > SCHEMA_MAX_FAULTS || (f->max != 0 && i >= (size_t)f->max);
}

// Elements of an array, or values of an object with free names.
static void check_items(struct check *c, const struct schema_field *f, const char *path,
                        yyjson_val *v)
{
    struct schema_field each = {
        .type = f->items, .of = f->of, .form = f->form, .choices = f->choices, .required = true};
    char at[PATH_MAX_BYTES];
    size_t i, count;
    yyjson_val *key, *value;
    check_amount(c, f, path, f->type == SCHEMA_MAP ? "names" : "elements", yyjson_get_len(v));
    if (yyjson_is_arr(v)) {
        yyjson_arr_foreach(v, i, count, value)
        {
            if (is_beyond(c, f, i)) {
                return;
            }
            snprintf(at, sizeof at, "%s[%zu]", path, i);
            check_value(c, &each, at, value);
        }
        return;
    }
    yyjson_obj_foreach(v, i, count, key, value)
    {
        char shown[SHOWN_BYTES];
        if (is_beyond(c, f, i)) {
            return;
        }
        snprintf(at, sizeof at, "%s.%s", path, job_show(key, shown));
        check_value(c, &each, at, value);
    }
}

// The depth of these calls is that of the declarations, not of what came.
static void check_value(struct check *c, const struct schema_field *f, const char *path,
                        yyjson_val *v)
{
    char shown[SHOWN_BYTES];
    if (f->judged || (yyjson_is_null(v) && (!f->required || f->null || f->type == SCHEMA_ANY))) {
        return;
    }
    if (!has_type(f->type, v)) {
        fault(c, path, "must be %s, not %s", type_names[f->type], job_show(v, shown));
        return;
    }
    switch (f->type) {
    case SCHEMA_TEXT:
        check_text(c, f, path, v);
        break;
    case SCHEMA_INT:
    case SCHEMA_NUMBER:
        check_number(c, f, path, v);
        break;
    case SCHEMA_ARRAY:
    case SCHEMA_MAP:
        check_items(c, f, path, v);
        break;
    case SCHEMA_LIMITS:
        check_limits(c, path, v);
        break;
    case SCHEMA_OBJECT:
    case SCHEMA_TEXT_OR:
        if (f->of && yyjson_is_obj(v)) {
            check_object(c, f->of, path, v);
        }
        break;
    case SCHEMA_TEXT_OR_INT:
        if (yyjson_is_raw(v)) {
            check_number(c, &(struct schema_field){.type = SCHEMA_INT}, path, v);
        }
        break;
    case SCHEMA_ANY:
    case SCHEMA_BOOL:
    case SCHEMA_OBJECT_OR_LIST: // always judged elsewhere
    case SCHEMA_TYPES:
        break;
    }
}

static bool knows(const struct schema *s, yyjson_val *key)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        if (yyjson_equals_str(key, s->fields[i].name)) {
            return true;
        }
    }
    return false;
}

static const char *near_to(const struct schema *s, yyjson_val *key)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        if (job_is_near(yyjson_get_str(key), yyjson_get_len(key), s->fields[i].name)) {
            return s->fields[i].name;
        }
    }
    return NULL;
}

static void check_object(struct check *c, const struct schema *s, const char *path, yyjson_val *v)
{
    char at[PATH_MAX_BYTES], shown[SHOWN_BYTES], meant[MEANT_BYTES];
    const char *dot = *path ? "." : "";
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct schema_field *f = &s->fields[i];
        yyjson_val *value = yyjson_obj_get(v, f->name);
        snprintf(at, sizeof at, "%s%s%s", path, dot, f->name);
        if (value) {
            check_value(c, f, at, value);
        } else if (f->required) {
            fault(c, at, "is missing");
        }
    }
    size_t i, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(v, i, count, key, value)
    {
        if (s->open || knows(s, key)) {
            continue;
        }
        if (c->n >= SCHEMA_MAX_FAULTS) { // no more is said; counted all the same
            c->n++;
        } else {
            const char *name = job_show(key, shown);
            // As it is written in the object, without the quotes; escaped, so one line.
            snprintf(at, sizeof at, "%s%s%.*s", path, dot, (int)(strlen(name) - 1), name + 1);
            size_t end = strlen(at);
            if (end > 0 && at[end - 1] == '"') {
                at[end - 1] = '\0';
            }
            fault(c, at, "unknown field (value %s)%s", job_show(value, shown),
                  job_show_meant(near_to(s, key), meant));
        }
    }
}

static enum schema_verdict check_whole(const struct schema *s, yyjson_val *v, const char *between,
                                       const char *behind, struct buf *faults)
{
    struct check c = {.faults = faults, .between = between, .behind = behind};
    char shown[SHOWN_BYTES];
    if (yyjson_is_obj(v)) {
        check_object(&c, s, "", v);
    } else {
        fault(&c, "", "must be an object, not %s", job_show(v, shown));
    }
    if (c.n > SCHEMA_MAX_FAULTS) {
        buf_printf(faults, "%sand %u more", between, c.n - SCHEMA_MAX_FAULTS);
    }
    return c.n == 0 ? SCHEMA_SOUND : c.n == c.large ? SCHEMA_TOO_LARGE : SCHEMA_FAULTY;
}

enum schema_verdict schema_check(const struct schema *s, yyjson_val *v, struct buf *faults)
{
    return check_whole(s, v, "; ", ": ", faults);
}

enum schema_verdict schema_check_lines(const struct schema *s, yyjson_val *v, struct buf *faults)
{
    return check_whole(s, v, "\n", "\t", faults);
}

#define DIGITS "0123456789"

unsigned schema_check_query(const struct schema_field *f, const char *text, struct buf *faults)
{
    struct check c = {.faults = faults, .between = "; ", .behind = ": "};
    size_t len = strlen(text);
    bool number = f->type == SCHEMA_INT && len > 0 && len <= 19 && form_is_of(text, len, DIGITS);
    bool truth = f->type == SCHEMA_BOOL && (!strcmp(text, "true") || !strcmp(text, "false"));
    // As JSON, so that the same checks see it.
    AUTO_BUF struct buf json = BUF_INIT(len * 6 + 16);
    struct json_error ignored;
    if (number || truth) {
        buf_add(&json, text, len);
    } else {
        utf8_json_string(&json, text, len);
    }
    yyjson_doc *doc = json.error ? NULL : json_parse(json.data, json.len, &ignored);
    if (doc) {
        check_value(&c, f, f->name, yyjson_doc_get_root(doc));
    } else {
        fault(&c, f->name,
              number ? "must be a whole number without leading zeros" : "cannot be read");
    }
    yyjson_doc_free(doc);
    return c.n;
}

static bool is_base64(const char *text, size_t len)
{
    size_t bytes;
    return base64_measure(text, len, &bytes);
}

static bool is_sha256(const char *text, size_t len)
{
    if (len > 7 && memcmp(text, "sha256:", 7) == 0) {
        text += 7;
        len -= 7;
    }
    return len == 64 && form_is_of(text, len, DIGITS "abcdefABCDEF");
}

static const struct {
    bool (*has)(const char *text, size_t len); // NULL: anything
    const char *pattern, *help;
} forms[SCHEMA_FORMS] = {
    [SCHEMA_FORM_ID] = {form_is_id,
                        "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
                        FORM_ID_HELP},
    [SCHEMA_FORM_KEY_ID] = {form_is_key_id, "^[0-9a-f]{16}$", FORM_KEY_ID_HELP},
    [SCHEMA_FORM_TEAM] = {form_is_team, "^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$", FORM_TEAM_HELP},
    [SCHEMA_FORM_TOOL] = {tool_is_name, "^[a-zA-Z][a-zA-Z0-9_]*$",
                          "a name of a tool: letters, digits and _, a letter first"},
    [SCHEMA_FORM_LINE] = {utf8_is_line, "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$",
                          "one line without control characters"},
    [SCHEMA_FORM_BASE64] = {is_base64, "^[A-Za-z0-9+/]*={0,2}$", "base64 with its padding"},
    [SCHEMA_FORM_SHA256] = {is_sha256, "^(sha256:)?[0-9a-fA-F]{64}$",
                            "a SHA-256 in hexadecimal digits"},
    [SCHEMA_FORM_TIME] = {NULL, NULL, "a time (RFC 3339)"},
};

const char *schema_form_pattern(enum schema_form form) { return forms[form].pattern; }

const char *schema_form_help(enum schema_form form) { return forms[form].help; }

bool schema_has_form(enum schema_form form, const char *text, size_t len)
{
    return !forms[form].has || forms[form].has(text, len);
}
