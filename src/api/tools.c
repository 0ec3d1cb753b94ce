// tools.c: the code tools that a team keeps: made, changed, shared, their versions. What runs one:
// tools_run.c; many at once: tools_import.c.
#include "api/page.h"
#include "api/route.h"
#include "api/schema.h"
#include "api/tool_call.h"

#include "base/clock.h"
#include "base/fd.h"
#include "codec/json.h"
#include "codec/json_out.h"

#include <stdlib.h>
#include <string.h>

enum {
    BODY_BYTES = 4 << 20, // of a definition as it is sent: what is escaped takes more room
    TRIES = 5,            // of a change that another one overtakes
};

// ---- List

static void put_given(struct buf *out, yyjson_val *definition, const char *key)
{
    yyjson_val *v = yyjson_obj_get(definition, key);
    json_put_bytes(out, key, yyjson_get_str(v), yyjson_get_len(v));
}

static void put_entry(struct buf *out, const struct store_tool *s)
{
    struct json_error ignored;
    yyjson_doc *doc = json_parse_envelope(s->body.data, s->body.len, &ignored);
    yyjson_val *definition = yyjson_doc_get_root(doc);
    json_begin(out, NULL, '{');
    json_put_bytes(out, "id", s->id.data, s->id.len);
    json_put_bytes(out, "name", s->name.data, s->name.len);
    put_given(out, definition, "display_name");
    put_given(out, definition, "description");
    put_given(out, definition, "icon");
    put_given(out, definition, "category");
    tool_call_put_kept(out, s);
    json_end(out, '}');
    yyjson_doc_free(doc);
}

static void on_list_row(void *ctx, const struct store_record *r)
{
    struct api_call *c = ctx;
    struct buf *out = api_page_row(c, r->tool.id, r->tool.body.len);
    if (out) {
        put_entry(out, &r->tool);
    }
}

static void list_tools(struct api_call *c)
{
    struct api_page *p = api_page_begin(c, SCHEMA_FORM_ID, API_LIST_LIMIT);
    if (!p) {
        return;
    }
    const struct store_query q = {.kind = STORE_LIST_SEEN_TOOLS,
                                  .team = store_text_of(c->team),
                                  .cursor = store_text_of(p->cursor),
                                  .limit = p->limit};
    store_read(c->with->store, &q,
               &(struct store_reader){on_list_row, api_page_ended, c, &p->enough});
}

// ---- One as it is

static void reply_tool(struct tool_call *t)
{
    tool_call_put(&t->data, &t->at);
    api_reply(t->call, 200, &t->data);
}

// A call about the tool of the path.
static void begin(struct api_call *c, bool owner_only, void (*then)(struct tool_call *t))
{
    struct tool_call *t = tool_call_new(c);
    if (t) {
        tool_call_read(t, c->segment[0], owner_only, then);
    }
}

static void get_tool(struct api_call *c) { begin(c, false, reply_tool); }

// ---- Create

static void hand_in_new(struct tool_call *t)
{
    char id[37];
    job_new_id(id);
    t->status = 201;
    const struct store_write w = {.kind = STORE_TOOL_CREATE,
                                  .tool = {.id = store_text_of(id),
                                           .team = store_text_of(t->call->team),
                                           .name = store_text_of(t->tool.name),
                                           .body = {t->text.data, t->text.len},
                                           .enabled = t->tool.enabled,
                                           .created_ms = clock_wall_ms()}};
    tool_call_change(t, &w, "tool created", tool_call_answer);
}

static void create_tool(struct api_call *c)
{
    struct tool_call *t = tool_call_new(c);
    if (t) {
        tool_call_parse(t, false, hand_in_new);
    }
}

// ---- Change

// The version that the caller has seen; 0: it does not say.
static int64_t version_of(const struct tool_call *t)
{
    int64_t version = 0;
    yyjson_val *v = yyjson_obj_get(t->body, "version");
    return v && !yyjson_is_null(v) && json_int(v, &version) == 0 ? version : 0;
}

static void hand_in_update(struct tool_call *t)
{
    const struct store_write w = {.kind = STORE_TOOL_UPDATE,
                                  .tool = {.id = t->at.id,
                                           .name = store_text_of(t->tool.name),
                                           .body = {t->text.data, t->text.len},
                                           .enabled = t->tool.enabled_given ? t->tool.enabled : -1,
                                           .version = t->at.version,
                                           .updated_ms = clock_wall_ms()}};
    tool_call_change(t, &w, "tool changed", tool_call_answer);
}

