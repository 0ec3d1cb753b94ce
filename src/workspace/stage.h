// stage.h: a job's input files, copied from descriptors or from the job's own text into its
// workspace before it starts.
#ifndef ISLE_WORKSPACE_STAGE_H
#define ISLE_WORKSPACE_STAGE_H

#include "model/job.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// The folders that every workspace has: input, output, tmp, logs.
extern const char *const stage_folders[];
extern const unsigned stage_n_folders;

struct stage_need {
    uint64_t bytes;  // whole pages, as tmpfs counts them
    uint64_t inodes; // files, the folders above them, stage_folders and the root
};

struct stage_error {
    bool no_room; // the file system's, not what the job may take of it
    char text[512];
};

// What the files take, before anything is made. 0, or -EINVAL with text: not a regular file.
int stage_measure(const struct job *j, struct stage_need *ret, struct stage_error *ret_error);

// Makes stage_folders, owned by uid. 0 or -errno.
int stage_make_folders(int workspace, uid_t uid);

// Copies the files, in the place of those that are there; what it makes is owned by uid. At most
// max_bytes of content in all. 0, -ENOSPC (more than max_bytes, or no room), or another -errno;
// always with text.
int stage_files(int workspace, const struct job *j, uid_t uid, uint64_t max_bytes,
                struct stage_error *ret_error);

// The same, max_files at a time: all is done when `next` is the number of files.
struct stage_rest {
    size_t next;
    uint64_t left_bytes; // at first the maximum of content in all
};
int stage_some(int workspace, const struct job *j, uid_t uid, struct stage_rest *at,
               size_t max_files, struct stage_error *ret_error);

#endif
