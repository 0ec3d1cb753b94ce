// share.c: what requests hold for as long as their peers take, who may be slow on purpose: memory,
// and connections.
// There is so much of each kind for all; no owner has more of it than is left for the others, so
// that one who takes what he can get leaves half of it, and two leave a third.
#include "base/hash.h"
#include "http/internal.h"

#include <errno.h>
#include <string.h>

static size_t held_by_owner(const struct http_request *r, enum share_kind kind)
{
    size_t sum = 0;
    for (const struct http_conn *c = r->conn->server->conns; c; c = c->next) {
        sum += c->req && c->req->owner == r->owner ? c->req->shares[kind] : 0;
    }
    return sum;
}

bool share_take(struct http_request *r, enum share_kind kind, size_t amount)
{
    struct http_server *s = r->conn->server;
    const size_t most[] = {[SHARE_BODIES] = s->config.bodies_bytes,
                           [SHARE_REPLIES] = s->config.replies_bytes,
                           [SHARE_REQUESTS] = r->conn->listener->connections};
    size_t max = most[kind];
    if (s->shares[kind] > max || amount > max - s->shares[kind]) {
        return false;
    }
    size_t left = max - s->shares[kind] - amount;
    // While less than half of all is held, nobody can have more than the rest: no need to count.
    if (left < max / 2 && held_by_owner(r, kind) + amount > left) {
        return false;
    }
    s->shares[kind] += amount;
    r->shares[kind] += amount;
    return true;
}

void share_give(struct http_request *r, enum share_kind kind)
{
    r->conn->server->shares[kind] -= r->shares[kind];
    r->shares[kind] = 0;
}

size_t share_of_stream(const struct http_server *s)
{
    size_t part = s->config.replies_bytes / (s->n_conns ? s->n_conns : 1);
    return part < s->config.out_bytes ? part : s->config.out_bytes;
}

// Two owners with one hash would share a share, nothing else.
int http_set_owner(struct http_request *r, const char *name)
{
    r->owner = hash_bytes(name, strlen(name));
    return r->conn->peer.local || share_take(r, SHARE_REQUESTS, 1) ? 0 : -EBUSY;
}

int http_hold(struct http_request *r, size_t bytes)
{
    return share_take(r, SHARE_REPLIES, bytes) ? 0 : -ENOBUFS;
}

void http_unhold(struct http_request *r, size_t bytes)
{
    r->conn->server->shares[SHARE_REPLIES] -= bytes;
    r->shares[SHARE_REPLIES] -= bytes;
}
