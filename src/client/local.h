// local.h: a file of this host's that a download becomes: whole or not at all, under the name that
// the user gave.
#ifndef ISLE_CLIENT_LOCAL_H
#define ISLE_CLIENT_LOCAL_H

#include "codec/sha256.h"

#include <stdbool.h>
#include <stdint.h>

struct local {
    int folder, file; // file: of the temporary one
    char temporary[32], name[256];
    bool named; // by the user, and not after what it was there
    struct sha256 sha;
    uint64_t bytes;
};

// `path` "-": standard output, at once. A folder: `base` in it. 0 or -errno. local_drop() either
// way.
int local_begin(struct local *l, const char *path, const char *base);
int local_add(struct local *l, const char *data, size_t len);
// The checksum of all that was added; nothing is to be added afterwards.
void local_end(struct local *l, char ret_sha256[SHA256_HEX]);
// It is the archive of a folder: one that the user has not named ends in .zip. 0 or -ENAMETOOLONG.
int local_is_archive(struct local *l);
// Gives it its name, in place of a file or link that has it now. 0 or -errno.
int local_commit(struct local *l);
void local_drop(struct local *l); // what is not committed vanishes

#endif
