// launcher.h: isle-launcher, the only process that makes sandboxes. Inner root of the outer user
// namespace, single-threaded, libc only, not dumpable, own mount namespace. It reads fixed-size
// requests from the service, believes none of them, and answers fixed-size records (plan/plan.h).
//
//   main.c      start and loop            template.c  its own tree, the model of every job's root
//   requests.c  table of operations       steps.c     the launch as a table, and its executor
//   begin.c     launcher's part of a launch   phase_one.c, phase_two.c   the sandbox's own parts
//   rung.c      the job's user namespace  stock.c     workspaces and package sets
//   ahead.c     groups and network namespaces in advance
//   locks.c     memory that no group counts
//   end.c       notes, limits, verdicts, end of a sandbox
//   bwrap.c     the launch with Bubblewrap, its own table; bwrap_child.c, inside.c  what runs in it
//   plain.c     the launch without namespaces: its own table, most of its steps the native ones
#ifndef ISLE_LAUNCHER_LAUNCHER_H
#define ISLE_LAUNCHER_LAUNCHER_H

#include "guest/note.h"
#include "kernel/cgroup.h"
#include "kernel/proc.h"
#include "plan/args.h"
#include "plan/bwrap.h"
#include "plan/plan.h"
#include "plan/seat.h"
#include "plan/steps.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// One sandbox. Free when id is 0.
struct box {
    uint32_t id;
    bool started;  // phase two has begun: `uid` is taken
    bool executed; // PLAN_EXECUTED was sent
    bool reported; // the shim told the status
    bool gone;     // every process is reaped; only groups may be left
    bool plain;    // without namespaces: its end is that of all that is in its group
    bool ending;   // plain: whatever is in its group but the shim is killed, again and again
    uint32_t uid;
    char group[16];
    uint32_t network;       // enum plan_network, from birth on
    int pidfd;              // of pid 1
    int main_pidfd;         // of pid 2, from PARKED on
    int sock;               // to pid 2; its end of file: execve has succeeded, or pid 2 is dead
    int report;             // from pid 1
    int mounts;             // its mount namespace: taken apart when we let go of it, after END
    int oom;                // eventfd, or -1
    uint64_t oom_until_ns;  // look at the counter again and again until then; 0: no need
    uint64_t cpu_budget_ns; // of this execution; 0: none
    uint64_t cpu_base_ns;   // used when this execution began
    uint64_t cpu_look_ns;   // when to look next; 0: never
    uint32_t cpu_percent;
    uint64_t retry_ns;       // when to remove its groups again
    struct wrapped *wrapped; // with Bubblewrap
    struct plan_record r;    // of its END
};

// What a sandbox has besides while Bubblewrap makes it, and after.
struct wrapped {
    pid_t bwrap;           // the process that we cloned; the shim is deeper
    struct plan_request q; // held back, with what goes with it, until NOTE_INSIDE
    int fds[PLAN_N_START_FDS];
    int report; // the shim's end
    int said;   // memfd: what Bubblewrap wrote on its standard error
    uint64_t nonce;
    uint64_t until_ns; // it must have come by then; 0: it has
};

struct tmpfs {
    int fd; // -1: free
    bool attached;
    uint32_t uid;
};

// locks.c
struct locks {
    uint64_t base_kb, due_ns, began_ns;
    pid_t pid;      // of the child that counts; 0: none
    uint32_t *over; // per box, shared with that child: the id of a sandbox that has too many
};

struct launcher {
    struct seat_config config;
    struct cgroup_tree groups;
    int self_pidfd, proc, ws, cache; // cache -1: no package sets here
    int template;                    // the mount namespace that sandboxes begin in
    int bwrap;                       // likewise Bubblewrap, or -1: native
    int plain;                       // likewise jobs without namespaces, or -1: none are allowed
    int program;                     // our own, O_PATH: isle's first process in Bubblewrap
    uint64_t ws_mount, cache_mount;  // mount ids
    uint32_t cache_uid;
    int landlock_abi;
    uint32_t rung, downgrades;
    uint32_t last_id;
    int maker, wanted; // ahead.c: its socket, or -1; what is on its way
    pid_t maker_pid;
    unsigned n_cpus;
    struct locks locks;
    uint64_t (*marks)[PLAN_N_MARKS]; // per box; shared with its children until they execute
    struct box box[PLAN_MAX_SANDBOXES];
    struct tmpfs tmpfs[PLAN_MAX_TMPFS];
    int set[PLAN_MAX_SETS];                     // O_PATH, or -1
    struct wrapped wrapped[PLAN_MAX_SANDBOXES]; // box n's, with Bubblewrap
};

// What pid 2 gets with the order, after the PLAN_N_START_FDS: the workspace's mount, /tmp's if the
// request says tmp_folder, the sets' mounts.
enum { ORDER_MAX_FDS = PLAN_N_START_FDS + 2 + PLAN_SETS_PER_JOB };