static void update_over(struct tool_call *t)
{
    int64_t version = version_of(t);
    if (version && version != t->at.version) {
        api_fail(t->call, API_PRECONDITION,
                 "version: the tool is at %lld, not at %lld; read it again",
                 (long long)t->at.version, (long long)version);
    } else {
        tool_call_parse(t, true, hand_in_update);
    }
}

// Another change came between: over that one, unless the caller has said over which.
static bool update_again(struct tool_call *t)
{
    if (version_of(t) || ++t->tries == TRIES) {
        return false;
    }
    tool_call_read(t, t->call->segment[0], true, update_over);
    return true;
}

static void update_tool(struct api_call *c)
{
    struct tool_call *t = tool_call_new(c);
    if (t) {
        t->stale = update_again;
        tool_call_read(t, c->segment[0], true, update_over);
    }
}

static void toggle(struct tool_call *t)
{
    yyjson_val *v = yyjson_obj_get(t->body, "is_enabled");
    bool on = yyjson_is_bool(v) ? yyjson_is_true(v) : !t->at.enabled;
    const struct store_write w = {
        .kind = STORE_TOOL_ENABLE,
        .tool = {.id = t->at.id, .enabled = on, .updated_ms = clock_wall_ms()}};
    tool_call_change(t, &w, on ? "tool enabled" : "tool disabled", tool_call_answer);
}

static void toggle_tool(struct api_call *c) { begin(c, true, toggle); }

static void reply_id(struct tool_call *t)
{
    json_begin(&t->data, NULL, '{');
    json_put_text(&t->data, "id", t->id);
    json_end(&t->data, '}');
    api_reply(t->call, 200, &t->data);
}

static void remove_it(struct tool_call *t)
{
    const struct store_write w = {.kind = STORE_TOOL_DELETE, .tool = {.id = t->at.id}};
    tool_call_change(t, &w, "tool deleted", reply_id);
}

static void delete_tool(struct api_call *c) { begin(c, true, remove_it); }

// ---- Versions

static void put_version_entry(struct buf *out, const struct store_tool *s)
{
    json_put_int(out, "version", s->version);
    json_put_bytes(out, "name", s->name.data, s->name.len);
    json_put_time(out, "created_at", s->updated_ms);
}

static void list_of_versions(struct tool_call *t)
{
    tool_call_list(t, STORE_LIST_VERSIONS, put_version_entry);
}

static void list_versions(struct api_call *c) { begin(c, true, list_of_versions); }

static void reply_version(struct tool_call *t)
{
    json_begin(&t->data, NULL, '{');
    json_put_bytes(&t->data, "id", t->at.id.data, t->at.id.len);
    tool_call_put_definition(&t->data, &t->at);
    json_put_int(&t->data, "version", t->at.version);
    json_put_time(&t->data, "created_at", t->at.updated_ms);
    json_end(&t->data, '}');
    api_reply(t->call, 200, &t->data);
}

static void read_version(struct tool_call *t)
{
    // well-formed: route.h; no version has so many digits that they would not fit
    tool_call_read_version(t, strtoll(t->call->segment[1], NULL, 10), reply_version);
}

static void get_version(struct api_call *c) { begin(c, true, read_version); }

static void hand_in_restored(struct tool_call *t)
{
    const struct store_write w = {.kind = STORE_TOOL_UPDATE,
                                  .tool = {.id = t->at.id,
                                           .name = t->at.name,
                                           .body = t->at.body,
                                           .enabled = -1,
                                           .updated_ms = clock_wall_ms()}};
    tool_call_change(t, &w, "tool restored", tool_call_answer);
}

static void restore(struct tool_call *t)
{
    tool_call_read_version(t, version_of(t), hand_in_restored);
}

static void restore_tool(struct api_call *c) { begin(c, true, restore); }

// ---- Shares

static void put_share(struct buf *out, const struct store_tool *s)
{
    json_put_bytes(out, "team_id", s->with.data, s->with.len);
    json_put_text(out, "permission", tool_permission_names[s->permission]);
    json_put_time(out, "created_at", s->created_ms);
}

