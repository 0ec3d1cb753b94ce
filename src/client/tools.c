// `isle tools`: what lists, shows and keeps them. What a tool is made of: tools_define.c; a call of
// one: tools_run.c.
#include "client/tools.h"

#include "base/fd.h"
#include "client/print.h"
#include "codec/json.h"
#include "codec/json_out.h"

#include <string.h>

enum {
    PAGES_MAX = 4000, // of large tools a page has two
    PAGE = 1000,
    IMPORT_MAX = 64 << 20,
};

// A line for people about what was done.
#define note(...) (void)verb_complain(NULL, __VA_ARGS__)

static const struct print_column list_columns[] = {
    {"tool", "name"},          {"id", "id"},
    {"version", "version"},    {"enabled", "is_enabled"},
    {"may", "permission"},     {"shared by", "shared_by"},
    {"updated", "updated_at"}, {"description", "description"},
};

static const struct print_column show_fields[] = {
    {"tool", "name"},
    {"id", "id"},
    {"title", "display_name"},
    {"description", "description"},
    {"category", "category"},
    {"icon", "icon"},
    {"version", "version"},
    {"enabled", "is_enabled"},
    {"may", "permission"},
    {"shared by", "shared_by"},
    {"created", "created_at"},
    {"updated", "updated_at"},
    {"language", "code_config.language"},
    {"command", "code_config.command"},
    {"Python packages", "code_config.python_packages"},
    {"JavaScript packages", "code_config.js_packages"},
    {"artifacts", "code_config.artifacts"},
    {"limits", "code_config.limits"},
};

static const struct print_column parameter_columns[] = {
    {"parameter", "name"},    {"type", "type"},
    {"required", "required"}, {"default", "default", .json = true},
    {"choices", "enum"},      {"description", "description"},
};

// ---- Which one

void tools_put(struct buf *out, const char *key, size_t len, const char *json)
{
    json_put_bytes(out, NULL, key, len);
    buf_putc(out, ':');
    buf_puts(out, json);
}

void tools_put_value(struct buf *out, yyjson_val *key, yyjson_val *value)
{
    AUTO_BUF struct buf text = BUF_INIT(out->max);
    if (json_write(&text, value)) {
        out->error = out->error ? out->error : -ENOMEM;
        return;
    }
    tools_put(out, yyjson_get_str(key), yyjson_get_len(key), buf_text(&text));
}

// A UUID, which no name can be. What the service says of one comes into paths.
static bool is_id(const char *text)
{
    enum { UUID_CHARS = 36 };
    return text && strlen(text) == UUID_CHARS && strspn(text, "0123456789abcdef-") == UUID_CHARS &&
           text[8] == '-';
}

struct search {
    const char *name;
    char id[TOOLS_ID_MAX];
    unsigned shared; // how many of other teams have the name
    bool own;
};

static void search_page(struct search *s, yyjson_val *items)
{
    size_t i, n;
    yyjson_val *item;
    yyjson_arr_foreach(items, i, n, item)
    {
        const char *id = yyjson_get_str(yyjson_obj_get(item, "id"));
        bool own = yyjson_equals_str(yyjson_obj_get(item, "permission"), "owner");
        if (s->own || !yyjson_equals_str(yyjson_obj_get(item, "name"), s->name) || !is_id(id)) {
            continue;
        }
        s->own = own;
        s->shared += !own;
        snprintf(s->id, sizeof s->id, "%s", id);
    }
}

// All pages until the team's own one is there. 0 or an exit status after a complaint.
static int search_all(struct client *c, struct search *s)
{
    AUTO_FREE char *cursor = NULL;
    for (unsigned page = 0; page < PAGES_MAX && !s->own; page++) {
        AUTO_BUF struct buf path = BUF_INIT(1 << 16);
        yyjson_doc *doc;
        int status = 0;
        client_path(&path, TOOLS);
        buf_printf(&path, "?limit=%d", PAGE);
        client_query(&path, "cursor", cursor);
        struct call call = CALL_INIT("GET", buf_text(&path));
        yyjson_val *data = client_ask(c, &call, &doc, &status);
        if (!data) {
            return status;
        }
        search_page(s, yyjson_obj_get(data, "items"));
        const char *next = yyjson_get_str(yyjson_obj_get(data, "next_cursor"));
        free(cursor);
        cursor = next ? strdup(next) : NULL;
        yyjson_doc_free(doc);
        if (!cursor) {
            return 0;
        }
    }
    return s->own ? 0 : verb_complain("tools", "the list of tools has no end");
}

