#include "client.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"
#include "base/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void client_request(struct client *c, struct plan_request *q, const int *fds, int n)
{
    q->tag = ++c->tag;
    msg_send(c->seat.launcher, q, sizeof *q, fds, n, 0);
}

static bool take_early(struct client *c, uint32_t op, uint32_t tag, struct plan_record *ret,
                       int *ret_fd)
{
    for (int i = 0; i < c->n_early; i++) {
        if (c->early[i].r.op == op && c->early[i].r.tag == tag) {
            *ret = c->early[i].r;
            if (ret_fd) {
                *ret_fd = c->early[i].fd;
            } else {
                fd_close(c->early[i].fd);
            }
            memmove(&c->early[i], &c->early[i + 1],
                    (size_t)(c->n_early - i - 1) * sizeof *c->early);
            c->n_early--;
            return true;
        }
    }
    return false;
}

int client_wait(struct client *c, uint32_t op, uint32_t tag, int timeout_ms,
                struct plan_record *ret, int *ret_fd)
{
    uint64_t until = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
    while (!take_early(c, op, tag, ret, ret_fd)) {
        struct pollfd p[2] = {{c->seat.launcher, POLLIN, 0}, {c->seat.launcher_pidfd, POLLIN, 0}};
        uint64_t now = clock_now_ns();
        if (now >= until || poll(p, 2, (int)((until - now) / NS_PER_MS) + 1) <= 0) {
            return -ETIMEDOUT;
        }
        if (!(p[0].revents & POLLIN) || c->n_early == CLIENT_EARLY) {
            return -EPIPE;
        }
        int i = c->n_early;
        ssize_t n = msg_recv(c->seat.launcher, &c->early[i].r, sizeof c->early[i].r,
                             &c->early[i].fd, 1, NULL, 0);
        if (n != sizeof c->early[i].r) {
            return -EPIPE;
        }
        c->n_early++;
    }
    return 0;
}

int client_ask(struct client *c, struct plan_request *q, struct plan_record *ret)
{
    client_request(c, q, NULL, 0);
    int e = client_wait(c, q->op, q->tag, CLIENT_PATIENCE_MS, ret, NULL);
    return e ? e : -ret->error;
}

int client_prepare(struct client *c, uint32_t *ret_id, struct plan_record *ret_parked)
{
    struct plan_request q = {.op = PLAN_PREPARE};
    struct plan_record r;
    int e = client_ask(c, &q, &r);
    if (e) {
        return e;
    }
    *ret_id = r.id;
    return client_wait(c, PLAN_PARKED, q.tag, CLIENT_PATIENCE_MS, ret_parked, NULL);
}

static const char *const default_env[] = {"PATH=/usr/bin:/bin", "HOME=/workspace", "LANG=C.UTF-8",
                                          "TMPDIR=/tmp", NULL};

static uint64_t or_default(uint64_t value, uint64_t fallback) { return value ? value : fallback; }

uint32_t client_start(struct client *c, uint32_t id, const struct try *t)
{
    struct plan_request q = {
        .op = PLAN_START,
        .id = id,
        .uid = t->uid ? t->uid : V0,
        .rung = t->rung,
        .filter = t->tmpfs_no >= 0 ? PLAN_FILTER_TMPFS : PLAN_FILTER_FOLDER,
        .workspace_kind = t->tmpfs_no >= 0 ? PLAN_WORKSPACE_TMPFS : PLAN_WORKSPACE_FOLDER,
        .workspace_no = t->tmpfs_no >= 0 ? (uint32_t)t->tmpfs_no : 0,
        .tmp_folder = t->tmp_folder,
        .has_frames = t->fd[PLAN_FD_FRAMES] != 0,
        .plain = c->seat.made_by == SEAT_NONE,
        .n_sets = t->n_sets,
        .limits = {.memory_bytes = or_default(t->limits.memory_bytes, 256 << 20),
                   .cpu_ns = t->limits.cpu_ns,
                   .tmp_bytes = or_default(t->limits.tmp_bytes, 16 << 20),
                   .tmp_inodes = (uint32_t)or_default(t->limits.tmp_inodes, 1024),
                   .file_bytes = or_default(t->limits.file_bytes, 1 << 30),
                   .cpu_percent = (uint32_t)or_default(t->limits.cpu_percent, 100),
                   .pids = (uint32_t)or_default(t->limits.pids, 64),
                   .nofile = (uint32_t)or_default(t->limits.nofile, 1024)},
    };
    memcpy(q.sets, t->sets, sizeof q.sets);
    snprintf(q.workspace, sizeof q.workspace, "%s", t->workspace ? t->workspace : "once/t");
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    AUTO_CLOSE int args =
        args_pack(t->argv, t->env ? t->env : default_env, t->cwd ? t->cwd : "/workspace");
    int fds[PLAN_N_START_FDS];
    for (int i = 0; i <= PLAN_FD_FRAMES; i++) {
        fds[i] = t->fd[i] ? t->fd[i] : null;
    }
    fds[PLAN_FD_ARGS] = args;
    if (c->change) {
        c->change(&q);
    }
    client_request(c, &q, fds, PLAN_N_START_FDS);
    return q.tag;
}