static void list_of_shares(struct tool_call *t) { tool_call_list(t, STORE_LIST_SHARES, put_share); }

static void list_shares(struct api_call *c) { begin(c, true, list_of_shares); }

static const char *text_of(const struct tool_call *t, const char *field)
{
    const char *text = yyjson_get_str(yyjson_obj_get(t->body, field));
    return text ? text : ""; // there is one: its schema says so
}

static void reply_shared(struct tool_call *t)
{
    json_begin(&t->data, NULL, '{');
    json_put_text(&t->data, "id", t->id);
    json_put_text(&t->data, "team_id", t->with);
    json_put_text(&t->data, "permission", text_of(t, "permission"));
    json_end(&t->data, '}');
    api_reply(t->call, 200, &t->data);
}

static void no_row(void *ctx, const struct store_record *r)
{
    (void)ctx;
    (void)r;
}

// A team is one that has a key: what is shared with another, nobody could ever see.
static void on_key(void *ctx, int error)
{
    struct api_call *c = ctx;
    struct tool_call *t = c->ctx;
    const char *team = text_of(t, "team_id");
    bool execute = strcmp(text_of(t, "permission"), tool_permission_names[STORE_MAY_EXECUTE]) == 0;
    const struct store_write w = {
        .kind = STORE_TOOL_SHARE,
        .tool = {.id = t->at.id,
                 .with = store_text_of(team),
                 .permission = execute ? STORE_MAY_EXECUTE : STORE_MAY_READ,
                 .created_ms = clock_wall_ms()}};
    if (error == STORE_MISSING) {
        api_fail(c, API_NOT_FOUND,
                 "team_id: there is no team %s: one comes into being with its first key", team);
    } else if (error) {
        tool_call_fail_store(c, error);
    } else {
        tool_call_change(t, &w, "tool shared", reply_shared);
    }
    api_call_release(c);
}

static void share(struct tool_call *t)
{
    struct api_call *c = t->call;
    const struct store_query q = {.kind = STORE_FIND_KEY,
                                  .team = store_text_of(text_of(t, "team_id"))};
    if (strcmp(q.team.data, c->team) == 0) {
        api_fail(c, API_VALIDATION, "team_id: the tool is this team's own");
        return;
    }
    api_call_hold(c);
    store_read(c->with->store, &q, &(struct store_reader){no_row, on_key, c, NULL});
}

static void share_tool(struct api_call *c) { begin(c, true, share); }

static void reply_unshared(struct tool_call *t)
{
    json_begin(&t->data, NULL, '{');
    json_put_text(&t->data, "id", t->id);
    json_put_text(&t->data, "team_id", t->with);
    json_end(&t->data, '}');
    api_reply(t->call, 200, &t->data);
}

static void unshare(struct tool_call *t)
{
    struct api_call *c = t->call;
    const char *team = c->segment[1];
    if (t->at.permission != STORE_OWNS && strcmp(team, c->team) != 0) {
        api_fail(c, API_FORBIDDEN,
                 "team_id: the tool is shared with this team, which may end that for itself alone");
        return;
    }
    const struct store_write w = {.kind = STORE_TOOL_UNSHARE,
                                  .tool = {.id = t->at.id, .with = store_text_of(team)}};
    tool_call_change(t, &w, "tool unshared", reply_unshared);
}

static void unshare_tool(struct api_call *c) { begin(c, false, unshare); }

#define TOOLS "/api/v1/tools"
#define EXAMPLE                                                                                    \
    "{\"name\": \"add\", \"description\": \"Adds two numbers.\", \"parameters\": ["                \
    "{\"name\": \"a\", \"type\": \"number\", \"required\": true}, "                                \
    "{\"name\": \"b\", \"type\": \"number\", \"default\": 1}], "                                   \
    "\"code_config\": {\"language\": \"python\", "                                                 \
    "\"code\": \"return params['a'] + params['b']\", \"limits\": {\"timeout_seconds\": 10}}}"
