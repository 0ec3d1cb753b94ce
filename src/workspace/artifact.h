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

struct artifact {
    int fd;              // owned by the caller
    uint64_t size_bytes; // apparent: what reading it gives, holes included
    uint32_t mode;       // permission bits
};

// Opens one artifact of `uid` for reading. 0; a positive refusal with *ret_why (static text); or
// -errno.
int artifact_open(int workspace, const char *path, uid_t uid, struct artifact *ret,
                  const char **ret_why);

#endif
