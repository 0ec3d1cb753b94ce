#include "serve/shares.h"

#include "queue/names.h"
#include "store/store.h"
#include "workspace/disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct share {
    struct name_node node; // first
    struct shares *of;
    unsigned holders;
    uint64_t bytes[SHARE_KINDS];
};

struct shares {
    struct shares_config with;
    struct names teams; // that have something, or are held
    uint32_t n_keyed;   // teams with a key
    uint64_t refused;
};

// ---- who may come

static void count_team(void *ctx, const struct store_record *r)
{
    (void)r;
    ++*(uint32_t *)ctx;
}

static void counted(void *ctx, int error)
{
    (void)ctx, (void)error; // as far as it came
}

void shares_look(struct shares *s)
{
    const struct store_query q = {.kind = STORE_LIST_KEY_TEAMS, .limit = STORE_LIST_MAX};
    s->n_keyed = 0;
    store_read(s->with.store, &q, &(struct store_reader){count_team, counted, &s->n_keyed});
}

uint32_t shares_teams(const struct shares *s)
{
    return s->n_keyed > s->teams.count ? s->n_keyed : (uint32_t)s->teams.count;
}

// ---- one team's

struct share *shares_hold(struct shares *s, const char *team)
{
    struct share *h = names_get(&s->teams, team, sizeof *h);
    if (h) {
        h->of = s;
        h->holders++;
    }
    return h;
}

static uint64_t all_of(const struct share *h)
{
    uint64_t bytes = 0;
    for (int k = 0; k < SHARE_KINDS; k++) {
        bytes += h->bytes[k];
    }
    return bytes;
}

void share_release(struct share *h)
{
    if (h && --h->holders == 0 && all_of(h) == 0) {
        names_drop(&h->of->teams, &h->node);
    }
}

const char *share_team(const struct share *h) { return h->node.name; }

void share_add(struct share *h, enum share_kind kind, int64_t bytes)
{
    uint64_t *sum = &h->bytes[kind];
    if (bytes >= 0) {
        *sum += (uint64_t)bytes;
    } else {
        *sum -= *sum < -(uint64_t)bytes ? *sum : -(uint64_t)bytes;
    }
}

static uint64_t minus(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

// Without a bound of its own. What is written of it is taken from what is left.
static uint64_t room_beside_others(const struct share *h, uint64_t left)
{
    uint64_t own = all_of(h), small = minus(SHARES_SMALL_BYTES, own), half = minus(left, own) / 2;
    uint64_t room = small > half ? small : half;
    return room < left ? room : left;
}

uint64_t share_room(const struct share *h)
{
    const struct shares *s = h->of;
    uint64_t left;
    if (s->with.team_bytes) {
        return minus(s->with.team_bytes, all_of(h));
    }
    if (shares_teams(s) < 2 || disk_left(s->with.data_folder, &left)) {
        return UINT64_MAX;
    }
    return room_beside_others(h, left);
}

uint64_t shares_room(struct shares *s, const char *team)
{
    struct share *h = shares_hold(s, team);
    uint64_t room = h ? share_room(h) : 0;
    share_release(h);
    return room;
}

const char *shares_refuse(struct shares *s, const char *team, char ret[SHARES_TEXT])
{
    struct share *h = shares_hold(s, team);
    const unsigned long long has = h ? all_of(h) >> 20 : 0;
    uint64_t left = 0;
    char bound[160];
    if (s->with.team_bytes) {
        snprintf(bound, sizeof bound, "of the %llu MB that it may have (SANDBOX_TEAM_DISK_MB)",
                 (unsigned long long)(s->with.team_bytes >> 20));
    } else {
        disk_left(s->with.data_folder, &left);
        snprintf(bound, sizeof bound,
                 "and %llu MB are left for all, which is the most (SANDBOX_TEAM_DISK_MB 0)",
                 (unsigned long long)(left >> 20));
    }
    share_release(h);
    s->refused++;
    snprintf(
        ret, SHARES_TEXT,
        "more than is left: what is kept of this team takes %llu MB %s: delete sessions or files "
        "of them, or wait until artifacts have been kept long enough (SANDBOX_RESULT_TTL_SECONDS)",
        has, bound);
    return ret;
}

// ---- all of them

int shares_new(const struct shares_config *c, struct shares **ret)
{
    struct shares *s = calloc(1, sizeof *s);
    if (!s) {
        return -ENOMEM;
    }
    s->with = *c;
    shares_look(s);
    *ret = s;
    return 0;
}

void shares_change(struct shares *s, uint64_t team_bytes) { s->with.team_bytes = team_bytes; }

void shares_free(struct shares *s)
{
    if (!s) {
        return;
    }
    for (size_t i = 0; i < s->teams.n_chains; i++) {
        while (s->teams.chains[i]) {
            names_drop(&s->teams, s->teams.chains[i]);
        }
    }
    names_free(&s->teams);
    free(s);
}

void shares_stats(const struct shares *s, struct shares_stats *ret)
{
    *ret = (struct shares_stats){.refused = s->refused};
    for (size_t i = 0; i < s->teams.n_chains; i++) {
        for (const struct name_node *n = s->teams.chains[i]; n; n = n->next) {
            const struct share *h = (const struct share *)n;
            uint64_t all = all_of(h);
            for (int k = 0; k < SHARE_KINDS; k++) {
                ret->bytes[k] += h->bytes[k];
            }
            ret->largest_bytes = all > ret->largest_bytes ? all : ret->largest_bytes;
        }
    }
}
