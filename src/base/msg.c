#include "base/msg.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

int msg_send(int sock, const void *data, size_t len, const int *fds, int n, int flags)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(MSG_MAX_FDS * sizeof(int))] = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (n < 0 || n > MSG_MAX_FDS) {
        return -EINVAL;
    }
    if (n > 0) {
        m.msg_control = control;
        m.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        if (!c) {
            return -EINVAL; // cannot be: the space for it was counted above
        }
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
        memcpy(CMSG_DATA(c), fds, (size_t)n * sizeof(int));
    }
    ssize_t sent;
    do {
        sent = sendmsg(sock, &m, MSG_NOSIGNAL | flags);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : (size_t)sent == len ? 0 : -EIO;
}

static void take_rights(const struct cmsghdr *c, int *ret_fds, int max, int *count)
{
    size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < n; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
        if (*count < max) {
            ret_fds[(*count)++] = fd;
        } else {
            close(fd);
        }
    }
}

ssize_t msg_recv(int sock, void *ret_data, size_t len, int *ret_fds, int max, pid_t *ret_pid,
                 int flags)
{
    _Alignas(struct cmsghdr) char
        control[CMSG_SPACE(MSG_MAX_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
    struct iovec part = {.iov_base = ret_data, .iov_len = len};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof control};
    for (int i = 0; i < max; i++) {
        ret_fds[i] = -1;
    }
    ssize_t got;
    do {
        got = recvmsg(sock, &m, MSG_CMSG_CLOEXEC | flags);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return -errno;
    }
    int count = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
            take_rights(c, ret_fds, max, &count);
        }
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS && ret_pid) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(c), sizeof who);
            *ret_pid = who.pid;
        }
    }
    if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        for (int i = 0; i < count; i++) {
            close(ret_fds[i]);
            ret_fds[i] = -1;
        }
    }
    if (m.msg_flags & MSG_CTRUNC && max > 0) {
        ret_fds[0] = -EMFILE;
    }
    return m.msg_flags & MSG_TRUNC ? -EMSGSIZE : got;
}
