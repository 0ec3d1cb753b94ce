#include "workspace/artifact.h"

#include "base/fd.h"
#include "workspace/path.h"

#include <fcntl.h>
#include <sys/stat.h>

static const char *kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "is a folder; name a file, or pack the folder into an archive";
    case S_IFIFO:
        return "is a FIFO, not a regular file";
    case S_IFSOCK:
        return "is a socket, not a regular file";
    default:
        return "is not a regular file";
    }
}

static int refuse(int e, const char **ret_why)
{
    switch (e) {
    case -ENOENT:
    case -ENOTDIR:
        *ret_why = "does not exist";
        return ARTIFACT_MISSING;
    case -ELOOP:
        *ret_why = "is, or lies behind, a symbolic link; links are not followed";
        return ARTIFACT_REFUSED;
    case -EXDEV:
        *ret_why = "lies outside the workspace";
        return ARTIFACT_REFUSED;
    case -ENXIO:
        *ret_why = "is a socket, not a regular file";
        return ARTIFACT_REFUSED;
    default:
        return e;
    }
}

int artifact_open(int workspace, const char *path, uid_t uid, struct artifact *ret,
                  const char **ret_why)
{
    AUTO_CLOSE int fd = path_open(workspace, path, O_RDONLY, 0);
    if (fd < 0) {
        return refuse(fd, ret_why);
    }
    struct stat st;
    if (fstat(fd, &st)) {
        return -errno;
    }
    if (!S_ISREG(st.st_mode)) {
        *ret_why = kind_of(st.st_mode);
        return ARTIFACT_REFUSED;
    }
    if (st.st_uid != uid) {
        *ret_why = "does not belong to the job";
        return ARTIFACT_REFUSED;
    }
    *ret = (struct artifact){
        .fd = fd_take(&fd), .size_bytes = (uint64_t)st.st_size, .mode = st.st_mode & 0777};
    return 0;
}
