// client.h: a service for tests of the launcher: the other end of plan/plan.h, blocking and plain.
#ifndef TEST_LAUNCHER_CLIENT_H
#define TEST_LAUNCHER_CLIENT_H

#include "plan/args.h"
#include "plan/plan.h"
#include "start/start.h"

#include <stdbool.h>
#include <stddef.h>

// CLIENT_PATIENCE_MS: only a launcher that hangs needs so long, whatever else the host does.
enum { V0 = PLAN_UID_WORKSPACE_0, CLIENT_EARLY = 1024, CLIENT_PATIENCE_MS = 30000 };

struct client {
    struct seat seat;
    uint32_t tag;
    int proc; // a full /proc, opened before the drop: for attacks and for looking
    struct {
        struct plan_record r;
        int fd;
    } early[CLIENT_EARLY]; // records that came while another was waited for
    int n_early;
    void (*change)(struct plan_request *q); // of what client_start() sends next
};

// A job; what is 0 gets a default.
struct
try {
    const char *const *argv, *const *env;
    const char *cwd, *workspace;
    uint32_t uid, rung;
    int tmpfs_no; // -1: workspace
    bool tmp_folder;
    int fd[PLAN_FD_FRAMES + 1]; // 0: /dev/null
    struct plan_limits limits;
    uint32_t n_sets, sets[PLAN_SETS_PER_JOB];
};

void client_request(struct client *c, struct plan_request *q, const int *fds, int n);
// The next record of that op and tag, at most timeout_ms. 0 or -ETIMEDOUT, -EPIPE (the launcher is
// gone). ret_fd may be NULL.
int client_wait(struct client *c, uint32_t op, uint32_t tag, int timeout_ms,
                struct plan_record *ret, int *ret_fd);
int client_ask(struct client *c, struct plan_request *q, struct plan_record *ret);

int client_prepare(struct client *c, uint32_t *ret_id, struct plan_record *ret_parked);
// Returns the tag. id 0: cold.
uint32_t client_start(struct client *c, uint32_t id, const struct try *t);
// START, and END at the latest timeout_ms after the program has begun (a busy host may need long
// for that): else KILL. Nothing of it is left behind.
int client_run(struct client *c, uint32_t id, const struct try *t, int timeout_ms,
               struct plan_record *ret);
// A number or -errno. Sets: a folder, or one of the cache by its name.
int client_add_set(struct client *c, int fd);
int client_add_named_set(struct client *c, const char *name);
// Of 64 inodes. ret_fd may be NULL.
int client_add_tmpfs(struct client *c, uint32_t uid, uint64_t bytes, int *ret_fd);
int client_signal(struct client *c, uint32_t id, int sig);

// NAME with `w` (and `t`) of that uid. A descriptor of NAME or -errno.
int client_make_workspace(struct client *c, const char *name, uint32_t uid, bool with_tmp);
int client_remove_workspace(struct client *c, const char *name);

#endif
