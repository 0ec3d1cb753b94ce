// sessions_share.c: how many sessions there may be, and how many of one team, and of what room. A
// team has no more than is left for the others: one that makes all it can leaves half, two leave a
// third.
#include "serve/sessions_inner.h"

#include "workspace/disk.h"
#include "workspace/uids.h"

#include <string.h>

// Sessions leave some of the uids to jobs without one.
enum { MOST_SESSIONS_OF_4_UIDS = 3 };

static uint64_t of_team(const struct sessions *s, const char *team)
{
    uint64_t n = 0;
    for (size_t i = 0; i < SESSIONS_BUCKETS; i++) {
        for (const struct session *e = s->buckets[i]; e; e = e->next) {
            n += strcmp(e->team, team) == 0;
        }
    }
    return n;
}

static bool may_have(const struct sessions *s, const char *team)
{
    uint64_t uids = s->config.uids->count ? s->config.uids->count : UIDS_COUNT;
    uint64_t most = uids * MOST_SESSIONS_OF_4_UIDS / 4;
    uint64_t with_it = s->n_active + s->n_removing + s->n_making + 1;
    if (with_it > most) {
        return false;
    }
    // While less than half are taken, nobody can have more than the rest: no need to count.
    uint64_t left = most - with_it;
    return left >= most / 2 || of_team(s, team) + 1 <= left;
}

int sessions_why_not(const struct sessions *s, const char *team)
{
    return disk_at_floor(s->kept)                     ? SESSIONS_NO_DISK
           : !may_have(s, team)                       ? SESSIONS_NO_UID
           : shares_room(s->config.shares, team) == 0 ? SESSIONS_NO_SHARE
                                                      : 0;
}

static bool same(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

const struct session *session_of_names(const struct sessions *s, const struct sessions_create *c,
                                       int64_t now_ms)
{
    for (size_t i = 0; c->conversation && i < SESSIONS_BUCKETS; i++) {
        for (const struct session *e = s->buckets[i]; e; e = e->next) {
            if (!e->removing && e->expires_ms > now_ms && same(e->conversation, c->conversation) &&
                same(e->team, c->team) && same(e->agent, c->agent) && same(e->user, c->user)) {
                return e;
            }
        }
    }
    return NULL;
}
