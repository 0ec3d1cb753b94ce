// The end of an instance's groups. The folders below isle/K are made by inner root, who may not be
// trusted with their number or depth: bounded memory, no recursion.
#include "base/fd.h"
#include "kernel/sys.h"
#include "plan/plan.h"
#include "start/groups.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { VICTIMS = 64 }; // that are open at a time

enum sweep { SWEEP_UP, SWEEP_DOWN, SWEEP_BUSY };

// Removes the folders in `dir` that can be. UP: it has none left; DOWN: *ret_child is the first
// that has some of its own; BUSY: one has none and stays, so it holds processes.
static enum sweep sweep_folder(int dir, int *ret_child)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        fd_close(fd);
        return SWEEP_BUSY;
    }
    enum sweep answer = SWEEP_UP;
    for (struct dirent *entry; answer == SWEEP_UP && (entry = readdir(d));) {
        if (entry->d_type != DT_DIR || !strcmp(entry->d_name, ".") ||
            !strcmp(entry->d_name, "..") || !unlinkat(dir, entry->d_name, AT_REMOVEDIR) ||
            errno == ENOENT) {
            continue;
        }
        AUTO_CLOSE int child =
            openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;
        if (child < 0 || fstat(child, &st) || st.st_nlink <= 2) {
            answer = SWEEP_BUSY;
        } else {
            *ret_child = fd_take(&child);
            answer = SWEEP_DOWN;
        }
    }
    closedir(d);
    return answer;
}

// Every way down ends with a removal or the return, so this ends.
static int remove_tree(int parent, const char *name)
{
    if (!unlinkat(parent, name, AT_REMOVEDIR) || errno == ENOENT) {
        return 0;
    }
    AUTO_CLOSE int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0) {
        return -errno;
    }
    unsigned depth = 0;
    for (;;) {
        int next = -1;
        enum sweep answer = sweep_folder(dir, &next);
        if (answer == SWEEP_BUSY) {
            return -EBUSY;
        }
        if (answer == SWEEP_UP && depth == 0) {
            break;
        }
        // groups are never moved, so ".." is where we came from
        depth = answer == SWEEP_DOWN ? depth + 1 : depth - 1;
        if (answer == SWEEP_UP) {
            next = openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
        fd_close(dir);
        dir = next;
        if (dir < 0) {
            return -errno;
        }
    }
    return unlinkat(parent, name, AT_REMOVEDIR) && errno != ENOENT ? -errno : 0;
}

