#include "api/tool_call.h"

#include "base/fd.h"
#include "codec/json.h"
#include "codec/json_out.h"
#include "log/log.h"
#include "store/record.h"
#include "workspace/disk.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RETRY_SECONDS = 5,
    HERE_BYTES = 64 << 10, // up to so many are parsed on the loop: a millisecond, most often
};

const char *const tool_permission_names[] = {[STORE_OWNS] = "owner",
                                             [STORE_MAY_READ] = "read_only",
                                             [STORE_MAY_EXECUTE] = "read_execute",
                                             NULL};

static void tool_call_free(struct tool_call *t)
{
    yyjson_doc_free(t->doc);
    tool_done(&t->tool);
    buf_free(&t->text);
    buf_free(&t->faults);
    buf_free(&t->data);
    free(t->texts);
    free(t);
}

// What a thread still uses is freed when it is done with it.
static void tool_call_end(struct api_call *c)
{
    struct tool_call *t = c->ctx;
    loop_timer_clear(c->with->loop, &t->timer);
    t->call = NULL;
    if (!t->work.queued) {
        tool_call_free(t);
    }
}

struct tool_call *tool_call_new(struct api_call *c)
{
    struct tool_call *t = calloc(1, sizeof *t);
    if (!t) {
        api_fail(c, API_INTERNAL, "no memory");
        return NULL;
    }
    *t = (struct tool_call){.call = c,
                            .doc = c->json,
                            .body = yyjson_doc_get_root(c->json),
                            .text = BUF_INIT(TOOL_BYTES_MAX),
                            .faults = BUF_INIT(TOOL_FAULTS_BYTES),
                            .data = BUF_INIT(TOOL_DATA_BYTES),
                            .status = 200};
    c->json = NULL;
    c->ctx = t;
    c->end = tool_call_end;
    return t;
}

void tool_call_fail_store(struct api_call *c, int error)
{
    api_fail_later(c, API_UNAVAILABLE, RETRY_SECONDS, "the store of the tools: %s",
                   strerrordesc_np(-error));
}

bool tool_call_has_room(struct api_call *c, size_t bytes)
{
    if (bytes == 0 || disk_takes_record(c->with->workspace_root, bytes)) {
        return true;
    }
    tool_call_fail_store(c, -ENOSPC);
    return false;
}

// ---- Read

static void on_tool(void *ctx, const struct store_record *r)
{
    struct api_call *c = ctx;
    struct tool_call *t = c->ctx;
    const struct store_write from = {.kind = STORE_TOOL_CREATE, .tool = r->tool};
    struct store_write own;
    char *texts = malloc(store_write_size(&from) + 1);
    if (!texts) {
        return; // as if it were not there: `end` tells
    }
    store_write_copy(&from, &own, texts);
    free(t->texts);
    t->texts = texts;
    t->at = own.tool;
    t->found = true;
}

static void on_tool_end(void *ctx, int error)
{
    struct api_call *c = ctx;
    struct tool_call *t = c->ctx;
    if (error == STORE_MISSING) {
        api_fail(c, API_NOT_FOUND, "%s", t->missing);
    } else if (error) {
        tool_call_fail_store(c, error);
    } else if (!t->found) {
        api_fail(c, API_INTERNAL, "no memory");
    } else if (t->owner_only && t->at.permission != STORE_OWNS) {
        api_fail(c, API_FORBIDDEN,
                 "tool: it is shared with this team (permission %s); only its own team %.*s may do "
                 "this",
                 tool_permission_names[t->at.permission], (int)t->at.team.len, t->at.team.data);
    } else {
        t->then(t);
    }
    api_call_release(c);
}

static void read_one(struct tool_call *t, const struct store_query *q,
                     void (*then)(struct tool_call *t))
{
    struct api_call *c = t->call;
    t->found = false;
    t->then = then;
    api_call_hold(c);
    store_read(c->with->store, q, &(struct store_reader){on_tool, on_tool_end, c, NULL});
}

