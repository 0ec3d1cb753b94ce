// runner.h: the launcher, as the service sees it: requests out, answers dispatched to whoever
// waits for them, all on the event loop. The launcher's death ends every call with an END of
// error EPIPE.
#ifndef ISLE_JOB_RUNNER_H
#define ISLE_JOB_RUNNER_H

#include "io/loop.h"
#include "plan/plan.h"

#include <stddef.h>
#include <stdint.h>

struct runner;

// One request in flight, in its owner's struct. It ends with the record that is the last of its op
// (END for START and PREPARE, else the only answer), or by runner_forget().
struct runner_call {
    // `fd` (or -1) came with the record and is the callee's. r->error of a lost launcher is EPIPE
    // and r->op PLAN_END: then nothing follows.
    void (*answer)(struct runner_call *c, const struct plan_record *r, int fd);
    void *ctx;
    uint32_t tag; // 0: not in flight
    struct runner_call *next;
};
// The END of a sandbox whose launcher is gone, or as good as gone.
#define RUNNER_LOST_RECORD                                                                         \
    ((struct plan_record){.op = PLAN_END,                                                          \
                          .error = EPIPE,                                                          \
                          .status = -1,                                                            \
                          .cpu_ns = PLAN_UNKNOWN,                                                  \
                          .memory_peak_bytes = PLAN_UNKNOWN,                                       \
                          .pids_peak = PLAN_UNKNOWN})
#define RUNNER_CALL_INIT(handler, context)                                                         \
    ((struct runner_call){.answer = (handler), .ctx = (context)})

// `socket` and `pidfd` stay the caller's. on_lost (may be NULL) comes once, after every call has
// ended. 0 or -errno.
int runner_new(struct loop *loop, int socket, int pidfd, void (*on_lost)(void *ctx), void *ctx,
               struct runner **ret);
void runner_free(struct runner *r);

// Sends a request; q->tag is filled in. With call NULL its answer is dropped. Requests without
// descriptors wait in a queue while the socket is full, others fail then with -EAGAIN. 0 or -errno
// (-EPIPE: the launcher is gone); then the call is not in flight.
int runner_send(struct runner *r, struct plan_request *q, const int *fds, int n,
                struct runner_call *call);
// The answer is no longer wanted (its record and descriptor are dropped). Harmless when not in
// flight.
void runner_forget(struct runner *r, struct runner_call *call);

// One prepared sandbox that waits for a job. It was asked for with `tag` over the runner's socket,
// and its answer is to come.
void runner_expect_parked(struct runner *r, uint32_t tag);
// From now on there is to be one, with this network (enum plan_network): the next is asked for as
// soon as a program has begun, while fewer than `below` calls are in flight (0: no longer): with
// more, no processor is free to make it beside them. One that waited for more than a minute is
// given to no job.
void runner_keep_parked(struct runner *r, uint32_t network, unsigned below);
// Takes it: 0 with its id in *ret (0: there is none, or no more, or another one waits for it), or
// -EAGAIN while the answer is to come: then `ready` is called once when to ask again (also when the
// launcher is lost).
int runner_take_parked(struct runner *r, uint32_t *ret, void (*ready)(void *ctx), void *ctx);
// Whoever waits with this ctx waits no longer.
void runner_leave_parked(struct runner *r, const void *ctx);
// How often runner_take_parked() gave one, and had none to give.
struct runner_stats {
    uint64_t hits, misses;
};
// Of no runner, NULL: nothing.
void runner_stats(const struct runner *r, struct runner_stats *ret);

// Nothing will be asked any more: the launcher ends, and its end is no loss. Calls in flight are
// not answered.
void runner_finish(struct runner *r);

// The requests that a job needs beside START.
int runner_signal(struct runner *r, uint32_t id, int signal); // to every process of sandbox id
int runner_kill(struct runner *r, uint32_t id);
int runner_tmpfs(struct runner *r, uint32_t uid, uint64_t bytes, uint64_t inodes,
                 struct runner_call *call);
int runner_tmpfs_drop(struct runner *r, uint32_t workspace_no);

#endif
