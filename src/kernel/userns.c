#include "kernel/userns.h"

#include "base/fd.h"

#include <stdio.h>

int userns_write_maps(int dir, const struct userns_map *map, bool deny_setgroups)
{
    char line[48];
    snprintf(line, sizeof line, "%u %u %u", map->inner, map->outer, map->count);
    int e = deny_setgroups ? fd_write_at(dir, "setgroups", "deny") : 0;
    // groups first: once uid_map is there, a waiting child may take it for finished
    if (!e) {
        e = fd_write_at(dir, "gid_map", line);
    }
    return e ? e : fd_write_at(dir, "uid_map", line);
}
