#include "base/tree.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

// Folders down to this depth are walked with one descriptor each. What lies deeper is moved up to
// the top and found there later, so a chain of 100000 folders costs 6250 renames, and an ordinary
// tree none.
enum { MAX_DEPTH = 16 };

struct walk {
    DIR *dir[MAX_DEPTH];                // [0]: the folder to empty
    char name[MAX_DEPTH][NAME_MAX + 1]; // of dir[i] in dir[i - 1]
    bool progress[MAX_DEPTH];           // something went since the last rewind of dir[i]
    int depth;
    unsigned serial; // of the names given to what was moved up
    int error;       // of the current pass over the top folder
};

static int open_folder(int dir, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
    return fd < 0 ? -errno : fd;
}

static int walk_push(struct walk *w, int fd, const char *name)
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
static int move_up(struct walk *w, int dir, const char *name)
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
static int walk_entry(struct walk *w, const struct dirent *entry)
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
    if (w->depth == MAX_DEPTH) {
        int e = move_up(w, dir, name);
        return e ? e : 1;
    }
    int fd = open_folder(dir, name);
    return fd < 0 ? fd : walk_push(w, fd, name);
}

// The deepest folder was read to its end: once more if that helped (removal while reading may make
// a file system skip entries), else leave it and remove it.
static void walk_leave(struct walk *w)
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

static void walk_run(struct walk *w)
{
    while (w->depth > 0) {
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
}

int tree_empty(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    struct walk w = {.depth = 0};
    int e = walk_push(&w, fd, "");
    if (e) {
        return e;
    }
    walk_run(&w);
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