int tools_find(struct client *c, char ret_id[TOOLS_ID_MAX])
{
    struct search s = {.name = c->command.operands[0]};
    if (is_id(s.name)) {
        snprintf(ret_id, TOOLS_ID_MAX, "%s", s.name);
        return 0;
    }
    int status = search_all(c, &s);
    if (status) {
        return status;
    }
    if (!s.own && s.shared > 1) {
        return verb_complain("tools",
                             "%.100s: %u tools of that name are shared with your team; say which "
                             "by its id (isle tools list)",
                             s.name, s.shared);
    }
    if (!s.id[0]) {
        return verb_complain("tools",
                             "%.100s: there is no such tool of your team or shared with it; "
                             "`isle tools list` lists them",
                             s.name);
    }
    snprintf(ret_id, TOOLS_ID_MAX, "%s", s.id);
    return 0;
}

// A call about the tool that was named.
static int call_one(struct client *c, const char *method, const char *behind,
                    const struct buf *body, int (*print)(yyjson_val *))
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    char id[TOOLS_ID_MAX];
    int status = tools_find(c, id);
    if (status) {
        return status;
    }
    client_path(&path, TOOLS "/%s", id);
    buf_puts(&path, behind);
    struct call call = CALL_INIT(method, buf_text(&path));
    if (body) {
        call.body = buf_text(body);
        call.body_len = body->len;
    }
    return client_tell(c, &call, print);
}

yyjson_val *tools_fetch(struct client *c, char ret_id[TOOLS_ID_MAX], yyjson_doc **ret_doc,
                        int *ret_status)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    *ret_status = tools_find(c, ret_id);
    if (*ret_status) {
        return NULL;
    }
    client_path(&path, TOOLS "/%s", ret_id);
    struct call call = CALL_INIT("GET", buf_text(&path));
    return client_ask(c, &call, ret_doc, ret_status);
}

// ---- list, show, versions, shares

static int tell_list(yyjson_val *data)
{
    return print_list_or(data, list_columns, ARRAY_LEN(list_columns),
                         "there is no tool; `isle tools create FILE` saves one");
}

static int tell_rest(yyjson_val *data)
{
    return print_list(data, list_columns, ARRAY_LEN(list_columns));
}

static int tell_one(yyjson_val *data)
{
    yyjson_val *parameters = yyjson_obj_get(data, "parameters");
    yyjson_val *config = yyjson_obj_get(data, "code_config");
    const char *code = yyjson_get_str(yyjson_obj_get(config, "code"));
    size_t len = yyjson_get_len(yyjson_obj_get(config, "code"));
    int e = print_fields(stdout, data, show_fields, ARRAY_LEN(show_fields));
    if (!e && yyjson_arr_size(parameters) > 0) {
        putchar('\n');
        e = print_table(stdout, isatty(STDOUT_FILENO), parameters, parameter_columns,
                        ARRAY_LEN(parameter_columns));
    }
    if (!e && code && len > 0) {
        putchar('\n');
        e = print_code(stdout, code, len);
        fputs(code[len - 1] == '\n' ? "" : "\n", stdout);
    }
    return e;
}

static int tell_versions(yyjson_val *data)
{
    static const struct print_column columns[] = {
        {"version", "version"}, {"name", "name"}, {"made", "created_at"}};
    return print_list(data, columns, ARRAY_LEN(columns));
}

static int tell_shares(yyjson_val *data)
{
    static const struct print_column columns[] = {
        {"team", "team_id"}, {"may", "permission"}, {"since", "created_at"}};
    return print_list_or(data, columns, ARRAY_LEN(columns), "it is shared with nobody");
}

int tools_list(struct client *c)
{
    return client_list(c, TOOLS, c->command.options.cursor ? tell_rest : tell_list);
}

int tools_show(struct client *c) { return call_one(c, "GET", "", NULL, tell_one); }

int tools_shares(struct client *c) { return call_one(c, "GET", "/shares", NULL, tell_shares); }

int tools_versions(struct client *c)
{
    AUTO_BUF struct buf behind = BUF_INIT(1 << 16);
    bool one = c->command.n_operands > 1;
    if (one && !client_number(c, "VERSION", c->command.operands[1])) {
        return CLI_REFUSED;
    }
    buf_printf(&behind, "/versions%s%s", one ? "/" : "", one ? c->command.operands[1] : "");
    return call_one(c, "GET", buf_text(&behind), NULL, one ? tell_one : tell_versions);
}

// ---- What changes one, and what was done

static int tell_deleted(yyjson_val *data)
{
    (void)data;
    note("the tool is deleted, with its versions and shares");
    return 0;
}

static int tell_enabled(yyjson_val *data)
{
    const char *name = yyjson_get_str(yyjson_obj_get(data, "name"));
    bool on = yyjson_is_true(yyjson_obj_get(data, "is_enabled"));
    note("%s is %s", name ? name : "the tool", on ? "enabled" : "disabled");
    return 0;
}

static int tell_shared(yyjson_val *data)
{
    const char *team = yyjson_get_str(yyjson_obj_get(data, "team_id"));
    const char *may = yyjson_get_str(yyjson_obj_get(data, "permission"));
    note("team %s may %s", team ? team : "?",
         may && strcmp(may, "read_execute") == 0 ? "read and run it" : "read it");
    return 0;
}

