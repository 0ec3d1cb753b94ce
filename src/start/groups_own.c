// An account's groups: those that somebody delegated to it.
#include "start/groups.h"

#include "base/fd.h"
#include "host/host.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// mountinfo writes blanks and the like as \ooo. Relative to the root; "" if too long.
void groups_copy_path(char to[GROUPS_PATH_MAX], const char *from)
{
    size_t n = 0;
    from += *from == '/';
    while (*from && n < GROUPS_PATH_MAX - 1) {
        unsigned code;
        if (*from == '\\' && sscanf(from + 1, "%3o", &code) == 1) {
            to[n++] = (char)code;
            from += 4;
        } else {
            to[n++] = *from++;
        }
    }
    to[*from ? 0 : n] = '\0';
}

static const char *const v1_names[SEAT_N_V1] = {
    [SEAT_MEMORY] = "memory", [SEAT_PIDS] = "pids", [SEAT_CPU] = "cpu", [SEAT_CPUACCT] = "cpuacct"};

// Where the caller's group `own`, as proc/self/cgroup writes it, lies below the mount. 0 or
// -ENOENT: it is not below what is mounted.
static int narrow(struct groups *g, int i, const char *own)
{
    char path[GROUPS_PATH_MAX];
    size_t cut = strlen(g->from[i]);
    own += *own == '/';
    if (strncmp(own, g->from[i], cut) || (cut && own[cut] && own[cut] != '/') ||
        !strncmp(own, "..", 2)) {
        return -ENOENT;
    }
    own += cut;
    own += *own == '/';
    int n = snprintf(path, sizeof path, "%s%s%s", g->path[i], *own ? "/" : "", own);
    if (n < 0 || (size_t)n >= sizeof path) {
        return -ENOENT;
    }
    memcpy(g->path[i], path, (size_t)n + 1);
    return 0;
}

static bool may_write(const struct groups *g, const char *folder, const char *file)
{
    char path[GROUPS_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return !faccessat(g->root, path, W_OK, AT_EACCESS);
}

// Nobody but the caller?
static bool is_alone(const struct groups *g, const char *folder)
{
    char path[GROUPS_PATH_MAX + 32], text[64];
    int pid, others = 0;
    snprintf(path, sizeof path, "%s/cgroup.procs", folder);
    return fd_read_at(g->root, path, text, sizeof text) > 0 &&
           sscanf(text, "%d\n%d", &pid, &others) == 1 && pid == getpid();
}

static bool choose_v2(struct groups *g)
{
    char *own = g->path[GROUPS_V2], above[GROUPS_PATH_MAX];
    memcpy(above, own, sizeof above);
    char *slash = strrchr(above, '/');
    bool mine = may_write(g, own, ".") && may_write(g, own, "cgroup.procs");
    if (mine && is_alone(g, own)) {
        return true;
    }
    *(slash ? slash : above) = '\0';
    if (above[0] && may_write(g, above, ".") && may_write(g, above, "cgroup.procs")) {
        memcpy(own, above, sizeof above);
        return true;
    }
    return mine; // without controllers, but its processes are counted and end together
}

// "ID:CONTROLLERS:PATH"
static void own_line(struct groups *g, bool found[GROUPS_N], char *line)
{
    char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
    if (!path) {
        return;
    }
    *names++ = *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    for (int i = 0; i < GROUPS_N; i++) {
        bool same = i == GROUPS_V2 ? !strcmp(line, "0") : host_lists(names, v1_names[i]);
        if (same && g->path[i][0] && !narrow(g, i, path)) {
            found[i] = i == GROUPS_V2 ? choose_v2(g) : may_write(g, g->path[i], ".");
        }
    }
}

void groups_detect_own(int root, struct groups *ret)
{
    bool found[GROUPS_N] = {false};
    groups_detect(root, ret);
    ret->own = true;
    int fd = openat(root, "proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    while (f && getline(&line, &size, f) >= 0) {
        own_line(ret, found, line);
    }
    if (f) {
        fclose(f);
    } else {
        fd_close(fd);
    }
    for (int i = 0; i < GROUPS_N; i++) {
        if (!found[i]) {
            ret->path[i][0] = '\0';
        }
    }
}

int groups_vacate(const struct groups *g, int dir)
{
    static const char leaf[] = "isle-main";
    static char text[65536]; // of a container with ten thousand processes
    char number[16], file[32];
    // The root of the hierarchy has no such file, and needs no vacating. In front of a delegated
    // folder that holds others stands groups_detect_own().
    if (faccessat(dir, "cgroup.events", F_OK, 0)) {
        return -EBUSY;
    }
    if (mkdirat(dir, leaf, 0755) && errno != EEXIST) {
        return -errno;
    }
    snprintf(file, sizeof file, "%s/cgroup.procs", leaf);
    if (g->own) {
        snprintf(number, sizeof number, "%d", getpid());
        return fd_write_at(dir, file, number);
    }
    int e = fd_read_at(dir, "cgroup.procs", text, sizeof text) < 0 ? -EIO : 0;
    char *save = NULL;
    for (char *word = strtok_r(text, "\n", &save); !e && word; word = strtok_r(NULL, "\n", &save)) {
        // 0 is a process that this container does not see: not ours to move
        e = !strcmp(word, "0") ? -EBUSY : fd_write_at(dir, file, word);
        e = e == -ESRCH ? 0 : e; // it has ended meanwhile
    }
    return e;
}
