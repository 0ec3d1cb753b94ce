// artifact.h: a file that a job leaves for its owner, opened after the job's last process is gone.
#ifndef ISLE_WORKSPACE_ARTIFACT_H
#define ISLE_WORKSPACE_ARTIFACT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum artifact_refusal {
    ARTIFACT_MISSING = 1,
    ARTIFACT_REFUSED, // a link, a folder, a device, another's file
};

// Opens one artifact for reading. 0 with *ret_fd (owned by the caller), *ret_size (apparent size:
// what reading it gives, holes included) and *ret_mode (permission bits); a positive refusal with
// *ret_why (static text); or -errno.
int artifact_open(int workspace, const char *path, uid_t uid, int *ret_fd, uint64_t *ret_size,
                  uint32_t *ret_mode, const char **ret_why);

#endif
