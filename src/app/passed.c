#include "app/passed.h"

#include "app/listen.h"

#include <sys/resource.h>
#include <sys/socket.h>

enum {
    LOCAL_CONNECTIONS = 64,
    TCP_CONNECTIONS = 4096,
    PEER_CONNECTIONS = 1024, // a proxy is a peer, too
    CONNECTION_FDS = 4,      // its own, a file, two folders of a session (a zip: four more)
};

union address {
    struct sockaddr any;
    struct sockaddr_storage room;
};

// Half of the descriptors are for connections, whoever holds them: a job always finds some.
static unsigned tcp_connections(void)
{
    struct rlimit l;
    const rlim_t wanted = 2 * CONNECTION_FDS * TCP_CONNECTIONS;
    if (getrlimit(RLIMIT_NOFILE, &l)) {
        return TCP_CONNECTIONS;
    }
    if (l.rlim_cur < wanted) {
        l.rlim_cur = l.rlim_max < wanted ? l.rlim_max : wanted;
        if (setrlimit(RLIMIT_NOFILE, &l)) {
            getrlimit(RLIMIT_NOFILE, &l);
        }
    }
    return l.rlim_cur < wanted ? (unsigned)(l.rlim_cur / 2 / CONNECTION_FDS) : TCP_CONNECTIONS;
}

bool passed_sort(const struct seat *seat, struct http_config *c, int *ret_audit)
{
    const unsigned most = tcp_connections();
    const unsigned of_peer = most < PEER_CONNECTIONS ? most : PEER_CONNECTIONS;
    bool loopback = true;
    for (uint32_t i = 0; i < seat->n_passed; i++) {
        union address a = {.room = {.ss_family = AF_UNSPEC}};
        socklen_t len = sizeof a;
        if (getsockname(seat->passed[i], &a.any, &len)) {
            *ret_audit = seat->passed[i];
            continue;
        }
        const bool local = a.any.sa_family == AF_UNIX, near = local || listen_is_loopback(&a.any);
        loopback = loopback && near;
        c->listeners[c->n_listeners++] = (struct http_listener){
            seat->passed[i], local ? LOCAL_CONNECTIONS : most, near ? most : of_peer};
    }
    return loopback;
}