static const struct api_route routes[] = {
    {.method = HTTP_M_GET,
     .path = TOOLS,
     .who = API_TEAM,
     .response = &schema_tool_list,
     .handle = list_tools,
     .query = "limit cursor",
     .summary = "The team's tools and those shared with it, the oldest first."},
    {.method = HTTP_M_POST,
     .path = TOOLS,
     .who = API_TEAM,
     .body = API_JSON,
     .max_bytes = BODY_BYTES,
     .request = &schema_tool_create,
     .example = EXAMPLE,
     .response = &schema_tool,
     .success = 201,
     .handle = create_tool,
     .summary = "Save a tool."},
    {.method = HTTP_M_GET,
     .path = TOOLS "/export",
     .who = API_TEAM,
     .response = &schema_tool_export,
     .handle = tools_export,
     .query = "id",
     .summary = "The team's own tools, or one of them, as import takes them."},
    {.method = HTTP_M_POST,
     .path = TOOLS "/import",
     .who = API_TEAM,
     .body = API_JSON,
     .max_bytes = JOB_MAX_JSON_BYTES,
     .request = &schema_tool_import,
     .example = "{\"tools\": [" EXAMPLE "], \"on_conflict\": \"skip\"}",
     .response = &schema_tool_imported,
     .handle = tools_import,
     .summary = "Save many tools: all of them, or none."},
    {.method = HTTP_M_GET,
     .path = TOOLS "/{id}",
     .who = API_TEAM,
     .response = &schema_tool,
     .handle = get_tool,
     .summary = "One tool with its definition."},
    {.method = HTTP_M_PUT,
     .path = TOOLS "/{id}",
     .who = API_TEAM,
     .body = API_JSON,
     .max_bytes = BODY_BYTES,
     .request = &schema_tool_update,
     .example = "{\"description\": \"Adds two numbers, or 1 to one.\", \"version\": 1}",
     .response = &schema_tool,
     .handle = update_tool,
     .summary = "Change a tool. Fields that are absent stay as they are; null takes one away."},
    {.method = HTTP_M_DELETE,
     .path = TOOLS "/{id}",
     .who = API_TEAM,
     .response = &schema_tool_deleted,
     .handle = delete_tool,
     .summary = "Delete a tool, with its versions and shares."},
    {.method = HTTP_M_POST,
     .path = TOOLS "/{id}/toggle",
     .who = API_TEAM,
     .body = API_JSON,
     .request = &schema_tool_toggle,
     .example = "{\"is_enabled\": false}",
     .response = &schema_tool,
     .handle = toggle_tool,
     .summary = "Switch a tool on or off; without a body the other way. Makes no version."},
    {.method = HTTP_M_POST,
     .path = TOOLS "/{id}/share",
     .who = API_TEAM,
     .body = API_JSON,
     .request = &schema_tool_share_with,
     .example = "{\"team_id\": \"search\", \"permission\": \"read_execute\"}",
     .response = &schema_tool_share,
     .handle = share_tool,
     .summary = "Share a tool with another team, or with another permission."},
    {.method = HTTP_M_DELETE,
     .path = TOOLS "/{id}/share/{team}",
     .who = API_TEAM,
     .response = &schema_tool_unshared,
     .handle = unshare_tool,
     .summary = "Share it no more. The other team may do so, too, for itself."},
    {.method = HTTP_M_GET,
     .path = TOOLS "/{id}/shares",
     .who = API_TEAM,
     .response = &schema_tool_share_list,
     .handle = list_shares,
     .summary = "The teams that a tool is shared with, oldest share first."},
    {.method = HTTP_M_GET,
     .path = TOOLS "/{id}/versions",
     .who = API_TEAM,
     .response = &schema_tool_version_list,
     .handle = list_versions,
     .summary = "A tool's versions, newest first: the last 50."},
    {.method = HTTP_M_GET,
     .path = TOOLS "/{id}/versions/{version}",
     .who = API_TEAM,
     .response = &schema_tool_version,
     .handle = get_version,
     .summary = "What a tool was at a version."},
    {.method = HTTP_M_POST,
     .path = TOOLS "/{id}/restore",
     .who = API_TEAM,
     .body = API_JSON,
     .request = &schema_tool_restore,
     .example = "{\"version\": 1}",
     .response = &schema_tool,
     .handle = restore_tool,
     .summary = "Make a tool what it was at a version. That is a version of its own."},
};

const struct api_subject api_tools = {
    "tools", "Code that a team keeps, with a name and parameters, for its models and programs.",
    routes, ARRAY_LEN(routes)};
