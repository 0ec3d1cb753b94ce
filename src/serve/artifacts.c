#include "serve/artifacts.h"

#include "base/fd.h"
#include "base/tree.h"
#include "io/work.h"
#include "workspace/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct removal {
    struct work work;
    struct artifacts *of;
    struct removal *next;
    char name[64];
};

struct artifacts {
    int dir;
    struct work_pool *pool;
    struct removal *removals;
};

// ---- removal

static void removal_run(struct work *w)
{
    const struct removal *r = w->ctx;
    tree_remove_at(r->of->dir, r->name); // what is left is found by the next start
}

static void removal_done(struct work *w)
{
    struct removal *r = w->ctx;
    struct removal **at = &r->of->removals;
    while (*at != r) {
        at = &(*at)->next;
    }
    *at = r->next;
    free(r);
}

static void remove_later(struct artifacts *a, const char *name)
{
    struct removal *r = malloc(sizeof *r);
    if (!r) {
        return;
    }
    *r = (struct removal){.of = a, .next = a->removals};
    r->work = (struct work){.run = removal_run, .done = removal_done, .ctx = r, .background = true};
    snprintf(r->name, sizeof r->name, "%s", name);
    if (work_queue(a->pool, &r->work)) {
        free(r);
        return;
    }
    a->removals = r;
}

void artifacts_remove(struct artifacts *a, const char *job_id)
{
    struct stat st;
    if (!fstatat(a->dir, job_id, &st, AT_SYMLINK_NOFOLLOW)) {
        remove_later(a, job_id);
    }
}

// Nobody's: not whole, or so old that its record is gone.
static bool left_over(const struct artifacts *a, const char *name, int64_t before_ms)
{
    struct stat st;
    size_t len = strlen(name);
    if (fstatat(a->dir, name, &st, AT_SYMLINK_NOFOLLOW)) {
        return false;
    }
    return (len > 5 && strcmp(name + len - 5, ".part") == 0) ||
           (int64_t)st.st_mtim.tv_sec * 1000 < before_ms;
}

static int sweep(struct artifacts *a, int64_t before_ms)
{
    int fd = openat(a->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int e = -errno;
        fd_close(fd);
        return e;
    }
    for (const struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
        if (entry->d_name[0] != '.' && left_over(a, entry->d_name, before_ms)) {
            remove_later(a, entry->d_name);
        }
    }
    closedir(d);
    return 0;
}

int artifacts_new(int dir, struct work_pool *pool, int64_t forget_before_ms, struct artifacts **ret)
{
    struct artifacts *a = calloc(1, sizeof *a);
    if (!a) {
        return -ENOMEM;
    }
    *a = (struct artifacts){.dir = dir, .pool = pool};
    int e = sweep(a, forget_before_ms);
    if (e) {
        free(a);
        return e;
    }
    *ret = a;
    return 0;
}

void artifacts_free(struct artifacts *a)
{
    while (a && a->removals) {
        struct removal *r = a->removals;
        a->removals = r->next;
        free(r);
    }
    free(a);
}

// ---- writing

void artifacts_writer_init(struct artifacts_writer *w, struct artifacts *a, const char *job_id)
{
    *w = (struct artifacts_writer){.to = a, .dir = -1, .fd = -1};
    snprintf(w->job_id, sizeof w->job_id, "%s", job_id);
}

static void part_name(const struct artifacts_writer *w, char ret[48])
{
    snprintf(ret, 48, "%s.part", w->job_id);
}

static int make_folder(struct artifacts_writer *w)
{
    char name[48];
    part_name(w, name);
    if (mkdirat(w->to->dir, name, 0700)) {
        return -errno;
    }
    w->dir = openat(w->to->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return w->dir < 0 ? -errno : 0;
}

// The last of the disk is the store's, which has to record how jobs end.
static int check_room(int fd, size_t len)
{
    uint64_t left = 0;
    int e = disk_left(fd, &left);
    return e ? e : left == 0 || left < len ? -ENOSPC : 0;
}

int artifacts_begin(struct artifacts_writer *w)
{
    char name[16];
    int e = check_room(w->to->dir, 0);
    e = !e && w->dir < 0 ? make_folder(w) : e;
    if (e) {
        return e;
    }
    w->fd = fd_close(w->fd);
    snprintf(name, sizeof name, "%u", w->n);
    w->fd = openat(w->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (w->fd < 0) {
        return -errno;
    }
    w->n++;
    return 0;
}

int artifacts_add(struct artifacts_writer *w, const char *data, size_t len)
{
    int e = check_room(w->fd, len);
    return e ? e : fd_write_all(w->fd, data, len);
}

static int sync_file(int dir, uint32_t n)
{
    char name[16];
    snprintf(name, sizeof name, "%u", n);
    AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 || fsync(fd) ? -errno : 0;
}

int artifacts_commit(struct artifacts_writer *w)
{
    char name[48];
    if (w->dir < 0) {
        return 0;
    }
    int e = 0;
    for (uint32_t i = 0; i < w->n && !e; i++) {
        e = sync_file(w->dir, i);
    }
    part_name(w, name);
    if (!e &&
        (fsync(w->dir) || renameat2(w->to->dir, name, w->to->dir, w->job_id, RENAME_NOREPLACE) ||
         fsync(w->to->dir))) {
        e = -errno;
    }
    if (!e) {
        w->fd = fd_close(w->fd);
        w->dir = fd_close(w->dir);
    }
    return e;
}

void artifacts_drop(struct artifacts_writer *w)
{
    char name[48];
    if (w->dir < 0) {
        return;
    }
    w->fd = fd_close(w->fd);
    w->dir = fd_close(w->dir);
    part_name(w, name);
    remove_later(w->to, name);
}

// ---- reading

int artifacts_open(const struct artifacts *a, const char *job_id, uint32_t n, uint64_t *ret_size)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "%s/%u", job_id, n);
    AUTO_CLOSE int fd = openat(a->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        return -errno;
    }
    *ret_size = (uint64_t)st.st_size;
    return fd_take(&fd);
}
