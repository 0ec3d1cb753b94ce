// kept.h: DATA/serve, the workspace root of whoever serves over this data folder (folders.h), from
// one start to the next.
//
// What it keeps belongs to ids of the instance that made it. So the file DATA/serve/instance says
// which that was; the next start takes the same number where it can, and else gives everything to
// its own ids before it begins: it adds itself to the file, gives, and then stands there alone, so
// that a start that was killed meanwhile is made good by the next one. The folder was the
// service's, so nothing in it is believed: names are opened without following links, and ids are
// moved from one range of this data folder's instances to another, whatever the file says.
#ifndef ISLE_START_KEPT_H
#define ISLE_START_KEPT_H

#include <stddef.h>
#include <stdint.h>

struct kept_ids {
    uint32_t instance;
    uint32_t uid_base, gid_base, count; // as an instance has them: inner n is base + n
};

// DATA/serve, made if it is missing. A descriptor, -EEXIST (something else is called so) or -errno.
int kept_open(int data_dir);
// Locks it for this start alone: 0, -EWOULDBLOCK when a service lives in it (also after a moment's
// patience with one that ends), or -errno. A file system without locks has none.
int kept_lock(int folder);
// From alone to shared with launcher and service. 0, -EWOULDBLOCK: another start was faster.
int kept_share(int folder);

enum { KEPT_MAX = 8 };
struct kept_record {
    struct kept_ids ids[KEPT_MAX]; // the last start's, then those of starts that were interrupted
    size_t n;
};
// n is 0 when there was no start. 0; -EBADMSG: the file is not ours to understand; -errno.
int kept_read(int folder, struct kept_record *ret);
int kept_write(int folder, const struct kept_record *record);

// Gives what belongs to ids of `from` (inner 0's apart, which is an account's own) to those of
// `to`, in the whole tree, `folder` itself included. Links are not followed, other file systems not
// entered; neither depth nor names matter. Nobody may write in it meanwhile. Can be repeated when
// it was interrupted. 0 or -errno.
int kept_give(int folder, const struct kept_ids *from, const struct kept_ids *to);

#endif
