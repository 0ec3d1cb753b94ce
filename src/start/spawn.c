// The last acts of the front's child before it executes itself again: it proves that host root is
// gone, and starts the launcher.
#include "base/fd.h"
#include "kernel/sys.h"
#include "start/internal.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

// Inner 0 is the first id of the range, or the account itself; then come the ids after uid_base.
static bool is_mapped(const struct start *s)
{
    char map[256];
    unsigned a[3], b[3];
    const uint32_t base = s->record.seat.uid_base, count = s->record.seat.uid_count;
    if (fd_read_at(AT_FDCWD, "proc/self/uid_map", map, sizeof map) <= 0) {
        return false;
    }
    int n = sscanf(map, "%u %u %u %u %u %u", &a[0], &a[1], &a[2], &b[0], &b[1], &b[2]);
    switch (s->record.user) {
    case START_ROOT:
        return n == 3 && a[0] == 0 && a[1] == base && a[2] == count;
    case START_RANGE:
        return n == 6 && a[0] == 0 && a[2] == 1 && b[0] == 1 && b[1] == base + 1 &&
               b[2] == count - 1;
    default:
        return n == 3 && a[0] == 0 && a[2] == 1;
    }
}

int child_check(struct start *s)
{
    if (!is_mapped(s) || getuid() != 0 || geteuid() != 0) {
        return start_fail(s, 0, "the id map is not as planned");
    }
    static const struct {
        const char *path;
        int flags;
        uint32_t who;
    } hosts[] = {
        // a group that may read it stays with who cannot drop groups
        {"/etc/shadow", O_RDONLY, START_FOR_MAPPED},
        {"proc/sys/kernel/core_pattern", O_WRONLY, START_FOR_ALL},
    };
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        if (!(hosts[i].who & 1U << s->record.user)) {
            continue;
        }
        AUTO_CLOSE int fd = open(hosts[i].path, hosts[i].flags | O_CLOEXEC);
        if (fd >= 0) {
            return start_fail(s, 0, "still has the rights of host root: %s opens", hosts[i].path);
        }
    }
    return 0;
}

// In the launcher to be, inner root: what seat.h promises the launcher. Returns only -errno.
static int exec_launcher(struct start *s, int sock, int self, int config)
{
    int fds[SEAT_FD_END - SEAT_SERVICE + 1];
    fds[SEAT_SERVICE - SEAT_SERVICE] = sock;
    fds[SEAT_SERVICE_PIDFD - SEAT_SERVICE] = self;
    fds[SEAT_SHIM - SEAT_SERVICE] = *start_fd(s, CHILD_SHIM);
    fds[SEAT_LOCK - SEAT_SERVICE] = *start_fd(s, INNER_LOCK);
    fds[SEAT_CONFIG - SEAT_SERVICE] = config;
    fds[SEAT_CGROUP_V2 - SEAT_SERVICE] = *start_fd(s, CHILD_V2);
    memcpy(fds + (SEAT_CGROUP_V1 - SEAT_SERVICE), start_fd(s, CHILD_V1), sizeof(int) * SEAT_N_V1);
    // the program goes to the place behind the seat's, and is closed by its own execution
    fds[SEAT_FD_END - SEAT_SERVICE] = *start_fd(s, CHILD_PROGRAM);
    int e = start_place_fds(fds, ARRAY_LEN(fds), SEAT_SERVICE);
    if (!e && fcntl(SEAT_FD_END, F_SETFD, FD_CLOEXEC)) {
        e = -errno;
    }
    if (e) {
        return e;
    }
    char name[] = "isle-launcher", *argv[] = {name, NULL}, *env[] = {NULL};
    return sys_exec_fd(SEAT_FD_END, argv, env);
}

int child_launcher(struct start *s)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        return start_fail(s, -errno, "socket pair");
    }
    AUTO_CLOSE int theirs = pair[1];
    *start_fd(s, INNER_LAUNCHER) = pair[0];
    // the same process after the re-exec: still the service's
    AUTO_CLOSE int self = sys_pidfd_open(getpid());
    AUTO_CLOSE int config = fd_sealed("isle-seat", &s->record.seat, sizeof s->record.seat);
    if (self < 0 || config < 0) {
        return start_fail(s, self < 0 ? self : config, "descriptors for the launcher");
    }
    pid_t pid = fork();
    if (pid == 0) {
        int e = exec_launcher(s, theirs, self, config);
        dprintf(2, "isle-launcher cannot be executed: %s\n", strerror(-e));
        _exit(125);
    }
    if (pid < 0) {
        return start_fail(s, -errno, "launcher process");
    }
    s->record.launcher_pid = pid;
    int pidfd = sys_pidfd_open(pid);
    if (pidfd < 0) {
        return start_fail(s, pidfd, "launcher process");
    }
    *start_fd(s, INNER_LAUNCHER_PIDFD) = pidfd;
    return 0;
}
