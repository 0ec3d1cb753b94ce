// auth.c: who calls. A key's team is the only team; the Unix socket is the operator's and needs no
// key; where no key was ever made, whoever calls by loopback is the team "default", unless jobs do.
#include "api/internal.h"

#include "api/schema.h"
#include "base/clock.h"
#include "base/fd.h"
#include "conf/conf.h"
#include "log/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

static const char default_team[] = "default";

// ---- Keys that were read, so that a request costs no read.

static struct api_key *slot_of(struct api *a, const char *id)
{
    // Ids are random digits of our own making.
    char digits[5] = {id[0], id[1], id[2], id[3], 0};
    return &a->keys[strtoul(digits, NULL, 16) & (API_KEYS_CACHED - 1)];
}

static bool copy_text(const struct store_text *from, void *to, size_t size, bool exact)
{
    if (exact ? from->len != size : from->len >= size) {
        return false;
    }
    memcpy(to, from->data, from->len);
    return true;
}

static struct api_key *remember(struct api *a, const struct store_key *k)
{
    struct api_key fresh = {
        .admin = k->admin != 0, .revoked = k->revoked_ms != 0, .touched_ms = k->used_ms};
    if (!copy_text(&k->id, fresh.id, sizeof fresh.id, false) ||
        !copy_text(&k->team, fresh.team, sizeof fresh.team, false) ||
        !copy_text(&k->salt, fresh.salt, sizeof fresh.salt, true) ||
        !copy_text(&k->hash, fresh.hash, sizeof fresh.hash, true)) {
        return NULL; // not written by us
    }
    struct api_key *slot = slot_of(a, fresh.id);
    *slot = fresh;
    return slot;
}

void api_auth_forget(struct api *a, const char *key_id)
{
    struct api_key *slot = slot_of(a, key_id);
    if (strcmp(slot->id, key_id) == 0) {
        *slot = (struct api_key){0};
    }
}

static bool is_key(const struct api_key *k, const char *text, size_t len)
{
    const struct store_key record = {
        .id = store_text_of(k->id),
        .salt = {(const char *)k->salt, sizeof k->salt},
        .hash = {(const char *)k->hash, sizeof k->hash},
        .revoked_ms = k->revoked,
    };
    return key_matches(text, len, &record);
}

// "Last used", for who looks at the list of keys: now and then, and when nobody waits for it.
static void touch(struct api *a, struct api_key *k)
{
    int64_t now = clock_wall_ms();
    if (now - k->touched_ms < API_KEY_TOUCH_MS) {
        return;
    }
    k->touched_ms = now;
    const struct store_write w = {
        .kind = STORE_KEY_TOUCH,
        .lazy = true,
        .key = {.id = store_text_of(k->id), .used_ms = now},
    };
    store_write(a->with.store, &w, NULL, NULL);
}

// ---- Addresses that try keys. Good keys are never asked about here.

static void network_of(const struct in6_addr *ip, struct in6_addr *ret)
{
    *ret = *ip;
    if (!IN6_IS_ADDR_V4MAPPED(ip)) {
        memset(ret->s6_addr + 8, 0, 8);
    }
}

