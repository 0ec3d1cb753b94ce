// keys.c: keys are made, listed and revoked by an admin, or on the host by the Unix socket.
#include "api/internal.h"
#include "api/page.h"
#include "api/route.h"

#include "base/clock.h"
#include "base/fd.h"
#include "codec/json_out.h"
#include "log/log.h"
#include "serve/shares.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A write that is under way. It is audited also when nobody waits for the answer any more.
struct change {
    struct key key; // CREATE
    char id[KEY_ID_CHARS + 1];
    char team[129];
    char *name;
    bool admin;
    int64_t at_ms;
};

static void change_end(struct api_call *c)
{
    struct change *ch = c->ctx;
    free(ch->name);
    explicit_bzero(ch, sizeof *ch);
    free(ch);
}

static struct change *change_new(struct api_call *c)
{
    struct change *ch = calloc(1, sizeof *ch);
    if (!ch) {
        api_fail(c, API_INTERNAL, "not enough memory");
        return NULL;
    }
    ch->at_ms = clock_wall_ms();
    c->ctx = ch;
    c->end = change_end;
    return ch;
}

static const char *changed_by(const struct api_call *c)
{
    return *c->key_id ? c->key_id : "unix socket";
}

static void hand_in(struct api_call *c, const struct store_write *w, store_done done)
{
    api_call_hold(c);
    int e = store_write(c->with->store, w, done, c);
    if (e) {
        api_fail_later(c, API_UNAVAILABLE, 1, "the store takes nothing: %s", strerrordesc_np(-e));
        api_call_release(c);
    }
}

static void put_key(struct buf *out, const struct store_key *k)
{
    json_put_bytes(out, "id", k->id.data, k->id.len);
    json_put_bytes(out, "team", k->team.data, k->team.len);
    json_put_bytes(out, "name", k->name.data, k->name.len);
    json_put_bool(out, "admin", k->admin != 0);
    json_put_time(out, "created_at", k->created_ms);
    json_put_time(out, "revoked_at", k->revoked_ms);
    json_put_time(out, "last_used_at", k->used_ms);
}

// ---- Create

static const char *text_of(const struct api_call *c, const char *name)
{
    yyjson_val *v = yyjson_obj_get(yyjson_doc_get_root(c->json), name);
    const char *text = v ? yyjson_get_str(v) : NULL;
    return text ? text : "";
}

static struct store_key record_of(const struct change *ch)
{
    return (struct store_key){
        .id = {ch->id, KEY_ID_CHARS},
        .team = store_text_of(ch->team),
        .name = store_text_of(ch->name),
        .salt = {(const char *)ch->key.salt, sizeof ch->key.salt},
        .hash = {(const char *)ch->key.hash, sizeof ch->key.hash},
        .admin = ch->admin,
        .created_ms = ch->at_ms,
    };
}

static void answer_created(struct api_call *c, const struct change *ch)
{
    struct buf data = BUF_INIT(8192);
    const struct store_key record = record_of(ch);
    json_begin(&data, NULL, '{');
    json_put_text(&data, "key", ch->key.text);
    put_key(&data, &record);
    json_end(&data, '}');
    api_reply(c, 201, &data);
}

static void created(void *ctx, const struct store_outcome *o)
{
    struct api_call *c = ctx;
    const struct change *ch = c->ctx;
    if (o->error == 0) {
        c->api->has_keys = true;
        shares_look(c->with->shares);
        log_audited(c->with->log, "key created", LOG_T("key", ch->id), LOG_T("team", ch->team),
                    LOG_T("name", ch->name), LOG_B("admin", ch->admin), LOG_T("by", changed_by(c)),
                    LOG_T("trace", c->trace));
        answer_created(c, ch);
    } else {
        api_fail_later(c, API_UNAVAILABLE, 1, "the key could not be stored: %s",
                       o->error < 0 ? strerrordesc_np(-o->error) : "its id is taken");
    }
    api_call_release(c);
}