void tool_call_read(struct tool_call *t, const char *id, bool owner_only,
                    void (*then)(struct tool_call *t))
{
    const struct store_query q = {
        .kind = STORE_GET_TOOL, .id = store_text_of(id), .team = store_text_of(t->call->team)};
    t->owner_only = owner_only;
    t->missing = "tool: there is none with this id, or it is not shared with this team";
    read_one(t, &q, then);
}

void tool_call_read_version(struct tool_call *t, int64_t version, void (*then)(struct tool_call *t))
{
    snprintf(t->id, sizeof t->id, "%.*s", (int)t->at.id.len, t->at.id.data);
    const struct store_query q = {
        .kind = STORE_GET_VERSION, .id = store_text_of(t->id), .version = version};
    t->missing = "version: this tool has none of that number; its last 50 are kept";
    static_assert(STORE_VERSIONS_MAX == 50, "the text above");
    read_one(t, &q, then);
}

static void on_row(void *ctx, const struct store_record *r)
{
    struct tool_call *t = ((struct api_call *)ctx)->ctx;
    json_begin(&t->data, NULL, '{');
    t->put(&t->data, &r->tool);
    json_end(&t->data, '}');
}

static void on_rows_end(void *ctx, int error)
{
    struct api_call *c = ctx;
    struct tool_call *t = c->ctx;
    if (error) {
        tool_call_fail_store(c, error);
    } else {
        json_end(&t->data, ']');
        json_end(&t->data, '}');
        api_reply(c, 200, &t->data);
    }
    api_call_release(c);
}

void tool_call_list(struct tool_call *t, enum store_read_kind kind,
                    void (*put)(struct buf *out, const struct store_tool *s))
{
    struct api_call *c = t->call;
    const struct store_query q = {.kind = kind, .id = t->at.id, .limit = STORE_LIST_MAX};
    t->put = put;
    json_begin(&t->data, NULL, '{');
    json_begin(&t->data, "items", '[');
    api_call_hold(c);
    store_read(c->with->store, &q, &(struct store_reader){on_row, on_rows_end, c, NULL});
}

// ---- Parse

// Perhaps on a thread: touches nothing but what is the call's own.
static void parse(struct work *w)
{
    struct tool_call *t = w->ctx;
    struct json_error ignored;
    yyjson_doc *base = NULL;
    tool_done(&t->tool);
    buf_clear(&t->text);
    buf_clear(&t->faults);
    t->error = 0;
    if (t->over_base) {
        base = json_parse_envelope(t->at.body.data, t->at.body.len, &ignored);
        t->error = base ? 0 : -EBADMSG;
    }
    t->error =
        t->error ? t->error : tool_parse(t->body, yyjson_doc_get_root(base), &t->tool, &t->faults);
    t->error = t->error ? t->error : tool_write(&t->text, &t->tool);
    yyjson_doc_free(base);
}

static void parse_done(struct work *w)
{
    struct tool_call *t = w->ctx;
    if (!t->call) {
        tool_call_free(t);
    } else if (t->error == -EINVAL) {
        api_fail(t->call, API_VALIDATION, "%s", buf_text(&t->faults));
    } else if (t->error) {
        api_fail_system(t->call, "tool", t->error);
    } else {
        t->parsed(t);
    }
}

void tool_call_parse(struct tool_call *t, bool over, void (*then)(struct tool_call *t))
{
    struct api_call *c = t->call;
    t->over_base = over;
    t->parsed = then;
    t->work =
        (struct work){.run = parse, .done = parse_done, .ctx = t, .owner = work_owner(c->team)};
    if (c->body_len + (over ? t->at.body.len : 0) <= HERE_BYTES) {
        parse(&t->work);
        parse_done(&t->work);
        return;
    }
    int e = work_queue(c->with->pool, &t->work);
    if (e) {
        api_fail_later(c, API_UNAVAILABLE, 1, "tool: %s", strerrordesc_np(-e));
    }
}

// ---- Change

void tool_call_audit(const struct api_call *c, const char *event, const char *id, const char *name,
                     const char *with)
{
    log_audited(c->with->log, event, LOG_T("tool", id), LOG_T("name", name), LOG_T("team", c->team),
                LOG_T("with", with), LOG_T("key", *c->key_id ? c->key_id : NULL),
                LOG_T("trace", c->trace));
}

