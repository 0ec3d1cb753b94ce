// note.h: what the processes of a sandbox tell the launcher. Both programs are of one build.
#ifndef ISLE_GUEST_NOTE_H
#define ISLE_GUEST_NOTE_H

#include <stdint.h>

enum note_kind {
    NOTE_PARKED = 1, // pid 2: phase one is done; the sender's credentials are its pid; `error`: the
                     // loopback may not be brought up here (positive errno)
    NOTE_MAP,        // pid 2: write my id maps; answered by one byte, 0 when done
    NOTE_ERROR,      // either: `step` failed with `error` (positive errno)
    NOTE_REPORT,     // shim: pid 2 ended with `status`
    NOTE_INSIDE,     // first process in Bubblewrap: all is as it was asked for; step and status are
                     // the halves of the nonce in its passport
    NOTE_EXEC,       // pid 2 there: executes now; step and status are the halves of the time in ns
};

struct note {
    uint32_t kind;
    uint32_t step;
    int32_t error;
    int32_t status;
};

// The report descriptor in pid 1, from its birth to its end.
enum { NOTE_SHIM_FD = 3 };

#endif
