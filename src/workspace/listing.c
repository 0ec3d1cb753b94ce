#include "workspace/listing.h"

#include "base/fd.h"
#include "workspace/names.h"
#include "workspace/path.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>

enum { CHUNK_BYTES = 16 * 1024 };

struct entry { // getdents64(2)
    uint64_t ino;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

// Those between the first and the one that holds the deepest: a reader who is slow has no more.
static void close_above(struct listing *l)
{
    for (int i = l->depth - 3; i > 0 && l->levels[i].fd >= 0; i--) {
        l->levels[i].fd = fd_close(l->levels[i].fd);
    }
}

// Enters `name` of dir, whose path (of path_len bytes) is in place. 0 or -errno.
static int push(struct listing *l, int dir, const char *name, size_t path_len)
{
    if (l->depth == LISTING_MAX_DEPTH || path_len > LISTING_MAX_PATH) {
        return -ENAMETOOLONG;
    }
    int fd = path_open(dir, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) {
        return fd;
    }
    l->levels[l->depth++] = (struct listing_level){.fd = fd, .path_len = path_len};
    l->at = l->end = 0;
    close_above(l);
    return 0;
}

static void pop(struct listing *l)
{
    fd_close(l->levels[--l->depth].fd);
    l->at = l->end = 0; // the folder above is read anew from its offset
}

// The deepest again, by its path. -ENOENT: it is not there any more.
static int open_again(struct listing *l)
{
    struct listing_level *level = &l->levels[l->depth - 1];
    l->path[level->path_len] = '\0'; // what was below it has been told
    int fd = path_open(l->levels[0].fd, l->path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) {
        return fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM ? fd : -ENOENT;
    }
    level->fd = fd;
    return 0;
}

// Offsets, top first, "." between them; ":"; the path of the deepest folder.
static int parse_offset(const char **text, int64_t *ret)
{
    const char *p = *text;
    uint64_t n = 0;
    int digits = 0;
    for (; (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'); p++, digits++) {
        n = n * 16 + (uint64_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
    }
    if (digits < 1 || digits > 16 || n > INT64_MAX) {
        return -EINVAL;
    }
    *text = p;
    *ret = (int64_t)n;
    return 0;
}

static int parse_offsets(const char **text, int64_t *ret, int *ret_n)
{
    int n = 0;
    for (const char *p = *text;;) {
        if (n == LISTING_MAX_DEPTH || parse_offset(&p, &ret[n++])) {
            return -EINVAL;
        }
        if (*p != '.') {
            *text = p;
            *ret_n = n;
            return *p == ':' ? 0 : -EINVAL;
        }
        p++;
    }
}

// One component of a cursor's path is entered; its name is appended to l->path.
static int descend(struct listing *l, const char *name, size_t len)
{
    size_t at = l->levels[l->depth - 1].path_len;
    char *to = l->path + at + (at ? 1 : 0);
    if (len < 1 || len > NAME_MAX) {
        return -EINVAL;
    }
    memcpy(to, name, len);
    to[len] = '\0';
    if (is_dots(to)) {
        return -EINVAL;
    }
    if (at) {
        l->path[at] = '/';
    }
    return push(l, l->levels[l->depth - 1].fd, to, (size_t)(to - l->path) + len);
}

static int resume(struct listing *l, const char *cursor)
{
    int64_t offsets[LISTING_MAX_DEPTH];
    int n = 0;
    AUTO_BUF struct buf path = BUF_INIT(LISTING_MAX_PATH);
    if (strlen(cursor) > LISTING_MAX_CURSOR || parse_offsets(&cursor, offsets, &n) ||
        names_unescape(&path, cursor + 1, strlen(cursor + 1))) {
        return path.error == -ENOMEM ? -ENOMEM : -EINVAL;
    }
    const char *p = buf_text(&path);
    l->levels[0].offset = offsets[0];
    for (int i = 1; i < n; i++) {
        const char *slash = strchr(p, '/');
        size_t len = slash ? (size_t)(slash - p) : strlen(p);
        if (!slash != (i == n - 1)) {
            return -EINVAL;
        }
        int e = descend(l, p, len);
        if (e == -EINVAL) {
            return e;
        }
        if (e) { // gone meanwhile: what is above goes on
            return 0;
        }
        l->levels[i].offset = offsets[i];
        p += len + 1;
    }
    return n == 1 && *p ? -EINVAL : 0;
}

int listing_begin(struct listing *l, int folder, bool recursive, const char *cursor)
{
    memset(l, 0, sizeof *l);
    l->recursive = recursive;
    l->chunk = malloc(CHUNK_BYTES);
    int e = l->chunk ? push(l, folder, ".", 0) : -ENOMEM;
    if (!e && cursor) {
        e = resume(l, cursor);
    }
    if (e) {
        listing_end(l);
    }
    return e;
}

void listing_end(struct listing *l)
{
    while (l->depth > 0) {
        fd_close(l->levels[--l->depth].fd);
    }
    free(l->chunk);
    l->chunk = NULL;
    l->at = l->end = 0;
}

// The next name of the deepest folder, or NULL when there is none: then *ret_error is 0 at its end.
static const char *next_name(struct listing *l, int *ret_error)
{
    struct listing_level *level = &l->levels[l->depth - 1];
    *ret_error = level->fd < 0 ? open_again(l) : 0;
    if (*ret_error) {
        *ret_error = *ret_error == -ENOENT ? 0 : *ret_error;
        return NULL;
    }
    if (l->at == l->end) {
        if (lseek(level->fd, level->offset, SEEK_SET) < 0) {
            *ret_error = -errno;
            return NULL;
        }
        long n = syscall(SYS_getdents64, level->fd, l->chunk, CHUNK_BYTES);
        if (n <= 0) { // a folder that was removed under us is at its end
            *ret_error = n < 0 && errno != ENOENT ? -errno : 0;
            return NULL;
        }
        l->at = 0;
        l->end = (size_t)n;
    }
    const struct entry *d = (const struct entry *)(const void *)(l->chunk + l->at);
    l->at += d->length;
    level->offset = d->offset;
    return d->name;
}

// Fills *ret with an entry of the deepest folder, and enters it. False: it is gone.
static bool tell(struct listing *l, const char *name, struct listing_entry *ret)
{
    const struct listing_level *level = &l->levels[l->depth - 1];
    size_t at = level->path_len;
    size_t len = strlen(name);
    if (len > NAME_MAX ||
        fstatat(level->fd, name, &ret->st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)) {
        return false;
    }
    if (at) {
        l->path[at++] = '/';
    }
    memcpy(l->path + at, name, len + 1);
    ret->path = l->path;
    ret->name = l->path + at;
    ret->folder = level->fd;
    ret->entered = ret->unfit = false;
    if (S_ISDIR(ret->st.st_mode) && l->recursive) {
        int e = push(l, ret->folder, ret->name, at + len);
        ret->entered = !e;
        ret->unfit = e && e != -ENOENT;
        l->cut |= ret->unfit;
    }
    return true;
}

int listing_next(struct listing *l, struct listing_entry *ret)
{
    while (l->depth > 0) {
        int e;
        const char *name = next_name(l, &e);
        if (!name) {
            // EINVAL: an offset that this folder does not know (a cursor of another one's)
            if (e && e != -EINVAL) {
                return e;
            }
            pop(l);
        } else if (!is_dots(name) && tell(l, name, ret)) {
            return 1;
        }
    }
    return 0;
}

int listing_cursor(const struct listing *l, struct buf *out)
{
    for (int i = 0; i < l->depth; i++) {
        buf_printf(out, "%s%llx", i ? "." : "", (unsigned long long)l->levels[i].offset);
    }
    buf_putc(out, ':');
    size_t len = l->depth ? l->levels[l->depth - 1].path_len : 0;
    for (size_t i = 0; i < len; i++) {
        char c = l->path[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '-' || c == '.' || c == '/';
        if (plain) {
            buf_putc(out, c);
        } else {
            buf_printf(out, "%%%02X", (unsigned)(unsigned char)c);
        }
    }
    return out->error;
}
