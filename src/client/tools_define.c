// `isle tools create` and `update`: a definition out of a file of code, options, and what the tool
// was before.
#include "client/tools.h"

#include "base/fd.h"
#include "client/print.h"
#include "codec/json.h"
#include "codec/json_out.h"
#include "codec/utf8.h"

#include <string.h>

enum {
    DEFINITION_MAX = 4 << 20,
    NAME_MAX_BYTES = 100,
};

struct definition {
    struct client *c;
    const char *file;     // or NULL
    const char *language; // `file` is code in it; NULL: a definition as JSON
    struct buf code;
    yyjson_doc *doc;  // of the file that is a definition
    yyjson_val *base; // whose members stay but where an option says otherwise; NULL: none
    yyjson_val *code_config;
    bool whole; // all of `base` is sent, else only what changes
    struct buf out;
};

#define complain(...) verb_complain("tools", __VA_ARGS__)

// ---- The file

static const char *language_of(const char *file)
{
    static const struct {
        const char *ending, *language;
    } rows[] = {{".py", "python"},      {".js", "javascript"}, {".cjs", "javascript"},
                {".mjs", "javascript"}, {".sh", "bash"},       {".bash", "bash"}};
    size_t len = strlen(file);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t n = strlen(rows[i].ending);
        if (len > n && strcmp(file + len - n, rows[i].ending) == 0) {
            return rows[i].language; // what the service does not take it refuses by name
        }
    }
    return NULL;
}

// Is it a definition by its name?
static bool says_json(const char *file)
{
    size_t len = strlen(file);
    return strcmp(file, "-") == 0 || (len > 5 && strcmp(file + len - 5, ".json") == 0);
}

static int read_definition(struct definition *d, const struct buf *text)
{
    struct json_error why;
    d->doc = json_parse_envelope(buf_text(text), text->len, &why);
    d->base = yyjson_doc_get_root(d->doc);
    d->whole = true;
    if (!d->doc && says_json(d->file)) {
        return client_no_json(d->c, d->file, text, &why,
                              "a definition is an object as JSON with name and code_config; code "
                              "needs --language here");
    }
    if (!d->doc) {
        return complain("%.300s: its name says no language (.py, .js, .cjs, .mjs) and no "
                        "definition (.json): give --language python or javascript",
                        d->file);
    }
    if (!yyjson_is_obj(d->base)) {
        return complain("%.300s: a definition must be an object", d->file);
    }
    d->code_config = yyjson_obj_get(d->base, "code_config");
    return 0;
}