static int tell_unshared(yyjson_val *data)
{
    (void)data;
    note("it is not shared with that team any more");
    return 0;
}

static int tell_restored(yyjson_val *data)
{
    AUTO_BUF struct buf version = BUF_INIT(1 << 10);
    json_write(&version, yyjson_obj_get(data, "version"));
    note("it is at version %s now", buf_text(&version));
    return 0;
}

int tools_delete(struct client *c) { return call_one(c, "DELETE", "", NULL, tell_deleted); }

static int toggle(struct client *c, bool on)
{
    AUTO_BUF struct buf body = BUF_INIT(1 << 10);
    json_begin(&body, NULL, '{');
    json_put_bool(&body, "is_enabled", on);
    json_end(&body, '}');
    return call_one(c, "POST", "/toggle", &body, tell_enabled);
}

int tools_enable(struct client *c) { return toggle(c, true); }

int tools_disable(struct client *c) { return toggle(c, false); }

int tools_share(struct client *c)
{
    AUTO_BUF struct buf body = BUF_INIT(1 << 20);
    json_begin(&body, NULL, '{');
    json_put_text(&body, "team_id", c->command.operands[1]);
    json_put_text(&body, "permission", c->command.options.permission);
    json_end(&body, '}');
    return call_one(c, "POST", "/share", &body, tell_shared);
}

int tools_unshare(struct client *c)
{
    AUTO_BUF struct buf behind = BUF_INIT(1 << 16);
    buf_puts(&behind, "/share/");
    address_escape(&behind, c->command.operands[1], false);
    return call_one(c, "DELETE", buf_text(&behind), NULL, tell_unshared);
}

int tools_restore(struct client *c)
{
    AUTO_BUF struct buf body = BUF_INIT(1 << 10);
    if (!client_number(c, "VERSION", c->command.operands[1])) {
        return CLI_REFUSED;
    }
    json_begin(&body, NULL, '{');
    json_put_json(&body, "version", c->command.operands[1]);
    json_end(&body, '}');
    return call_one(c, "POST", "/restore", &body, tell_restored);
}

// ---- schemas, export, import

static int tell_json(yyjson_val *data) { return print_json(stdout, data); }

int tools_schemas(struct client *c)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    client_path(&path, TOOLS "/schemas");
    client_query(&path, "format", c->command.options.format);
    client_query(&path, "shared", c->command.options.shared ? "true" : NULL);
    struct call call = CALL_INIT("GET", buf_text(&path));
    return client_tell(c, &call, tell_json);
}

int tools_export(struct client *c)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    char id[TOOLS_ID_MAX];
    bool one = c->command.n_operands > 0;
    int status = one ? tools_find(c, id) : 0;
    if (status) {
        return status;
    }
    client_path(&path, TOOLS "/export");
    client_query(&path, "id", one ? id : NULL);
    struct call call = CALL_INIT("GET", buf_text(&path));
    call.max_bytes = IMPORT_MAX;
    return client_tell(c, &call, tell_json);
}

static int tell_imported(yyjson_val *data)
{
    static const struct print_column columns[] = {
        {"tool", "name"}, {"was", "outcome"}, {"id", "id"}, {"version", "version"}};
    return print_list_or(data, columns, ARRAY_LEN(columns), "there was no tool in it");
}

int tools_import(struct client *c)
{
    AUTO_BUF struct buf text = BUF_INIT(IMPORT_MAX), body = BUF_INIT(IMPORT_MAX + 1024);
    AUTO_BUF struct buf tools = BUF_INIT(IMPORT_MAX);
    const char *path = c->command.operands[0];
    struct json_error why;
    int status = client_read(c, path, &text);
    if (status) {
        return status;
    }
    yyjson_doc *doc = json_parse_envelope(buf_text(&text), text.len, &why);
    if (!doc) {
        return client_no_json(c, path, &text, &why,
                              "import takes what `isle tools export` writes; code is for `isle "
                              "tools create`");
    }
    yyjson_val *list = yyjson_obj_get(yyjson_doc_get_root(doc), "tools");
    bool good = yyjson_is_arr(list) && json_write(&tools, list) == 0;
    yyjson_doc_free(doc);
    if (!good) {
        return verb_complain("tools",
                             "%.300s: not what `isle tools export` gives: an object with "
                             "tools, an array (`isle tools create` takes one definition)",
                             path);
    }
    json_begin(&body, NULL, '{');
    json_put_json(&body, "tools", buf_text(&tools));
    if (c->command.options.on_conflict) {
        json_put_text(&body, "on_conflict", c->command.options.on_conflict);
    }
    json_end(&body, '}');
    struct call call = CALL_INIT("POST", CLIENT_API TOOLS "/import");
    call.body = buf_text(&body);
    call.body_len = body.len;
    return client_tell(c, &call, tell_imported);
}