static struct api_trier *trier_of(struct api *a, const struct in6_addr *net)
{
    uint64_t h = a->seed;
    for (size_t i = 0; i < sizeof net->s6_addr; i++) {
        h = (h ^ net->s6_addr[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return &a->triers[h & (API_TRIERS - 1)];
}

// One more failed key of this address: how many seconds it has to wait, 0: none.
static uint32_t count_failure(struct api_call *c)
{
    struct http_client client;
    struct in6_addr net;
    int64_t now = (int64_t)(clock_now_ns() / NS_PER_MS);
    api_client_of(c, &client);
    network_of(&client.ip, &net);
    struct api_trier *t = trier_of(c->api, &net);
    bool same = memcmp(&t->ip, &net, sizeof net) == 0;
    bool over = now - t->since_ms >= API_TRIES_MS;
    // Where two addresses have one place, the few tries of the one are forgotten for the other's.
    if (!t->failed || over || (!same && t->failed < API_TRIES)) {
        *t = (struct api_trier){.ip = net, .since_ms = now};
    }
    t->failed += t->failed <= API_TRIES;
    return t->failed > API_TRIES ? (uint32_t)((t->since_ms + API_TRIES_MS - now + 999) / 1000) : 0;
}

// ---- The request.

static void refuse(struct api_call *c, const char *why)
{
    http_set(c->r, "WWW-Authenticate", "Bearer realm=\"isle\"");
    api_fail(c, API_UNAUTHORISED, "%s", why);
}

static void refuse_key(struct api_call *c)
{
    uint32_t wait_s = http_peer(c->r)->local ? 0 : count_failure(c);
    if (wait_s) {
        api_fail_later(c, API_LIMITED, wait_s,
                       "Authorization: more than %d wrong keys of this address in a minute",
                       API_TRIES);
    } else {
        refuse(c, "Authorization: not a key that this service knows");
    }
}

// The key in a request: 1; 0: none; negative: refused.
static int key_of(struct api_call *c, const char **ret)
{
    const char *bearer = NULL, *plain = NULL;
    int b = http_field_value(c->r, "authorization", &bearer);
    int p = http_field_value(c->r, "x-api-key", &plain);
    if (b < 0 || p < 0) {
        refuse(c, "Authorization: given twice");
        return -EINVAL;
    }
    if (b) {
        if (strncasecmp(bearer, "bearer ", 7) != 0) {
            refuse(c, "Authorization: must be \"Bearer KEY\"");
            return -EINVAL;
        }
        bearer += 7 + strspn(bearer + 7, " ");
    }
    if (b && p && strcmp(bearer, plain) != 0) {
        refuse(c, "Authorization: is another key than X-Api-Key");
        return -EINVAL;
    }
    *ret = b ? bearer : plain;
    return b || p;
}

// A job with the host's network would be the team "default", and read what others left there.
static bool jobs_reach_loopback(const struct conf *c)
{
    return conf_bool(c, SETTING_NETWORK_ALLOW_HOST) ||
           conf_bool(c, SETTING_LEGACY_FALLBACK_ENABLED) ||
           !conf_bool(c, SETTING_FILESYSTEM_ISOLATION_ENABLED);
}

// Where it comes from says that it is somebody of this host, and no job.
static bool is_of_host(const struct api_call *c)
{
    return http_peer(c->r)->local || (api_is_local(c) && !jobs_reach_loopback(c->api->with.conf));
}

static bool may(struct api_call *c)
{
    enum api_who who = c->route->who;
    bool enough = who == API_TEAM || c->admin || (who == API_OPERATOR && is_of_host(c));
    if (!enough) {
        api_fail(c, API_FORBIDDEN, "this needs an admin's key, or the service's Unix socket");
    }
    return enough;
}

static void refuse_keyless(struct api_call *c)
{
    if (c->api->has_keys) {
        refuse(c, "Authorization: a key is needed: \"Authorization: Bearer KEY\"");
    } else if (jobs_reach_loopback(c->api->with.conf)) {
        refuse(c, "Authorization: a key is needed where jobs may have the host's network, as they "
                  "reach this address, too; make one by `isle key create`");
    } else {
        refuse(c, "Authorization: without any key only callers by loopback are served, and no "
                  "proxy; make one by `isle key create`");
    }
}

// The team of a call without a key.
static bool take_keyless(struct api_call *c)
{
    const char *team = default_team;
    bool local = http_peer(c->r)->local;
    int given = http_field_value(c->r, "x-isle-team", &team);
    if (local) {
        if (given < 0 || !schema_has_form(SCHEMA_FORM_TEAM, team, strlen(team))) {
            api_fail(c, API_VALIDATION, "X-Isle-Team: must be one name of a team");
            return false;
        }
        c->admin = true;
        snprintf(c->team, sizeof c->team, "%s", team);
        return true;
    }
    if (c->route->who == API_OPERATOR && is_of_host(c)) {
        snprintf(c->team, sizeof c->team, "%s", default_team);
        return true;
    }
    if (c->api->has_keys || !c->api->with.loopback || !is_of_host(c)) {
        refuse_keyless(c);
        return false;
    }
    snprintf(c->team, sizeof c->team, "%s", default_team);
    return true;
}

static void go_on(struct api_call *c)
{
    const char *team;
    if (!http_peer(c->r)->local && http_field_value(c->r, "x-isle-team", &team) != 0) {
        api_fail(c, API_FORBIDDEN,
                 "X-Isle-Team: only the service's Unix socket takes it; "
                 "elsewhere the key says whose it is");
    } else if (may(c)) {
        if (http_set_owner(c->r, c->team)) {
            api_fail_later(c, API_LIMITED, 1, "too many calls of this team are under way");
        } else {
            c->then(c);
        }
    }
}

static void take_key(struct api_call *c, struct api_key *k, const char *text)
{
    if (!k || !is_key(k, text, strlen(text))) {
        refuse_key(c);
        return;
    }
    c->admin = k->admin;
    snprintf(c->team, sizeof c->team, "%s", k->team);
    snprintf(c->key_id, sizeof c->key_id, "%s", k->id);
    touch(c->api, k);
    go_on(c);
}

static void got_row(void *ctx, const struct store_record *r)
{
    struct api_call *c = ctx;
    remember(c->api, &r->key);
}

static void got_end(void *ctx, int error)
{
    struct api_call *c = ctx;
    const char *text;
    char id[KEY_ID_CHARS + 1];
    if (error < 0) {
        api_fail_later(c, API_UNAVAILABLE, 1, "the store of keys cannot be read");
    } else if (!c->over && key_of(c, &text) == 1 && key_id(text, strlen(text), id) == 0) {
        struct api_key *slot = slot_of(c->api, id);
        take_key(c, strcmp(slot->id, id) == 0 ? slot : NULL, text);
    }
    api_call_release(c);
}

static void look_up(struct api_call *c, const char *text)
{
    char id[KEY_ID_CHARS + 1];
    if (key_id(text, strlen(text), id)) {
        refuse_key(c);
        return;
    }
    struct api_key *slot = slot_of(c->api, id);
    if (strcmp(slot->id, id) == 0) {
        take_key(c, slot, text);
        return;
    }
    api_call_hold(c);
    const struct store_query q = {.kind = STORE_GET_KEY, .id = {id, KEY_ID_CHARS}, .limit = 1};
    const struct store_reader reader = {got_row, got_end, c};
    store_read(c->api->with.store, &q, &reader);
}

void api_auth_check(struct api_call *c, void (*then)(struct api_call *c))
{
    const char *text = NULL;
    c->then = then;
    if (c->route->who == API_ANYONE) {
        then(c);
        return;
    }
    if (!c->api->keys_known) {
        api_fail_later(c, API_UNAVAILABLE, 1, "the service is starting");
        return;
    }
    int given = key_of(c, &text);
    if (given == 1) {
        look_up(c, text);
    } else if (given == 0 && take_keyless(c)) {
        go_on(c);
    }
}

static void saw_row(void *ctx, const struct store_record *r)
{
    (void)r;
    ((struct api *)ctx)->has_keys = true;
}

static void saw_end(void *ctx, int error)
{
    struct api *a = ctx;
    a->keys_known = error >= 0;
    if (error < 0) {
        log_say(a->with.log, LOG_ERROR, "keys not read", LOG_T("error", strerrordesc_np(-error)));
    }
}

int api_auth_init(struct api *a)
{
    if (getrandom(&a->seed, sizeof a->seed, 0) != sizeof a->seed) {
        return -EIO;
    }
    const struct store_query q = {.kind = STORE_LIST_KEYS, .limit = 1};
    const struct store_reader reader = {saw_row, saw_end, a};
    store_read(a->with.store, &q, &reader);
    return 0;
}
