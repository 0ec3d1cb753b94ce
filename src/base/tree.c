#include "base/tree.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int open_folder(int dir, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
    return fd < 0 ? -errno : fd;
}

static int walk_push(struct tree_removal *w, int fd, const char *name)
{
    DIR *d = fdopendir(fd);
    if (!d) {
        int e = -errno;
        close(fd);
        return e;
    }
    w->dir[w->depth] = d;
    w->progress[w->depth] = false;
    memcpy(w->name[w->depth], name, strlen(name) + 1); // from a dirent or "", so it fits
    w->depth++;
    return 0;
}

// The folder `name` of the deepest level goes to the top under a fresh name.
static int move_up(struct tree_removal *w, int dir, const char *name)
{
    char fresh[32];
    int e;
    do {
        snprintf(fresh, sizeof fresh, ".isle-%u", w->serial++);
        e = renameat2(dir, name, dirfd(w->dir[0]), fresh, RENAME_NOREPLACE) ? -errno : 0;
    } while (e == -EEXIST);
    if (!e) {
        w->progress[0] = true;
    }
    return e;
}

// One entry of the deepest open folder: removed (1), entered (0), or -errno.
static int walk_entry(struct tree_removal *w, const struct dirent *entry)
{
    int dir = dirfd(w->dir[w->depth - 1]);
    const char *name = entry->d_name;
    if (entry->d_type != DT_DIR) {
        if (!unlinkat(dir, name, 0)) {
            return 1;
        }
        if (errno != EISDIR) { // a folder after all: file systems need not tell the type
            return -errno;
        }
    }
    if (!unlinkat(dir, name, AT_REMOVEDIR)) {
        return 1;
    }
    if (errno != ENOTEMPTY && errno != EEXIST) {
        return -errno;
    }
    if (w->depth == TREE_MAX_DEPTH) {
        int e = move_up(w, dir, name);
        return e ? e : 1;
    }
    int fd = open_folder(dir, name);
    return fd < 0 ? fd : walk_push(w, fd, name);
}

// The deepest folder was read to its end: once more if that helped (removal while reading may make
// a file system skip entries), else leave it and remove it.
static void walk_leave(struct tree_removal *w)
{
    int last = w->depth - 1;
    if (w->progress[last]) {
        w->progress[last] = false;
        rewinddir(w->dir[last]);
        if (last == 0) {
            w->error = 0; // what failed may succeed now, when the disk is no longer full
        }
        return;
    }
    closedir(w->dir[last]);
    w->depth--;
    if (last == 0) {
        return;
    }
    if (!unlinkat(dirfd(w->dir[last - 1]), w->name[last], AT_REMOVEDIR)) {
        w->progress[last - 1] = true;
    } else if (!w->error) {
        w->error = -errno;
    }
}

int tree_step(struct tree_removal *w, unsigned max_entries)
{
    for (unsigned seen = 0; w->depth > 0 && seen < max_entries; seen++) {
        int last = w->depth - 1;
        errno = 0;
        struct dirent *entry = readdir(w->dir[last]);
        if (!entry) {
            if (errno && !w->error) {
                w->error = -errno;
            }
            walk_leave(w);
            continue;
        }
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) {
            continue;
        }
        int done = walk_entry(w, entry);
        if (done > 0) {
            w->progress[last] = true;
        } else if (done < 0 && done != -ENOENT && !w->error) {
            w->error = done;
        }
    }
    return w->depth == 0;
}

int tree_begin(struct tree_removal *w, int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    *w = (struct tree_removal){.depth = 0};
    return walk_push(w, fd, "");
}

void tree_end(struct tree_removal *w)
{
    while (w->depth > 0) {
        closedir(w->dir[--w->depth]);
    }
}

int tree_empty(int dir)
{
    struct tree_removal w = {.depth = 0};
    int e = tree_begin(&w, dir);
    if (e) {
        return e;
    }
    while (!tree_step(&w, UINT_MAX)) {
    }
    return w.error;
}

int tree_remove_at(int dir, const char *name)
{
    if (!unlinkat(dir, name, 0) || errno == ENOENT) {
        return 0;
    }
    if (errno != EISDIR) {
        return -errno;
    }
    if (!unlinkat(dir, name, AT_REMOVEDIR)) {
        return 0;
    }
    if (errno != ENOTEMPTY && errno != EEXIST) {
        return -errno;
    }
    AUTO_CLOSE int fd = open_folder(dir, name);
    if (fd < 0) {
        return fd;
    }
    int e = tree_empty(fd);
    return unlinkat(dir, name, AT_REMOVEDIR) && !e ? -errno : e;
}
