// listen.h: the sockets of a service, bound by its front, which has the right to.
#ifndef ISLE_APP_LISTEN_H
#define ISLE_APP_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

struct sockaddr;

enum { LISTEN_MAX_TCP = 6 };

struct listen_error {
    char text[400];
};

struct listen_tcp {
    int fd;
    char text[64]; // "127.0.0.1:4753", "[::1]:80": with the port that was chosen for 0
    bool any;      // every address of the host
    bool loopback; // none but this host's own
};

// Of AF_INET and AF_INET6: an address that only this host's own programs reach.
bool listen_is_loopback(const struct sockaddr *address);

// "HOST:PORT" with commas between; HOST is an IPv4 address, an IPv6 address in brackets, localhost
// or *. 0 or -errno with *ret_error; then nothing is open.
int listen_open(const char *list, struct listen_tcp *ret, size_t *ret_n,
                struct listen_error *ret_error);

// The Unix socket `path`, for its owner alone (mode 0600). What a dead service left is replaced. A
// descriptor or -errno with *ret_error.
int listen_open_unix(const char *path, struct listen_error *ret_error);

#endif
