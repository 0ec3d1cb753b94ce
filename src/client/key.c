// `isle key`
#include "base/fd.h"
#include "client/client.h"
#include "client/print.h"
#include "codec/json_out.h"

#define KEYS "/keys"

static const struct print_column columns[] = {
    {"id", "id"},
    {"team", "team"},
    {"name", "name"},
    {"admin", "admin"},
    {"created", "created_at"},
    {"used", "last_used_at"},
    {"revoked", "revoked_at"},
};

static int tell_all(yyjson_val *data)
{
    static const char none[] =
        "there is no key: the service serves loopback alone, without one, or nobody where jobs "
        "may have the host's network; `isle key create --team TEAM --name NAME` makes the first "
        "one";
    return print_list_or(data, columns, ARRAY_LEN(columns), none);
}

// Of a team, or behind a cursor: that there is none says nothing of the others.
static int tell_some(yyjson_val *data) { return print_list(data, columns, ARRAY_LEN(columns)); }

// The key alone on standard output, so that a shell can take it.
static int tell_created(yyjson_val *data)
{
    int e = print_word(stdout, yyjson_obj_get(data, "key"));
    if (e) {
        return e;
    }
    fflush(stdout);
    fputs("isle: this key is shown once; give it to isle and to other clients in ISLE_KEY or as "
          "\"Authorization: Bearer KEY\". `isle key revoke ID` ends it; its id: ",
          stderr);
    return print_word(stderr, yyjson_obj_get(data, columns[0].key));
}

static int tell_nothing(yyjson_val *data)
{
    (void)data;
    return 0;
}

int key_list(struct client *c)
{
    const struct remote_options *o = &c->command.options;
    return client_list(c, KEYS, o->team || o->cursor ? tell_some : tell_all);
}

int key_create(struct client *c)
{
    const struct remote_options *o = &c->command.options;
    AUTO_BUF struct buf body = BUF_INIT(1 << 20);
    json_begin(&body, NULL, '{');
    json_put_text(&body, "team", o->team);
    json_put_text(&body, "name", o->name);
    json_put_bool(&body, "admin", o->admin);
    json_end(&body, '}');
    struct call call = CALL_INIT("POST", CLIENT_API KEYS);
    call.body = buf_text(&body);
    call.body_len = body.len;
    return client_tell(c, &call, tell_created);
}

int key_revoke(struct client *c)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    client_path(&path, KEYS "/%s", c->command.operands[0]);
    struct call call = CALL_INIT("DELETE", buf_text(&path));
    return client_tell(c, &call, tell_nothing);
}
