// trial.h: the front's side of the self-test: a real start, as `isle run` makes it, with things
// planted on the host for the attacks to find; afterwards a look from outside at what they left.
#ifndef ISLE_DOCTOR_TRIAL_H
#define ISLE_DOCTOR_TRIAL_H

#include "doctor/selftest.h"
#include "start/start.h"

// argv[1] of the image that start_front() executes again for it. That service takes one FRAME_JOB,
// what selftest_start() calls `planted`, runs the self-test, and sends trial_write() as
// FRAME_FINAL.
#define TRIAL_WORD "self-test"

// What a start shows of the host.
struct trial_seat {
    uint32_t rung, downgrades, landlock_abi;
};

struct trial {
    bool started; // the service served: else why says what failed
    struct start_error why;
    struct trial_seat seat;
    struct selftest_item items[SELFTEST_N];
    uint64_t start_ms, total_ms;
};

// Of the service. 0 or -errno.
int trial_write(struct buf *out, const struct trial_seat *seat, const struct selftest_item *items);

// Of the front: single-threaded, with `environment` as start_front() takes it; `signals`: a
// signalfd of what ends it, or -1. Bounded in time. 0, or -errno when a signal came (-EINTR) or it
// cannot be tried at all; a start that fails is a finding, not an error.
int trial_run(const struct start_config *config, char *const *environment, int signals,
              struct trial *ret);

#endif
