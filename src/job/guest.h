// guest.h: the talk with the wrapper inside a sandbox: code, params and RUN go in as the guest
// reads, one RESULT or ERROR comes back. What comes is hostile: it is decoded within bounds, and
// anything but one well-formed end is a failure of the program, never of isle.
#ifndef ISLE_JOB_GUEST_H
#define ISLE_JOB_GUEST_H

#include "codec/frame.h"
#include "io/loop.h"
#include "io/outbox.h"
#include "model/job.h"

enum guest_verdict {
    GUEST_SILENT,    // nothing so far
    GUEST_RESULT,    // `value` is strict JSON
    GUEST_ERROR,     // the program failed: `error`
    GUEST_TOO_LARGE, // a result above the bound: `announced` bytes
    GUEST_MALFORMED, // `error` says what was wrong
};

enum { GUEST_ERROR_BYTES = 2000, GUEST_RUN_BYTES = 1024 };

struct guest {
    struct loop *loop;
    struct loop_watch watch;
    int fd; // -1: closed
    struct outbox out;
    struct frame_decoder in;
    enum guest_verdict verdict;
    char *value; // owned
    size_t value_len;
    char *error; // owned; one line
    uint32_t announced;
    bool unchecked; // the value is long, and may be no JSON: guest_check(), guest_judge()
    char malformed[160];
};

// A zeroed guest with fd -1 is closed. Makes the socket pair, sends what the socket takes at once.
// *ret_theirs is the guest's end, owned by the caller. 0 or -errno.
int guest_open(struct guest *g, struct loop *loop, const struct job *j, int *ret_theirs);
// Nobody writes any more: takes what is left, without waiting.
void guest_drain(struct guest *g);
// Reads a long value: on any thread, while nobody else uses the guest.
void guest_check(struct guest *g);
// What that has found becomes the verdict. Harmless where nothing was to be checked.
void guest_judge(struct guest *g);
void guest_done(struct guest *g); // closes and frees all

#endif
