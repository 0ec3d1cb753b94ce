// `isle sessions`
#include "base/fd.h"
#include "client/client.h"
#include "client/print.h"
#include "codec/json_out.h"

#define SESSIONS "/sandbox/sessions"

static const struct print_column columns[] = {
    {"session", "session_id"},    {"conversation", "conversation_id"}, {"agent", "agent_id"},
    {"user", "user_id"},          {"created", "created_at"},           {"expires", "expires_at"},
    {"used", "last_accessed_at"}, {"bytes", "disk_usage_bytes"},
};

static int tell_list(yyjson_val *data) { return print_list(data, columns, ARRAY_LEN(columns)); }

static int tell_one(yyjson_val *data)
{
    return print_fields(stdout, data, columns, ARRAY_LEN(columns));
}

static int tell_id(yyjson_val *data)
{
    return print_word(stdout, yyjson_obj_get(data, "session_id"));
}

static int tell_nothing(yyjson_val *data)
{
    (void)data;
    return 0;
}

int sessions_list(struct client *c) { return client_list(c, SESSIONS, tell_list); }

static bool put_ttl(const struct client *c, struct buf *body)
{
    const char *ttl = c->command.options.ttl;
    if (ttl && !client_number(c, "--ttl", ttl)) { // the service knows its bounds
        return false;
    }
    if (ttl) {
        json_put_json(body, "ttl_hours", ttl);
    }
    return true;
}

int sessions_create(struct client *c)
{
    const struct remote_options *o = &c->command.options;
    AUTO_BUF struct buf body = BUF_INIT(1 << 20);
    json_begin(&body, NULL, '{');
    if (o->conversation) {
        json_put_text(&body, "conversation_id", o->conversation);
    }
    if (o->agent) {
        json_put_text(&body, "agent_id", o->agent);
    }
    if (o->user) {
        json_put_text(&body, "user_id", o->user);
    }
    if (!put_ttl(c, &body)) {
        return CLI_REFUSED;
    }
    json_end(&body, '}');
    struct call call = CALL_INIT("POST", CLIENT_API SESSIONS);
    call.body = buf_text(&body);
    call.body_len = body.len;
    return client_tell(c, &call, tell_id);
}

// A call about the one session that was named.
static int ask_one(struct client *c, const char *method, const char *behind, const struct buf *body,
                   int (*print)(yyjson_val *))
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    client_path(&path, SESSIONS "/%s", c->command.operands[0]);
    buf_puts(&path, behind);
    struct call call = CALL_INIT(method, buf_text(&path));
    if (body) {
        call.body = buf_text(body);
        call.body_len = body->len;
    }
    return client_tell(c, &call, print);
}

int sessions_show(struct client *c) { return ask_one(c, "GET", "", NULL, tell_one); }

int sessions_delete(struct client *c) { return ask_one(c, "DELETE", "", NULL, tell_nothing); }

int sessions_extend(struct client *c)
{
    AUTO_BUF struct buf body = BUF_INIT(1 << 10);
    json_begin(&body, NULL, '{');
    if (!put_ttl(c, &body)) {
        return CLI_REFUSED;
    }
    json_end(&body, '}');
    return ask_one(c, "POST", "/extend", &body, tell_one);
}
