#include "app/passed.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum {
    LOCAL_CONNECTIONS = 64,
    TCP_CONNECTIONS = 4096,
    PEER_CONNECTIONS = 1024, // a proxy is a peer, too
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage room;
};

static bool is_loopback(const union address *a)
{
    return a->any.sa_family == AF_INET ? ntohl(a->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
                                       : IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

bool passed_sort(const struct seat *seat, struct http_config *c, int *ret_audit)
{
    bool loopback = true;
    for (uint32_t i = 0; i < seat->n_passed; i++) {
        union address a = {.room = {.ss_family = AF_UNSPEC}};
        socklen_t len = sizeof a;
        if (getsockname(seat->passed[i], &a.any, &len)) {
            *ret_audit = seat->passed[i];
            continue;
        }
        const bool local = a.any.sa_family == AF_UNIX, near = local || is_loopback(&a);
        loopback = loopback && near;
        c->listeners[c->n_listeners++] =
            (struct http_listener){seat->passed[i], local ? LOCAL_CONNECTIONS : TCP_CONNECTIONS,
                                   near ? TCP_CONNECTIONS : PEER_CONNECTIONS};
    }
    return loopback;
}
