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

static int push(struct walk *w, int dir, const char *name)
{
    if (w->depth == WALK_MAX_DEPTH) {
        w->blind = true;
        return 0;
    }
    struct walk_level *level = &w->levels[w->depth];
    if (!level->chunk && !(level->chunk = malloc(WALK_CHUNK_BYTES))) {
        return -ENOMEM;
    }
    int fd = path_open(dir, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) {
        w->blind |= fd != -ENOENT && fd != -ENOTDIR; // gone meanwhile is fine
        return 0;
    }
    level->fd = fd;
    level->at = level->len = 0;
    w->depth++;
    return 0;
}

int walk_begin(struct walk *w, int root)
{
    *w = (struct walk){0};
    w->levels = calloc(WALK_MAX_DEPTH, sizeof *w->levels);
    int e = w->levels ? push(w, root, ".") : -ENOMEM;
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
    for (size_t i = 0; w->levels && i < WALK_MAX_DEPTH && w->levels[i].chunk; i++) {
        free(w->levels[i].chunk);
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

// One entry of the deepest level. 0 or -errno.
static int advance(struct walk *w)
{
    struct walk_level *level = &w->levels[w->depth - 1];
    if (level->at == level->len) {
        refill(w);
        return 0;
    }
    const struct entry *d = (const struct entry *)(const void *)(level->chunk + level->at);
    level->at += d->length;
    return !is_dots(d->name) && count(w, level->fd, d) ? push(w, level->fd, d->name) : 0;
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
