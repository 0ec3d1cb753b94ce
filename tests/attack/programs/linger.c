// Sends itself away: a TCP socket whose close takes as long as SO_LINGER says, over the frame
// socket, to whoever closes what arrives. Run from a snippet with the socket's number.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM, 0), a = socket(AF_INET, SOCK_STREAM, 0);
    if (argc != 2 || bind(l, (struct sockaddr *)&at, sizeof at) || listen(l, 1) ||
        getsockname(l, (struct sockaddr *)&at, &len) || connect(a, (struct sockaddr *)&at, len)) {
        return 1;
    }
    static char data[65536];
    fcntl(a, F_SETFL, O_NONBLOCK);
    while (write(a, data, sizeof data) > 0) { // nobody reads: what is left is waited for
    }
    struct linger linger = {1, 300}, now = {0, 0};
    len = sizeof now;
    int e = setsockopt(a, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    getsockopt(a, SOL_SOCKET, SO_LINGER, &now, &len);
    printf("setsockopt %d, lingers %d s\n", e, now.l_onoff ? now.l_linger : 0);

    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.head), &a, sizeof a);
    struct iovec byte = {"", 1};
    struct msghdr m = {.msg_iov = &byte,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof control};
    ssize_t n = sendmsg(atoi(argv[1]), &m, 0);
    e = errno;
    close(a);
    printf("sendmsg %s\n", n == 1 ? "sent" : strerror(e));
    return 0;
}