// 0 or an exit status after a complaint.
static int read_file(struct definition *d)
{
    const char *given = d->c->command.options.language;
    d->language = given ? given : language_of(d->file);
    d->code = BUF_INIT(DEFINITION_MAX);
    int status = client_read(d->c, d->file, &d->code);
    if (status) {
        return status;
    }
    if (!d->language) {
        return read_definition(d, &d->code);
    }
    size_t bom = d->code.len >= 3 && memcmp(d->code.data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (bom) { // editors put it there; it belongs to no language
        memmove(d->code.data, d->code.data + bom, d->code.len - bom);
        d->code.len -= bom;
    }
    const char *code = buf_text(&d->code);
    return utf8_valid(code, d->code.len)
               ? 0
               : complain("%.300s: not valid UTF-8 at byte %zu; save it as UTF-8", d->file,
                          utf8_valid_prefix(code, d->code.len) + bom);
}

// ---- A parameter: NAME[:TYPE[:CHOICE,CHOICE...]][!][=DEFAULT][ # DESCRIPTION]

struct spec {
    char *name, *type, *choices, *initial, *description; // NULL: not said
    bool required, list;
};

// Cuts `text` in two at the first of `mark`; what is behind it, or NULL.
static char *cut(char *text, const char *mark)
{
    char *at = strstr(text, mark);
    if (at) {
        *at = '\0';
        at += strlen(mark);
    }
    return at;
}

static bool take_end(char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    bool there = n >= k && strcmp(text + n - k, end) == 0;
    if (there) {
        text[n - k] = '\0';
    }
    return there;
}

static void read_spec(char *text, struct spec *ret)
{
    struct spec s = {.name = text};
    s.description = cut(text, " # ");
    s.initial = cut(text, "=");
    s.required = take_end(text, "!");
    s.type = cut(text, ":");
    s.choices = s.type ? cut(s.type, ":") : NULL;
    s.list = s.type && take_end(s.type, "[]");
    *ret = s;
}

// A value of the parameter's type: text as it is, what is not text as JSON. 0 or an exit status.
static int put_typed(struct buf *out, const char *key, const struct spec *s, const char *value)
{
    static const struct {
        const char *type, *such_as;
    } rows[] = {{"boolean", "true or false"},
                {"array", "such as [\"a\", \"b\"]"},
                {"object", "such as {\"a\": 1}"}};
    struct json_error ignored;
    const char *such_as = "such as 12";
    if (!s->list && (!s->type || strcmp(s->type, "string") == 0)) {
        json_put_text(out, key, value);
        return 0;
    }
    if (json_check(value, strlen(value), &ignored) == 0) {
        json_put_json(out, key, value);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        such_as =
            strcmp(s->list ? "array" : s->type, rows[i].type) == 0 ? rows[i].such_as : such_as;
    }
    return complain("--parameter: %.100s: %.100s is no JSON, as a value of type %.60s%s must be: "
                    "%s",
                    s->name, value, s->type, s->list ? "[]" : "", such_as);
}

static int put_choices(struct buf *out, const struct spec *s)
{
    int status = 0;
    json_begin(out, "enum", '[');
    for (char *one = s->choices, *next; one && !status; one = next) {
        next = cut(one, ",");
        status = put_typed(out, NULL, s, one);
    }
    json_end(out, ']');
    return status;
}

static int put_spec(struct buf *out, const struct spec *s)
{
    int status = 0;
    json_begin(out, NULL, '{');
    json_put_text(out, "name", s->name);
    json_put_text(out, "type", s->list ? "array" : s->type ? s->type : "string");
    if (s->list) {
        json_begin(out, "items", '{');
        json_put_text(out, "type", s->type);
        json_end(out, '}');
    }
    if (s->description) {
        json_put_text(out, "description", s->description);
    }
    if (s->required) {
        json_put_bool(out, "required", true);
    }
    status = s->choices ? put_choices(out, s) : 0;
    status = !status && s->initial ? put_typed(out, "default", s, s->initial) : status;
    json_end(out, '}');
    return status;
}

static int put_parameters(struct definition *d)
{
    const struct option_list *list = &d->c->command.options.parameters;
    int status = 0;
    json_begin(&d->out, "parameters", '[');
    for (size_t i = 0; i < list->n && !status; i++) {
        AUTO_FREE char *text = strdup(list->words[i]);
        struct spec s;
        if (!text) {
            return complain("not enough memory");
        }
        if (!utf8_valid(text, strlen(text))) {
            return complain("--parameter: number %zu: not valid UTF-8 at byte %zu", i + 1,
                            utf8_valid_prefix(text, strlen(text)));
        }
        read_spec(text, &s);
        status = strchr(s.name, '!') ? complain("--parameter: %.100s: ! stands behind the type: "
                                                "NAME[:TYPE[:CHOICE,CHOICE]][!][=DEFAULT][ # TEXT]",
                                                list->words[i])
                                     : put_spec(&d->out, &s);
    }
    json_end(&d->out, ']');
    return status;
}

// ---- code_config

static bool changes_code(const struct definition *d)
{
    const struct remote_options *o = &d->c->command.options;
    return d->language || o->timeout || o->artifacts.n > 0;
}

// The members of `object` whose names are not in `except`, which ends with NULL.
static void put_others(struct buf *out, yyjson_val *object, const char *const *except)
{
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(object, i, n, key, value)
    {
        const char *const *e = except;
        while (*e && !yyjson_equals_str(key, *e)) {
            e++;
        }
        if (!*e) {
            tools_put_value(out, key, value);
        }
    }
}

// Members that are written anew, for put_others().
struct except {
    const char *names[16];
    size_t n;
};

static void except_if(struct except *e, bool anew, const char *name)
{
    if (anew) {
        e->names[e->n++] = name;
    }
}

static void put_artifacts(struct buf *out, const struct option_list *list)
{
    json_begin(out, "artifacts", '[');
    for (size_t i = 0; i < list->n; i++) {
        size_t len = strlen(list->words[i]);
        bool optional = len > 1 && list->words[i][len - 1] == '?';
        json_begin(out, NULL, '{');
        json_put_bytes(out, "path", list->words[i], len - optional);
        json_put_bool(out, "optional", optional);
        json_end(out, '}');
    }
    json_end(out, ']');
}

static void put_code_config(struct definition *d)
{
    static const char *const timeout[] = {"timeout_seconds", NULL};
    const struct remote_options *o = &d->c->command.options;
    struct except anew = {};
    except_if(&anew, d->language != NULL, "language");
    except_if(&anew, d->language != NULL, "code");
    except_if(&anew, o->timeout != NULL, "limits");
    except_if(&anew, o->artifacts.n > 0, "artifacts");
    json_begin(&d->out, "code_config", '{');
    put_others(&d->out, d->code_config, anew.names);
    if (d->language) {
        json_put_text(&d->out, "language", d->language);
        json_put_bytes(&d->out, "code", buf_text(&d->code), d->code.len);
    }
    if (o->timeout) {
        json_begin(&d->out, "limits", '{');
        put_others(&d->out, yyjson_obj_get(d->code_config, "limits"), timeout);
        json_put_json(&d->out, timeout[0], o->timeout);
        json_end(&d->out, '}');
    }
    if (o->artifacts.n > 0) {
        put_artifacts(&d->out, &o->artifacts);
    }
    json_end(&d->out, '}');
}

// ---- The whole

// The name that a file of code gives its tool: "lib/greet.py" is greet. 0 or an exit status after a
// complaint.
static int put_name_of(struct buf *out, const char *file)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    enum { N_LETTERS = 52 };
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    const char *dot = strrchr(base, '.');
    size_t len = dot && dot > base ? (size_t)(dot - base) : strlen(base);
    bool letter = len > 0 && memchr(letters, base[0], N_LETTERS);
    if (!letter || strspn(base, letters) < len || len > NAME_MAX_BYTES) {
        return complain("%.300s: %.*s is no name of a tool (letters, digits and _, a letter first, "
                        "up to %d): give one with --name",
                        file, (int)(len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES), base,
                        NAME_MAX_BYTES);
    }
    json_put_bytes(out, "name", base, len);
    return 0;
}

