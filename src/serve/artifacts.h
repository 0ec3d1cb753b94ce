// artifacts.h: the files that jobs left for their owners, kept outside of every workspace:
// "artifacts/JOB/N" below the data folder, mode 0600. What they are called, how long they are and
// their checksums stand in the job's result. While they are written the folder is "JOB.part". Whose
// they are says a link that leads nowhere, "artifacts/JOB/team" -> TEAM, so that a next start knows
// what each team has of the disk.
#ifndef ISLE_SERVE_ARTIFACTS_H
#define ISLE_SERVE_ARTIFACTS_H

#include "codec/sha256.h"

#include <stdbool.h>
#include <stdint.h>

struct artifacts;
struct share;
struct shares;
struct work_pool;

// `dir`: folder of the service's own; stays the caller's. Removes, in the background, what was not
// committed, and folders last written before forget_before_ms (since the epoch): older ones than
// results are kept, which a crash has left without a record. What the others take is added to their
// teams' shares, in the background, too. 0 or -errno.
int artifacts_new(int dir, struct work_pool *pool, struct shares *shares, int64_t forget_before_ms,
                  struct artifacts **ret);
// After work_pool_stop(). NULL is harmless.
void artifacts_free(struct artifacts *a);

// Those of one job being written, one after another (struct job_sink calls them so).
struct artifacts_writer {
    struct artifacts *to;
    struct share *share; // its owner's
    char job_id[37];
    int dir, fd;         // -1: none
    uint32_t n;          // the next one's number
    uint64_t bytes, one; // in all, and of the one that is open
    uint64_t room;       // what the team might still have at the begin
    bool committed, counted;
};
// a is not used before artifacts_begin(), which makes the folder. On the loop; share stays the
// caller's, and is not given back before artifacts_drop().
void artifacts_writer_init(struct artifacts_writer *w, struct artifacts *a, struct share *share,
                           const char *job_id);
// Both: -EDQUOT when the team's share is used up, -ENOSPC when the disk is.
int artifacts_begin(struct artifacts_writer *w);
int artifacts_add(struct artifacts_writer *w, const char *data, size_t len);
// All are whole; durable when it returns 0 (at once where there are none). Blocks as long as the
// disk needs: for work.h.
int artifacts_commit(struct artifacts_writer *w);
// On the loop: removes what is not committed; what is counts as the team's from here on. Harmless
// twice.
void artifacts_drop(struct artifacts_writer *w);

// The N-th of a job, for reading. A descriptor, or -ENOENT and the like. job_id must be a checked
// id.
int artifacts_open(const struct artifacts *a, const char *job_id, uint32_t n, uint64_t *ret_size);
// Removes all of a job, on a thread. Harmless where there are none.
void artifacts_remove(struct artifacts *a, const char *job_id);

#endif
