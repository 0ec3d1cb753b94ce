#include "client/local.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

static int open_folder(struct local *l, const char *path, const char *base)
{
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    l->folder = open(path, flags);
    if (l->folder < 0 && errno != ENOENT && errno != ENOTDIR) {
        return -errno;
    }
    if (l->folder < 0) { // its own name is the last part
        const char *slash = strrchr(path, '/');
        AUTO_FREE char *above = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
        base = slash ? slash + 1 : path;
        l->named = true;
        l->folder = above ? open(*above ? above : "/", flags) : -1;
    }
    if (l->folder < 0) {
        return -errno;
    }
    size_t len = strlen(base);
    if (len == 0 || len >= sizeof l->name || strcmp(base, ".") == 0 || strcmp(base, "..") == 0) {
        return -EISDIR;
    }
    memcpy(l->name, base, len + 1);
    return 0;
}

int local_begin(struct local *l, const char *path, const char *base)
{
    uint64_t random = 0;
    *l = (struct local){.folder = -1, .file = -1};
    sha256_init(&l->sha);
    if (strcmp(path, "-") == 0) {
        l->file = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        return l->file < 0 ? -errno : 0;
    }
    int e = open_folder(l, path, base);
    if (e) {
        return e;
    }
    struct stat st;
    if (l->named && !fstatat(l->folder, l->name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode)) {
        return -EISDIR; // said before the file has come
    }
    if (getrandom(&random, sizeof random, 0) != sizeof random) {
        return -EIO;
    }
    snprintf(l->temporary, sizeof l->temporary, ".isle-%016llx", (unsigned long long)random);
    l->file =
        openat(l->folder, l->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return l->file < 0 ? -errno : 0;
}

int local_add(struct local *l, const char *data, size_t len)
{
    sha256_add(&l->sha, data, len);
    l->bytes += len;
    return fd_write_all(l->file, data, len);
}

void local_end(struct local *l, char ret_sha256[SHA256_HEX])
{
    uint8_t digest[SHA256_BYTES];
    sha256_end(&l->sha, digest);
    sha256_hex(digest, ret_sha256);
}

int local_is_archive(struct local *l)
{
    const size_t len = strlen(l->name);
    if (l->named || (len > 4 && strcmp(l->name + len - 4, ".zip") == 0)) {
        return 0;
    }
    if (len + 5 > sizeof l->name) {
        return -ENAMETOOLONG;
    }
    memcpy(l->name + len, ".zip", 5);
    return 0;
}

int local_commit(struct local *l)
{
    if (l->folder < 0) {
        return 0;
    }
    if (renameat(l->folder, l->temporary, l->folder, l->name)) {
        return -errno;
    }
    l->file = fd_close(l->file);
    return 0;
}

void local_drop(struct local *l)
{
    if (l->file >= 0 && l->folder >= 0) {
        unlinkat(l->folder, l->temporary, 0);
    }
    l->file = fd_close(l->file);
    l->folder = fd_close(l->folder);
}
