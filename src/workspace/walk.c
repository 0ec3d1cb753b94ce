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

static void push(struct walk *w, int dir, const char *name)
{
    if (w->depth == WALK_MAX_DEPTH) {
        w->blind = true;
        return;
    }
    int fd = path_open(dir, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) {
        w->blind |= fd != -ENOENT && fd != -ENOTDIR; // gone meanwhile is fine
        return;
    }
    struct walk_level *level = &w->levels[w->depth++];
    level->fd = fd;
    level->at = level->len = 0;
}

int walk_begin(struct walk *w, int root)
{
    *w = (struct walk){0};
    w->levels = malloc(WALK_MAX_DEPTH * sizeof *w->levels); // whose pages stay untouched, mostly
    if (!w->levels) {
        return -ENOMEM;
    }
    push(w, root, ".");
    return 0;
}

void walk_end(struct walk *w)
{
    while (w->depth > 0) {
        close(w->levels[--w->depth].fd);
    }
    free(w->levels);
    w->levels = NULL;
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

// The next buffer of the deepest level's listing; at its end the level above goes on.
static void refill(struct walk *w)
{
    struct walk_level *level = &w->levels[w->depth - 1];
    long n = syscall(SYS_getdents64, level->fd, level->chunk, WALK_CHUNK_BYTES);
    if (n <= 0) { // the end, or a folder that was removed under us
        close(level->fd);
        w->depth--;
        return;
    }
    level->at = 0;
    level->len = (size_t)n;
}

// One entry of the deepest level.
static void advance(struct walk *w)
{
    struct walk_level *level = &w->levels[w->depth - 1];
    if (level->at == level->len) {
        refill(w);
        return;
    }
    const struct entry *d = (const struct entry *)(const void *)(level->chunk + level->at);
    level->at += d->length;
    if (!is_dots(d->name) && count(w, level->fd, d)) {
        push(w, level->fd, d->name);
    }
}

int walk_step(struct walk *w, uint64_t max_entries)
{
    uint64_t until = w->entries + max_entries;
    while (w->depth > 0 && w->entries < until) {
        advance(w);
    }
    if (w->depth > 0) {
        return 0;
    }
    walk_end(w);
    return 1;
}