// What an answer of the service has beside a definition: `isle tools show --json` may be edited and
// handed in again. Its `version` stays in an update: it must still be that one.
static const char *const answered[] = {"id", "shared_by", "permission", "created_at", "updated_at"};

// 0 or an exit status after a complaint.
static int put_definition(struct definition *d, bool create)
{
    const struct remote_options *o = &d->c->command.options;
    int status = 0;
    bool code = changes_code(d);
    struct except anew = {};
    for (size_t i = 0; i < ARRAY_LEN(answered); i++) {
        except_if(&anew, true, answered[i]);
    }
    except_if(&anew, o->name != NULL, "name");
    except_if(&anew, o->description != NULL, "description");
    except_if(&anew, o->parameters.n > 0, "parameters");
    except_if(&anew, code, "code_config");
    except_if(&anew, create || o->if_version, "version");
    json_begin(&d->out, NULL, '{');
    put_others(&d->out, d->whole ? d->base : NULL, anew.names);
    if (o->name) {
        json_put_text(&d->out, "name", o->name);
    } else if (create && d->language) {
        status = put_name_of(&d->out, d->file);
    }
    if (o->description) {
        json_put_text(&d->out, "description", o->description);
    }
    status = !status && o->parameters.n > 0 ? put_parameters(d) : status;
    if (code) {
        put_code_config(d);
    }
    if (o->if_version) {
        json_put_json(&d->out, "version", o->if_version);
    }
    return status;
}

