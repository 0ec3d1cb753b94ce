#include "host/host.h"

#include "base/fd.h"
#include "kernel/mount.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

const char *const host_cgroups_names[] = {"none", "v1", "v2", "hybrid"};

int64_t host_number(int root, const char *path)
{
    char text[64], *end;
    if (fd_read_at(root, path, text, sizeof text) <= 0) {
        return HOST_NO_VALUE;
    }
    errno = 0;
    long long n = strtoll(text, &end, 10);
    return end == text || errno ? HOST_NO_VALUE : n;
}

bool host_lists(const char *list, const char *word)
{
    static const char separators[] = ", \n"; // and the NUL at its end
    size_t len = strlen(word);
    for (const char *p = list; len && (p = strstr(p, word)); p += len) {
        if ((p == list || memchr(separators, p[-1], sizeof separators)) &&
            memchr(separators, p[len], sizeof separators)) {
            return true;
        }
    }
    return false;
}

static bool exists(int root, const char *path)
{
    return faccessat(root, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

// The first line of a file, without its end; "" when it cannot be read.
static void read_line(int root, const char *path, char *ret, size_t size)
{
    fd_read_at(root, path, ret, size);
    ret[strcspn(ret, "\n")] = '\0';
}

static FILE *open_text(int root, const char *path)
{
    AUTO_CLOSE int fd = openat(root, path, O_RDONLY | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (f) {
        fd_take(&fd);
    }
    return f;
}

// ---- the system -------------------------------------------------------------------------------

static void read_system(int root, struct host *h)
{
    struct utsname u;
    unsigned major = 0, minor = 0;
    read_line(root, "proc/sys/kernel/osrelease", h->kernel, sizeof h->kernel);
    if (sscanf(h->kernel, "%u.%u", &major, &minor) == 2) {
        h->version = host_version(major, minor);
    }
    read_line(root, "proc/sys/kernel/arch", h->machine, sizeof h->machine); // from Linux 6.1 on
    if (!h->machine[0] && uname(&u) == 0) {
        snprintf(h->machine, sizeof h->machine, "%.64s", u.machine);
    }
    read_line(root, "sys/kernel/security/lsm", h->lsm, sizeof h->lsm);
    h->wsl = strcasestr(h->kernel, "microsoft") != NULL;
}

static void read_distribution(int root, struct host *h)
{
    static const char key[] = "PRETTY_NAME=";
    char text[2048];
    if (fd_read_at(root, "etc/os-release", text, sizeof text) <= 0 &&
        fd_read_at(root, "usr/lib/os-release", text, sizeof text) <= 0) {
        return;
    }
    const char *p = text;
    while (p && strncmp(p, key, sizeof key - 1) != 0) {
        p = strchr(p, '\n');
        p = p ? p + 1 : NULL;
    }
    if (p) {
        p += sizeof key - 1;
        p += *p == '"' || *p == '\'';
        snprintf(h->distribution, sizeof h->distribution, "%.*s", (int)strcspn(p, "\"'\n"), p);
    }
}

// The initial namespaces of a kernel have fixed numbers (include/uapi/linux/nsfs.h,
// proc_ns.h): whoever is in that of pids and that of host names is in no container, whatever files
// lie about.
static bool in_initial_namespaces(int root)
{
    static const struct {
        const char *path, *name;
    } initial[] = {{"proc/self/ns/pid", "pid:[4026531836]"},
                   {"proc/self/ns/uts", "uts:[4026531838]"}};
    for (size_t i = 0; i < ARRAY_LEN(initial); i++) {
        char name[64];
        ssize_t n = readlinkat(root, initial[i].path, name, sizeof name - 1);
        name[n > 0 ? n : 0] = '\0';
        if (strcmp(name, initial[i].name) != 0) {
            return false;
        }
    }
    return true;
}

// The variable that container managers give pid 1 ("container=podman"), and the files they leave.
static void read_place(int root, struct host *h)
{
    static const struct {
        const char *path, *name;
    } marks[] = {{".dockerenv", "docker"}, {"run/.containerenv", "podman"}};
    char environment[4096], kind[24] = "";
    ssize_t n = fd_read_at(root, "proc/1/environ", environment, sizeof environment);
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(environment + at) + 1) {
        if (strncmp(environment + at, "container=", 10) == 0) {
            snprintf(kind, sizeof kind, "%.23s", environment + at + 10);
        }
    }
    read_line(root, "run/systemd/container", h->container, sizeof h->container);
    for (size_t i = 0; i < ARRAY_LEN(marks) && !h->container[0]; i++) {
        if (exists(root, marks[i].path)) {
            snprintf(h->container, sizeof h->container, "%s", marks[i].name);
        }
    }
    if (kind[0] && !h->container[0]) {
        memcpy(h->container, kind, sizeof kind);
    }
    bool pod =
        exists(root, "run/secrets/kubernetes.io") || exists(root, "var/run/secrets/kubernetes.io");
    if (pod && !h->container[0]) {
        snprintf(h->container, sizeof h->container, "kubernetes");
    }
    for (char *p = h->container; *p; p++) {
        *p = isalnum((unsigned char)*p) || *p == '-' ? *p : '?';
    }
    if (in_initial_namespaces(root)) {
        h->container[0] = '\0';
    }
    h->place = !h->container[0] ? HOST_MACHINE
               : pod            ? HOST_POD
               : h->wsl         ? HOST_MACHINE
                                : HOST_CONTAINER;
}

// ---- this process -----------------------------------------------------------------------------

static void read_status(int root, struct host *h)
{
    FILE *f = open_text(root, "proc/self/status");
    char line[256];
    unsigned long long number;
    unsigned uid;
    h->has_proc = f != NULL;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "Uid: %*u %u", &uid) == 1) {
            h->uid = uid;
        } else if (sscanf(line, "CapEff: %llx", &number) == 1) {
            h->capabilities = number;
        } else if (sscanf(line, "NoNewPrivs: %llu", &number) == 1) {
            h->no_new_privs = number != 0;
        } else if (sscanf(line, "Seccomp: %llu", &number) == 1) {
            h->filtered = number == 2;
        }
    }
    if (f) {
        fclose(f);
    }
}

