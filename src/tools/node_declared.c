// node_declared.c: are declared outputs sound?
#include "base/fd.h"
#include "model/refuse.h"
#include "tools/node_inner.h"

#include <errno.h>
#include <string.h>

// A spec whose properties and items are being looked at.
struct level {
    struct node_want want;
    yyjson_obj_iter properties;
    bool items_done;
    size_t path_len;
};

struct walk {
    struct node_check c;
    struct level levels[NODE_TYPE_DEPTH_MAX];
    size_t depth;
};

static bool type_known(struct node_name type)
{
    enum node_base base;
    for (int depth = 0; depth < NODE_TYPE_DEPTH_MAX; depth++) {
        if (!node_type_read(type, &base, &type)) {
            return false;
        }
        if (!type.text) {
            return true;
        }
    }
    return false;
}

// What `v` at NAME below should be and is not; NULL: nothing is there.
static void fault_at(struct node_check *c, const char *name, const char *what, yyjson_val *v)
{
    char shown[SHOWN_BYTES];
    size_t len = c->path.len;
    buf_printf(&c->path, "%s%s", *name ? "." : "", name);
    if (v) {
        node_fault(c, "%s, not %s", what, job_show(v, shown));
    } else {
        node_fault(c, "is missing");
    }
    node_path_to(c, len);
}

// A type's name, and that it is the one which is said outside, if one is.
static bool check_type(struct node_check *c, const char *at, yyjson_val *v, struct node_name outer)
{
    struct node_name type = node_name_of(v);
    if (!yyjson_is_str(v) || !type_known(type)) {
        fault_at(c, at,
                 "must be string, number, integer, boolean, object, array, any or array[TYPE]", v);
        return false;
    }
    if (outer.text && !node_name_equals(type, outer)) {
        char what[160];
        snprintf(what, sizeof what, "must be %.*s, as is said around it",
                 (int)(outer.len < 100 ? outer.len : 100), outer.text);
        fault_at(c, at, what, v);
        return false;
    }
    return true;
}

static void check_list(struct node_check *c, const char *at, yyjson_val *v, bool texts)
{
    size_t i, n;
    yyjson_val *one;
    char what[80];
    snprintf(what, sizeof what, "must be a list of up to %d %s", NODE_LIST_MAX,
             texts ? "names" : "values");
    if (!yyjson_is_arr(v) || yyjson_arr_size(v) > NODE_LIST_MAX ||
        (!texts && yyjson_arr_size(v) == 0)) {
        fault_at(c, at, what, v);
        return;
    }
    yyjson_arr_foreach(v, i, n, one)
    {
        if (texts ? !yyjson_is_str(one) : yyjson_is_ctn(one)) {
            fault_at(c, at, texts ? "must be names" : "must be texts, numbers, true, false or null",
                     one);
            return;
        }
    }
}

static void check_choices(struct node_check *c, const struct node_want *w)
{
    size_t i, n;
    yyjson_val *one;
    if (w->base == NODE_OBJECT || w->base == NODE_ARRAY) {
        fault_at(c, "enum", "is for neither objects nor arrays", w->choices);
        return;
    }
    check_list(c, "enum", w->choices, false);
    yyjson_arr_foreach(w->choices, i, n, one)
    {
        if (!yyjson_is_ctn(one) && !node_fits(w->base, one) && !yyjson_is_null(one)) {
            char what[80];
            snprintf(what, sizeof what, "must have values of type %s", node_base_names[w->base]);
            fault_at(c, "enum", what, one);
            return;
        }
    }
}

static const char *const members[] = {"type", "properties", "required",   "items",
                                      "enum", "nullable",   "description"};

static bool is_member(yyjson_val *key)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (yyjson_equals_str(key, members[i])) {
            return true;
        }
    }
    return false;
}

static void check_members(struct node_check *c, yyjson_val *spec)
{
    size_t i, n, len = c->path.len;
    yyjson_val *key, *value;
    yyjson_obj_foreach(spec, i, n, key, value)
    {
        if (!is_member(key)) {
            node_path_key(c, node_name_of(key));
            node_fault(c, "unknown field: a typeSpec has type, properties, required, items, enum, "
                          "nullable and description");
            node_path_to(c, len);
        } else if (yyjson_equals_str(key, "nullable") && !yyjson_is_bool(value)) {
            fault_at(c, "nullable", "must be true or false", value);
        } else if (yyjson_equals_str(key, "description") && !yyjson_is_str(value)) {
            fault_at(c, "description", "must be a text", value);
        }
    }
}

// Of an object or array only, and of the right shape.
static void check_parts(struct node_check *c, struct node_want *w)
{
    if (w->properties && (w->base != NODE_OBJECT || !yyjson_is_obj(w->properties) ||
                          yyjson_obj_size(w->properties) > NODE_LIST_MAX)) {
        char what[80];
        snprintf(what, sizeof what, "must be an object of up to %d names, of type object",
                 NODE_LIST_MAX);
        fault_at(c, "properties", what, w->properties);
        w->properties = NULL;
    }
    if (w->required && w->base != NODE_OBJECT) {
        fault_at(c, "required", "is for objects only", w->required);
    } else if (w->required) {
        check_list(c, "required", w->required, true);
    }
    if (w->items && w->base != NODE_ARRAY) {
        fault_at(c, "items", "is for arrays only", w->items);
        w->items = NULL;
    }
    if (w->choices) {
        check_choices(c, w);
    }
}

