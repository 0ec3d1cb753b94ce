// workflow_read.c: a code node, as its caller gives it, becomes a job.
#include "api/workflow.h"

#include "base/fd.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "model/refuse.h"
#include "tools/node.h"

#include <errno.h>
#include <string.h>

enum { MEMBERS_MAX = 2, FAULTS_MAX = 20 };

struct inputs {
    struct buf *out, *faults;
    unsigned n_faults;
};

static void fault(struct inputs *in, size_t at, const char *member, const char *what)
{
    if (++in->n_faults <= FAULTS_MAX) {
        buf_printf(in->faults, "%sinputs[%zu]%s\t%s", in->n_faults > 1 ? "\n" : "", at, member,
                   what);
    } else if (in->n_faults == FAULTS_MAX + 1) {
        buf_puts(in->faults, "\nand more");
    }
}

// One that has more members than it may is refused for that, and not searched for its name: not
// once for each of the others.
static bool is_twice(yyjson_val *list, size_t at, yyjson_val *name)
{
    size_t i, n;
    yyjson_val *other;
    yyjson_arr_foreach(list, i, n, other)
    {
        if (i == at) {
            break;
        }
        if (yyjson_obj_size(other) <= MEMBERS_MAX &&
            yyjson_equals(yyjson_obj_get(other, "name"), name)) {
            return true;
        }
    }
    return false;
}

static void check_input(struct inputs *in, yyjson_val *list, size_t at, bool with_value)
{
    yyjson_val *input = yyjson_arr_get(list, at), *name = yyjson_obj_get(input, "name");
    yyjson_val *value = yyjson_obj_get(input, "value");
    char what[SHOWN_BYTES + 32], shown[SHOWN_BYTES];
    if (!yyjson_is_obj(input)) {
        fault(in, at, "", "must be {name, value}");
        return;
    }
    if (yyjson_obj_size(input) > (name != NULL) + (size_t)(value != NULL)) {
        fault(in, at, "", "unknown field: an input has name and value");
    }
    if (!yyjson_is_str(name) || yyjson_get_len(name) == 0 || yyjson_get_len(name) > NODE_NAME_MAX) {
        fault(in, at, ".name", "must be a text of 1 to 256 bytes");
    } else if (is_twice(list, at, name)) {
        snprintf(what, sizeof what, "%s is there twice", job_show(name, shown));
        fault(in, at, ".name", what);
    }
    if (!value && with_value) {
        fault(in, at, ".value", "is missing");
    }
}

static int put_list(struct inputs *in, yyjson_val *list, bool with_values)
{
    size_t i, n;
    yyjson_val *input;
    int e = 0;
    if (yyjson_arr_size(list) > WORKFLOW_INPUTS_MAX) {
        buf_printf(in->faults, "inputs\t%zu are above the maximum of %d", yyjson_arr_size(list),
                   WORKFLOW_INPUTS_MAX);
        return -EINVAL;
    }
    for (i = 0; i < yyjson_arr_size(list); i++) {
        check_input(in, list, i, with_values);
    }
    if (in->n_faults > 0) {
        return -EINVAL;
    }
    buf_putc(in->out, '{');
    yyjson_arr_foreach(list, i, n, input)
    {
        yyjson_val *name = yyjson_obj_get(input, "name"), *value = yyjson_obj_get(input, "value");
        buf_puts(in->out, i > 0 ? "," : "");
        utf8_json_string(in->out, yyjson_get_str(name), yyjson_get_len(name));
        buf_putc(in->out, ':');
        e = e ? e : value ? json_write(in->out, value) : buf_puts(in->out, "null");
    }
    buf_putc(in->out, '}');
    return e ? e : in->out->error;
}

int workflow_inputs(yyjson_val *inputs, bool with_values, struct buf *out, struct buf *faults)
{
    struct inputs in = {.out = out, .faults = faults};
    char shown[SHOWN_BYTES];
    if (!inputs || yyjson_is_null(inputs)) {
        return buf_puts(out, "{}");
    }
    if (yyjson_is_obj(inputs)) {
        return json_write(out, inputs);
    }
    if (yyjson_is_arr(inputs)) {
        return put_list(&in, inputs, with_values);
    }
    buf_printf(faults, "inputs\tmust be an object or a list of {name, value}, not %s",
               job_show(inputs, shown));
    return -EINVAL;
}

int workflow_outputs(yyjson_val *outputs, struct buf *out, struct buf *faults)
{
    int e = node_declared_check(outputs, faults);
    if (e) {
        return e;
    }
    struct buf text = BUF_INIT(NODE_DECLARED_BYTES);
    e = outputs ? json_write(&text, outputs) : buf_puts(&text, "null");
    if (e == -EMSGSIZE) {
        buf_printf(faults, "outputs\tabove the maximum of %d bytes", NODE_DECLARED_BYTES);
        e = -EINVAL;
    }
    e = e ? e : buf_add(out, text.data, text.len);
    buf_free(&text);
    return e;
}

int workflow_job(yyjson_val *node, const struct buf *params, struct job *ret,
                 struct job_error *ret_error)
{
    static const char *const same[] = {"language", "code", "timeout", "limits"};
    AUTO_BUF struct buf job = BUF_INIT(JOB_MAX_JSON_BYTES);
    int e = buf_puts(&job, "{\"params\":");
    buf_puts(&job, params ? buf_text(params) : "{}");
    for (size_t i = 0; i < ARRAY_LEN(same) && !e; i++) {
        yyjson_val *v = yyjson_obj_get(node, same[i]);
        if (v) {
            buf_printf(&job, ",\"%s\":", same[i]);
            e = json_write(&job, v);
        }
    }
    buf_putc(&job, '}');
    e = e ? e : job.error;
    if (e) {
        *ret = (struct job){.stdin_fd = -1};
        return job_refuse(ret_error, "job", "%s", strerrordesc_np(-e));
    }
    e = job_parse(buf_text(&job), job.len, 0, ret, ret_error);
    ret->entry = JOB_ENTRY_MAIN;
    return e;
}

void workflow_join(struct buf *out, const struct buf *faults)
{
    const char *text = buf_text(faults);
    for (const char *c = text; c < text + faults->len; c++) {
        if (*c == '\n') {
            buf_puts(out, "; ");
        } else if (*c == '\t') {
            buf_puts(out, ": ");
        } else {
            buf_putc(out, *c);
        }
    }
}