// One launch on its way through the steps. Each process of it has its own copy.
struct launch {
    struct launcher *l;
    struct box *box;
    struct plan_request q; // from phase two on; the rung is resolved
    bool plain;            // walks the plain table
    int loopback_error;    // pid 2's: negative errno
    // the launcher's
    int tasks[SEAT_N_V1], v2, child_sock, child_report;
    int net; // a network namespace made ahead, or -1
    // in the launcher: what is sent; in pid 2: what was received. -1: not there
    int fds[ORDER_MAX_FDS];
    int n_fds;
    // Bubblewrap's: sealed memfds, and what it may write to
    int passport, arguments, filter, said;
    uint64_t nonce;
    pid_t main; // pid 1's: whom the shim waits for, where there is no pid namespace
    // pid 2's
    char **argv, **env, *cwd;
};

// Descriptors of the sandbox's processes before they execute.
enum child_fd {
    CHILD_REPORT = NOTE_SHIM_FD, // pid 1's; the job's frame socket takes its number later
    CHILD_SOCK,                  // pid 2's
    CHILD_SHIM,
    CHILD_PIDFD, // of the launcher
    CHILD_TASKS,
    CHILD_NET = CHILD_TASKS + SEAT_N_V1,
    CHILD_TEMPLATE,
    CHILD_PROC,     // attached nowhere, read-write
    CHILD_PROC_JOB, // the one that pid 2 attaches
    CHILD_LANDLOCK,
    CHILD_END,
};

// Further bits of seat_config.test_refuse_rungs, beside 1 << enum plan_rung.
enum { LAUNCHER_REFUSE_LOOPBACK = 1 << 4, LAUNCHER_REFUSE_SCOPES = 1 << 5 }; // Landlock below 6

#define TEMPLATE_MASK "tmp/"        // below it lies what covers files of /proc
#define TEMPLATE_NETWORK "tmp/net/" // what covers files of /etc in jobs with the host's network

// The uid that is workspace number `uid`: itself, or inner root's where there is no other.
static inline uint32_t launcher_uid(const struct launcher *l, uint32_t uid)
{
    return l->config.single_uid ? PLAN_UID_LAUNCHER : uid;
}

void launcher_mark(const struct launch *c, enum plan_mark mark);

// template.c: builds the launcher's tree from the working directory (seat.h) and makes it the root.
// 0, or -errno with what failed.
int template_build(const struct seat_config *config, const char **ret_what);

// The mount namespace whose whole content is the template (`folder` "/jail"), what Bubblewrap is
// started in ("/bw"), or the template with a /proc for jobs without namespaces ("/plain").
// Descriptor or -errno. proc: the launcher's.
int template_namespace(int proc, const char *folder);

// steps.c: runs the steps of a phase that belong to `where`, in order. 0, or -errno and *ret_step.
struct launch_step {
    enum plan_where where;
    enum plan_phase phase;
    int (*run)(struct launch *c);
};
// Those of a table, whose first row has the number `first`.
int steps_walk(const struct launch_step *rows, uint32_t n, uint32_t first, struct launch *c,
               enum plan_phase phase, enum plan_where where, uint32_t *ret_step);
// The launch's own: plain or native.
int steps_run(struct launch *c, enum plan_phase phase, enum plan_where where, uint32_t *ret_step);
// Every step's function: in the process that PLAN_STEPS names. 0 or -errno.
#define STEP_DECLARE(id, phase, where, why) int step_##id(struct launch *c);
PLAN_STEPS(STEP_DECLARE)
#undef STEP_DECLARE
// Those that only the plain table has (plain.c).
int step_allowed(struct launch *c);
int step_born_plain(struct launch *c);
int step_reaper(struct launch *c);
int step_full_proc(struct launch *c);
int step_shim_exec_plain(struct launch *c);
int step_identity(struct launch *c);
int step_no_shared_ipc(struct launch *c);

// phase_one.c: what the sandbox's processes do from birth on.
_Noreturn void child_pid1(struct launch *c);
int child_parent_death(void);
// After a drop: can inner root be had back? 0, or -EPERM if it can.
int child_try_undo(const struct launcher *l);

// rung.c
// In pid 2 (or a probe), inner root, single-threaded: becomes workspace `uid` (1000 in its own
// namespace; in rung none as it is). proc: a read-write proc; sock: for NOTE_MAP. 0 or -errno.
int rung_enter(const struct launcher *l, uint32_t rung, uint32_t uid, int proc, int sock);
// The launcher's answer to NOTE_MAP. 0 or -errno: it did not reach pid 2, which waits for it.
int rung_answer(const struct launcher *l, int sock, pid_t pid, uint32_t uid);
// The first rung that works on this host.
uint32_t rung_find(struct launcher *l);
// Tests: makes the rungs in the mask fail, with LAUNCHER_REFUSE_LOOPBACK the loopback too. 0 or
// -errno.
int rung_refuse(uint32_t mask);

// begin.c
// Makes the sandbox's first process, in new namespaces (CLONE_NEW*). 0 or -errno.
int begin_clone(struct launch *c, uint64_t namespaces);
// Phase one, for a job with q->network. NULL and *ret_error (positive), *ret_step on failure.
struct box *begin_prepare(struct launcher *l, const struct plan_request *q, int *ret_error,
                          uint32_t *ret_step);
