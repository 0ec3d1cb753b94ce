#include "workspace/folder.h"

#include "base/fd.h"
#include "base/tree.h"
#include "workspace/path.h"

#include <fcntl.h>
#include <sys/stat.h>

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
        folder_remove(root, name);
        return e;
    }
    *ret = fd_take(&inner);
    return 0;
}

int folder_remove(int root, const char *name)
{
    const char *last;
    AUTO_CLOSE int parent = path_open_parent(root, name, 0, 0, &last);
    return parent < 0 ? parent : tree_remove_at(parent, last);
}
