#include "workspace/walk.h"

#include "base/fd.h"
#include "workspace/path.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

struct entry { // getdents64(2)
    uint64_t ino;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

// The level's listing is read anew from `offset` after a subfolder: a stack of offsets is small
// where one of listings would not be.
static int push(struct walk *w, int dir, const char *name)
{
    if (w->depth == WALK_MAX_DEPTH) {
        w->blind = true;
        return 0;
    }
    int fd = path_open(dir, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) {
        w->blind |= fd != -ENOENT && fd != -ENOTDIR; // gone meanwhile is fine
        return 0;
    }
    w->levels[w->depth++] = (struct walk_level){.fd = fd};
    return 0;
}

int walk_begin(struct walk *w, int root)
{
    *w = (struct walk){0};
    w->levels = calloc(WALK_MAX_DEPTH, sizeof *w->levels);
    w->chunk = malloc(WALK_CHUNK_BYTES);
    int e = w->levels && w->chunk ? push(w, root, ".") : -ENOMEM;
    if (e) {
        walk_end(w);
    }
    return e;
}

void walk_end(struct walk *w)
{
    while (w->depth > 0) {
        close(w->levels[--w->depth].fd);
    }
    free(w->levels);
    free(w->chunk);
    w->levels = NULL;
    w->chunk = NULL;
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

// Counts one entry. True when it is a folder to go into.
static bool count(struct walk *w, int dir, const struct entry *d)
{
    struct stat st;
    w->entries++;
    if (fstatat(dir, d->name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)) {
        return false;
    }
    uint64_t bytes = (uint64_t)st.st_blocks * 512;
    bool folder = S_ISDIR(st.st_mode);
    w->bytes += folder || st.st_nlink <= 1 ? bytes : bytes / st.st_nlink;
    return folder;
}

// One buffer of the deepest level's listing, or less where a subfolder comes. 0 or -errno.
static int advance(struct walk *w)
{
    struct walk_level *level = &w->levels[w->depth - 1];
    if (lseek(level->fd, level->offset, SEEK_SET) < 0) {
        return -errno;
    }
    long n = syscall(SYS_getdents64, level->fd, w->chunk, WALK_CHUNK_BYTES);
    if (n <= 0) { // the end, or a folder that was removed under us
        close(level->fd);
        w->depth--;
        return 0;
    }
    for (long at = 0; at < n;) {
        struct entry *d = (struct entry *)(void *)(w->chunk + at);
        at += d->length;
        level->offset = d->offset;
        if (!is_dots(d->name) && count(w, level->fd, d)) {
            return push(w, level->fd, d->name);
        }
    }
    return 0;
}

int walk_step(struct walk *w, uint64_t max_entries)
{
    uint64_t until = w->entries + max_entries;
    while (w->depth > 0 && w->entries < until) {
        int e = advance(w);
        if (e) {
            walk_end(w);
            return e;
        }
    }
    if (w->depth > 0) {
        return 0;
    }
    walk_end(w);
    return 1;
}
