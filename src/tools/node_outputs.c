// node_outputs.c: what main returned, held against what is declared.
#include "codec/json.h"
#include "codec/utf8.h"
#include "model/refuse.h"
#include "tools/node_inner.h"

#include <errno.h>
#include <string.h>

// Specs and the brackets of array[...] lead inwards, each so deep at most.
enum { LEVELS = 2 * NODE_TYPE_DEPTH_MAX + 1 };

// A container whose elements are being looked at.
struct level {
    struct node_want want;
    yyjson_val *value;
    yyjson_arr_iter elements;
    yyjson_obj_iter members;
    size_t path_len;
};

struct walk {
    struct node_check c;
    struct level levels[LEVELS];
    size_t depth;
};

static bool is_choice(yyjson_val *choices, yyjson_val *v)
{
    size_t i, n;
    yyjson_val *one;
    yyjson_arr_foreach(choices, i, n, one)
    {
        if (yyjson_equals(one, v)) {
            return true;
        }
    }
    return false;
}

static void check_required(struct node_check *c, yyjson_val *required, yyjson_val *object)
{
    size_t i, n, len = c->path.len;
    yyjson_val *name;
    yyjson_arr_foreach(required, i, n, name)
    {
        if (node_is_full(c)) {
            return;
        }
        if (!yyjson_obj_getn(object, yyjson_get_str(name), yyjson_get_len(name))) {
            node_path_key(c, node_name_of(name));
            node_fault(c, "is missing");
            node_path_to(c, len);
        }
    }
}

// The value at the path; what is in it comes later.
static void enter(struct walk *w, const struct node_want *want, yyjson_val *v)
{
    char shown[SHOWN_BYTES];
    struct node_check *c = &w->c;
    if (yyjson_is_null(v) && want->nullable) {
        return;
    }
    if (!node_fits(want->base, v)) {
        bool number = want->base == NODE_INTEGER && yyjson_is_raw(v);
        node_fault(c, "%.*s expected, got %s%s%s",
                   (int)(want->type.len < 100 ? want->type.len : 100), want->type.text,
                   node_kind(v), number ? " " : "", number ? job_show(v, shown) : "");
        return;
    }
    if (want->choices && !is_choice(want->choices, v)) {
        node_fault(c, "%s is none of the values of its enum", job_show(v, shown));
        return;
    }
    if (want->required && yyjson_is_obj(v)) {
        check_required(c, want->required, v);
    }
    bool inwards = (yyjson_is_obj(v) && want->properties) ||
                   (yyjson_is_arr(v) && (want->items || want->item.text));
    if (!inwards || w->depth == LEVELS) {
        return;
    }
    struct level *l = &w->levels[w->depth++];
    *l = (struct level){.want = *want, .value = v, .path_len = c->path.len};
    l->elements = yyjson_arr_iter_with(v);
    l->members = yyjson_obj_iter_with(v);
}

// The next element of the innermost container; out of it where there is none.
static void advance(struct walk *w)
{
    struct level *l = &w->levels[w->depth - 1];
    struct node_check *c = &w->c;
    node_path_to(c, l->path_len);
    if (yyjson_is_arr(l->value)) {
        yyjson_val *element = yyjson_arr_iter_next(&l->elements);
        if (element) {
            const struct node_want want = node_want(l->want.item, l->want.items);
            node_path_index(c, l->elements.idx - 1);
            enter(w, &want, element);
            return;
        }
    }
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&l->members));) {
        yyjson_val *spec =
            yyjson_obj_getn(l->want.properties, yyjson_get_str(key), yyjson_get_len(key));
        if (spec) {
            const struct node_want want = node_want((struct node_name){0}, spec);
            node_path_key(c, node_name_of(key));
            enter(w, &want, yyjson_obj_iter_get_val(key));
            return;
        }
    }
    w->depth--;
}