// The id of what has this tag, once any of its records has come; 0: none.
static uint32_t id_of(const struct client *c, uint32_t tag)
{
    for (int i = 0; i < c->n_early; i++) {
        if (c->early[i].r.tag == tag && c->early[i].r.id) {
            return c->early[i].r.id;
        }
    }
    return 0;
}

int client_run(struct client *c, uint32_t id, const struct try *t, int timeout_ms,
               struct plan_record *ret)
{
    memset(ret, 0, sizeof *ret);
    uint32_t tag = client_start(c, id, t);
    bool ended = false, begun = false;
    int e = 0;
    for (uint64_t until = clock_now_ns() + CLIENT_PATIENCE_MS * NS_PER_MS;
         !e && !ended && !begun && clock_now_ns() < until;) {
        e = client_wait(c, PLAN_END, tag, 20, ret, NULL);
        ended = !e;
        e = e == -ETIMEDOUT ? 0 : e;
        for (int i = 0; i < c->n_early; i++) {
            begun |= c->early[i].r.tag == tag && c->early[i].r.op == PLAN_EXECUTED;
        }
    }
    if (!e && !ended) {
        e = client_wait(c, PLAN_END, tag, timeout_ms, ret, NULL);
    }
    if (e == -ETIMEDOUT) { // else it would hold its workspace against all that come after
        struct plan_request q = {.op = PLAN_KILL, .id = id ? id : id_of(c, tag)};
        struct plan_record r;
        client_ask(c, &q, &r);
        e = client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, ret, NULL);
    }
    struct plan_record left;
    client_wait(c, PLAN_EXECUTED, tag, 0, &left, NULL);
    client_wait(c, PLAN_PARKED, tag, 0, &left, NULL);
    return e;
}

int client_add_set(struct client *c, int fd)
{
    struct plan_request q = {.op = PLAN_SET_ADD};
    struct plan_record r;
    client_request(c, &q, &fd, 1);
    int e = client_wait(c, PLAN_SET_ADD, q.tag, CLIENT_PATIENCE_MS, &r, NULL);
    return e ? e : r.error ? -r.error : (int)r.id;
}

int client_add_named_set(struct client *c, const char *name)
{
    AUTO_CLOSE int fd = openat(c->seat.cache_root, name, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : client_add_set(c, fd);
}

int client_add_tmpfs(struct client *c, uint32_t uid, uint64_t bytes, int *ret_fd)
{
    struct plan_request q = {.op = PLAN_TMPFS, .uid = uid, .size_bytes = bytes, .size_inodes = 64};
    struct plan_record r;
    AUTO_CLOSE int fd = -1;
    client_request(c, &q, NULL, 0);
    int e = client_wait(c, PLAN_TMPFS, q.tag, CLIENT_PATIENCE_MS, &r, &fd);
    if (ret_fd) {
        *ret_fd = fd_take(&fd);
    }
    return e ? e : r.error ? -r.error : (int)r.id;
}

int client_signal(struct client *c, uint32_t id, int sig)
{
    struct plan_request q = {.op = PLAN_SIGNAL, .id = id, .signal = (uint32_t)sig};
    struct plan_record r;
    return client_ask(c, &q, &r);
}

int client_make_workspace(struct client *c, const char *name, uint32_t uid, bool with_tmp)
{
    static const char *const parts[] = {"w", "t"};
    int root = c->seat.workspace_root;
    if (mkdirat(root, name, 0711)) {
        return -errno;
    }
    AUTO_CLOSE int fd = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const bool single = c->seat.downgrades & PLAN_SINGLE_UID; // all is one account's then
    for (int i = 0; i < 1 + with_tmp; i++) {
        if (fd < 0 || mkdirat(fd, parts[i], 0700) ||
            (!single && fchownat(fd, parts[i], uid, uid, 0))) {
            return -errno;
        }
    }
    return fd_take(&fd);
}

int client_remove_workspace(struct client *c, const char *name)
{
    return tree_remove_at(c->seat.workspace_root, name);
}
