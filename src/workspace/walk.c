#include "workspace/walk.h"

#include "base/fd.h"
#include "workspace/path.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { BLOCK = 4096 };

struct entry { // getdents64(2)
    uint64_t ino;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

static struct walk_level *level_at(const struct walk *w, size_t depth)
{
    return &w->levels[depth % WALK_OPEN];
}

// Closes the outermost level that is open, for one below all of them.
static bool leave_first(struct walk *w)
{
    struct stat st;
    const struct walk_level *level = level_at(w, w->first);
    if (w->first == w->left_room) {
        size_t room = w->left_room ? 2 * w->left_room : (size_t)WALK_OPEN;
        struct walk_left *left = reallocarray(w->left, room, sizeof *left);
        if (!left) {
            return false;
        }
        w->left = left;
        w->left_room = room;
    }
    if (fstat(level->fd, &st)) {
        return false;
    }
    w->left[w->first++] = (struct walk_left){st.st_dev, st.st_ino, level->next};
    close(level->fd);
    return true;
}

// The parent of `below`, if it is the level that was left: where nobody moves folders it is.
static bool return_to_left(struct walk *w, int below)
{
    struct stat st;
    const struct walk_left *left = &w->left[w->first - 1];
    AUTO_CLOSE int fd = openat(below, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) || st.st_dev != left->dev || st.st_ino != left->ino ||
        lseek(fd, left->next, SEEK_SET) < 0) {
        return false;
    }
    struct walk_level *level = level_at(w, --w->first);
    level->next = left->next;
    level->at = level->len = 0;
    level->fd = fd_take(&fd);
    return true;
}

static void pop(struct walk *w)
{
    int fd = level_at(w, --w->depth)->fd;
    if (w->depth > 0 && w->depth == w->first && !return_to_left(w, fd)) {
        w->blind = true;
        w->depth = w->first = 0;
    }
    close(fd);
}

static void push(struct walk *w, int dir, const char *name)
{
    int fd = path_open(dir, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) {
        w->blind |= fd != -ENOENT && fd != -ENOTDIR; // gone meanwhile is fine
        return;
    }
    if (w->depth - w->first == WALK_OPEN && !leave_first(w)) {
        w->blind = true;
        close(fd);
        return;
    }
    struct walk_level *level = level_at(w, w->depth++);
    level->fd = fd;
    level->next = 0;
    level->at = level->len = 0;
}

int walk_begin(struct walk *w, int root)
{
    *w = (struct walk){0};
    w->levels = calloc(WALK_OPEN, sizeof *w->levels); // whose pages stay untouched, mostly
    if (!w->levels) {
        return -ENOMEM;
    }
    push(w, root, ".");
    return 0;
}

void walk_end(struct walk *w)
{
    while (w->depth > w->first) {
        close(level_at(w, --w->depth)->fd);
    }
    w->depth = w->first = w->left_room = 0;
    free(w->levels);
    free(w->left);
    w->levels = NULL;
    w->left = NULL;
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
    uint64_t length = ((uint64_t)st.st_size + BLOCK - 1) / BLOCK * BLOCK;
    uint64_t content = bytes < length ? bytes : length;
    w->bytes += folder || st.st_nlink <= 1 ? bytes : bytes / st.st_nlink;
    w->content += folder || st.st_nlink <= 1 ? content : content / st.st_nlink;
    return folder;
}

static bool is_long(int folder, uint64_t max)
{
    struct stat st;
    return max > 0 && !fstat(folder, &st) && (uint64_t)st.st_size > max;
}

// The next buffer of the deepest level's listing; at its end the level above goes on.
static void refill(struct walk *w)
{
    struct walk_level *level = level_at(w, w->depth - 1);
    w->waits = is_long(level->fd, w->folder_max);
    if (w->waits) {
        return;
    }
    long n = syscall(SYS_getdents64, level->fd, level->chunk, WALK_CHUNK_BYTES);
    if (n <= 0) { // the end, or a folder that was removed under us
        pop(w);
        return;
    }
    level->at = 0;
    level->len = (size_t)n;
}

// One entry of the deepest level.
static void advance(struct walk *w)
{
    struct walk_level *level = level_at(w, w->depth - 1);
    if (level->at == level->len) {
        refill(w);
        return;
    }
    const struct entry *d = (const struct entry *)(const void *)(level->chunk + level->at);
    level->at += d->length;
    level->next = d->offset;
    if (!is_dots(d->name) && count(w, level->fd, d)) {
        push(w, level->fd, d->name);
    }
}

int walk_step(struct walk *w, uint64_t max_entries)
{
    uint64_t until = w->entries + max_entries;
    w->waits = false;
    while (w->depth > 0 && w->entries < until && !w->waits) {
        advance(w);
    }
    if (w->depth > 0) {
        return 0;
    }
    walk_end(w);
    return 1;
}
