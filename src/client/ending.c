#include "client/ending.h"

#include "base/fd.h"
#include "cli/report.h"
#include "client/print.h"
#include "codec/json.h"

#include <string.h>

// A command's result is its output once more: that is not printed twice.
static bool is_own_value(yyjson_val *root)
{
    const char *result = yyjson_get_str(yyjson_obj_get(root, "result"));
    const char *output = yyjson_get_str(yyjson_obj_get(root, "stdout"));
    return !result || !output || !strstr(output, result);
}

static int print(const struct client *c, const struct buf *final, bool own_value, bool line_open)
{
    struct report report = {.json = c->command.options.json,
                            .snippet = own_value,
                            .terminal = isatty(STDERR_FILENO),
                            .line_open = line_open && !c->command.options.json,
                            .out = stdout,
                            .err = stderr};
    int status = report_print(&report, final);
    return status >= 0 ? status
                       : verb_complain(c->command.verb->name, "the service's result is none");
}

int ending_print(const struct client *c, const struct buf *final, bool line_open)
{
    struct json_error ignored;
    yyjson_doc *doc = json_parse_envelope(buf_text(final), final->len, &ignored);
    if (!doc) {
        return verb_complain(c->command.verb->name, "the service's result is none");
    }
    bool own_value = is_own_value(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    return print(c, final, own_value, line_open);
}

int ending_print_whole(const struct client *c, yyjson_val *result, bool own_value)
{
    AUTO_BUF struct buf final = BUF_INIT(CALL_RESULT_MAX);
    if (json_write(&final, result)) {
        return verb_complain(c->command.verb->name, "the result is too large");
    }
    yyjson_val *out = yyjson_obj_get(result, "stdout"), *err = yyjson_obj_get(result, "stderr");
    size_t len = yyjson_is_str(out) ? yyjson_get_len(out) : 0;
    if (!c->command.options.json) {
        print_text(stdout, out);
        fflush(stdout);
        print_text(stderr, err);
    }
    return print(c, &final, own_value || is_own_value(result),
                 len > 0 && yyjson_get_str(out)[len - 1] != '\n');
}
