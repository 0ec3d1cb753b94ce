// files.h: what the calls on a session's files share.
#ifndef ISLE_API_FILES_H
#define ISLE_API_FILES_H

#include "api/session_call.h"

// Handlers: files_get.c, files_put.c.
void file_get(struct api_call *c);
void file_put(struct api_call *c);

// "path" and "escaped" of folder (as files.h has it) and what is below it (NULL: itself).
void file_put_path(struct buf *out, const char *folder, const char *below);

// The whole content's hash, on a thread, a bounded piece at a time: others' work comes between, and
// nothing is hashed to its end for a caller who has gone.
struct file_digest {
    struct files_hash hash;
    char hex[SHA256_HEX];
    int over; // 1: done, 0: go on; -errno (-ESTALE: written to meanwhile)
};
void file_digest_begin(struct file_digest *d, const struct files_file *file);
void file_digest_step(struct file_digest *d);

// If-Match as one content: 1 with its 64 digits, 0 where there is none, -1: the call has failed.
int file_if_match(struct api_call *c, char ret[SHA256_HEX]);

#endif
