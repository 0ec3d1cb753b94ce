// start.h: from host root, or an account, to a service without power over the host
// (docs/ARCHITECTURE.md).
//
//   front     the process a user started; keeps its rights, stays outside
//    └─ service   its child: through the outer user namespace, re-executed, dropped to inner uid 1
//        └─ isle-launcher   inner root
//
// The sequence is a step table (start_steps in start/steps.h): name, where it runs, function, why
// here.
#ifndef ISLE_START_START_H
#define ISLE_START_START_H

#include "plan/seat.h"

#include <stdint.h>
#include <sys/types.h>

struct bwrap_found;

// Jobs without namespaces: never, where the service asks for one, or all.
enum start_plain { START_PLAIN_NEVER, START_PLAIN_ASKED, START_PLAIN_ALL };

enum { START_MAX_PASSED = 8, START_PYTHON_MAX = 128 };
#define START_STORE "/store" // DATA/serve/store, where the service sees it

struct start_config {
    const char *data_dir; // SANDBOX_WORKSPACE_ROOT. Instance K's folder is data_dir/K, or, where it
                          // serves, data_dir/serve, in which a part lasts (start/folders.h)
    const char *run_dir;  // lock files; one for all data folders of a host or an account. Made if
                          // missing, the caller's own
    const char *runtime_root;
    const char *cache_dir;   // package sets; NULL: this instance has none
    const char *guest_dir;   // wrappers, mounted read-only at /usr/lib/isle
    const char *libexec_dir; // isle-launcher, isle-shim
    const char *hostname;
    const char *python;    // that runs Python snippets, as jobs see it; NULL: the usual one
    uint64_t memory_bytes; // of the whole instance: service, launcher and all jobs (0: not limited)
    uint64_t pids;
    uint32_t test_refuse_rungs;
    uint32_t require_user_namespace;
    uint32_t allow_host_network; // jobs may ask for the host's network
    enum start_plain plain;
    uint32_t ahead_network; // enum plan_network of the sandbox that is prepared meanwhile
    const uint32_t *calls; // n_calls (at most SEAT_MAX_CALLS) numbers of system calls that jobs may
    uint32_t n_calls;      // make besides the policy's
    // Called by the front while the service starts and it has nothing to do: `once` is the folder
    // of one-shot workspaces, uid_base the host's number of inner uid 0. May be NULL.
    void (*meanwhile)(int once, uint32_t uid_base);
    const struct bwrap_found *bwrap; // makes the sandboxes (start/bwrap.h); NULL: isle's own
    uint32_t data_dir_must_exist; // 1: an operator named it; 0: the built-in place, made if missing
    uint32_t serves;   // 1: a service over this data folder, which can have no second one
    const int *passed; // n_passed (at most START_MAX_PASSED) descriptors for the service, which
    uint32_t n_passed; // gets copies: sockets that listen
};

struct start_error {
    char step[32];  // name in start_steps
    char text[256]; // what failed, on what, and what to do next
};

// What the front holds while the service lives.
struct front {
    int service; // STREAM socket to the service
    pid_t pid;   // of the service
    int pidfd;
    pid_t launcher;
    int launcher_pidfd;
    uint32_t instance;
    uint64_t mark; // of this start, in the lock file: tells it from the number's next owner
    struct start_host *host; // as whom, and where groups are; start_finish() frees it
    const char *run_dir;     // the caller's string
};

// Moments of a start, CLOCK_MONOTONIC. For tests/bench and traces.
enum start_mark {
    START_T_BEGIN,
    START_T_CLAIMED, // lock and range; leftovers cleaned
    START_T_CLONED,  // folders and groups made, child started
    START_T_MOUNTS,  // private mounts made
    START_T_MAPPED,  // outer user namespace entered, maps written
    START_T_IMAGE,   // re-executed
    START_T_DROPPED,
    START_T_READY, // launcher answered
    START_N_MARKS,
};

// Of the PLAN_PREPARE that is sent before the service drops; nobody counts up to it.
#define START_AHEAD_TAG UINT32_MAX

// What the service has after its drop.
struct seat {
    int front;    // STREAM socket to the front
    int launcher; // SEQPACKET socket
    int launcher_pidfd;
    pid_t launcher_pid;
    int workspace_root;  // opened in the launcher's mount namespace (start/folders.h)
    int cache_root;      // likewise; -1: no package sets here
    uint32_t rung;       // enum plan_rung
    uint32_t downgrades; // enum plan_downgrade bits
    uint32_t landlock_abi;
    uint32_t ahead_network;         // of that sandbox
    uint32_t made_by;               // enum seat_launcher
    char bwrap[SEAT_PATH_MAX + 16]; // for messages: path and version, or ""
    char python[START_PYTHON_MAX];  // as the front gave it, or ""
    uint32_t n_uids;                // of workspaces: PLAN_UID_WORKSPACE_0 and so on
    uint32_t first_uid; // where to begin among them: instances that share one range spread
    uint32_t ahead_tag; // a sandbox is being prepared: PREPARE's answer is to come with this tag; 0
    int passed[START_MAX_PASSED]; // as the front gave them; n_passed
    uint32_t n_passed;
    uint32_t single_uid; // 1: every workspace belongs to inner root
    uint64_t marks_ns[START_N_MARKS];
};

// Front: claims an instance, makes folders and groups, starts the child, writes its id maps. 0 or
// -errno with *ret_error. `argv` (NULL-terminated) is what the re-executed image gets after its
// argv[0] (see start_is_inner()); `env` its whole environment: settings only, never the caller's
// own. Returns when the service serves (or could not: then nothing of the instance is left). The
// caller is single-threaded; SIGPIPE is ignored, SIGCHLD at its default, and the caller a child
// subreaper (prctl(2)) from here on: a launcher that outlives its service becomes its child. The
// service has a session of its own, /dev/null as 0 and 1, and the front's stderr for writing only.
int start_front(const struct start_config *c, char *const *argv, char *const *env,
                struct front *ret, struct start_error *ret_error);
// Front: closes f->service, waits until service and launcher are gone (they are killed when that
// takes more than START_END_MS), removes what is left of the instance. The service's wait status in
// *ret_status. 0 or -errno: then something stays for the next start to remove.
enum { START_END_MS = 10000 };
int start_finish(struct front *f, int *ret_status, struct start_error *ret_error);

// In main(), first thing: is this the re-executed image? Then start_inner() goes on with the steps
// of START_INNER and returns as the dropped service, or -errno after it told the front why: the
// caller just exits.
int start_is_inner(int argc, char **argv);
int start_inner(int argc, char **argv, struct seat *ret, struct start_error *ret_error);
// Service, at its end: closes the launcher's socket, waits for the launcher (bounded), removes
// one-shot workspaces that were left.
void start_seat_done(struct seat *s);
// Service, at its end, when the launcher was told to end and the front is there: does not wait, as
// the front does. A launcher that is gone before its time has left its workspaces to us, though.
void start_seat_leave(struct seat *s);

#endif
