// `isle tools run`: words become arguments of the tool's types, and its end is told as `isle run`
// tells a job's.
#include "client/tools.h"

#include "base/fd.h"
#include "client/ending.h"
#include "codec/json.h"
#include "codec/json_out.h"
#include "codec/utf8.h"

#include <string.h>

enum {
    ARGUMENTS_MAX = 16 << 20,
    // The service bounds a call, its wait in the queue included, by STREAM_TOOL_TIMEOUT_CODE: this
    // is the most that may be. Who leaves before cancels the job.
    CALL_MAX_S = 86400 + 60,
};

// The declared parameter of that name; NULL.
static yyjson_val *parameter_of(yyjson_val *tool, const char *name, size_t len)
{
    size_t i, n;
    yyjson_val *p;
    yyjson_arr_foreach(yyjson_obj_get(tool, "parameters"), i, n, p)
    {
        const char *own = yyjson_get_str(yyjson_obj_get(p, "name"));
        if (own && strlen(own) == len && memcmp(own, name, len) == 0) {
            return p;
        }
    }
    return NULL;
}

// A text parameter takes the word as it is, another one as JSON. What is neither goes as text: the
// service says what it should have been, together with all else that is wrong.
static void put_word(struct buf *out, yyjson_val *tool, const char *word)
{
    const char *value = strchr(word, '=');
    size_t len = (size_t)(value++ - word);
    yyjson_val *p = parameter_of(tool, word, len);
    struct json_error ignored;
    bool text = !p || yyjson_equals_str(yyjson_obj_get(p, "type"), "string");
    if (!text && json_check(value, strlen(value), &ignored) == 0) {
        tools_put(out, word, len, value);
        return;
    }
    AUTO_BUF struct buf quoted = BUF_INIT(ARGUMENTS_MAX);
    utf8_json_string(&quoted, value, strlen(value));
    tools_put(out, word, len, buf_text(&quoted));
}

// Is this name among the words?
static bool is_word(const struct remote_command *c, const char *name, size_t len, size_t before)
{
    for (size_t i = 1; i < before; i++) {
        const char *word = c->operands[i];
        if (strlen(word) > len && memcmp(word, name, len) == 0 && word[len] == '=') {
            return true;
        }
    }
    return false;
}

static int check_words(const struct remote_command *c)
{
    for (size_t i = 1; i < c->n_operands; i++) {
        const char *word = c->operands[i], *value = strchr(word, '=');
        if (!value || value == word) {
            return verb_complain(
                "tools", "%.100s: an argument is NAME=VALUE, without blanks around =", word);
        }
        if (!utf8_valid(word, strlen(word))) {
            return verb_complain("tools", "argument %zu: not valid UTF-8 at byte %zu", i,
                                 utf8_valid_prefix(word, strlen(word)));
        }
        if (is_word(c, word, (size_t)(value - word), i)) {
            return verb_complain("tools", "%.*s: given twice", (int)(value - word), word);
        }
    }
    return 0;
}

// The file's members that no word replaces. 0 or an exit status after a complaint.
static int put_file(const struct client *c, struct buf *out)
{
    AUTO_BUF struct buf text = BUF_INIT(ARGUMENTS_MAX);
    const char *path = c->command.options.arguments;
    struct json_error why;
    size_t i, n;
    yyjson_val *key, *value;
    bool itself = path[0] == '{'; // as --params of `isle run` takes it
    int status = itself ? buf_puts(&text, path) : client_read(c, path + (path[0] == '@'), &text);
    if (status) {
        return status;
    }
    yyjson_doc *doc = json_parse(buf_text(&text), text.len, &why);
    if (!doc && !itself) {
        status = client_no_json(c, path + (path[0] == '@'), &text, &why,
                                "--arguments takes an object, {\"NAME\": VALUE, ...}");
    } else if (!yyjson_is_obj(yyjson_doc_get_root(doc))) {
        status = verb_complain("tools", "--arguments: %.300s: %s", path,
                               doc ? "must be an object, {\"NAME\": VALUE, ...}" : why.text);
    }
    yyjson_obj_foreach(yyjson_doc_get_root(doc), i, n, key, value)
    {
        if (!is_word(&c->command, yyjson_get_str(key), yyjson_get_len(key),
                     c->command.n_operands)) {
            tools_put_value(out, key, value);
        }
    }
    yyjson_doc_free(doc);
    return status;
}

