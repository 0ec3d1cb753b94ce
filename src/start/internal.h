// internal.h: what the files of this folder share: the one structure that goes through the step
// table, and the record that crosses the re-exec.
#ifndef ISLE_START_INTERNAL_H
#define ISLE_START_INTERNAL_H

#include "plan/seat.h"
#include "start/bwrap.h"
#include "start/folders.h"
#include "start/groups.h"
#include "start/mode.h"
#include "start/start.h"
#include "start/steps.h"

// The child's descriptors. The first are those of the new image, in fixed places; the others end
// with the launcher's start. What this host has no use for is -1.
enum start_fds {
    INNER_RECORD = 3, // sealed memfd: struct start_record
    INNER_FRONT,
    INNER_LOCK,
    INNER_LAUNCHER, // socket
    INNER_LAUNCHER_PIDFD,
    INNER_PASSED, // first of START_MAX_PASSED
    INNER_FD_END = INNER_PASSED + START_MAX_PASSED,
    CHILD_PROGRAM = INNER_FD_END, // isle-launcher, O_PATH
    CHILD_SHIM,                   // O_RDONLY
    CHILD_V2,
    CHILD_V1,
    CHILD_FD_END = CHILD_V1 + SEAT_N_V1,
    START_N_FDS = CHILD_FD_END - INNER_RECORD,
};
#define INNER_NAME "isle-service" // argv[0] of the new image

// What the new image must know; read from INNER_RECORD, whose seals say that nobody changed it.
struct start_record {
    uint32_t magic, user; // enum start_user
    int32_t launcher_pid;
    uint32_t ahead_network;
    uint32_t instance;
    uint32_t serves, n_passed;
    struct seat_config seat;
    char bwrap_version[16];
    char python[START_PYTHON_MAX];
    uint64_t marks_ns[START_N_MARKS];
};
enum { START_MAGIC = 0x534c4531 };

// Child -> front, over the socket that carries frames later; the front answers MAPS by one byte.
enum start_note_what { START_NOTE_MAPS = 1, START_NOTE_SERVING, START_NOTE_FAILED };
struct start_note {
    uint32_t what;
    int32_t error;    // FAILED: negative errno
    int32_t launcher; // SERVING: its pid
    struct start_error text;
};

// As whom, and where groups are: what the front keeps for the end.
struct start_host {
    struct groups groups;
    struct start_mode mode;
    int root, mounts; // "/", also of the groups; the mount namespace it is in, or -1: the caller's
    int kept;         // DATA/serve, while this start has it locked; else -1
};

struct start {
    // front and child
    const struct start_config *config;
    char *const *argv, *const *env;
    struct start_host host;
    uint32_t instance, uid_base, uid_count;
    uint32_t gid_base; // as uid_base; another one for subordinate groups
    uint64_t mark;
    int run_dir, data_dir;              // folders
    int folder;                         // of workspaces, locked
    struct groups_made groups;          // claimed with the number; step groups hands them on
    char folder_name[FOLDERS_NAME_MAX]; // in the data folder
    int front;                          // the front's end of the socket
    pid_t pid;                          // the child, later the service
    int pidfd;
    pid_t launcher;
    int launcher_pidfd;
    // child and new image; [n] is start_fds INNER_RECORD + n
    int fd[START_N_FDS];
    // new image
    struct seat *seat;
    // all
    struct start_record record;
    struct start_error *error;
};

static inline int *start_fd(struct start *s, enum start_fds place)
{
    return &s->fd[place - INNER_RECORD];
}

// Fills s->error->text ("TEXT: strerror(-error)"; error 0: without) and returns `error`, or -EINVAL
// for 0.
int start_fail(struct start *s, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Runs the steps of one process in order up to the first failure, whose name goes to s->error.
int start_run_steps(struct start *s, enum start_where where);

// Puts descriptors into consecutive places from `first` on (-1: that place is closed), without
// close-on-exec, and closes whatever lies above. 0 or -errno.
int start_place_fds(const int *fds, unsigned n, unsigned first);

// instance.c
int instance_claim(struct start *s);
int instance_folders(struct start *s);
// Waits for the lock (at most limit_ms; then the instance's processes are killed), removes what is
// left, gives the number back. Harmless when somebody else has done so meanwhile. 0 or -errno.
int instance_release(const struct start_host *h, int run_dir, uint32_t instance, uint64_t mark,
                     unsigned limit_ms);

// Whose a folder of workspaces is, as the host sees it: the service's, or the account's.
struct folders_owner instance_owner(const struct start_host *h, uint32_t uid_base);
// folders_empty() with whatever rights it takes; the caller has the folder locked. 0 or -errno.
int instance_empty_folder(const struct start_host *h, int data_dir, const char *name,
                          uint32_t uid_base);

// serving.c
// DATA/serve: opened into s->folder and locked, before any number is claimed, so that a second
// service touches nothing.
int serving_open(struct start *s);
// With the number claimed: what is kept there is this start's, once/ is empty.
int serving_take(struct start *s);

// front.c
int front_check(struct start *s);
int front_find_groups(struct start *s);
int front_groups(struct start *s);
int front_programs(struct start *s);
int front_clone(struct start *s);
int front_maps(struct start *s);
int front_maps_range(struct start *s);
int front_maps_single(struct start *s);
int front_meanwhile(struct start *s);
int front_serving(struct start *s);

// maps.c
// The id map of process `pid`, as the mode has it: inner 0 is the account, the others are the
// subordinate ids from uid_base + 1 and gid_base + 1 on. 0 or -errno with text in s->error.
int maps_write(const struct start_mode *m, pid_t pid, uint32_t uid_base, uint32_t gid_base,
               uint32_t count);
// Runs work() in a child that is inner root of such a namespace, for what the account itself may
// not do to files of its subordinate ids. What it returned (0 or -errno), or -errno.
int maps_run_inside(const struct start_mode *m, int (*work)(void *ctx), void *ctx);

// child.c
_Noreturn void child_run(struct start *s);
int child_session(struct start *s);
int child_mounts(struct start *s);
int child_own_shares(struct start *s);
int child_devices(struct start *s);
int child_network(struct start *s); // network.c
int child_bwrap(struct start *s);
int child_user_namespace(struct start *s);
int child_born_inside(struct start *s);
int child_no_groups(struct start *s);
int child_ids(struct start *s);
int child_reexec(struct start *s);

// spawn.c
int child_check(struct start *s);
int child_launcher(struct start *s);

// inner.c, drop.c
int inner_ready(struct start *s);
int inner_shed(struct start *s);
int inner_drop(struct start *s);
int inner_drop_rights(struct start *s);
int inner_filter(struct start *s);
int inner_undo(struct start *s);
int inner_serving(struct start *s);

#endif
