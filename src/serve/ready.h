// ready.h: may this service be given jobs? Answered by a real trial run: the self-test at the start
// (doctor/selftest.h), and again one small job whenever something has failed since. Nothing runs
// while nothing happens.
#ifndef ISLE_SERVE_READY_H
#define ISLE_SERVE_READY_H

#include "base/buf.h"
#include "job/pipeline.h"

#include <stdbool.h>
#include <stdint.h>

struct log;
struct ready;
struct store;

struct ready_config {
    struct loop *loop;
    struct runner *runner;
    const struct pipeline_config *pipeline;
    struct store *store;
    struct log *log;
    void (*changed)(void *ctx, bool ready); // from the loop, when the answer changes; may be NULL
    void *ctx;
};

// Starts the first trial. What config names must outlive it. 0 or -errno.
int ready_new(const struct ready_config *config, struct ready **ret);
void ready_free(struct ready *r);

// Also false while the store cannot write, and while the disk of the data folder is at its floor
// (workspace/disk.h), where jobs wait.
bool ready_now(const struct ready *r);
// One phrase for a person when it is not: "starting", what got through, what is broken.
const char *ready_why(const struct ready *r);
uint32_t ready_downgrades(const struct ready *r); // enum plan_downgrade bits
// A sandbox failed for a reason of its own (jobs.h's jobs_config.doubt): not
// ready until a trial run succeeds; asked for now, repeated with growing pauses.
void ready_doubt(struct ready *r, const char *why);
// Jobs are refused for another reason than the sandbox's, until NULL is given (SIGHUP).
void ready_disable(struct ready *r, const char *why);
// The launcher is gone, or the service ends: not ready for good. Whoever calls it has logged why.
void ready_never(struct ready *r, const char *why);
// {"ready":..., "why":..., "downgrades":[...], "trial":{"at":..., "took_ms":..., "runs":...}} for
// /readyz.
int ready_write(const struct ready *r, struct buf *out);

#endif