static int put_call(const struct client *c, struct buf *body, const char *id, yyjson_val *tool)
{
    const struct remote_options *o = &c->command.options;
    int status = 0;
    json_begin(body, NULL, '{');
    json_put_text(body, "tool_id", id);
    json_begin(body, "arguments", '{');
    status = o->arguments ? put_file(c, body) : 0;
    for (size_t i = 1; !status && i < c->command.n_operands; i++) {
        put_word(body, tool, c->command.operands[i]);
    }
    json_end(body, '}');
    if (o->timeout) {
        json_put_json(body, "timeout", o->timeout);
    }
    if (o->session) {
        json_put_text(body, "session_id", o->session);
    }
    json_end(body, '}');
    return status         ? status
           : !body->error ? 0
                          : verb_complain("tools",
                                          "the arguments are above the maximum of %d "
                                          "bytes",
                                          ARGUMENTS_MAX);
}

// Words for a tool that declares nothing: who saved it has forgotten to say what it takes.
static int check_declared(const struct remote_command *c, yyjson_val *tool)
{
    if (c->n_operands < 2 || yyjson_arr_size(yyjson_obj_get(tool, "parameters")) > 0) {
        return 0;
    }
    return verb_complain("tools",
                         "%.100s: the tool has no parameters; `isle tools update %.100s -p "
                         "NAME:TYPE ...` declares them",
                         c->operands[0], c->operands[0]);
}

// 0 or an exit status after a complaint.
static int put_request(struct client *c, struct buf *body)
{
    yyjson_doc *doc;
    char id[TOOLS_ID_MAX];
    const char *timeout = c->command.options.timeout;
    int status = check_words(&c->command);
    if (status || (timeout && !client_number(c, "--timeout", timeout))) {
        return CLI_REFUSED;
    }
    yyjson_val *tool = tools_fetch(c, id, &doc, &status);
    if (tool) {
        status = check_declared(&c->command, tool);
        status = status ? status : put_call(c, body, id, tool);
        yyjson_doc_free(doc);
    }
    return status;
}

// For who sits at a terminal and wonders: a success of which nothing is seen, files that were left.
static void hint(const struct client *c, yyjson_val *data)
{
    const struct remote_options *o = &c->command.options;
    const char *job = yyjson_get_str(yyjson_obj_get(data, "job_id"));
    yyjson_val *result = yyjson_obj_get(data, "result");
    size_t files = yyjson_arr_size(yyjson_obj_get(data, "artifacts"));
    if (o->json || o->output_dir || !isatty(STDERR_FILENO) ||
        !yyjson_is_true(yyjson_obj_get(data, "success"))) {
        return;
    }
    if (files > 0 && job) {
        verb_complain(NULL, "it left %zu file%s: `isle artifacts get --output-dir DIR %.100s`",
                      files, files > 1 ? "s" : "", job);
    } else if (!o->session && (!result || yyjson_is_null(result))) {
        const char *out = yyjson_get_str(yyjson_obj_get(data, "stdout"));
        if (!out || !*out) {
            verb_complain(NULL, "it printed nothing and returned nothing: `return` at the top "
                                "level of its code gives a result");
        }
    }
}

int tools_run(struct client *c)
{
    AUTO_BUF struct buf body = BUF_INIT(ARGUMENTS_MAX);
    yyjson_doc *doc;
    int status = put_request(c, &body);
    if (status) {
        return status;
    }
    struct call call = CALL_INIT("POST", CLIENT_API TOOLS "/execute");
    call.body = buf_text(&body);
    call.body_len = body.len;
    call.max_bytes = CALL_RESULT_MAX;
    call.silence_s = CALL_MAX_S;
    yyjson_val *data = client_ask(c, &call, &doc, &status);
    if (!data) {
        return status;
    }
    status = ending_print_whole(c, data, true);
    hint(c, data);
    const char *job = yyjson_get_str(yyjson_obj_get(data, "job_id"));
    if (c->command.options.output_dir && job) {
        int fetched = artifacts_take(c, job, data, NULL);
        status = status ? status : fetched;
    }
    yyjson_doc_free(doc);
    return status;
}
