// folders.h: workspace roots, folders of the data folder DATA: 0700, of the service's uid (or the
// account's). DATA/K is that of instance K and lasts as long; DATA/serve is that of whichever
// instance serves, and what a service keeps stays in it (start/kept.h).
//
//   once/                           one-shot workspaces: emptied whenever an owner is gone
//   kept/                           in DATA/K, whatever is there is removed as well
//   kept/ trash/ artifacts/ store/  in DATA/serve: stay
//
// DATA/K stays, emptied, for the number's next owner: ext4 keeps away from inode numbers that were
// freed in the last minutes, and a busy host that made and removed folders for every start would
// spend milliseconds of each in that search. What is not a folder of that owner is not ours and
// left alone. The caller holds the instance's lock, and no process of the instance lives.
//
// The lock lies in another folder, which need not be everybody's (XDG_RUNTIME_DIR) and may be
// cleaned while the instance lives. So DATA/K itself is locked too (flock(2)): shared by the start,
// then by launcher and service as long as they live, exclusively by who empties it.
//
// `name` is K as text, or FOLDERS_SERVE.
#ifndef ISLE_START_FOLDERS_H
#define ISLE_START_FOLDERS_H

#include <stdbool.h>
#include <sys/types.h>

#define FOLDERS_SERVE "serve"
enum { FOLDERS_NAME_MAX = 16 }; // its NUL included

struct folders_owner {
    uid_t uid;
    gid_t gid;
};

// Makes what is missing of it. 0; -EEXIST: something else is called so; -errno.
int folders_make(int data_dir, const char *name, struct folders_owner owner);

// The folder, locked as `how` (LOCK_SH, LOCK_EX) says, if its file system has locks. A descriptor;
// -EWOULDBLOCK: others have locked it; -ENOENT or -errno.
int folders_lock(int data_dir, const char *name, int how);

// Its once/, which folders_make() has made. A descriptor or -errno.
int folders_open_once(int data_dir, const char *name);

// Removes what jobs (or a service that was taken over) left in it and is not to stay. 0 also when
// there is none; -EEXIST: something else is called so; -errno: something stays.
int folders_empty(int data_dir, const char *name, struct folders_owner owner);

// May something lie in DATA/K? Two calls; errs on the side of yes. No lock needed.
bool folders_may_be_used(int data_dir, const char *name);

#endif
