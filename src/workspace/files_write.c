#include "workspace/files.h"

#include "base/fd.h"
#include "workspace/disk.h"
#include "workspace/files_inner.h"
#include "workspace/path.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum {
    HASH_PIECE_BYTES = 512 * 1024, // of the old content in one call: about 2 ms
    COMPARE_PIECE_BYTES = 128 * 1024,
};

static int room(int fd, size_t len)
{
    uint64_t left = 0;
    int e = disk_left(fd, &left);
    return e ? e : left == 0 || left < len ? FILES_FULL : 0;
}

// Whether the entry that is there, or none, is what the caller wants to write over.
static int allowed(const struct files_write *w, const struct stat *there)
{
    if (!there->st_mode) {
        return w->condition == FILES_MATCH ? FILES_MISSING : 0;
    }
    int e = files_check(there, w->files.uid);
    return !e && w->condition == FILES_NEW ? FILES_EXISTS : e;
}

static int64_t disk_bytes(const struct stat *st) { return (int64_t)st->st_blocks * 512; }

static int make_temp(struct files_write *w, int parts, uint32_t mode)
{
    w->parts = parts > 0 ? parts : w->parent;
    int e = files_random_name(w->temp, ".part");
    if (e) {
        return e;
    }
    // the service's own and closed to the session's programs until it is whole
    w->fd = path_open(w->parts, w->temp, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (w->fd < 0) {
        w->temp[0] = '\0';
        return files_refuse(w->fd);
    }
    e = fstat(w->fd, &w->self) ? -errno : room(w->fd, 0);
    w->self.st_mode = mode; // what it will be given
    return e;
}

int files_write_begin(struct files_write *w, const struct files *f, const char *path,
                      const struct files_write_options *o)
{
    struct stat there = {0};
    const char *name = NULL;
    *w = (struct files_write){.files = *f,
                              .parent = -1,
                              .fd = -1,
                              .condition = o->condition,
                              .quick = o->quick,
                              .max_bytes = o->max_bytes,
                              .old = {.fd = -1}};
    if (o->condition == FILES_MATCH) {
        snprintf(w->if_match, sizeof w->if_match, "%s", o->if_match);
    }
    int e = files_look(f, path, o->make_folders, &w->parent, &there, &name);
    if (!e) {
        memcpy(w->name, name, strlen(name) + 1); // files_look() has measured it
        e = allowed(w, &there);
    }
    if (!e) {
        w->replaced = there.st_mode;
        w->more_bytes = -disk_bytes(&there);
        uint32_t kept = w->replaced ? there.st_mode & 0777 : 0644;
        e = make_temp(w, o->parts, o->mode ? o->mode & 0777 : kept);
    }
    if (e) {
        files_write_drop(w);
        return e;
    }
    sha256_init(&w->sha);
    return 0;
}

int files_write_add(struct files_write *w, const void *data, size_t len)
{
    if (len > w->max_bytes - w->bytes) {
        return FILES_TOO_BIG;
    }
    int e = room(w->fd, len);
    if (!e) {
        e = files_refuse(fd_write_all(w->fd, data, len));
    }
    if (!e && !w->quick) {
        sha256_add(&w->sha, data, len);
    }
    w->bytes += e ? 0 : len;
    return e;
}

static int settle(struct files_write *w)
{
    uint8_t digest[SHA256_BYTES];
    if (fchown(w->fd, w->files.uid, w->files.uid) || fchmod(w->fd, w->self.st_mode) ||
        (!w->quick && fsync(w->fd))) {
        return files_refuse(-errno);
    }
    if (!w->quick) {
        sha256_end(&w->sha, digest);
        sha256_hex(digest, w->sha256);
    }
    struct stat written;
    if (fstat(w->fd, &written)) {
        return -errno;
    }
    w->more_bytes += disk_bytes(&written);
    w->synced = true;
    if (w->condition != FILES_MATCH) {
        return 0;
    }
    struct files inner = {w->parent, w->files.uid};
    int e = files_open(&inner, w->name, UINT64_MAX, &w->old);
    if (!e) {
        files_hash_begin(&w->old_hash, &w->old);
    }
    return e;
}

// The content that is there is the one that the caller has seen.
static int match(struct files_write *w)
{
    char hex[SHA256_HEX];
    struct stat now;
    int e = files_hash_step(&w->old_hash, HASH_PIECE_BYTES, hex);
    if (e <= 0) {
        return e ? files_refuse(e) : FILES_AGAIN;
    }
    if (strcmp(hex, w->if_match) != 0) {
        return FILES_MISMATCH;
    }
    if (fstatat(w->parent, w->name, &now, AT_SYMLINK_NOFOLLOW)) {
        return files_refuse(-errno);
    }
    return files_same(&now, &w->old.looked) ? 0 : FILES_CHANGED;
}

int files_write_commit(struct files_write *w)
{
    int e = w->synced ? 0 : settle(w);
    if (!e && w->condition == FILES_MATCH) {
        e = match(w);
    }
    if (e) {
        return e;
    }
    if (renameat2(w->parts, w->temp, w->parent, w->name,
                  w->condition == FILES_NEW ? RENAME_NOREPLACE : 0)) {
        return files_refuse(-errno);
    }
    w->temp[0] = '\0';
    w->old.fd = fd_close(w->old.fd); // here, as this is its end, which takes its time
    // The folder is the session's: what had the temporary name may have been another entry by then.
    struct stat now;
    if (fstatat(w->parent, w->name, &now, AT_SYMLINK_NOFOLLOW) || now.st_dev != w->self.st_dev ||
        now.st_ino != w->self.st_ino) {
        return FILES_CHANGED;
    }
    if (w->quick) {
        return 0;
    }
    AUTO_CLOSE int folder = path_open(w->parent, ".", O_RDONLY | O_DIRECTORY, 0);
    if (folder < 0) {
        return files_refuse(folder);
    }
    return fsync(folder) ? -errno : 0;
}

// The content of `old` is data. 0, FILES_CHANGED or -errno.
static int same_bytes(const struct files_file *old, const char *data, size_t len)
{
    struct stat now;
    AUTO_FREE char *piece = malloc(COMPARE_PIECE_BYTES);
    if (!piece || fstat(old->fd, &now)) {
        return piece ? -errno : -ENOMEM;
    }
    if (now.st_size != (off_t)len) {
        return FILES_CHANGED;
    }
    for (size_t at = 0; at < len;) {
        size_t want = len - at < COMPARE_PIECE_BYTES ? len - at : COMPARE_PIECE_BYTES;
        ssize_t n = pread(old->fd, piece, want, (off_t)at);
        if (n < 0) {
            return -errno;
        }
        if (n == 0 || memcmp(piece, data + at, (size_t)n) != 0) {
            return FILES_CHANGED;
        }
        at += (size_t)n;
    }
    return 0;
}

static bool is_entry(int dir, const char *name, const struct stat *file)
{
    struct stat now;
    return !fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) &&
           now.st_dev == file->st_dev && now.st_ino == file->st_ino;
}

