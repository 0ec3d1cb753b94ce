#include "workspace/files.h"

#include "base/fd.h"
#include "model/job.h"
#include "workspace/files_inner.h"
#include "workspace/path.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { PIECE_BYTES = 64 * 1024 };

static const char *const texts[] = {
    [FILES_AGAIN] = "is not done yet",
    [FILES_MISSING] = "does not exist",
    [FILES_EXISTS] = "exists already",
    [FILES_LINK] = "is, or lies behind, a symbolic link; links are not followed",
    [FILES_OUTSIDE] = "lies outside the workspace",
    [FILES_FOLDER] = "is a folder",
    [FILES_NO_FOLDER] = "is, or lies below, what is not a folder (a symbolic link is none)",
    [FILES_SPECIAL] = "is not a regular file",
    [FILES_FOREIGN] = "does not belong to the session",
    [FILES_ROOT] = "is the workspace itself",
    [FILES_NAME] = "has a name that is too long, or is none",
    [FILES_NOT_EMPTY] = "is a folder that is not empty",
    [FILES_INTO_ITSELF] = "cannot be moved into itself",
    [FILES_TOO_BIG] = "is bigger than what is allowed",
    [FILES_FULL] = "does not fit: the disk is full",
    [FILES_MISMATCH] = "has other content than expected",
    [FILES_CHANGED] = "was changed by a program meanwhile",
    [FILES_BUSY] = "is open for writing in a program that runs",
};

const char *files_refusal_text(enum files_refusal r)
{
    size_t i = (size_t)r;
    return i < ARRAY_LEN(texts) && texts[i] ? texts[i] : "cannot be used";
}

int files_refuse(int e)
{
    static const struct {
        int error, refusal;
    } table[] = {
        {-ENOENT, FILES_MISSING},    {-ENOTDIR, FILES_NO_FOLDER}, {-ELOOP, FILES_LINK},
        {-EXDEV, FILES_OUTSIDE},     {-ENXIO, FILES_SPECIAL},     {-EISDIR, FILES_FOLDER},
        {-EEXIST, FILES_EXISTS},     {-ENOSPC, FILES_FULL},       {-EDQUOT, FILES_FULL},
        {-ENAMETOOLONG, FILES_NAME}, {-EFBIG, FILES_TOO_BIG},     {-ENOTEMPTY, FILES_NOT_EMPTY},
        {-ESTALE, FILES_CHANGED},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (e == table[i].error) {
            return table[i].refusal;
        }
    }
    return e;
}

int files_check(const struct stat *st, uid_t uid)
{
    return S_ISLNK(st->st_mode)    ? FILES_LINK
           : S_ISDIR(st->st_mode)  ? FILES_FOLDER
           : !S_ISREG(st->st_mode) ? FILES_SPECIAL
           : st->st_uid != uid     ? FILES_FOREIGN
                                   : 0;
}

bool files_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int files_look(const struct files *f, const char *path, bool make, int *ret, struct stat *ret_st,
               const char **ret_name)
{
    if (!strcmp(path, ".")) {
        return FILES_ROOT;
    }
    const char *name;
    AUTO_CLOSE int parent = path_open_parent(f->root, path, make, f->uid, &name);
    if (parent < 0) {
        return parent == -EINVAL ? FILES_NAME : files_refuse(parent);
    }
    if (!strcmp(name, ".") || !strcmp(name, "..")) { // not what job_path() gives
        return FILES_OUTSIDE;
    }
    if (strlen(name) > NAME_MAX) {
        return FILES_NAME;
    }
    if (fstatat(parent, name, ret_st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)) {
        if (errno != ENOENT) {
            return files_refuse(-errno);
        }
        *ret_st = (struct stat){0};
    }
    *ret_name = name;
    *ret = fd_take(&parent);
    return 0;
}

int files_random_name(char ret[FILES_RANDOM_NAME], const char *end)
{
    uint64_t r[2];
    if (getrandom(r, sizeof r, 0) != (ssize_t)sizeof r) {
        return -errno;
    }
    snprintf(ret, FILES_RANDOM_NAME, ".isle-%016llx%016llx%s", (unsigned long long)r[0],
             (unsigned long long)r[1], end);
    return 0;
}

int files_spool(int folder, int *ret)
{
    char name[FILES_RANDOM_NAME];
    int fd = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) { // older overlayfs
        int e = files_random_name(name, ".part");
        if (e) {
            return e;
        }
        fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0) {
            unlinkat(folder, name, 0);
        }
    }
    *ret = fd < 0 ? *ret : fd;
    return fd < 0 ? -errno : 0;
}

