#include "doctor/planted.h"

#include "base/fd.h"
#include "codec/utf8.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

static int listen_on(int family, const struct sockaddr *address, socklen_t len)
{
    AUTO_CLOSE int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, address, len) || listen(fd, 4)) {
        return -1;
    }
    return fd_take(&fd);
}

static void put_listeners(struct planted *p)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    socklen_t len = sizeof in;
    p->listener = listen_on(AF_INET, (struct sockaddr *)&in, sizeof in);
    if (p->listener >= 0 && getsockname(p->listener, (struct sockaddr *)&in, &len) == 0) {
        p->port = ntohs(in.sin_port);
    }
    // a name that begins with NUL is abstract (unix(7))
    int n = snprintf(un.sun_path + 1, sizeof un.sun_path - 1, "isle-%s", p->token);
    p->abstract = listen_on(AF_UNIX, (struct sockaddr *)&un,
                            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
}

static void put_file(struct planted *p)
{
    snprintf(p->file, sizeof p->file, "/tmp/isle-%s", p->token);
    AUTO_CLOSE int fd = open(p->file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0 || fd_write_all(fd, p->token, strlen(p->token))) {
        p->file[0] = '\0';
    }
}

int planted_put(struct planted *ret)
{
    struct planted p = {.listener = -1, .abstract = -1, .shm = -1};
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != sizeof random) {
        return -EIO;
    }
    for (size_t i = 0; i < sizeof random; i++) {
        snprintf(p.token + 2 * i, 3, "%02x", random[i]);
    }
    put_listeners(&p);
    put_file(&p);
    memcpy(&p.shm_key, random, sizeof p.shm_key);
    p.shm_key &= 0x7fffffff; // JSON carries it as a number, and 0 would be IPC_PRIVATE
    p.shm_key |= 1;
    p.shm = shmget(p.shm_key, 4096, IPC_CREAT | IPC_EXCL | 0666);
    *ret = p;
    return 0;
}

void planted_remove(struct planted *p)
{
    if (p->file[0]) {
        unlink(p->file);
    }
    if (p->shm >= 0) {
        shmctl(p->shm, IPC_RMID, NULL);
    }
    p->listener = fd_close(p->listener);
    p->abstract = fd_close(p->abstract);
}

int planted_write(struct buf *out, const struct planted *p)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    buf_printf(out, "{\"secret\":\"%s\",\"marker\":\"isle-%s\",\"pid\":%d,\"hostname\":", p->token,
               p->token, getpid());
    utf8_json_string(out, host, strlen(host));
    if (p->file[0]) {
        buf_printf(out, ",\"secret_path\":\"%s\"", p->file);
    }
    if (p->port) {
        buf_printf(out, ",\"port\":%u", p->port);
    }
    if (p->abstract >= 0) {
        buf_printf(out, ",\"abstract\":\"isle-%s\"", p->token);
    }
    if (p->shm >= 0) {
        buf_printf(out, ",\"shm_key\":%d", p->shm_key);
    }
    buf_putc(out, '}');
    return out->error;
}

void planted_look_network(const struct planted *p, char *ret_found, size_t size)
{
    const struct {
        int fd;
        const char *what;
    } sockets[] = {{p->listener, "a connection came to the host's loopback"},
                   {p->abstract, "a connection came to an abstract socket of the host"}};
    for (size_t i = 0; i < ARRAY_LEN(sockets); i++) {
        AUTO_CLOSE int fd =
            sockets[i].fd < 0 ? -1 : accept4(sockets[i].fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            snprintf(ret_found, size, "%s", sockets[i].what);
        }
    }
}

void planted_look_marker(const struct planted *p, const char *runtime_root, char *ret_found,
                         size_t size)
{
    const struct {
        const char *root, *folder;
    } places[] = {{"", ""},
                  {"", "/usr"},
                  {"", "/usr/bin"},
                  {"", "/etc"},
                  {"", "/dev"},
                  {runtime_root, ""},
                  {runtime_root, "/usr"},
                  {runtime_root, "/usr/bin"},
                  {runtime_root, "/usr/lib/isle"},
                  {runtime_root, "/etc"}};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s%s/isle-%s", places[i].root, places[i].folder, p->token);
        if (access(path, F_OK) == 0) {
            snprintf(ret_found, size, "a file came to be outside: %.200s", path);
            unlink(path);
        }
    }
}
