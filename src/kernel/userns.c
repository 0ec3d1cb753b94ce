#include "kernel/userns.h"

#include "base/fd.h"

#include <stdio.h>

static int write_map(int dir, const char *file, const struct userns_map *map)
{
    char line[48];
    snprintf(line, sizeof line, "%u %u %u", map->inner, map->outer, map->count);
    return fd_write_at(dir, file, line);
}

int userns_write_maps(int dir, const struct userns_map *map, bool deny_setgroups)
{
    int e = deny_setgroups ? fd_write_at(dir, "setgroups", "deny") : 0;
    // groups first: once uid_map is there, a waiting child may take it for finished
    e = e ? e : write_map(dir, "gid_map", map);
    return e ? e : write_map(dir, "uid_map", map);
}

int userns_write_own_maps(int dir, const struct userns_map *uids, const struct userns_map *gids)
{
    int e = fd_write_at(dir, "setgroups", "deny");
    e = e ? e : write_map(dir, "gid_map", gids);
    return e ? e : write_map(dir, "uid_map", uids);
}