// Phase two in `box`. On failure the box is on its way to an END record with the error.
void begin_start(struct launcher *l, struct box *box, const struct plan_request *q, const int *fds);
// What a job with that network (enum plan_network) goes without.
uint32_t begin_downgrades(const struct launcher *l, uint32_t network);
// Would this START (in `box`, NULL: in one of its own) be refused by this host? 0 or -errno.
int begin_check(const struct launcher *l, const struct box *box, const struct plan_request *q);

// ahead.c
// Fills tasks, v2, net and the box's group. False: nothing is ready.
bool ahead_take(struct launcher *l, struct launch *c);
// When a launch is over: maker and launcher would wait for each other's locks (cgroup_mutex)
// before.
void ahead_refill(struct launcher *l);
void ahead_done(struct launcher *l);

// locks.c
// 0 or -errno.
int locks_init(struct launcher *l);
// What is due by the clock: a sandbox that holds too many locks is ended, as at its memory limit.
// Returns when to come again (UINT64_MAX: never).
uint64_t locks_tick(struct launcher *l, uint64_t now_ns);
void locks_done(struct launcher *l);

// stock.c
// A mount of the request's workspace (or of its /tmp folder), owner checked. Descriptor or -errno.
int stock_workspace(struct launcher *l, const struct plan_request *q);
int stock_tmp_folder(struct launcher *l, const struct plan_request *q);
int stock_set(struct launcher *l, uint32_t number);
// Numbers or -errno; *ret_fd is lent.
int stock_tmpfs_add(struct launcher *l, const struct plan_request *q, int *ret_fd);
int stock_tmpfs_drop(struct launcher *l, uint32_t number);
int stock_set_add(struct launcher *l, int fd);
int stock_set_drop(struct launcher *l, uint32_t number);
void stock_init(struct launcher *l);

// end.c
void box_kill(const struct launcher *l, struct box *b);
// Gives back one in which nothing lives: its launch failed before the clone.
void box_discard(const struct launcher *l, struct box *b);
// The sandbox has failed: END will say so (the first cause stays), and it is killed.
void box_fail(const struct launcher *l, struct box *b, uint32_t step, int error);
int box_signal(const struct launcher *l, const struct box *b, int sig);
void box_figures(const struct launcher *l, const struct box *b, struct plan_record *r);
void box_begin_execution(const struct launcher *l, struct box *b, uint64_t cpu_ns);
// Reads what the sandbox's processes said.
void box_notes(struct launcher *l, struct box *b);
// Looks whether it is over; then END is sent and the box is free.
void box_end(struct launcher *l, struct box *b);
// What is due by the clock. Returns when to come again (UINT64_MAX: never).
uint64_t box_tick(struct launcher *l, struct box *b, uint64_t now_ns);
void box_oom_event(struct box *b);
struct box *box_find(struct launcher *l, uint32_t id);

// bwrap.c, bwrap_child.c, inside.c
// Both phases; PLAN_END tells what becomes of it. NULL and *ret_error (positive), *ret_step when
// there is nothing to wait for. fds: PLAN_N_START_FDS, the caller's.
struct box *bwrap_start(struct launcher *l, const struct plan_request *q, const int *fds,
                        int *ret_error, uint32_t *ret_step);
// The box's part that only Bubblewrap needs, empty.
void bwrap_wrap(struct launcher *l, struct box *b);
// NOTE_INSIDE, of a box with that part: with the right nonce, the order follows.
void bwrap_inside(struct launcher *l, struct box *b, const struct note *n, pid_t from);
// What is due by the clock, as box_tick().
uint64_t bwrap_tick(struct launcher *l, struct box *b, uint64_t now_ns);
// Closes what is held; at the box's end.
void bwrap_done(struct box *b);
#define BSTEP_DECLARE(id, phase, where, why) int bstep_##id(struct launch *c);
PLAN_BWRAP_STEPS(BSTEP_DECLARE)
#undef BSTEP_DECLARE
// Its own table's steps, as steps_run().
int bsteps_run(struct launch *c, enum plan_phase phase, enum plan_where where, uint32_t *ret_step);
_Noreturn void bwrap_child(struct launch *c);
// What main() does when it is started by Bubblewrap.
_Noreturn void inside_main(void);
// Processes in a sandbox's groups that are not the job's.
static inline unsigned box_own_pids(const struct box *b)
{
    return b->wrapped ? 2 : 1; // the shim, and Bubblewrap
}

// plain.c: can this host hold jobs without namespaces at all? 0 or -EOPNOTSUPP.
int plain_check_host(const struct launcher *l);

// requests.c
// Reads one request and answers. False: the service is gone.
bool request_serve(struct launcher *l);
// Sends a record, bounded: a service that does not read for some seconds is as good as gone.
void request_answer(struct launcher *l, const struct plan_record *r, const int *fds, int n);

// main.c: ends every sandbox, removes groups and one-shot folders, exits.
_Noreturn void launcher_shut_down(struct launcher *l);

#endif
