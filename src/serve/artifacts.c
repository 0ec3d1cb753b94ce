#include "serve/artifacts.h"

#include "base/fd.h"
#include "base/tree.h"
#include "io/work.h"
#include "serve/shares.h"
#include "store/store.h"
#include "workspace/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { TALLY_PIECE = 64, TALLY_GROWTH = 256 };

static const char owner_name[] = "team";

// What the artifacts of one job take, and of whom.
struct taken {
    char team[STORE_NAME_MAX + 1]; // empty: nobody's, and nothing that was counted
    uint64_t bytes;
};

struct removal {
    struct work work;
    struct artifacts *of;
    struct removal *next;
    char name[64];
    bool counted;
    struct taken taken;
};

// What was there at the start, a few at a time. While there are any, nothing is removed.
struct tally {
    struct work work;
    char (*ids)[37];
    size_t n, room;
    size_t n_piece; // the last ones of them, which are the thread's
    struct taken taken[TALLY_PIECE];
};

struct artifacts {
    int dir;
    struct work_pool *pool;
    struct shares *shares;
    struct removal *removals;
    struct tally tally;
};

// ---- what is kept

// In blocks, as a file of one byte takes one, too.
static uint64_t in_blocks(uint64_t bytes) { return (bytes + 4095) & ~UINT64_C(4095); }

// On any thread.
static void look_at(int dir, const char *name, struct taken *ret)
{
    *ret = (struct taken){.bytes = 0};
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        fd_close(fd);
        return;
    }
    ssize_t n = readlinkat(fd, owner_name, ret->team, sizeof ret->team - 1);
    ret->team[n > 0 ? n : 0] = '\0';
    for (const struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
        struct stat st;
        if (!fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode)) {
            ret->bytes += in_blocks((uint64_t)st.st_size);
        }
    }
    closedir(d);
}

static void count(struct artifacts *a, const struct taken *t, bool removed)
{
    struct share *share = *t->team ? shares_hold(a->shares, t->team) : NULL;
    if (share) {
        share_add(share, SHARE_ARTIFACTS, removed ? -(int64_t)t->bytes : (int64_t)t->bytes);
        share_release(share);
    }
}

// ---- removal

static void removal_run(struct work *w)
{
    struct removal *r = w->ctx;
    if (r->counted) {
        look_at(r->of->dir, r->name, &r->taken);
    }
    tree_remove_at(r->of->dir, r->name); // what is left is found by the next start
}

static void take_out(struct removal *r)
{
    struct removal **at = &r->of->removals;
    while (*at != r) {
        at = &(*at)->next;
    }
    *at = r->next;
    free(r);
}

static void removal_done(struct work *w)
{
    struct removal *r = w->ctx;
    count(r->of, &r->taken, true);
    take_out(r);
}

static void queue_removal(struct removal *r)
{
    r->work = (struct work){.run = removal_run, .done = removal_done, .ctx = r, .background = true};
    if (work_queue(r->of->pool, &r->work)) {
        take_out(r);
    }
}

static void queue_kept_back(struct artifacts *a)
{
    for (struct removal *r = a->removals, *next; r; r = next) {
        next = r->next;
        if (!r->work.run) {
            queue_removal(r);
        }
    }
}

static void remove_later(struct artifacts *a, const char *name, bool counted)
{
    struct removal *r = malloc(sizeof *r);
    if (!r) {
        return;
    }
    *r = (struct removal){.of = a, .next = a->removals, .counted = counted};
    snprintf(r->name, sizeof r->name, "%s", name);
    a->removals = r;
    if (a->tally.n == 0) { // else when that is done
        queue_removal(r);
    }
}

void artifacts_remove(struct artifacts *a, const char *job_id)
{
    struct stat st;
    if (!fstatat(a->dir, job_id, &st, AT_SYMLINK_NOFOLLOW)) {
        remove_later(a, job_id, true);
    }
}

// ---- the start

static void tally_run(struct work *w)
{
    struct artifacts *a = w->ctx;
    struct tally *t = &a->tally;
    for (size_t i = 0; i < t->n_piece; i++) {
        look_at(a->dir, t->ids[t->n - 1 - i], &t->taken[i]);
    }
}

static void tally_next(struct artifacts *a);