static int exchange(const struct files_write *w)
{
    return renameat2(w->parts, w->temp, w->parent, w->name, RENAME_EXCHANGE) ? -errno : 0;
}

// What was taken out was not what had been read, or not at rest: it goes back. Unless somebody has
// written to the new file by then: that is the last word. Does the new file stand?
static bool exchange_back(const struct files_write *w, const struct stat *written)
{
    struct stat now;
    if (exchange(w) || !is_entry(w->parts, w->temp, written)) {
        return false; // removed or replaced, which is the last word, too
    }
    return !fstat(w->fd, &now) && !files_same(&now, written) && exchange(w) == 0;
}

// Nobody can open the file any more; has somebody still got it open for writing? A lease is its
// owner's to take, so it belongs to the service for that long. 0 or FILES_BUSY.
static int at_rest(const struct files_write *w, const struct files_file *old)
{
    struct stat st;
    if (fstat(old->fd, &st) || st.st_nlink != 1 || st.st_mode & (S_ISUID | S_ISGID) ||
        fchown(old->fd, geteuid(), (gid_t)-1)) {
        return 0; // cannot be asked
    }
    bool busy = fcntl(old->fd, F_SETLEASE, F_RDLCK) && errno == EAGAIN;
    fcntl(old->fd, F_SETLEASE, F_UNLCK);
    if (fchown(old->fd, w->files.uid, (gid_t)-1)) {
        return -errno;
    }
    return busy ? FILES_BUSY : 0;
}

int files_write_commit_over(struct files_write *w, const struct files_file *old, const void *data,
                            size_t len)
{
    struct stat written;
    int e = settle(w);
    if (!e && fstat(w->fd, &written)) {
        e = -errno;
    }
    if (e) {
        return e;
    }
    if (!files_unchanged(old) || !is_entry(w->parent, w->name, &old->looked)) {
        return FILES_CHANGED;
    }
    e = exchange(w);
    if (e == -EINVAL) { // a file system that cannot: a look, then a rename
        e = same_bytes(old, data, len);
        return e ? e : files_write_commit(w);
    }
    if (e) { // ENOENT: it was removed
        return e == -ENOENT ? FILES_CHANGED : files_refuse(e);
    }
    e = is_entry(w->parts, w->temp, &old->looked) ? at_rest(w, old) : FILES_CHANGED;
    e = e ? e : same_bytes(old, data, len);
    return e && !exchange_back(w, &written) ? e : 0;
}

// What has changed places with the new file may be a folder that a program put there, with all that
// is in it: that stays the session's, and counts as its.
static void remove_temp(const struct files_write *w)
{
    if (unlinkat(w->parts, w->temp, 0) && errno == EISDIR && w->parts != w->parent) {
        renameat2(w->parts, w->temp, w->parent, w->temp, RENAME_NOREPLACE);
    }
}

int files_write_take_old(struct files_write *w)
{
    const bool begun = w->parent || w->fd; // not zeroed
    return begun ? fd_take(&w->old.fd) : -1;
}

void files_write_drop(struct files_write *w)
{
    if (w->temp[0]) {
        remove_temp(w);
        w->temp[0] = '\0';
    }
    if (w->parent || w->fd) { // not zeroed
        w->fd = fd_close(w->fd);
        w->parent = fd_close(w->parent);
        w->old.fd = fd_close(w->old.fd);
    }
}
