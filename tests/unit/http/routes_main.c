// http-routes PORT-FILE SOCKET FILE [head_ms idle_ms window_ms connections]: serves routes.c on a
// port of 127.0.0.1, whose number it writes into PORT-FILE, and on a Unix socket, until SIGTERM.
#include "routes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct http_server *server;
static struct loop *loop;

static void stopped(void *ctx)
{
    (void)ctx;
    loop_stop(loop);
}

static void on_signal(struct loop_watch *w, uint32_t events)
{
    (void)events;
    loop_remove(loop, w);
    http_server_stop(server, stopped, NULL);
}

static int listen_tcp(const char *port_file)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 128) ||
        getsockname(fd, (struct sockaddr *)&a, &len)) {
        return -1;
    }
    char next[300];
    snprintf(next, sizeof next, "%s.new", port_file);
    FILE *f = fopen(next, "we");
    if (!f) {
        return -1;
    }
    fprintf(f, "%d\n", ntohs(a.sin_port));
    fclose(f);
    return rename(next, port_file) ? -1 : fd;
}

static int listen_unix(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 128) ? -1 : fd;
}

int main(int argc, char **argv)
{
    struct routes routes;
    if (argc < 4 || loop_new(&loop)) {
        return 2;
    }
    routes_init(&routes, loop);
    uint32_t *const times[] = {&routes.config.head_ms, &routes.config.idle_ms,
                               &routes.config.window_ms};
    for (int i = 0; i < 3 && argc > 4 + i; i++) {
        *times[i] = (uint32_t)strtoul(argv[4 + i], NULL, 10);
    }
    unsigned connections = argc > 7 ? (unsigned)strtoul(argv[7], NULL, 10) : 512;
    routes.give_up = true;
    routes.file = open(argv[3], O_RDONLY | O_CLOEXEC);
    routes.config.listeners[1] = (struct http_listener){listen_unix(argv[2]), 16, 16};
    routes.config.listeners[0] =
        (struct http_listener){listen_tcp(argv[1]), connections, connections};
    routes.config.n_listeners = 2;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    struct loop_watch watch = LOOP_WATCH_INIT(on_signal, NULL);
    int fd = signalfd(-1, &signals, SFD_CLOEXEC);
    if (http_server_new(loop, &routes.config, &server) || loop_add(loop, &watch, fd, EPOLLIN)) {
        return 1;
    }
    int e = loop_run(loop);
    http_server_free(server);
    loop_free(loop);
    close(routes.file);
    close(fd);
    return e != 0;
}