static int send(struct definition *d, const char *method, const char *path,
                int (*print)(yyjson_val *))
{
    json_end(&d->out, '}');
    if (d->out.error) {
        return complain("the definition is above the maximum of %d bytes", DEFINITION_MAX);
    }
    struct call call = CALL_INIT(method, path);
    call.body = buf_text(&d->out);
    call.body_len = d->out.len;
    return client_tell(d->c, &call, print);
}

static bool are_numbers(const struct client *c)
{
    const struct remote_options *o = &c->command.options;
    return (!o->timeout || client_number(c, "--timeout", o->timeout)) &&
           (!o->if_version || client_number(c, "--if-version", o->if_version));
}

static void definition_done(struct definition *d)
{
    buf_free(&d->code);
    buf_free(&d->out);
    yyjson_doc_free(d->doc);
}

static int tell_id(yyjson_val *data) { return print_word(stdout, yyjson_obj_get(data, "id")); }

int tools_create(struct client *c)
{
    struct definition d = {.c = c, .file = c->command.operands[0], .out = BUF_INIT(DEFINITION_MAX)};
    int status = are_numbers(c) ? read_file(&d) : CLI_REFUSED;
    status = status ? status : put_definition(&d, true);
    status = status ? status : send(&d, "POST", CLIENT_API TOOLS, tell_id);
    definition_done(&d);
    return status;
}

static int tell_updated(yyjson_val *data)
{
    AUTO_BUF struct buf version = BUF_INIT(1 << 10);
    json_write(&version, yyjson_obj_get(data, "version"));
    verb_complain(NULL, "it is at version %s now", buf_text(&version));
    return 0;
}

// What of the old tool a change of its code keeps is the caller's to name: the version that it saw.
static void put_seen_version(struct definition *d, yyjson_val *tool)
{
    AUTO_BUF struct buf version = BUF_INIT(1 << 10);
    if (!d->whole && changes_code(d) && !d->c->command.options.if_version &&
        json_write(&version, yyjson_obj_get(tool, "version")) == 0) {
        json_put_json(&d->out, "version", buf_text(&version));
    }
}

static int update(struct definition *d)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    yyjson_doc *doc;
    char id[TOOLS_ID_MAX];
    int status = 0;
    yyjson_val *tool = tools_fetch(d->c, id, &doc, &status);
    if (!tool) {
        return status;
    }
    client_path(&path, TOOLS "/%s", id);
    d->code_config = d->whole ? d->code_config : yyjson_obj_get(tool, "code_config");
    status = put_definition(d, false);
    put_seen_version(d, tool);
    yyjson_doc_free(doc);
    return status ? status : send(d, "PUT", buf_text(&path), tell_updated);
}

int tools_update(struct client *c)
{
    const struct remote_options *o = &c->command.options;
    struct definition d = {.c = c, .out = BUF_INIT(DEFINITION_MAX)};
    d.file = c->command.n_operands > 1 ? c->command.operands[1] : NULL;
    if (!d.file && !o->name && !o->description && o->parameters.n == 0 && !changes_code(&d)) {
        return complain("update: nothing to change: give FILE or an option");
    }
    if (!d.file && o->language) {
        return complain("--language: of which FILE?");
    }
    int status = are_numbers(c) && d.file ? read_file(&d) : are_numbers(c) ? 0 : CLI_REFUSED;
    status = status ? status : update(&d);
    definition_done(&d);
    return status;
}
