#include "start/kept.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/tree.h"
#include "start/folders.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define RECORD "instance"
#define RECORD_NEW "instance.new"

enum {
    HELD_MS = 3000, // a killed service is followed by its launcher, which ends its jobs first
    RECORD_MAX_BYTES = 512,
};

static int open_folder(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int kept_open(int data_dir)
{
    if (mkdirat(data_dir, FOLDERS_SERVE, 0700) && errno != EEXIST) {
        return -errno;
    }
    int fd = open_folder(data_dir, FOLDERS_SERVE);
    return fd == -ENOTDIR || fd == -ELOOP ? -EEXIST : fd;
}

int kept_lock(int folder)
{
    for (unsigned ms = 0; flock(folder, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK; ms++) {
        if (ms == HELD_MS) {
            return -EWOULDBLOCK;
        }
        clock_pause_ns(NS_PER_MS);
    }
    return 0;
}

int kept_share(int folder)
{
    return flock(folder, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK ? -EWOULDBLOCK : 0;
}

// ---- the record ---------------------------------------------------------------------------------

static bool is_sound(const struct kept_ids *i)
{
    return i->count && i->uid_base <= UINT32_MAX - i->count && i->gid_base <= UINT32_MAX - i->count;
}

static int parse(const char *text, struct kept_record *ret)
{
    struct kept_record r = {.n = 0};
    int head = 0;
    if (sscanf(text, "isle 1\n%n", &head) || !head) {
        return -EBADMSG;
    }
    for (text += head; *text && r.n < KEPT_MAX; r.n++) {
        struct kept_ids *i = &r.ids[r.n];
        int len = 0;
        if (sscanf(text, "%u %u %u %u\n%n", &i->instance, &i->uid_base, &i->gid_base, &i->count,
                   &len) != 4 ||
            !len || !is_sound(i)) {
            return -EBADMSG;
        }
        text += len;
    }
    if (*text || !r.n) {
        return -EBADMSG;
    }
    *ret = r;
    return 0;
}

int kept_read(int folder, struct kept_record *ret)
{
    char text[RECORD_MAX_BYTES];
    struct stat st;
    AUTO_CLOSE int fd =
        openat(folder, RECORD, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        ret->n = 0;
        return 0;
    }
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        return -EBADMSG;
    }
    ssize_t n = fd_read_full(fd, text, sizeof text - 1);
    if (n < 0) {
        return (int)n;
    }
    text[n] = '\0';
    return parse(text, ret);
}

int kept_write(int folder, const struct kept_record *record)
{
    AUTO_BUF struct buf text = BUF_INIT(RECORD_MAX_BYTES - 1);
    buf_puts(&text, "isle 1\n");
    for (size_t i = 0; i < record->n; i++) {
        const struct kept_ids *k = &record->ids[i];
        buf_printf(&text, "%u %u %u %u\n", k->instance, k->uid_base, k->gid_base, k->count);
    }
    int e = text.error ? text.error : tree_remove_at(folder, RECORD_NEW);
    if (e) {
        return e;
    }
    AUTO_CLOSE int fd =
        openat(folder, RECORD_NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    e = fd < 0 ? -errno : fd_write_all(fd, text.data, text.len);
    e = e ? e : fsync(fd) ? -errno : 0;
    if (!e && renameat(folder, RECORD_NEW, folder, RECORD)) {
        // a folder is called so, which only a service that was taken over can have made
        e = tree_remove_at(folder, RECORD);
        e = e ? e : renameat(folder, RECORD_NEW, folder, RECORD) ? -errno : 0;
    }
    return e;
}

// ---- giving a tree to other ids -----------------------------------------------------------------

// A folder on the way down: which one it is, and where its reading goes on. Descriptors are one
// for the current folder only, so a chain of any depth costs memory alone; the way up is "..",
// which leads back as nobody moves anything meanwhile, and is checked.
struct level {
    dev_t dev;
    ino_t ino;
    long at;
};

struct walk {
    const struct kept_ids *from, *to;
    struct level *level;
    size_t depth, room;
    dev_t dev; // of the whole tree
    DIR *dir;  // of the current folder
};

static uint32_t moved(uint32_t id, uint32_t from, uint32_t to, uint32_t count)
{
    return id > from && id - from < count ? id - from + to : id;
}

static int give_one(const struct walk *w, int dir, const char *name, const struct stat *st)
{
    const struct kept_ids *f = w->from, *t = w->to;
    uid_t uid = moved(st->st_uid, f->uid_base, t->uid_base, f->count);
    gid_t gid = moved(st->st_gid, f->gid_base, t->gid_base, f->count);
    if (uid == st->st_uid && gid == st->st_gid) {
        return 0;
    }
    return fchownat(dir, name, uid, gid, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) ? -errno : 0;
}

static int set_current(struct walk *w, int fd)
{
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int e = fd < 0 ? fd : -errno;
        fd_close(fd);
        return e;
    }
    if (w->dir) {
        closedir(w->dir);
    }
    w->dir = d;
    return 0;
}

static int go_down(struct walk *w, const char *name)
{
    struct stat st;
    if (w->depth == w->room) {
        size_t room = w->room ? 2 * w->room : 64;
        struct level *more = reallocarray(w->level, room, sizeof *more);
        if (!more) {
            return -ENOMEM;
        }
        w->level = more;
        w->room = room;
    }
    if (fstat(dirfd(w->dir), &st)) {
        return -errno;
    }
    w->level[w->depth++] = (struct level){st.st_dev, st.st_ino, telldir(w->dir)};
    return set_current(w, open_folder(dirfd(w->dir), name));
}

static int go_up(struct walk *w)
{
    const struct level *l = &w->level[--w->depth];
    struct stat st;
    int e = set_current(w, open_folder(dirfd(w->dir), ".."));
    if (!e && (fstat(dirfd(w->dir), &st) || st.st_dev != l->dev || st.st_ino != l->ino)) {
        e = -ESTALE;
    }
    if (!e) {
        seekdir(w->dir, l->at);
    }
    return e;
}

static int give_entry(struct walk *w, const char *name)
{
    struct stat st;
    if (!strcmp(name, ".") || !strcmp(name, "..")) {
        return 0;
    }
    if (fstatat(dirfd(w->dir), name, &st, AT_SYMLINK_NOFOLLOW)) {
        return -errno;
    }
    if (st.st_dev != w->dev) {
        return 0;
    }
    int e = give_one(w, dirfd(w->dir), name, &st);
    return e || !S_ISDIR(st.st_mode) ? e : go_down(w, name);
}

static int give_all(struct walk *w)
{
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(w->dir);
        if (!entry && errno) {
            return -errno;
        }
        if (!entry && w->depth == 0) {
            return 0;
        }
        int e = entry ? give_entry(w, entry->d_name) : go_up(w);
        if (e) {
            return e;
        }
    }
}

int kept_give(int folder, const struct kept_ids *from, const struct kept_ids *to)
{
    struct stat st;
    struct walk w = {.from = from, .to = to};
    if (fstat(folder, &st)) {
        return -errno;
    }
    w.dev = st.st_dev;
    int e = set_current(&w, open_folder(folder, "."));
    e = e || !w.dir ? e : give_all(&w);
    // last: what is half done still looks as it did
    e = e ? e : give_one(&w, folder, "", &st);
    if (w.dir) {
        closedir(w.dir);
    }
    free(w.level);
    return e;
}