static void read_ids(int root, struct host *h)
{
    FILE *f = open_text(root, "proc/self/uid_map");
    unsigned long inner, outer, count;
    while (f && fscanf(f, "%lu %lu %lu", &inner, &outer, &count) == 3) {
        h->mapped_ids += count;
        h->initial_ids |= inner == 0 && outer == 0 && count == UINT32_MAX;
    }
    if (f) {
        fclose(f);
    }
}

// ---- mounts -----------------------------------------------------------------------------------

static void add_controllers(struct host *h, const char *list, const char *separators)
{
    static const char *const known[] = {"memory", "pids", "cpu", "cpuacct", "io", "blkio"};
    char copy[512], *save = NULL;
    snprintf(copy, sizeof copy, "%s", list);
    for (char *w = strtok_r(copy, separators, &save); w; w = strtok_r(NULL, separators, &save)) {
        for (size_t i = 0; i < ARRAY_LEN(known); i++) {
            if (strcmp(w, known[i]) == 0 && !host_lists(h->controllers, w)) {
                size_t n = strlen(h->controllers);
                snprintf(h->controllers + n, sizeof h->controllers - n, "%s%s", n ? "," : "", w);
            }
        }
    }
}

struct cgroup_mounts {
    bool v1, v2;
};

static void see_cgroup(int root, struct host *h, const char *point, const char *type,
                       const char *super, bool writable, struct cgroup_mounts *m)
{
    char path[1100], text[512];
    if (strcmp(type, "cgroup2") == 0) {
        m->v2 = true;
        snprintf(path, sizeof path, "%s/cgroup.controllers", point + 1);
        if (fd_read_at(root, path, text, sizeof text) > 0) {
            add_controllers(h, text, " \n");
            add_controllers(h, "cpuacct", ","); // every v2 group counts its CPU time
        }
    } else {
        m->v1 |= strstr(super, "name=") == NULL; // a named one has no controller
        add_controllers(h, super, ",");
    }
    h->cgroups_writable |= writable;
}