static void fail_full(const struct tool_call *t)
{
    if (t->kind == STORE_TOOL_SHARE) {
        api_fail(t->call, API_EXISTS,
                 "team_id: the tool is shared with %d teams, which is the most", STORE_SHARES_MAX);
    } else {
        api_fail(t->call, API_EXISTS,
                 "tool: a team has at most %d tools, and %d MiB of their definitions with all "
                 "versions; delete some",
                 STORE_TOOLS_MAX, STORE_TOOLS_BYTES >> 20);
    }
}

static void fail_change(struct tool_call *t, const struct store_outcome *o)
{
    struct api_call *c = t->call;
    switch (o->error) {
    case STORE_CONFLICT:
        api_fail(c, API_EXISTS, "name: the team has a tool \"%s\" (id %.*s)", t->name,
                 (int)o->id_len, o->id);
        break;
    case STORE_STALE:
        if (!t->stale || !t->stale(t)) {
            api_fail(c, API_PRECONDITION,
                     "version: the tool has another version by now; read it again");
        }
        break;
    case STORE_MISSING:
        api_fail(c, API_NOT_FOUND, "%s",
                 t->kind == STORE_TOOL_UNSHARE ? "team_id: the tool is not shared with it"
                                               : "tool: there is none with this id any more");
        break;
    case STORE_IS_FULL:
        fail_full(t);
        break;
    default:
        tool_call_fail_store(c, o->error);
    }
}

static void on_changed(void *ctx, const struct store_outcome *o)
{
    struct api_call *c = ctx;
    struct tool_call *t = c->ctx;
    if (o->error) {
        fail_change(t, o);
    } else {
        tool_call_audit(c, t->event, t->id, *t->name ? t->name : NULL, *t->with ? t->with : NULL);
        t->changed(t);
    }
    api_call_release(c);
}

static void copy_text(char *to, size_t size, struct store_text from)
{
    snprintf(to, size, "%.*s", (int)from.len, from.data ? from.data : "");
}

void tool_call_change(struct tool_call *t, const struct store_write *w, const char *event,
                      void (*changed)(struct tool_call *t))
{
    struct api_call *c = t->call;
    if (!tool_call_has_room(c, w->tool.body.len)) {
        return;
    }
    t->kind = w->kind;
    t->event = event;
    t->changed = changed;
    copy_text(t->id, sizeof t->id, w->tool.id);
    copy_text(t->name, sizeof t->name, w->tool.name.data ? w->tool.name : t->at.name);
    copy_text(t->with, sizeof t->with, w->tool.with);
    api_call_hold(c);
    int e = store_write(c->with->store, w, on_changed, c);
    if (e) {
        tool_call_fail_store(c, e);
        api_call_release(c);
    }
}

// ---- Answer

void tool_call_put_definition(struct buf *out, const struct store_tool *s)
{
    buf_putc(out, ',');
    buf_add(out, s->body.data + 1, s->body.len - 2); // an object without its braces
}

void tool_call_put_kept(struct buf *out, const struct store_tool *s)
{
    json_put_bool(out, "is_enabled", s->enabled != 0);
    json_put_int(out, "version", s->version);
    json_put_text(out, "permission", tool_permission_names[s->permission]);
    json_put_bytes(out, "shared_by", s->with.data ? s->team.data : NULL, s->team.len);
    json_put_time(out, "created_at", s->created_ms);
    json_put_time(out, "updated_at", s->updated_ms);
}

void tool_call_put(struct buf *out, const struct store_tool *s)
{
    json_begin(out, NULL, '{');
    json_put_bytes(out, "id", s->id.data, s->id.len);
    tool_call_put_definition(out, s);
    tool_call_put_kept(out, s);
    json_end(out, '}');
}

static void reply_tool(struct tool_call *t)
{
    tool_call_put(&t->data, &t->at);
    api_reply(t->call, t->status, &t->data);
}

void tool_call_answer(struct tool_call *t)
{
    char id[STORE_ID_MAX + 1];
    memcpy(id, t->id, sizeof id);
    tool_call_read(t, id, false, reply_tool);
}