int files_open(const struct files *f, const char *path, uint64_t max_bytes, struct files_file *ret)
{
    struct stat st;
    // first without opening it: the opening of a device or a FIFO is an act
    AUTO_CLOSE int place = path_open(f->root, path, O_PATH, 0);
    if (place < 0) {
        return files_refuse(place);
    }
    int e = fstat(place, &st) ? -errno : files_check(&st, f->uid);
    if (e) {
        return e;
    }
    AUTO_CLOSE int fd = path_open(f->root, path, O_RDONLY, 0);
    if (fd < 0) {
        return files_refuse(fd);
    }
    e = fstat(fd, &st) ? -errno : files_check(&st, f->uid);
    if (e) {
        return e;
    }
    if ((uint64_t)st.st_size > max_bytes) {
        return FILES_TOO_BIG;
    }
    *ret = (struct files_file){
        .fd = fd_take(&fd),
        .size_bytes = (uint64_t)st.st_size,
        .mode = st.st_mode & 0777,
        .mtime_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
        .looked = st,
    };
    return 0;
}

int files_open_folder(const struct files *f, const char *path, int *ret)
{
    struct stat st;
    AUTO_CLOSE int fd = path_open(f->root, path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) {
        return files_refuse(fd);
    }
    if (fstat(fd, &st)) {
        return -errno;
    }
    if (st.st_uid != f->uid) {
        return FILES_FOREIGN;
    }
    *ret = fd_take(&fd);
    return 0;
}

bool files_unchanged(const struct files_file *file)
{
    struct stat now;
    return !fstat(file->fd, &now) && files_same(&now, &file->looked);
}

void files_hash_begin(struct files_hash *h, const struct files_file *file)
{
    *h = (struct files_hash){.file = file};
    sha256_init(&h->sha);
}

int files_hash_step(struct files_hash *h, uint64_t max_bytes, char ret[SHA256_HEX])
{
    AUTO_FREE char *piece = malloc(PIECE_BYTES);
    if (!piece) {
        return -ENOMEM;
    }
    for (uint64_t done = 0; done < max_bytes && h->at < h->file->size_bytes;) {
        uint64_t left = h->file->size_bytes - h->at;
        size_t want = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        ssize_t n = pread(h->file->fd, piece, want, (off_t)h->at);
        if (n <= 0) {
            return n < 0 ? -errno : -ESTALE;
        }
        sha256_add(&h->sha, piece, (size_t)n);
        h->at += (uint64_t)n;
        done += (uint64_t)n;
    }
    if (h->at < h->file->size_bytes) {
        return 0;
    }
    if (!files_unchanged(h->file)) {
        return -ESTALE;
    }
    uint8_t digest[SHA256_BYTES];
    sha256_end(&h->sha, digest);
    sha256_hex(digest, ret);
    return 1;
}

int files_move(const struct files *f, const char *from, const char *to,
               const struct files_move_options *o)
{
    AUTO_CLOSE int from_dir = -1;
    AUTO_CLOSE int to_dir = -1;
    struct stat from_st = {0};
    struct stat to_st = {0};
    const char *from_name = NULL;
    const char *to_name = NULL;
    bool ignored;
    bool *about_to = o->about_to ? o->about_to : &ignored;
    *about_to = false;
    int e = files_look(f, from, false, &from_dir, &from_st, &from_name);
    if (!e) {
        bool folder = S_ISDIR(from_st.st_mode);
        e = !from_st.st_mode ? FILES_MISSING
            : folder         ? (from_st.st_uid == f->uid ? 0 : FILES_FOREIGN)
                             : files_check(&from_st, f->uid);
    }
    if (!e) {
        *about_to = true;
        e = files_look(f, to, o->make_folders, &to_dir, &to_st, &to_name);
    }
    if (e) {
        return e;
    }
    if (renameat2(from_dir, from_name, to_dir, to_name, o->replace ? 0 : RENAME_NOREPLACE)) {
        return errno == EINVAL ? FILES_INTO_ITSELF : files_refuse(-errno);
    }
    return 0;
}

// A folder with content leaves the workspace.
static int throw_away(int dir, const char *name, const struct files_remove_options *o)
{
    char fresh[FILES_RANDOM_NAME];
    if (o->trash < 0) {
        return FILES_NOT_EMPTY;
    }
    int e = files_random_name(fresh, "");
    if (!e && renameat2(dir, name, o->trash, fresh, RENAME_NOREPLACE)) {
        e = files_refuse(-errno);
    }
    if (!e && o->trashed) {
        memcpy(o->trashed, fresh, sizeof fresh);
    }
    return e;
}

int files_remove(const struct files *f, const char *path, const struct files_remove_options *o)
{
    AUTO_CLOSE int dir = -1;
    struct stat st = {0};
    const char *name = "";
    int e = files_look(f, path, false, &dir, &st, &name);
    if (!e && !st.st_mode) {
        e = FILES_MISSING;
    }
    if (!e && o->expected && !files_same(&st, &o->expected->looked)) {
        e = FILES_CHANGED;
    }
    if (e) {
        return e;
    }
    if (o->trashed) {
        o->trashed[0] = '\0';
    }
    bool folder = S_ISDIR(st.st_mode);
    if (!unlinkat(dir, name, folder ? AT_REMOVEDIR : 0)) {
        return 0;
    }
    if (!folder) { // a folder by now: somebody swapped it
        return errno == EISDIR ? FILES_CHANGED : files_refuse(-errno);
    }
    return errno == ENOTEMPTY || errno == EEXIST ? throw_away(dir, name, o) : files_refuse(-errno);
}
