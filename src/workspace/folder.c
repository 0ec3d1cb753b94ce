#include "workspace/folder.h"

#include "base/fd.h"
#include "base/tree.h"
#include "workspace/path.h"
#include "workspace/stage.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

// As long as nobody has it. By names, of the service's own folders: a descriptor may be what lacks.
static void unmake(int root, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/w", name);
    unlinkat(root, path, AT_REMOVEDIR);
    unlinkat(root, name, AT_REMOVEDIR);
}

int folder_make(int root, const char *name, uid_t uid, int *ret)
{
    if (mkdirat(root, name, 0711)) {
        return -errno;
    }
    AUTO_CLOSE int outer = path_open(root, name, O_PATH | O_DIRECTORY, 0);
    AUTO_CLOSE int inner = -1;
    int e = outer < 0 ? outer : 0;
    if (!e && (mkdirat(outer, "w", 0700) || fchownat(outer, "w", uid, uid, AT_SYMLINK_NOFOLLOW))) {
        e = -errno;
    }
    if (!e) {
        inner = path_open(outer, "w", O_RDONLY | O_DIRECTORY, 0);
        e = inner < 0 ? inner : 0;
    }
    if (e) {
        unmake(root, name);
        return e;
    }
    *ret = fd_take(&inner);
    return 0;
}

int folder_make_ready(int once, const char *name, uid_t service, uid_t uid)
{
    AUTO_CLOSE int inner = -1;
    int e = folder_make(once, name, uid, &inner);
    if (e) {
        return e;
    }
    e = stage_make_folders(inner, uid);
    if (!e && fchownat(once, name, service, service, AT_SYMLINK_NOFOLLOW)) {
        e = -errno;
    }
    if (e) {
        folder_remove(once, name);
    }
    return e;
}

int folder_open_ready(int root, const char *name, uid_t uid)
{
    char path[128];
    struct stat st;
    snprintf(path, sizeof path, "%s/w", name);
    AUTO_CLOSE int fd = path_open(root, path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) {
        return fd;
    }
    return fstat(fd, &st) || st.st_uid != uid ? -ENOENT : fd_take(&fd);
}

int folder_remove(int root, const char *name)
{
    const char *last;
    AUTO_CLOSE int parent = path_open_parent(root, name, 0, 0, &last);
    return parent < 0 ? parent : tree_remove_at(parent, last);
}
