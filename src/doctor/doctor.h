// doctor.h: what isle needs of a host, row by row: found or missing, what its lack costs, how to
// mend it. The tables are in doctor.c and settings.c; a row is told from the host's files, from
// tries, and from the self-test.
#ifndef ISLE_DOCTOR_DOCTOR_H
#define ISLE_DOCTOR_DOCTOR_H

#include "conf/conf.h"
#include "doctor/trial.h"
#include "host/host.h"
#include "host/refusal.h"
#include "host/tries.h"
#include "start/mode.h"

enum doctor_state {
    DOCTOR_FINE,
    DOCTOR_FACT,     // worth knowing, nothing to do
    DOCTOR_ADVICE,   // isle is whole; the host could be safer or faster
    DOCTOR_DEGRADED, // jobs run, with a downgrade that results list, or some jobs cannot
    DOCTOR_FAILED,   // jobs cannot be isolated: none runs
    DOCTOR_N_STATES,
};
extern const char *const doctor_state_names[DOCTOR_N_STATES]; // "fine", "fact"...

struct doctor_row {
    const char *group, *name; // "namespaces", "user namespaces"
    enum doctor_state state;
    char found[240]; // one line: what is there
    char cost[240];  // what its lack costs; "" when nothing is lacking
    char fix[480];   // how to mend it; "" likewise
};

enum { DOCTOR_MAX_ROWS = 96 };

struct doctor {
    // in
    int root; // "/", or a test's tree
    const struct conf *conf;
    const char *libexec_dir;
    const char *python;        // of the settings, as jobs see it; NULL or "": the usual one
    bool wrapped;              // Bubblewrap is the launcher
    const struct trial *trial; // NULL: the self-test was not asked for
    // made by doctor_examine()
    struct host host;
    struct tries tries; // both given by a test that sets `tried`
    struct start_mode mode;
    bool tried;
    struct refusal own, plain; // of user namespaces: for this process, for users without rights
    struct doctor_row rows[DOCTOR_MAX_ROWS];
    size_t n;
};

// Fills everything below "made by". Single-threaded callers (it forks).
void doctor_examine(struct doctor *d);

// The worst state of all rows.
enum doctor_state doctor_worst(const struct doctor *d);

// A row that says `state`; cost and fix are those of the table unless set here ("" clears).
// For the files of this folder.
struct doctor_row *doctor_add(struct doctor *d, const char *group, const char *name);
void doctor_say(char *to, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define DOCTOR_FOUND(row, ...) doctor_say((row)->found, sizeof(row)->found, __VA_ARGS__)
#define DOCTOR_COST(row, ...) doctor_say((row)->cost, sizeof(row)->cost, __VA_ARGS__)
#define DOCTOR_FIX(row, ...) doctor_say((row)->fix, sizeof(row)->fix, __VA_ARGS__)

void doctor_settings(struct doctor *d); // settings.c
void doctor_programs(struct doctor *d); // programs.c
void doctor_trial(struct doctor *d);    // outcome.c

#endif
