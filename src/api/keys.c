// keys.c: keys are made, listed and revoked by an admin, or on the host by the Unix socket.
#include "api/internal.h"
#include "api/route.h"
#include "api/schema.h"

#include "base/clock.h"
#include "codec/json_out.h"
#include "log/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A write that is under way; its call may be gone before it is done.
struct change {
    struct api_call *call; // NULL: gone
    struct api *api;
    struct key key; // CREATE
    char id[KEY_ID_CHARS + 1];
    char team[129];
    char *name;
    bool admin;
    int64_t at_ms;
    char by[32], trace[33]; // for the audit log
};

static void change_free(struct change *ch)
{
    free(ch->name);
    explicit_bzero(ch, sizeof *ch);
    free(ch);
}

static void call_ended(struct api_call *c)
{
    struct change *ch = c->ctx;
    if (ch) {
        ch->call = NULL;
    }
}

static struct change *change_new(struct api_call *c)
{
    struct change *ch = calloc(1, sizeof *ch);
    if (!ch) {
        api_fail(c, API_INTERNAL, "not enough memory");
        return NULL;
    }
    ch->call = c;
    ch->api = c->api;
    ch->at_ms = clock_wall_ms();
    snprintf(ch->by, sizeof ch->by, "%s", *c->key_id ? c->key_id : "unix socket");
    memcpy(ch->trace, c->trace, sizeof ch->trace);
    c->ctx = ch;
    c->end = call_ended;
    return ch;
}

// The call whose answer is due, or NULL; it does not know of the change any more.
static struct api_call *call_of(struct change *ch)
{
    struct api_call *c = ch->call;
    if (c) {
        c->ctx = NULL;
    }
    return c;
}

static void hand_in(struct change *ch, const struct store_write *w, store_done done)
{
    int e = store_write(ch->api->with.store, w, done, ch);
    if (e) {
        struct api_call *c = call_of(ch);
        api_fail_later(c, API_UNAVAILABLE, 1, "the store takes nothing: %s", strerrordesc_np(-e));
        change_free(ch);
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
    struct change *ch = ctx;
    struct api_call *c = call_of(ch);
    if (o->error == 0) {
        ch->api->has_keys = true;
        log_audited(ch->api->with.log, "key created", LOG_T("key", ch->id), LOG_T("team", ch->team),
                    LOG_T("name", ch->name), LOG_B("admin", ch->admin), LOG_T("by", ch->by),
                    LOG_T("trace", ch->trace));
    }
    if (c && o->error == 0) {
        answer_created(c, ch);
    } else if (c) {
        api_fail_later(c, API_UNAVAILABLE, 1, "the key could not be stored: %s",
                       o->error < 0 ? strerrordesc_np(-o->error) : "its id is taken");
    }
    change_free(ch);
}

static void create(struct api_call *c)
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
        call_of(ch);
        change_free(ch);
        api_fail(c, API_INTERNAL, "no key could be made");
        return;
    }
    memcpy(ch->id, ch->key.id, sizeof ch->id);
    const struct store_write w = {.kind = STORE_KEY_CREATE, .key = record_of(ch)};
    hand_in(ch, &w, created);
}

// ---- List

struct list {
    struct api_call *call; // NULL: gone
    struct buf data;
};

static void list_gone(struct api_call *c)
{
    struct list *l = c->ctx;
    if (l) {
        l->call = NULL;
    }
}

static void list_row(void *ctx, const struct store_record *r)
{
    struct list *l = ctx;
    json_begin(&l->data, NULL, '{');
    put_key(&l->data, &r->key);
    json_end(&l->data, '}');
}

static void list_end(void *ctx, int error)
{
    struct list *l = ctx;
    struct api_call *c = l->call;
    json_end(&l->data, ']');
    json_end(&l->data, '}');
    if (c) {
        c->ctx = NULL;
        if (error < 0) {
            api_fail_later(c, API_UNAVAILABLE, 1, "the store of keys cannot be read");
        } else {
            api_reply(c, 200, &l->data);
        }
    }
    buf_free(&l->data);
    free(l);
}

static void list(struct api_call *c)
{
    const char *team;
    if (!api_query(c, "team", &team)) {
        return;
    }
    struct list *l = calloc(1, sizeof *l);
    if (!l) {
        api_fail(c, API_INTERNAL, "not enough memory");
        return;
    }
    *l = (struct list){.call = c, .data = BUF_INIT(8 << 20)};
    c->ctx = l;
    c->end = list_gone;
    json_begin(&l->data, NULL, '{');
    json_begin(&l->data, "items", '[');
    const struct store_query q = {
        .kind = STORE_LIST_KEYS, .team = store_text_of(team), .limit = STORE_LIST_MAX};
    const struct store_reader reader = {list_row, list_end, l};
    store_read(c->with->store, &q, &reader);
}

// ---- Revoke

static void revoked(void *ctx, const struct store_outcome *o)
{
    struct change *ch = ctx;
    struct api_call *c = call_of(ch);
    api_auth_forget(ch->api, ch->id);
    if (o->error == 0) {
        log_audited(ch->api->with.log, "key revoked", LOG_T("key", ch->id), LOG_T("by", ch->by),
                    LOG_T("trace", ch->trace));
    }
    if (c && o->error == 0) {
        struct buf data = BUF_INIT(256);
        json_begin(&data, NULL, '{');
        json_put_text(&data, "id", ch->id);
        json_end(&data, '}');
        api_reply(c, 200, &data);
    } else if (c && o->error == STORE_MISSING) {
        api_fail(c, API_NOT_FOUND, "no such key");
    } else if (c) {
        api_fail_later(c, API_UNAVAILABLE, 1, "the revocation could not be stored: %s",
                       strerrordesc_np(-o->error));
    }
    change_free(ch);
}

static void revoke(struct api_call *c)
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
    hand_in(ch, &w, revoked);
}

static const struct api_route routes[] = {
    {.method = HTTP_M_POST,
     .path = "/api/v1/keys",
     .who = API_ADMIN,
     .body = API_JSON,
     .request = &schema_key_create,
     .response = &schema_key_created,
     .success = 201,
     .handle = create,
     .summary = "Make a key. It is shown this once."},
    {.method = HTTP_M_GET,
     .path = "/api/v1/keys",
     .who = API_ADMIN,
     .response = &schema_key_list,
     .handle = list,
     .query = "team",
     .summary = "List keys: the oldest 1,000."},
    {.method = HTTP_M_DELETE,
     .path = "/api/v1/keys/{key}",
     .who = API_ADMIN,
     .response = &schema_key_revoked,
     .handle = revoke,
     .summary = "Revoke a key. It opens nothing once this is answered."},
};

const struct api_subject api_keys = {"keys", "Who may call, and as which team.", routes,
                                     sizeof routes / sizeof *routes};
