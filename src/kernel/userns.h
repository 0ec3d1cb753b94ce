// userns.h: id maps of a user namespace (user_namespaces(7)).
#ifndef ISLE_KERNEL_USERNS_H
#define ISLE_KERNEL_USERNS_H

#include <stdbool.h>
#include <stdint.h>

struct userns_map {
    uint32_t inner, outer, count;
};

// Writes gid_map and uid_map of the process whose /proc folder `dir` is open on; with
// deny_setgroups, "deny" to setgroups before. One line each, the same for users and groups. 0 or
// -errno.
int userns_write_maps(int dir, const struct userns_map *map, bool deny_setgroups);

// By who may map itself only, and so may keep no right to change groups: "deny", then both maps.
int userns_write_own_maps(int dir, const struct userns_map *uids, const struct userns_map *gids);

#endif