static bool parse_mount(char *line, struct host_mount *ret)
{
    char *tail = strstr(line, " - ");
    if (!tail) {
        return false;
    }
    *tail = '\0';
    ret->super[0] = '\0'; // some have none
    return sscanf(line, "%*s %*s %*s %1023s %1023s %255s", ret->from, ret->point, ret->options) ==
               3 &&
           sscanf(tail + 3, "%31s %*s %511s", ret->type, ret->super) >= 1;
}

void host_each_mount(int root, const char *type,
                     void (*what)(void *ctx, const struct host_mount *m), void *ctx)
{
    FILE *f = open_text(root, "proc/self/mountinfo");
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    struct host_mount m;
    char wanted[40];
    snprintf(wanted, sizeof wanted, " - %s", type);
    while (f && getline(&line, &size, f) >= 0) {
        if (strstr(line, wanted) && parse_mount(line, &m)) {
            what(ctx, &m);
        }
    }
    if (f) {
        fclose(f);
    }
}

struct mounts_view {
    int root;
    struct host *h;
    bool has_root, any;
    struct cgroup_mounts cgroups;
};

static void see_mount(void *ctx, const struct host_mount *m)
{
    struct mounts_view *v = ctx;
    struct host *h = v->h;
    bool read_only = host_lists(m->options, "ro");
    v->any = true;
    v->has_root |= strcmp(m->point, "/") == 0;
    if (strcmp(m->point, "/proc") == 0) {
        h->proc_sys_read_only |= read_only;
    } else if (strncmp(m->point, "/proc/", 6) == 0) {
        // binfmt_misc is a file system that belongs there, as does nfsd's
        h->proc_masked |= strncmp(m->point, "/proc/sys/fs/binfmt_misc", 24) != 0 &&
                          strncmp(m->point, "/proc/fs/", 9) != 0;
        h->proc_sys_read_only |= strcmp(m->point, "/proc/sys") == 0 && read_only;
    }
    if (strcmp(m->type, "cgroup") == 0 || strcmp(m->type, "cgroup2") == 0) {
        see_cgroup(v->root, h, m->point, m->type, m->super,
                   !read_only && !host_lists(m->super, "ro"), &v->cgroups);
    }
}

static void read_mounts(int root, struct host *h)
{
    struct mounts_view v = {.root = root, .h = h};
    host_each_mount(root, "", see_mount, &v);
    const struct cgroup_mounts m = v.cgroups;
    h->chrooted = v.any && !v.has_root; // the root of a chroot is a plain folder of some mount
    h->cgroups = m.v1 && m.v2 ? HOST_CGROUPS_HYBRID
                 : m.v2       ? HOST_CGROUPS_V2
                 : m.v1       ? HOST_CGROUPS_V1
                              : HOST_CGROUPS_NONE;
}

// ---- mounts of files --------------------------------------------------------------------------

bool host_stays_noexec(const char *path)
{
    struct statvfs s;
    if (statvfs(path, &s) || !(s.f_flag & ST_NOEXEC)) {
        return false;
    }
    // tried on a clone that is attached nowhere
    AUTO_CLOSE int mount = mount_clone(AT_FDCWD, path, 0);
    return mount < 0 || mount_set(mount, 0, MOUNT_ATTR_NOEXEC, 0);
}

// ---- all --------------------------------------------------------------------------------------

void host_read(int root, struct host *ret)
{
    *ret = (struct host){.uid = UINT32_MAX};
    read_system(root, ret);
    read_distribution(root, ret);
    read_place(root, ret);
    read_status(root, ret);
    read_ids(root, ret);
    read_mounts(root, ret);
    ret->has_user_namespaces = exists(root, "proc/self/ns/user");
    ret->userns_clone = host_number(root, "proc/sys/kernel/unprivileged_userns_clone");
    ret->userns_apparmor =
        host_number(root, "proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    ret->userns_max = host_number(root, "proc/sys/user/max_user_namespaces");
}