static int open_instances(const struct groups *g, int i)
{
    char path[GROUPS_PATH_MAX + 8];
    if (!g->path[i][0]) {
        return -1;
    }
    snprintf(path, sizeof path, "%s/isle", g->path[i]);
    return openat(g->root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

// Removes isle/K/service everywhere. Busy: somebody lives, be it an instance whose lock files are
// elsewhere, and nothing of it is to be touched: a launcher makes groups before it needs them.
static bool service_lives(const struct groups *g, uint32_t k)
{
    char path[GROUPS_PATH_MAX + 32];
    for (int i = 0; i < GROUPS_N; i++) {
        snprintf(path, sizeof path, "%s/isle/%u/service", g->path[i], k);
        if (g->path[i][0] && unlinkat(g->root, path, AT_REMOVEDIR) && errno == EBUSY) {
            return true;
        }
    }
    return false;
}

bool groups_held(const struct groups *g, uint32_t k)
{
    char path[GROUPS_PATH_MAX + 32];
    for (int i = 0; i < GROUPS_N; i++) {
        snprintf(path, sizeof path, "%s/isle/%u", g->path[i], k);
        AUTO_CLOSE int dir =
            g->path[i][0] ? openat(g->root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
            return true;
        }
    }
    return false;
}

static bool is_any(const struct groups *g, uint32_t k)
{
    char path[GROUPS_PATH_MAX + 32];
    bool any = false;
    for (int i = 0; i < GROUPS_N && !any; i++) {
        snprintf(path, sizeof path, "%s/isle/%u", g->path[i], k);
        any = g->path[i][0] && !faccessat(g->root, path, F_OK, AT_SYMLINK_NOFOLLOW);
    }
    return any;
}

// In the order of hierarchies: what groups_claim() locks is the last one of use. As long as that is
// there, nobody else makes any.
static int remove_all(const struct groups *g, uint32_t k)
{
    char path[GROUPS_PATH_MAX + 32], name[16];
    int error = 0;
    snprintf(name, sizeof name, "%u", k);
    for (int i = 0; i < GROUPS_N; i++) {
        if (!g->path[i][0]) {
            continue;
        }
        // the common cases first: none, or the folder of an instance that ended well
        snprintf(path, sizeof path, "%s/isle/%s", g->path[i], name);
        if (!unlinkat(g->root, path, AT_REMOVEDIR) || errno == ENOENT) {
            continue;
        }
        AUTO_CLOSE int parent = open_instances(g, i);
        int e = parent < 0 ? 0 : remove_tree(parent, name);
        error = e ? e : error;
    }
    return error;
}

int groups_take(const struct groups *g, uint32_t k, struct groups_made *ret)
{
    if (!is_any(g, k)) {
        return -ENOENT;
    }
    return groups_held(g, k) ? -EBUSY : groups_claim(g, k, ret);
}

int groups_clear(const struct groups *g, uint32_t k)
{
    return service_lives(g, k) ? -EBUSY : remove_all(g, k);
}

int groups_remove(const struct groups *g, uint32_t k)
{
    struct groups_made claim;
    int e = groups_take(g, k, &claim);
    if (e) {
        return e == -ENOENT ? 0 : e;
    }
    e = groups_clear(g, k);
    groups_close(&claim);
    return e;
}

// Numbers of processes are used again: what a number meant when it was read may be gone, and
// another have it. So a process is opened first, and then must be listed once more: whoever was
// opened and has ended meanwhile gets no signal.
struct victims {
    size_t n;
    int pid[VICTIMS], fd[VICTIMS];
    bool listed[VICTIMS];
};

static void victims_add(struct victims *v, pid_t pid, uint32_t uid_base)
{
    char path[32], text[2048];
    unsigned uid = 0;
    AUTO_CLOSE int pidfd = sys_pidfd_open(pid);
    // by its status: the folder belongs to root when the process is not dumpable
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (pidfd < 0 || fd_read_at(AT_FDCWD, path, text, sizeof text) <= 0) {
        return;
    }
    const char *line = strstr(text, "\nUid:");
    if (line && sscanf(line, "\nUid: %u", &uid) == 1 && uid >= uid_base &&
        uid - uid_base < PLAN_UID_COUNT) {
        v->pid[v->n] = pid;
        v->listed[v->n] = false;
        v->fd[v->n++] = fd_take(&pidfd);
    }
}

static void victims_see(struct victims *v, int pid)
{
    for (size_t i = 0; i < v->n; i++) {
        v->listed[i] = v->listed[i] || v->pid[i] == pid;
    }
}

static FILE *open_list(int dir)
{
    AUTO_CLOSE int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (f) {
        fd_take(&fd);
    }
    return f;
}

static void victims_kill(struct victims *v, int dir)
{
    FILE *f = v->n > 0 ? open_list(dir) : NULL;
    int pid;
    while (f && fscanf(f, "%d", &pid) == 1) {
        victims_see(v, pid);
    }
    for (size_t i = 0; i < v->n; i++) {
        if (v->listed[i]) {
            sys_pidfd_signal(v->fd[i], SIGKILL);
        }
        fd_close(v->fd[i]);
    }
    v->n = 0;
    if (f) {
        fclose(f);
    }
}

// Where cgroup.kill is missing (v1, or a kernel before 5.14): the processes of one folder.
static void kill_listed(int dir, uint32_t uid_base)
{
    struct victims v = {.n = 0};
    FILE *f = open_list(dir);
    int pid;
    while (f && fscanf(f, "%d", &pid) == 1) {
        victims_add(&v, pid, uid_base);
        if (v.n == VICTIMS) {
            victims_kill(&v, dir);
        }
    }
    victims_kill(&v, dir);
    if (f) {
        fclose(f);
    }
}

// The folders of an honest launcher lie one below another once: isle/K, then isle/K/NAME.
static void kill_folders(int dir, uint32_t uid_base)
{
    kill_listed(dir, uid_base);
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            AUTO_CLOSE int child =
                openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (child >= 0) {
                kill_listed(child, uid_base);
            }
        }
    }
    if (d) {
        closedir(d);
    } else {
        fd_close(fd);
    }
}

void groups_kill(const struct groups *g, uint32_t k, uint32_t uid_base, bool (*is_ours)(void *ctx),
                 void *ctx)
{
    char path[32];
    for (int i = GROUPS_N - 1; i >= 0; i--) { // v2 first: one write kills all
        AUTO_CLOSE int parent = open_instances(g, i);
        snprintf(path, sizeof path, "%u/cgroup.kill", k);
        AUTO_CLOSE int file = parent < 0 ? -1 : openat(parent, path, O_WRONLY | O_CLOEXEC);
        snprintf(path, sizeof path, "%u", k);
        AUTO_CLOSE int dir =
            parent < 0 ? -1 : openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        // asked now: a group of this number that is made later is another than the opened one
        if (dir < 0 || (is_ours && !is_ours(ctx))) {
            continue;
        }
        if (file < 0 || write(file, "1", 1) != 1) {
            kill_folders(dir, uid_base);
        }
    }
}
