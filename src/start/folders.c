#include "start/folders.h"

#include "base/fd.h"
#include "base/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

static const struct kind {
    const char *name;
    bool of_instance; // DATA/K has it too
    bool lasts;       // in DATA/serve
} kinds[] = {{"once", true, false},
             {"kept", true, true},
             {"trash", false, true},
             {"artifacts", false, true},
             {"store", false, true}};

static bool is_serving(const char *name) { return !strcmp(name, FOLDERS_SERVE); }

static int open_folder(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

// The folder when it is ours. A descriptor, -ENOENT, -EEXIST: somebody else's.
static int open_ours(int data_dir, const char *name, struct folders_owner owner)
{
    struct stat st;
    AUTO_CLOSE int fd = open_folder(data_dir, name);
    if (fd < 0) {
        return fd == -ENOENT ? fd : -EEXIST;
    }
    return fstat(fd, &st) || st.st_uid != owner.uid ? -EEXIST : fd_take(&fd);
}

// A folder of its owner, 0700, whatever was done to it.
static int make_ours(int dir, const char *name, struct folders_owner owner)
{
    struct stat st;
    if (mkdirat(dir, name, 0700) && errno != EEXIST) {
        return -errno;
    }
    AUTO_CLOSE int fd = open_folder(dir, name);
    if (fd < 0 || fstat(fd, &st)) {
        return fd < 0 ? fd : -errno;
    }
    bool same = st.st_uid == owner.uid && st.st_gid == owner.gid;
    if ((!same && fchown(fd, owner.uid, owner.gid)) ||
        ((st.st_mode & 07777) != 0700 && fchmod(fd, 0700))) {
        return -errno;
    }
    return 0;
}

int folders_make(int data_dir, const char *name, struct folders_owner owner)
{
    AUTO_CLOSE int dir = open_ours(data_dir, name, owner);
    int e = 0;
    if (dir == -ENOENT) {
        e = make_ours(data_dir, name, owner);
        dir = e ? -1 : open_ours(data_dir, name, owner);
    }
    e = e || dir >= 0 ? e : dir;
    for (size_t i = 0; i < ARRAY_LEN(kinds) && !e; i++) {
        e = is_serving(name) || kinds[i].of_instance ? make_ours(dir, kinds[i].name, owner) : 0;
    }
    return e;
}

int folders_lock(int data_dir, const char *name, int how)
{
    AUTO_CLOSE int dir = open_folder(data_dir, name);
    if (dir < 0) {
        return dir;
    }
    return flock(dir, how | LOCK_NB) && errno == EWOULDBLOCK ? -EWOULDBLOCK : fd_take(&dir);
}

static bool is_kind(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (kinds[i].of_instance && !strcmp(name, kinds[i].name)) {
            return true;
        }
    }
    return false;
}

// What is in DATA/K besides once/ and kept/, or is called so and is no folder.
static int remove_others(int dir)
{
    int error = 0;
    int fd = open_folder(dir, ".");
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int e = -errno;
        fd_close(fd);
        return e;
    }
    for (struct dirent *entry; (entry = readdir(d));) {
        const char *name = entry->d_name;
        bool stays = !strcmp(name, ".") || !strcmp(name, "..") ||
                     (is_kind(name) && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN));
        int e = stays ? 0 : tree_remove_at(dir, name);
        error = e ? e : error;
    }
    closedir(d);
    return error;
}

int folders_open_once(int data_dir, const char *name)
{
    AUTO_CLOSE int dir = open_folder(data_dir, name);
    return dir < 0 ? dir : open_folder(dir, "once");
}

int folders_empty(int data_dir, const char *name, struct folders_owner owner)
{
    AUTO_CLOSE int dir = open_ours(data_dir, name, owner);
    if (dir == -EEXIST) {
        // an empty one is of a start that was killed between making it and giving it away
        return unlinkat(data_dir, name, AT_REMOVEDIR) ? -EEXIST : 0;
    }
    if (dir < 0) {
        return dir == -ENOENT ? 0 : dir;
    }
    int error = is_serving(name) ? 0 : remove_others(dir);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (is_serving(name) ? kinds[i].lasts : !kinds[i].of_instance) {
            continue;
        }
        AUTO_CLOSE int kind = open_folder(dir, kinds[i].name);
        int e = kind >= 0          ? tree_empty(kind)
                : kind == -ENOTDIR ? tree_remove_at(dir, kinds[i].name)
                                   : kind;
        error = e && e != -ENOENT ? e : error;
    }
    return error;
}

bool folders_may_be_used(int data_dir, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        char path[64];
        struct stat st;
        if (!kinds[i].of_instance) {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", name, kinds[i].name);
        // two links are the folder's own: it has no folder in it (and 1: this file system does not
        // count, look closer)
        if (!fstatat(data_dir, path, &st, AT_SYMLINK_NOFOLLOW) && st.st_nlink != 2) {
            return true;
        }
    }
    return false;
}