// The spec at the path; what is in it comes later.
static void enter(struct walk *w, yyjson_val *spec, struct node_name outer)
{
    struct node_check *c = &w->c;
    if (yyjson_is_str(spec)) {
        (void)check_type(c, "", spec, outer);
        return;
    }
    if (!yyjson_is_obj(spec)) {
        fault_at(c, "", "must be the name of a type or an object", spec);
        return;
    }
    if (w->depth == NODE_TYPE_DEPTH_MAX) {
        node_fault(c, "nested more than %d levels deep", NODE_TYPE_DEPTH_MAX);
        return;
    }
    check_members(c, spec);
    yyjson_val *type = yyjson_obj_get(spec, "type");
    if (type && !check_type(c, "type", type, outer)) {
        return;
    }
    struct level *l = &w->levels[w->depth++];
    *l = (struct level){.want = node_want(outer, spec), .path_len = c->path.len};
    check_parts(c, &l->want);
    l->properties = yyjson_obj_iter_with(l->want.properties);
}

// The next property or the items of the innermost spec; back out of it where there is none.
static void advance(struct walk *w)
{
    struct level *l = &w->levels[w->depth - 1];
    struct node_check *c = &w->c;
    node_path_to(c, l->path_len);
    yyjson_val *key = l->want.properties ? yyjson_obj_iter_next(&l->properties) : NULL;
    if (key) {
        buf_puts(&c->path, ".properties");
        node_path_key(c, node_name_of(key));
        enter(w, yyjson_obj_iter_get_val(key), (struct node_name){0});
    } else if (l->want.items && !l->items_done) {
        l->items_done = true;
        buf_puts(&c->path, ".items");
        enter(w, l->want.items, l->want.item);
    } else {
        w->depth--;
    }
}

enum { MEMBERS_MAX = 3 }; // of an output

// Others that have more members than they may are refused for that, and not searched for a name.
static void check_name(struct node_check *c, yyjson_val *declared, size_t at, yyjson_val *name)
{
    size_t i, n;
    yyjson_val *other;
    if (!yyjson_is_str(name) || yyjson_get_len(name) == 0 || yyjson_get_len(name) > NODE_NAME_MAX) {
        char what[48];
        snprintf(what, sizeof what, "must be a text of 1 to %d bytes", NODE_NAME_MAX);
        fault_at(c, "name", what, name);
        return;
    }
    yyjson_arr_foreach(declared, i, n, other)
    {
        if (i < at && yyjson_obj_size(other) <= MEMBERS_MAX &&
            yyjson_equals(yyjson_obj_get(other, "name"), name)) {
            char shown[SHOWN_BYTES];
            buf_puts(&c->path, ".name");
            node_fault(c, "%s is declared twice", job_show(name, shown));
            return;
        }
    }
}

static void check_output(struct walk *w, yyjson_val *declared, size_t at, yyjson_val *output)
{
    struct node_check *c = &w->c;
    size_t i, n, len = c->path.len;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(output)) {
        fault_at(c, "", "must be {name, type, typeSpec?}", output);
        return;
    }
    yyjson_obj_foreach(output, i, n, key, value)
    {
        if (!yyjson_equals_str(key, "name") && !yyjson_equals_str(key, "type") &&
            !yyjson_equals_str(key, "typeSpec")) {
            node_path_key(c, node_name_of(key));
            node_fault(c, "unknown field: an output has name, type and typeSpec");
            node_path_to(c, len);
        }
    }
    check_name(c, declared, at, yyjson_obj_get(output, "name"));
    node_path_to(c, len);
    yyjson_val *type = yyjson_obj_get(output, "type"), *spec = yyjson_obj_get(output, "typeSpec");
    if (!check_type(c, "type", type, (struct node_name){0}) || !spec || yyjson_is_null(spec)) {
        return;
    }
    buf_puts(&c->path, ".typeSpec");
    enter(w, spec, node_name_of(type));
    while (w->depth > 0 && !node_is_full(c)) {
        advance(w);
    }
    w->depth = 0;
}

int node_declared_check(yyjson_val *declared, struct buf *faults)
{
    struct walk w = {.c = {.faults = faults, .path = BUF_INIT(NODE_PATH_BYTES)}};
    size_t i, n;
    yyjson_val *output;
    buf_puts(&w.c.path, "outputs");
    const size_t len = w.c.path.len;
    if (!declared || yyjson_is_null(declared)) {
        return node_check_end(&w.c);
    }
    if (!yyjson_is_arr(declared) || yyjson_arr_size(declared) > NODE_OUTPUTS_MAX) {
        char what[80];
        snprintf(what, sizeof what, "must be a list of up to %d {name, type, typeSpec?}",
                 NODE_OUTPUTS_MAX);
        fault_at(&w.c, "", what, declared);
        return node_check_end(&w.c);
    }
    yyjson_arr_foreach(declared, i, n, output)
    {
        node_path_index(&w.c, i);
        check_output(&w, declared, i, output);
        node_path_to(&w.c, len);
    }
    return node_check_end(&w.c);
}
