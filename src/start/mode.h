// mode.h: as whom a start would run on this host, found out without starting anything.
//
//   root     host root, or root of a container, with CAP_SYS_ADMIN: everything
//   range    an account with subordinate ids (subuid(5)) and newuidmap(1): everything but what a
//            group of its own, delegated to it, would allow
//   single   an account without: isle, its service and all jobs are one user id of the host
//
// Steps of the start say for which of them they are (start/steps.h).
#ifndef ISLE_START_MODE_H
#define ISLE_START_MODE_H

#include <stdbool.h>
#include <stdint.h>

enum start_user { START_ROOT, START_RANGE, START_SINGLE, START_N_USERS };
extern const char *const start_user_names[START_N_USERS];

struct start_mode {
    enum start_user user;
    uint32_t sub_uid, sub_gid, sub_count; // RANGE: the first subordinate ids, how many of both
    // Bits of enum plan_downgrade that follow from the user and from the control groups that would
    // be used. What only a start can find out is not among them: no_user_namespace, no_landlock.
    uint32_t downgrades;
    char refused[256]; // nothing can be started, and why; else ""
    char why[256];     // SINGLE: what the account lacks for RANGE, and how it gets it; else ""
    char groups[256];  // with a no_cgroup_* among the downgrades: how to get groups; else ""
};

// For the calling process. `root`: "/" of the host or of a test's made-up one. Never fails: what
// cannot be read is not there.
void start_mode_find(int root, struct start_mode *ret);
// The same without the control groups, for who looks at those anyway.
void start_mode_find_user(int root, struct start_mode *ret);

// The path of a program below `root`, which is called `prefix`. 0 or -ENOENT.
int mode_find_program(int root, const char *prefix, const char *name, char ret[64]);

// Has that program, by its path below `root`, the power that newuidmap needs: set-uid, or with a
// capability of its own?
bool mode_has_power(int root, const char *path);

// Where things are when no setting says so: for root the built-in places, for an account the XDG
// base directories. The runtime root is the host's unless that cannot be read and the account has
// one of its own.
enum { START_PLACE_MAX = 1024 }; // what is longer is cut, and then is not there
struct start_places {
    char data_dir[START_PLACE_MAX], run_dir[START_PLACE_MAX], runtime_root[START_PLACE_MAX];
    char config_file[START_PLACE_MAX];
};
void start_places_find(struct start_places *ret);

#endif