static void create_key(struct api_call *c)
{
    yyjson_val *root = yyjson_doc_get_root(c->json);
    struct change *ch = change_new(c);
    if (!ch) {
        return;
    }
    ch->admin = yyjson_is_true(yyjson_obj_get(root, "admin"));
    snprintf(ch->team, sizeof ch->team, "%s", text_of(c, "team"));
    ch->name = strdup(text_of(c, "name"));
    if (!ch->name || key_new(&ch->key)) {
        api_fail(c, API_INTERNAL, "no key could be made");
        return;
    }
    memcpy(ch->id, ch->key.id, sizeof ch->id);
    const struct store_write w = {.kind = STORE_KEY_CREATE, .key = record_of(ch)};
    hand_in(c, &w, created);
}

// ---- List

static void on_row(void *ctx, const struct store_record *r)
{
    struct buf *out = api_page_row(ctx, r->key.id, 0);
    if (out) {
        json_begin(out, NULL, '{');
        put_key(out, &r->key);
        json_end(out, '}');
    }
}

static void list_keys(struct api_call *c)
{
    struct api_page *p = api_page_begin(c, SCHEMA_FORM_KEY_ID, STORE_LIST_MAX);
    if (!p) {
        return;
    }
    const struct store_query q = {.kind = STORE_LIST_KEYS,
                                  .team = store_text_of(api_query(c, "team")),
                                  .cursor = store_text_of(p->cursor),
                                  .limit = p->limit};
    const struct store_reader reader = {on_row, api_page_ended, c, &p->enough};
    store_read(c->with->store, &q, &reader);
}

// ---- Revoke

static void revoked(void *ctx, const struct store_outcome *o)
{
    struct api_call *c = ctx;
    const struct change *ch = c->ctx;
    api_auth_forget(c->api, ch->id);
    if (o->error == 0) {
        // what it has opened before: event streams, waiting calls, files on their way
        unsigned cut = api_call_cut(c->api, ch->id, c);
        shares_look(c->with->shares);
        log_audited(c->with->log, "key revoked", LOG_T("key", ch->id), LOG_T("by", changed_by(c)),
                    LOG_I("calls_cut", cut), LOG_T("trace", c->trace));
        struct buf data = BUF_INIT(256);
        json_begin(&data, NULL, '{');
        json_put_text(&data, "id", ch->id);
        json_end(&data, '}');
        api_reply(c, 200, &data);
    } else if (o->error == STORE_MISSING) {
        api_fail(c, API_NOT_FOUND, "no such key");
    } else {
        api_fail_later(c, API_UNAVAILABLE, 1, "the revocation could not be stored: %s",
                       strerrordesc_np(-o->error));
    }
    api_call_release(c);
}

static void revoke_key(struct api_call *c)
{
    struct change *ch = change_new(c);
    if (!ch) {
        return;
    }
    snprintf(ch->id, sizeof ch->id, "%s", c->segment[0]);
    const struct store_write w = {
        .kind = STORE_KEY_REVOKE,
        .key = {.id = {ch->id, KEY_ID_CHARS}, .revoked_ms = ch->at_ms},
    };
    hand_in(c, &w, revoked);
}

static const struct api_route routes[] = {
    {.method = HTTP_M_POST,
     .path = "/api/v1/keys",
     .who = API_ADMIN,
     .body = API_JSON,
     .request = &schema_key_create,
     .example = "{\"team\": \"search\", \"name\": \"search backend\"}",
     .response = &schema_key_created,
     .success = 201,
     .handle = create_key,
     .summary = "Make a key. It is shown this once."},
    {.method = HTTP_M_GET,
     .path = "/api/v1/keys",
     .who = API_ADMIN,
     .response = &schema_key_list,
     .handle = list_keys,
     .query = "team limit cursor",
     .summary = "Keys, revoked ones too, oldest first."},
    {.method = HTTP_M_DELETE,
     .path = "/api/v1/keys/{key}",
     .who = API_ADMIN,
     .response = &schema_key_revoked,
     .handle = revoke_key,
     .summary =
         "Revoke a key. It opens nothing once this is answered, and what runs for it is cut."},
};

const struct api_subject api_keys = {"keys", "Who may call, and as which team.", routes,
                                     ARRAY_LEN(routes)};
