// disk.h: the disk limit of a workspace that is a folder, for file systems without quotas. A look
// at the file system's free space (2 µs) every DISK_LOOK_MS says when it may be over; only then the
// tree is walked, and the walk decides, since free space falls by others' writes too.
//
// Missed between two looks: what one core writes in that time (about 20 MB). Missed by the walk:
// files that are deleted but still open. They show as a fall of free space that nothing explains;
// as that may be anybody's, it ends the job only when the host runs short (disk_floor()), and is
// bounded by RLIMIT_FSIZE times the limit on open files. fallocate(2) and the ioctls that do the
// same are refused by the job's seccomp filter, since they take gigabytes between two looks.
// Counted twice: what is moved to where the walk has not been yet. So two walks must agree.
//
// What has more than its limit at the begin (disk_first()) may keep that, or else nobody could
// remove any of it from inside: it may have less, and then no more than that, down to the limit.
#ifndef ISLE_WORKSPACE_DISK_H
#define ISLE_WORKSPACE_DISK_H

#include "workspace/walk.h"

#include <stdint.h>

enum { DISK_LOOK_MS = 20 };

enum disk_verdict {
    DISK_FINE,
    DISK_OVER,  // more than its limit
    DISK_FILES, // more entries than its limit
    DISK_FLOOR, // the host's free space is at its floor, and this job takes part in it
    DISK_MORE,  // of disk_settle(): no verdict yet, call again
};

struct disk {
    int root; // of the workspace; not owned
    uint64_t max_bytes, max_entries;
    uint64_t may_bytes, may_entries; // the same; more only for what began with more,
    uint64_t may_content;            // and then this of walk.h's, too
    unsigned given_folders;          // in it beside stage_folders, that are nobody's use either
    uint64_t used_bytes, used_entries, used_content; // by the last walk
    bool cut;            // that ended early, as it was enough for the verdict: more is there
    bool walking;        // a walk is under way: the next look goes on with it, which takes its time
    uint64_t folder_max; // the caller's to set before each call, as that of walk.h
    // inner
    uint64_t first_free, walk_free, walk_free_inodes; // at the begin; at the last walk
    uint64_t walked_at_ns, walk_pause_ns;
    struct walk walk;
    bool suspected; // the last whole walk was over, another one must agree
    bool still;     // a walk is under way while nothing runs
    uint64_t walk_began_ns;
};

// 0 or -errno.
int disk_begin(struct disk *d, int root, uint64_t max_bytes, uint64_t max_entries);
// Before anything runs, where there may be more than the limit: the whole of it is counted, for
// about max_ns at a time. DISK_MORE, DISK_FINE or -errno.
int disk_first(struct disk *d, uint64_t max_ns);
// Did it begin with more than the limit?
bool disk_began_above(const struct disk *d);
// One look: a verdict, or -errno. Walks for about max_ns, where it has to, or twice that.
int disk_look(struct disk *d, uint64_t max_ns);
// The last walk, when nothing runs any more, for about max_ns at a time: used_bytes is right
// afterwards, unless it was cut. DISK_MORE, a verdict (without the floor) or -errno.
int disk_settle(struct disk *d, uint64_t max_ns);
void disk_end(struct disk *d);

// Bytes in use of the tmpfs that `fd` lies on, or -1.
int64_t disk_of_tmpfs(int fd);

// What must stay free on the file system (f_blocks bytes in all): the smaller of 256 MB and 5 %.
uint64_t disk_floor(uint64_t total_bytes);
// What may still be written to the file system of `fd` by whoever is not the service itself: 0 at
// the floor, or when of its inodes fewer are free than the smaller of 10,000 and 5 %. 0 or -errno.
int disk_left(int fd, uint64_t *ret_bytes);
// Writes what is kept for a while only, and in nobody's share: -ENOSPC at the floor.
int disk_spool(int fd, const void *data, size_t len);
bool disk_at_floor(int fd); // nothing is left; false when nobody knows
// May a record of so many bytes go to the store on that file system? It is written twice, to the
// store's log and to its place, and leaves 16 MB for jobs to run. True also where nobody knows.
bool disk_takes_record(int fd, size_t bytes);

#endif