static void check_output(struct walk *w, yyjson_val *output, yyjson_val *value)
{
    struct node_check *c = &w->c;
    yyjson_val *spec = yyjson_obj_get(output, "typeSpec");
    const struct node_want want =
        node_want(node_name_of(yyjson_obj_get(output, "type")), yyjson_is_null(spec) ? NULL : spec);
    const size_t len = c->path.len;
    node_path_key(c, node_name_of(yyjson_obj_get(output, "name")));
    if (value) {
        enter(w, &want, value);
        while (w->depth > 0 && !node_is_full(c)) {
            advance(w);
        }
        w->depth = 0;
    } else {
        node_fault(c, "is missing");
    }
    node_path_to(c, len);
}

static void put_undeclared(struct buf *out, struct node_name name, size_t n)
{
    size_t shown = name.len <= NODE_NAME_MAX ? name.len : utf8_cut(name.text, NODE_NAME_MAX);
    if (n < NODE_UNDECLARED_MAX) {
        buf_puts(out, n > 0 ? "," : "");
        utf8_json_string(out, name.text, shown);
    }
}

// Which value each declared output has; the names of others go to `undeclared`.
static void find(struct node_name *names, size_t n_names, yyjson_val *returned, yyjson_val **values,
                 struct buf *undeclared)
{
    size_t i, n, others = 0;
    yyjson_val *key, *value;
    yyjson_obj_foreach(returned, i, n, key, value)
    {
        const struct node_name name = node_name_of(key);
        size_t at = 0;
        while (at < n_names && !node_name_equals(names[at], name)) {
            at++;
        }
        if (at < n_names) {
            values[at] = value;
        } else {
            put_undeclared(undeclared, name, others++);
        }
    }
    if (!yyjson_is_obj(returned)) {
        const struct node_name result = {"result", 6};
        size_t at = 0;
        while (at < n_names && !node_name_equals(names[at], result)) {
            at++;
        }
        if (at < n_names) {
            values[at] = returned;
        } else {
            put_undeclared(undeclared, result, 0);
        }
    }
}

static int put_all(struct buf *out, yyjson_val *returned)
{
    bool object = yyjson_is_obj(returned);
    buf_puts(out, object ? "" : "{\"result\":");
    int e = json_write(out, returned);
    buf_puts(out, object ? "" : "}");
    return e ? e : out->error;
}

static int put_outputs(struct buf *out, const struct node_name *names, yyjson_val *const *values,
                       size_t n)
{
    int e = 0;
    buf_putc(out, '{');
    for (size_t i = 0; i < n && !e; i++) {
        buf_puts(out, i > 0 ? "," : "");
        utf8_json_string(out, names[i].text, names[i].len);
        buf_putc(out, ':');
        e = json_write(out, values[i]);
    }
    buf_putc(out, '}');
    return e ? e : out->error;
}

int node_outputs(yyjson_val *declared, yyjson_val *returned, struct buf *out,
                 struct buf *undeclared, struct buf *faults)
{
    struct node_name names[NODE_OUTPUTS_MAX];
    yyjson_val *values[NODE_OUTPUTS_MAX] = {0};
    struct walk w = {.c = {.faults = faults, .path = BUF_INIT(NODE_PATH_BYTES)}};
    size_t i, n, n_names = 0;
    yyjson_val *output;
    yyjson_arr_foreach(declared, i, n, output)
    {
        if (n_names < NODE_OUTPUTS_MAX) {
            names[n_names++] = node_name_of(yyjson_obj_get(output, "name"));
        }
    }
    buf_putc(undeclared, '[');
    if (n_names == 0) {
        buf_putc(undeclared, ']');
        int e = put_all(out, returned);
        return e || undeclared->error ? -ENOMEM : 0;
    }
    find(names, n_names, returned, values, undeclared);
    buf_putc(undeclared, ']');
    buf_puts(&w.c.path, "outputs");
    yyjson_arr_foreach(declared, i, n, output)
    {
        if (i < n_names && !node_is_full(&w.c)) {
            check_output(&w, output, values[i]);
        }
    }
    int e = node_check_end(&w.c);
    if (!e && (put_outputs(out, names, values, n_names) || undeclared->error)) {
        e = -ENOMEM;
    }
    return e;
}
