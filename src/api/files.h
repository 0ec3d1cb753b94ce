// files.h: what the calls on a session's files share.
#ifndef ISLE_API_FILES_H
#define ISLE_API_FILES_H

#include "api/session_call.h"

// Handlers: files_get.c, files_put.c.
void file_get(struct api_call *c);
void file_put(struct api_call *c);

// "path" and "escaped" of folder (as files.h has it) and what is below it (NULL: itself).
void file_put_path(struct buf *out, const char *folder, const char *below);

// The whole content's hash, on a thread. 0 or -errno (-ESTALE: written to meanwhile).
int file_hash(const struct files_file *file, char ret[SHA256_HEX]);

// If-Match as one content: 1 with its 64 digits, 0 where there is none, -1: the call has failed.
int file_if_match(struct api_call *c, char ret[SHA256_HEX]);

#endif
