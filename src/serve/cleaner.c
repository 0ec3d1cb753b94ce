#include "serve/cleaner.h"

#include "base/fd.h"
#include "base/tree.h"
#include "io/work.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum {
    AT_ONCE = 8,          // trees: up to 17 descriptors each
    OF_ONE = 4,           // of them, of one owner
    PIECE_ENTRIES = 2000, // of one tree before the next one's turn: about 40 ms
};

struct removal {
    struct work work;
    struct cleaner *cleaner;
    char *name; // in the trash
    cleaner_done done;
    void *ctx;
    struct removal *next; // in one of the cleaner's lists
    // the thread's while it is queued
    struct tree_removal tree;
    int dir;
    bool over;
    int error;
};

// One that waits for its turn: what a removal needs is made when that has come.
struct waiting {
    struct waiting *next;
    uint64_t owner;
    cleaner_done done;
    void *ctx;
    char name[];
};

struct cleaner {
    int trash;
    struct work_pool *pool;
    struct removal *active;
    unsigned n_active;
    struct waiting *first, *last;
};

// ---- on a thread

// A folder is opened; whatever else it is goes at once.
static void begin(struct removal *r)
{
    int trash = r->cleaner->trash;
    r->dir = openat(trash, r->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r->dir >= 0) {
        r->error = tree_begin(&r->tree, r->dir);
        r->over = r->error != 0;
        return;
    }
    r->over = true;
    r->error = -errno;
    if ((errno == ENOTDIR || errno == ELOOP) && !unlinkat(trash, r->name, 0)) {
        r->error = 0;
    }
}

static void run_piece(struct work *w)
{
    struct removal *r = w->ctx;
    if (r->dir < 0) {
        begin(r);
    }
    if (!r->over && tree_step(&r->tree, PIECE_ENTRIES)) {
        r->over = true;
        r->error = r->tree.error;
        r->dir = fd_close(r->dir);
        if (unlinkat(r->cleaner->trash, r->name, AT_REMOVEDIR) && !r->error) {
            r->error = -errno;
        }
    }
}

// ---- on the loop

static void removal_free(struct removal *r)
{
    tree_end(&r->tree);
    fd_close(r->dir);
    free(r->name);
    free(r);
}

static void start_next(struct cleaner *c);

static void piece_done(struct work *w)
{
    struct removal *r = w->ctx;
    struct cleaner *c = r->cleaner;
    if (!r->over && work_queue(c->pool, w) == 0) {
        return;
    }
    struct removal **at = &c->active;
    while (*at != r) {
        at = &(*at)->next;
    }
    *at = r->next;
    c->n_active--;
    int error = r->over ? r->error : -EAGAIN;
    cleaner_done done = r->done;
    void *ctx = r->ctx;
    removal_free(r);
    start_next(c);
    if (done) {
        done(ctx, error == -ENOENT ? 0 : error);
    }
}

// 0 or -errno: then it stays with the caller.
static int start(struct cleaner *c, const struct waiting *next)
{
    struct removal *r = calloc(1, sizeof *r);
    if (!r || !(r->name = strdup(next->name))) {
        free(r);
        return -ENOMEM;
    }
    r->work = (struct work){
        .run = run_piece, .done = piece_done, .ctx = r, .background = true, .owner = next->owner};
    r->cleaner = c;
    r->done = next->done;
    r->ctx = next->ctx;
    r->dir = -1;
    int e = work_queue(c->pool, &r->work);
    if (e) {
        removal_free(r);
        return e;
    }
    r->next = c->active;
    c->active = r;
    c->n_active++;
    return 0;
}

static bool may_start(const struct cleaner *c, uint64_t owner)
{
    unsigned n = 0;
    for (const struct removal *r = c->active; r; r = r->next) {
        n += r->work.owner == owner;
    }
    return !owner || n < OF_ONE;
}

// The first that may start.
static void start_next(struct cleaner *c)
{
    struct waiting **at = &c->first, *before = NULL;
    while (*at && c->n_active < AT_ONCE) {
        struct waiting *w = *at;
        if (!may_start(c, w->owner)) {
            before = w;
            at = &w->next;
            continue;
        }
        if (start(c, w)) {
            return; // tried again with the next one
        }
        *at = w->next;
        c->last = w->next ? c->last : before;
        free(w);
    }
}

int cleaner_remove(struct cleaner *c, const char *name, uint64_t owner, cleaner_done done,
                   void *ctx)
{
    size_t size = strlen(name) + 1;
    struct waiting *w = malloc(sizeof *w + size);
    if (!w) {
        return -ENOMEM;
    }
    *w = (struct waiting){.owner = owner, .done = done, .ctx = ctx};
    memcpy(w->name, name, size);
    *(c->last ? &c->last->next : &c->first) = w;
    c->last = w;
    start_next(c);
    return 0;
}

int cleaner_take(struct cleaner *c, int dir, const char *name, uint64_t owner, cleaner_done done,
                 void *ctx, char ret_trashed[FILES_RANDOM_NAME])
{
    char fresh[FILES_RANDOM_NAME];
    int e = files_random_name(fresh, "");
    if (!e && renameat2(dir, name, c->trash, fresh, RENAME_NOREPLACE)) {
        e = -errno;
    }
    if (!e && ret_trashed) {
        memcpy(ret_trashed, fresh, sizeof fresh);
    }
    return e ? e : cleaner_remove(c, fresh, owner, done, ctx);
}

int cleaner_sweep(struct cleaner *c)
{
    int fd = openat(c->trash, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int e = -errno;
        fd_close(fd);
        return e;
    }
    int e = 0;
    for (const struct dirent *entry = readdir(d); entry && !e; entry = readdir(d)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            e = cleaner_remove(c, entry->d_name, 0, NULL, NULL);
        }
    }
    closedir(d);
    return e;
}

int cleaner_new(int trash, struct work_pool *pool, struct cleaner **ret)
{
    struct cleaner *c = calloc(1, sizeof *c);
    if (!c) {
        return -ENOMEM;
    }
    c->trash = trash;
    c->pool = pool;
    *ret = c;
    return 0;
}

void cleaner_free(struct cleaner *c)
{
    while (c && c->first) {
        struct waiting *w = c->first;
        c->first = w->next;
        free(w);
    }
    while (c && c->active) {
        struct removal *r = c->active;
        c->active = r->next;
        removal_free(r);
    }
    free(c);
}
