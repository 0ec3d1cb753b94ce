// selftest.h: does the isolation hold, here and now? Starts each interpreter, then runs ten
// attacks, as real jobs through the real pipeline. Runs inside a service: that of `isle doctor`,
// and that of `isle serve` at its start, which is not ready when something gets through.
#ifndef ISLE_DOCTOR_SELFTEST_H
#define ISLE_DOCTOR_SELFTEST_H

#include "base/buf.h"
#include "job/pipeline.h"

enum {
    SELFTEST_DETAIL_MAX = 240,
    SELFTEST_N_STARTS = 3, // interpreters
    SELFTEST_N_ATTACKS = 10,
    SELFTEST_N = SELFTEST_N_STARTS + SELFTEST_N_ATTACKS,
};

enum selftest_verdict {
    SELFTEST_NOT_RUN,
    SELFTEST_HELD,       // an attack got nothing; an interpreter starts
    SELFTEST_UNENFORCED, // what it attacks is not there on this host: a downgrade says which
    SELFTEST_ESCAPED,    // something got through
    SELFTEST_BROKEN,     // it could not be run, so nothing is known
    SELFTEST_N_VERDICTS,
};
extern const char *const selftest_verdict_names[SELFTEST_N_VERDICTS];

struct selftest_item {
    const char *name; // "python", "files"...
    const char *what; // one phrase for people
    bool is_attack;
    enum selftest_verdict verdict;
    char detail[SELFTEST_DETAIL_MAX]; // a version; what got through; why it could not be run
};

struct selftest; // on its way

// `planted`: a JSON object, the attacks' `params`: what was put outside for them to find (secret,
// secret_path, marker, port, abstract, shm_key, pid, hostname), all optional. config and planted
// must outlive it. `done` comes from the loop, once; selftest_free() may be called in it or before.
int selftest_start(struct loop *loop, struct runner *runner, const struct pipeline_config *config,
                   const char *planted, void (*done)(void *ctx), void *ctx, struct selftest **ret);
const struct selftest_item *selftest_items(const struct selftest *t); // SELFTEST_N
// enum plan_downgrade bits that its jobs had, the instance's included.
uint32_t selftest_downgrades(const struct selftest *t);
void selftest_free(struct selftest *t);

// Between service and front: the items as JSON, and back. 0 or -errno; *ret_items SELFTEST_N of
// them.
int selftest_write(struct buf *out, const struct selftest_item *items);
int selftest_read(const char *json, size_t len, struct selftest_item *ret_items);

// The rows before anything ran.
void selftest_items_init(struct selftest_item *ret_items);

#endif
