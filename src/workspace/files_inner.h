// files_inner.h: what the parts of the file library share.
#ifndef ISLE_WORKSPACE_FILES_INNER_H
#define ISLE_WORKSPACE_FILES_INNER_H

#include "workspace/files.h"

// The refusal that a failed call means, or the -errno itself.
int files_refuse(int e);
// 0 for a regular file of uid, or why it is none.
int files_check(const struct stat *st, uid_t uid);
bool files_same(const struct stat *a, const struct stat *b);
// Opens the folder that holds `path` (O_PATH) and looks at the entry, which need not be there:
// then *ret_st has a mode of 0. *ret_name points into path. Descriptor in *ret; 0, a refusal or
// -errno.
int files_look(const struct files *f, const char *path, bool make, int *ret, struct stat *ret_st,
               const char **ret_name);

#endif
