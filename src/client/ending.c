#include "client/ending.h"

#include "base/fd.h"
#include "cli/report.h"
#include "client/print.h"
#include "codec/json.h"

#include <errno.h>
#include <string.h>

// A command's result is its output once more: that is not printed twice.
static bool is_own_value(yyjson_val *root)
{
    const char *result = yyjson_get_str(yyjson_obj_get(root, "result"));
    const char *output = yyjson_get_str(yyjson_obj_get(root, "stdout"));
    return !result || !output || !strstr(output, result);
}

int ending_print(const struct client *c, const struct buf *final, bool line_open)
{
    struct json_error ignored;
    yyjson_doc *doc = json_parse_envelope(buf_text(final), final->len, &ignored);
    yyjson_val *root = yyjson_doc_get_root(doc);
    struct report report = {.json = c->command.options.json,
                            .snippet = is_own_value(root),
                            .terminal = isatty(STDERR_FILENO),
                            .line_open = line_open && !c->command.options.json,
                            .out = stdout,
                            .err = stderr};
    int status = doc ? report_print(&report, final) : -EBADMSG;
    yyjson_doc_free(doc);
    return status >= 0 ? status
                       : verb_complain(c->command.verb->name, "the service's result is none");
}

int ending_print_whole(const struct client *c, yyjson_val *result)
{
    AUTO_BUF struct buf final = BUF_INIT(CALL_RESULT_MAX);
    if (json_write(&final, result)) {
        return verb_complain(c->command.verb->name, "the result is too large");
    }
    const char *out = yyjson_get_str(yyjson_obj_get(result, "stdout"));
    const char *err = yyjson_get_str(yyjson_obj_get(result, "stderr"));
    if (!c->command.options.json) {
        print_text(stdout, out ? out : "");
        fflush(stdout);
        print_text(stderr, err ? err : "");
    }
    return ending_print(c, &final, out && *out && out[strlen(out) - 1] != '\n');
}
