// folders.h: DATA/K, the workspace root of instance K: 0700, of the service's uid (or the
// account's), with once/ and kept/ in it.
//
// It stays, emptied, for the number's next owner: ext4 keeps away from inode numbers that were
// freed in the last minutes, and a busy host that made and removed folders for every start would
// spend milliseconds of each in that search. What is not a folder of that owner is not ours and
// left alone. The caller holds the instance's lock, and no process of the instance lives.
//
// The lock lies in another folder, which need not be everybody's (XDG_RUNTIME_DIR) and may be
// cleaned while the instance lives. So DATA/K itself is locked too (flock(2)): shared by the start,
// then by launcher and service as long as they live, exclusively by who empties it.
#ifndef ISLE_START_FOLDERS_H
#define ISLE_START_FOLDERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct folders_owner {
    uid_t uid;
    gid_t gid;
};

// Makes what is missing of DATA/K. 0; -EEXIST: something else is called K; -errno.
int folders_make(int data_dir, uint32_t k, struct folders_owner owner);

// DATA/K, locked as `how` (LOCK_SH, LOCK_EX) says, if its file system has locks. A descriptor;
// -EWOULDBLOCK: others have locked it; -ENOENT or -errno.
int folders_lock(int data_dir, uint32_t k, int how);

// DATA/K/once, which folders_make() has made. A descriptor or -errno.
int folders_open_once(int data_dir, uint32_t k);

// Removes what jobs (or a service that was taken over) left in it. 0 also when there is none;
// -EEXIST: something else is called K; -errno: something stays.
int folders_empty(int data_dir, uint32_t k, struct folders_owner owner);

// May something lie in it? Two calls; errs on the side of yes. No lock needed.
bool folders_may_be_used(int data_dir, uint32_t k);

#endif
