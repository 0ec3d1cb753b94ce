#include "app/listen.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { WORD_MAX = 64, BACKLOG = 1024 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static int refuse(struct listen_error *e, int error, const char *word, const char *why)
{
    snprintf(e->text, sizeof e->text, "%.80s: %s", word, why);
    return error;
}

// "127.0.0.1:80", "[::1]:80", "localhost:80", "*:80". 0 or -EINVAL.
static int parse(const char *word, union address *ret)
{
    char host[WORD_MAX];
    const char *colon = strrchr(word, ':');
    char *end;
    if (!colon || colon[1] < '0' || colon[1] > '9' || (size_t)(colon - word) >= sizeof host) {
        return -EINVAL;
    }
    unsigned long port = strtoul(colon + 1, &end, 10);
    size_t n = (size_t)(colon - word);
    if (*end || port > 65535) {
        return -EINVAL;
    }
    memcpy(host, word, n);
    host[n] = '\0';
    *ret = (union address){.v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)}};
    if (!strcmp(host, "localhost")) {
        ret->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return 0;
    }
    if (!strcmp(host, "*") || inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
        return 0; // INADDR_ANY is zero
    }
    *ret = (union address){.v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)}};
    if (n < 3 || host[0] != '[' || host[n - 1] != ']') {
        return -EINVAL;
    }
    host[n - 1] = '\0';
    return inet_pton(AF_INET6, host + 1, &ret->v6.sin6_addr) == 1 ? 0 : -EINVAL;
}

bool listen_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    struct sockaddr_in6 v6;
    memcpy(&v6, address, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

// What the kernel made of it.
static void describe(struct listen_tcp *l)
{
    union address a = {};
    socklen_t len = sizeof a;
    char host[INET6_ADDRSTRLEN] = "";
    getsockname(l->fd, &a.any, &len);
    l->loopback = listen_is_loopback(&a.any);
    if (a.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a.v6.sin6_addr, host, sizeof host);
        snprintf(l->text, sizeof l->text, "[%s]:%u", host, ntohs(a.v6.sin6_port));
        l->any = IN6_IS_ADDR_UNSPECIFIED(&a.v6.sin6_addr);
    } else {
        inet_ntop(AF_INET, &a.v4.sin_addr, host, sizeof host);
        snprintf(l->text, sizeof l->text, "%s:%u", host, ntohs(a.v4.sin_port));
        l->any = a.v4.sin_addr.s_addr == htonl(INADDR_ANY);
    }
}

static int refuse_bind(struct listen_error *e, int error, const char *word)
{
    switch (error) {
    case -EADDRINUSE:
        return refuse(e, error, word,
                      "something listens there already (choose another port by --listen)");
    case -EADDRNOTAVAIL:
        return refuse(e, error, word, "this host has no such address");
    case -EACCES:
        return refuse(e, error, word, "a port below 1024 is root's");
    default:
        return refuse(e, error, word, strerror(-error));
    }
}

static int open_one(const char *word, struct listen_tcp *ret, struct listen_error *ret_error)
{
    union address a;
    const int one = 1;
    if (parse(word, &a)) {
        return refuse(ret_error, -EINVAL, word,
                      "is not HOST:PORT: HOST is an address (IPv6 in brackets), localhost or *; "
                      "as in 127.0.0.1:4753 or [::1]:4753");
    }
    const bool v6 = a.any.sa_family == AF_INET6;
    AUTO_CLOSE int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return refuse_bind(ret_error, -errno, word);
    }
    // one family each: 0.0.0.0 and [::] can be named together, and mean what they say
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        (v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one)) ||
        bind(fd, &a.any, v6 ? sizeof a.v6 : sizeof a.v4) || listen(fd, BACKLOG)) {
        return refuse_bind(ret_error, -errno, word);
    }
    ret->fd = fd_take(&fd);
    describe(ret);
    return 0;
}

int listen_open(const char *list, struct listen_tcp *ret, size_t *ret_n,
                struct listen_error *ret_error)
{
    size_t n = 0;
    int e = 0;
    for (const char *p = list; *p && !e;) {
        char word[WORD_MAX + 8];
        size_t len = strcspn(p, ",");
        snprintf(word, sizeof word, "%.*s", (int)len, p);
        p += len + (p[len] == ',');
        if (n == LISTEN_MAX_TCP) {
            e = refuse(ret_error, -E2BIG, word, "more than 6 addresses to listen on");
        } else {
            e = open_one(word, &ret[n], ret_error);
            n += !e;
        }
    }
    for (size_t i = 0; e && i < n; i++) {
        close(ret[i].fd);
    }
    if (!e) {
        *ret_n = n;
    }
    return e;
}

// ---- the Unix socket ----------------------------------------------------------------------------

// By descriptor of its folder: a path may be longer than a socket's name. 0 or -errno.
static int name_below(int folder, const char *name, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/%s", folder, name);
    return n > 0 && (size_t)n < sizeof ret->sun_path ? 0 : -ENAMETOOLONG;
}

static bool answers(const struct sockaddr_un *name)
{
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 &&
           (!connect(fd, (const struct sockaddr *)name, sizeof *name) || errno == EAGAIN);
}

static int open_below(int folder, const char *name, const char *path,
                      struct listen_error *ret_error)
{
    struct sockaddr_un a;
    struct stat st;
    int e = name_below(folder, name, &a);
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (e || fd < 0) {
        return refuse(ret_error, e ? e : -errno, path, strerror(e ? -e : errno));
    }
    if (!fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW)) {
        if (!S_ISSOCK(st.st_mode) || answers(&a)) {
            return refuse(ret_error, -EADDRINUSE, path,
                          S_ISSOCK(st.st_mode)
                              ? "another service has this socket (choose another by --socket)"
                              : "is there already and no socket (choose another by --socket)");
        }
        unlinkat(folder, name, 0);
    }
    mode_t mask = umask(0177);
    e = bind(fd, (const struct sockaddr *)&a, sizeof a) || listen(fd, BACKLOG) ? -errno : 0;
    umask(mask);
    return e ? refuse(ret_error, e, path, strerror(-e)) : fd_take(&fd);
}

int listen_open_unix(const char *path, struct listen_error *ret_error)
{
    AUTO_FREE char *folder = strdup(path);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (!slash || !slash[1]) {
        return refuse(ret_error, -EINVAL, path, "is no path of a socket");
    }
    *slash = '\0';
    const char *place = *folder ? folder : "/";
    AUTO_CLOSE int dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    if (dir < 0 || fstat(dir, &st)) {
        return refuse(ret_error, -errno, path, strerror(errno));
    }
    // who can write there could put a socket of his own in its place
    if (st.st_uid != geteuid() || (st.st_mode & 022)) {
        return refuse(ret_error, -EPERM, path,
                      "its folder must be your own and writable by nobody else");
    }
    return open_below(dir, slash + 1, path, ret_error);
}