static void tally_done(struct work *w)
{
    struct artifacts *a = w->ctx;
    struct tally *t = &a->tally;
    for (size_t i = 0; i < t->n_piece; i++) {
        count(a, &t->taken[i], false);
    }
    t->n -= t->n_piece;
    tally_next(a);
}

static void tally_next(struct artifacts *a)
{
    struct tally *t = &a->tally;
    if (t->n == 0) {
        free(t->ids);
        t->ids = NULL;
        queue_kept_back(a);
        return;
    }
    t->n_piece = t->n < TALLY_PIECE ? t->n : (size_t)TALLY_PIECE;
    t->work = (struct work){.run = tally_run, .done = tally_done, .ctx = a, .background = true};
    if (work_queue(a->pool, &t->work)) { // what is there stays uncounted
        t->n = 0;
        tally_next(a);
    }
}

static int tally_add(struct tally *t, const char *name, size_t len)
{
    if (t->n == t->room) {
        void *more = reallocarray(t->ids, t->room + TALLY_GROWTH, sizeof *t->ids);
        if (!more) {
            return -ENOMEM;
        }
        t->ids = more;
        t->room += TALLY_GROWTH;
    }
    memcpy(t->ids[t->n++], name, len + 1);
    return 0;
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
    int e = 0;
    for (const struct dirent *entry = readdir(d); entry && !e; entry = readdir(d)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        const size_t len = strlen(entry->d_name);
        if (left_over(a, entry->d_name, before_ms)) {
            remove_later(a, entry->d_name, false);
        } else if (len < sizeof *a->tally.ids) {
            e = tally_add(&a->tally, entry->d_name, len);
        }
    }
    closedir(d);
    return e;
}

int artifacts_new(int dir, struct work_pool *pool, struct shares *shares, int64_t forget_before_ms,
                  struct artifacts **ret)
{
    struct artifacts *a = calloc(1, sizeof *a);
    if (!a) {
        return -ENOMEM;
    }
    *a = (struct artifacts){.dir = dir, .pool = pool, .shares = shares};
    int e = sweep(a, forget_before_ms);
    if (e) {
        work_pool_stop(pool);
        artifacts_free(a);
        return e;
    }
    tally_next(a);
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
    if (a) {
        free(a->tally.ids);
    }
    free(a);
}

// ---- writing

void artifacts_writer_init(struct artifacts_writer *w, struct artifacts *a, struct share *share,
                           const char *job_id)
{
    *w = (struct artifacts_writer){
        .to = a, .share = share, .dir = -1, .fd = -1, .room = share_room(share)};
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
    return w->dir < 0 || symlinkat(share_team(w->share), w->dir, owner_name) ? -errno : 0;
}

// The last of the disk is the store's, which has to record how jobs end.
static int check_room(int fd, size_t len)
{
    uint64_t left = 0;
    int e = disk_left(fd, &left);
    return e ? e : left == 0 || left < len ? -ENOSPC : 0;
}

// All that is written, with so much more of the one that is open.
static bool is_in_share(const struct artifacts_writer *w, uint64_t len)
{
    return w->bytes + in_blocks(w->one + len) <= w->room;
}

static void end_one(struct artifacts_writer *w)
{
    w->fd = fd_close(w->fd);
    w->bytes += in_blocks(w->one);
    w->one = 0;
}

int artifacts_begin(struct artifacts_writer *w)
{
    char name[16];
    end_one(w);
    int e = is_in_share(w, 0) && w->room > 0 ? check_room(w->to->dir, 0) : -EDQUOT;
    e = !e && w->dir < 0 ? make_folder(w) : e;
    if (e) {
        return e;
    }
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
    int e = is_in_share(w, len) ? check_room(w->fd, len) : -EDQUOT;
    w->one += len;
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
        end_one(w);
        w->dir = fd_close(w->dir);
        w->committed = true;
    }
    return e;
}

void artifacts_drop(struct artifacts_writer *w)
{
    char name[48];
    if (w->committed && !w->counted) {
        w->counted = true;
        share_add(w->share, SHARE_ARTIFACTS, (int64_t)w->bytes);
    }
    if (w->dir < 0) {
        return;
    }
    w->fd = fd_close(w->fd);
    w->dir = fd_close(w->dir);
    part_name(w, name);
    remove_later(w->to, name, false);
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
