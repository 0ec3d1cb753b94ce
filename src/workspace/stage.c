#include "workspace/stage.h"

#include "base/fd.h"
#include "workspace/files_inner.h"
#include "workspace/path.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

const char *const stage_folders[] = {"input", "output", "tmp", "logs"};
const unsigned stage_n_folders = ARRAY_LEN(stage_folders);

enum { PAGE_BYTES = 4096, COPY_BYTES = 1 << 20 };

static int fail(struct stage_error *error, int e, const char *target, const char *why)
{
    error->no_room = e == -ENOSPC;
    snprintf(error->text, sizeof error->text, "input_files: %.200s: %.200s", target, why);
    return e;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Is path[0..len) one that is there anyway?
static bool is_given_folder(const char *path, size_t len)
{
    for (unsigned i = 0; i < stage_n_folders; i++) {
        if (strlen(stage_folders[i]) == len && !memcmp(stage_folders[i], path, len)) {
            return true;
        }
    }
    return false;
}

// The folders above `target` that are not above `before`, too. All that lie below a folder stand
// together when they are sorted, so these are none of an earlier one's either.
static uint64_t new_folders(const char *before, const char *target)
{
    uint64_t n = 0;
    bool same = true;
    for (size_t i = 0; target[i]; i++) {
        same = same && before[i] == target[i];
        n += target[i] == '/' && !same && !is_given_folder(target, i);
    }
    return n;
}

// The folders above all targets: each once. 0 or -ENOMEM.
static int count_folders(const struct job *j, uint64_t *ret)
{
    AUTO_FREE const char **targets = calloc(j->n_files + 1, sizeof *targets);
    if (!targets) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < j->n_files; i++) {
        targets[i] = j->files[i].target;
    }
    qsort(targets, j->n_files, sizeof *targets, by_name);
    uint64_t n = 0;
    for (size_t i = 0; i < j->n_files; i++) {
        n += new_folders(i ? targets[i - 1] : "", targets[i]);
    }
    *ret = n;
    return 0;
}

int stage_measure(const struct job *j, struct stage_need *ret, struct stage_error *ret_error)
{
    struct stage_need need = {.inodes = 1 + stage_n_folders};
    for (size_t i = 0; i < j->n_files; i++) {
        const struct job_file *f = &j->files[i];
        struct stat st = {.st_mode = S_IFREG, .st_size = (off_t)f->content_len};
        if (!f->content && fstat(f->fd, &st)) {
            int e = -errno;
            return fail(ret_error, e, f->target, strerror(-e));
        }
        if (!S_ISREG(st.st_mode)) {
            return fail(ret_error, -EINVAL, f->target, "the source is not a regular file");
        }
        need.bytes += ((uint64_t)st.st_size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        need.inodes++;
    }
    uint64_t folders = 0;
    int e = count_folders(j, &folders);
    if (e) {
        return fail(ret_error, e, "all of them", strerror(-e));
    }
    need.inodes += folders;
    *ret = need;
    return 0;
}

// Up to max bytes and one more, so that the caller sees an overrun. Bytes or -errno.
static int64_t copy(int from, int to, uint64_t max)
{
    uint64_t have = 0;
    off_t offset = 0; // of our own: the descriptor's is the user's
    while (have <= max) {
        uint64_t want = max - have + 1;
        ssize_t n = sendfile(to, from, &offset, want > COPY_BYTES ? COPY_BYTES : (size_t)want);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -errno;
        }
        if (n == 0) {
            break;
        }
        have += (uint64_t)n;
    }
    return (int64_t)have;
}

// The same of bytes that the job holds itself.
static int64_t put(const struct job_file *f, int to, uint64_t max)
{
    if (f->content_len > max) {
        return (int64_t)f->content_len;
    }
    int e = fd_write_all(to, f->content, f->content_len);
    return e ? e : (int64_t)f->content_len;
}

static int fail_path(struct stage_error *error, int e, const char *target)
{
    int refusal = files_refuse(e);
    return fail(error, e, target,
                refusal > 0 ? files_refusal_text((enum files_refusal)refusal) : strerror(-e));
}

// A new file. What a session's earlier job left under its name goes: a file, or a link, which is
// not followed; whoever else has a hard link to it keeps it as it was.
static int make_file(int parent, const char *name)
{
    struct stat st;
    int fd = path_open(parent, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd != -EEXIST) {
        return fd;
    }
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) ||
        (!S_ISDIR(st.st_mode) && unlinkat(parent, name, 0))) {
        return -errno;
    }
    return S_ISDIR(st.st_mode) ? -EISDIR
                               : path_open(parent, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
}

// *budget is lowered by what was copied.
static int stage_file(int workspace, const struct job_file *f, uid_t uid, uint64_t *budget,
                      struct stage_error *error)
{
    const char *name;
    AUTO_CLOSE int parent = path_open_parent(workspace, f->target, 1, uid, &name);
    if (parent < 0) {
        return fail_path(error, parent, f->target);
    }
    AUTO_CLOSE int to = make_file(parent, name);
    if (to < 0) {
        return fail_path(error, to, f->target);
    }
    int64_t n = f->content ? put(f, to, *budget) : copy(f->fd, to, *budget);
    if (n < 0 || (uint64_t)n > *budget) {
        unlinkat(parent, name, 0); // no half of it stays in a session, and nothing that is not its
    }
    if (n == -ENOSPC) { // a tmpfs of that size, or a folder on the host's disk
        return fail(error, -ENOSPC, f->target,
                    "no space left, within limits.disk_mb or on the disk of the workspaces");
    }
    if (n < 0) {
        return fail(error, (int)n, f->target, strerror((int)-n));
    }
    if ((uint64_t)n > *budget) {
        fail(error, -ENOSPC, f->target, "larger than what limits.disk_mb leaves");
        error->no_room = false;
        return -ENOSPC;
    }
    *budget -= (uint64_t)n;
    if (fchown(to, uid, uid) || fchmod(to, f->mode & 0777)) {
        int e = -errno;
        return fail(error, e, f->target, strerror(-e));
    }
    return 0;
}

int stage_make_folders(int workspace, uid_t uid)
{
    for (unsigned i = 0; i < stage_n_folders; i++) {
        if (mkdirat(workspace, stage_folders[i], 0755) ||
            fchownat(workspace, stage_folders[i], uid, uid, AT_SYMLINK_NOFOLLOW)) {
            return -errno;
        }
    }
    return 0;
}

int stage_some(int workspace, const struct job *j, uid_t uid, struct stage_rest *at,
               size_t max_files, struct stage_error *ret_error)
{
    int e = 0;
    for (size_t i = 0; i < max_files && at->next < j->n_files && !e; i++) {
        e = stage_file(workspace, &j->files[at->next++], uid, &at->left_bytes, ret_error);
    }
    return e;
}

int stage_files(int workspace, const struct job *j, uid_t uid, uint64_t max_bytes,
                struct stage_error *ret_error)
{
    struct stage_rest at = {.left_bytes = max_bytes};
    return stage_some(workspace, j, uid, &at, j->n_files, ret_error);
}
