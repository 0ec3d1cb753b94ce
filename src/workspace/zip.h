// zip.h: a folder of a workspace as a zip archive (PKWARE's APPNOTE 6.3.x: deflate, data
// descriptors, UTF-8 names, zip64 where needed), made while it is read: in constant memory, by this
// process, nothing of it in the workspace.
//
// In it: folders and regular files of the workspace's uid, with modes and times. Left out and
// counted: links, FIFOs, devices, others' files, what is deeper than listing.h goes. A file that
// grows meanwhile is cut at the size it had, one that shrinks has what was there.
#ifndef ISLE_WORKSPACE_ZIP_H
#define ISLE_WORKSPACE_ZIP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ZIP_BYTES = 640 << 10 }; // of memory that making one takes, with its caller's; mostly zlib's

struct work_pool; // io/work.h
struct zip;

struct zip_options {
    uid_t uid;            // whom the files belong to
    int spool;            // an empty file of the caller's for the directory of the archive (about
                          // 60 bytes and the name for each entry); kept open by the caller
    uint64_t max_entries; // more: -E2BIG
    uint64_t max_bytes;   // of content: more: -EFBIG
};

struct zip_count {
    uint64_t entries, left_out;
    uint64_t content_bytes, archive_bytes;
};

// `folder` is kept by the caller and needed at the beginning only. 0 or -errno.
int zip_begin(int folder, const struct zip_options *o, struct zip **ret);
// The archive's next bytes, at most `size`, after at most a bounded piece of work (about 2 ms).
// Bytes; 0: it is whole; -EAGAIN: nothing to give yet, call again; else -errno: there will be no
// whole archive. -ENOSPC also where the spool's disk is at its floor.
ssize_t zip_next(struct zip *z, void *ret_data, size_t size);
struct zip_count zip_count(const struct zip *z);
// NULL is harmless. The file that is being packed is closed by the pool, which may be NULL, for its
// owner (work_close()): somebody may have removed it meanwhile.
void zip_end(struct zip *z, struct work_pool *pool, uint64_t owner);

// The same by reference, for who is to make archives only in programs that load zlib.
struct zip_ops {
    int (*begin)(int folder, const struct zip_options *o, struct zip **ret);
    ssize_t (*next)(struct zip *z, void *ret_data, size_t size);
    void (*end)(struct zip *z, struct work_pool *pool, uint64_t owner);
};
extern const struct zip_ops zip_ops;

#endif
