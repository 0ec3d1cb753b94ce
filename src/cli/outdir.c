#include "cli/outdir.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static void fail(struct outdir *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct outdir *o, const char *format, ...)
{
    va_list args;
    if (o->error[0]) {
        return;
    }
    va_start(args, format);
    vsnprintf(o->error, sizeof o->error, format, args);
    va_end(args);
}

// A job may take minutes: what its end would meet is better said before. 0 or -errno.
static int check_writable(int dir, const struct job *job)
{
    for (size_t i = 0; i < job->n_artifacts; i++) {
        // another one goes into a folder that may be there, and open
        if (!strchr(job->artifacts[i].path, '/')) {
            return faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) ? -errno : 0;
        }
    }
    return 0;
}

int outdir_open(struct outdir *o, const char *path, const struct job *job)
{
    *o = (struct outdir){.dir = -1, .folder = -1, .file = -1, .job = job};
    if (!path) {
        return 0;
    }
    o->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (o->dir < 0 && errno == ENOENT && mkdir(path, 0777) == 0) {
        o->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return o->dir < 0 ? -errno : check_writable(o->dir, job);
}

static void forget(struct outdir *o)
{
    if (o->file >= 0) {
        unlinkat(o->folder, o->temporary, 0);
    }
    o->file = fd_close(o->file);
    o->folder = fd_close(o->folder);
    free(o->name);
    o->name = NULL;
}

void outdir_done(struct outdir *o)
{
    forget(o);
    o->dir = fd_close(o->dir);
}

// Did the user ask for this name? The job's list is normalised: no "..", nothing absolute.
static bool is_asked_for(const struct outdir *o, const char *name)
{
    for (size_t i = 0; i < o->job->n_artifacts; i++) {
        if (strcmp(o->job->artifacts[i].path, name) == 0) {
            return true;
        }
    }
    return false;
}

// The folder `name` of `parent`, made if missing, never through a link. Descriptor or -errno.
static int enter(int parent, const char *name)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(parent, name, flags);
    if (fd < 0 && errno == ENOENT && (mkdirat(parent, name, 0777) == 0 || errno == EEXIST)) {
        fd = openat(parent, name, flags);
    }
    return fd < 0 ? -errno : fd;
}

// The folder that `name` lies in. Descriptor (owned) or -errno.
static int enter_all(struct outdir *o, const char *name)
{
    char part[256];
    AUTO_CLOSE int at = openat(o->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const char *slash; at >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
        int next = enter(at, part);
        if (next < 0) {
            return next;
        }
        close(at);
        at = next;
    }
    return at < 0 ? -errno : fd_take(&at);
}

static int make_temporary(struct outdir *o)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) {
        return -EIO;
    }
    snprintf(o->temporary, sizeof o->temporary, ".isle-%016llx", (unsigned long long)random);
    o->file =
        openat(o->folder, o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return o->file < 0 ? -errno : 0;
}

// The whole artifact is there: it gets its name, in place of whatever file or link has it now.
static void finish(struct outdir *o)
{
    const char *slash = strrchr(o->name, '/');
    if (renameat(o->folder, o->temporary, o->folder, slash ? slash + 1 : o->name)) {
        fail(o, "--output-dir: %.200s: %m", o->name);
    } else {
        o->file = fd_close(o->file);
    }
    forget(o);
}

void outdir_begin(struct outdir *o, const char *name, uint64_t size)
{
    if (o->dir < 0 || o->error[0]) {
        return;
    }
    if (o->name) {
        fail(o, "--output-dir: %.200s came only in part", o->name);
        return;
    }
    if (!is_asked_for(o, name)) {
        fail(o, "--output-dir: the service sent a file nobody asked for");
        return;
    }
    o->name = strdup(name);
    o->folder = o->name ? enter_all(o, name) : -ENOMEM;
    int e = o->folder < 0 ? o->folder : make_temporary(o);
    if (e) {
        const char *why = e == -ELOOP || e == -ENOTDIR
                              ? "a link or a file stands where a folder must be"
                              : strerrordesc_np(-e);
        fail(o, "--output-dir: %.200s: %s", name, why);
        o->folder = o->folder < 0 ? -1 : o->folder;
        forget(o);
        return;
    }
    o->left = size;
    if (size == 0) {
        finish(o);
    }
}

void outdir_write(struct outdir *o, const char *data, size_t len)
{
    if (o->file < 0 || o->error[0]) {
        return;
    }
    if (len > o->left) {
        fail(o, "--output-dir: %.200s is longer than announced", o->name);
        forget(o);
        return;
    }
    int e = fd_write_all(o->file, data, len);
    if (e) {
        fail(o, "--output-dir: %.200s: %s", o->name, strerrordesc_np(-e));
        forget(o);
        return;
    }
    o->left -= len;
    if (o->left == 0) {
        finish(o);
    }
}
