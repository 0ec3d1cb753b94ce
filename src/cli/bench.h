// bench.h: what `isle bench` measures, and how its front and its service talk: fixed records over
// the front's socket, one answer per order. Both ends are the same program.
#ifndef ISLE_CLI_BENCH_H
#define ISLE_CLI_BENCH_H

#include "plan/plan.h"
#include "plan/seat.h"

#include <stdbool.h>
#include <stdint.h>

// What starts a program.
enum bench_kind {
    BENCH_BARE,     // fork, chroot into the runtime root, exec
    BENCH_BWRAP,    // Bubblewrap on the runtime root
    BENCH_ISLE,     // a job through the whole pipeline of a resident service
    BENCH_RUN,      // `isle run`: an instance made and removed for one job
    BENCH_LAUNCHER, // /bin/true straight by the launcher, fresh tmpfs workspace
    BENCH_PARKED,   // the same, in a sandbox that waits between the phases, workspace made before
    BENCH_N_KINDS,
};

enum bench_program { BENCH_TRUE, BENCH_PYTHON, BENCH_NODE, BENCH_N_PROGRAMS };

// The first word of the service's arguments: it serves orders instead of one job.
#define BENCH_SERVICE "bench"

enum { BENCH_MAX_IN_FLIGHT = 64 };

// `count` jobs, `in_flight` of them at once (LAUNCHER and PARKED: one).
struct bench_order {
    uint32_t kind, program; // enum
    uint32_t count, in_flight;
};

struct bench_answer {
    int32_t error;                   // -errno: the service could not do it
    uint32_t failed;                 // jobs that did not end as ok
    uint64_t ns;                     // from the order until the last result
    uint32_t downgrades;             // enum plan_downgrade bits of the instance
    char text[128];                  // of the first job that failed
    uint64_t marks_ns[PLAN_N_MARKS]; // LAUNCHER, PARKED: from the order on
};

// ---- Within the front: bench.c, bench_time.c, bench_tell.c

extern const struct verb verb_bench;

struct bench_row {
    double *ms; // n samples
    int n;
    double jobs_s; // with many in flight; 0: not measured
};

struct bench_report {
    struct bench_row row[BENCH_N_KINDS][BENCH_N_PROGRAMS];
    double *marks_us[2][PLAN_N_MARKS]; // LAUNCHER, PARKED; n_marks samples each
    int n_marks;
    int rounds, jobs, in_flight; // as asked for
    unsigned cpus;
    double load; // of the machine, before: processes that run or wait for a disk
    uint32_t downgrades;
    uint64_t pss_kb;
    bool detail;
    enum seat_launcher launcher; // of isle's sandboxes
    char bwrap[64];              // its version; "": not measured
    char bwrap_missing[200];     // why, when it was asked for and is not there
};

extern const char *const bench_kind_names[BENCH_N_KINDS]; // words of --only, and of the JSON
extern const char *const bench_program_names[BENCH_N_PROGRAMS];

void bench_tell(const struct bench_report *r, bool json);

// Programs that the front itself starts.
struct bench_outside {
    const char *root;            // the runtime root
    const char *bwrap;           // its path
    const char *workspace;       // a folder that bwrap binds
    const char *isle;            // this program
    enum seat_launcher launcher; // of its sandboxes
    int service_pid;             // the other children of this process: no job's end
    int launcher_pid;
};

// `count` of them, `in_flight` at once. 0 with *ret_ns; -EIO: one failed (its wait status in
// *ret_status); -errno.
int bench_time(const struct bench_outside *o, enum bench_kind kind, enum bench_program program,
               uint32_t count, uint32_t in_flight, uint64_t *ret_ns, int *ret_status);

#endif
