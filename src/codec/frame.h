// frame.h: typed, sequenced, length-bounded frames between the service and the guest (the wrapper
// or interpreter inside a sandbox), over one SOCK_STREAM Unix socket that the guest has as
// descriptor 3; and between the service and the front of `isle run`, over another.
//
// What a guest sends is hostile: the decoder looks at no payload, allocates nothing before the
// length was checked against the type's bound, and refuses a wrong magic, direction, sequence or
// length for good. Verdicts (exit, signal, time, memory) never come from here.
#ifndef ISLE_CODEC_FRAME_H
#define ISLE_CODEC_FRAME_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum frame_type {
    // service -> guest
    FRAME_CODE = 1, // source text, UTF-8
    FRAME_PARAMS,   // JSON
    FRAME_RUN,      // JSON object of options: {"name":"snippet.py","mode":"snippet"}; the execution
                    // begins
    FRAME_RETURN,   // JSON, answer to a CALL (same exec, payload has the call's id)
    // guest -> service
    FRAME_RESULT = 32, // JSON: the value; ends the execution
    FRAME_ERROR,       // JSON {"type","message","path"?}: the program failed; ends the execution
    FRAME_DISPLAY,     // JSON: rich output of a stateful context (later work)
    FRAME_CALL,        // JSON: the program asks the service (later work)
    // service -> front (`isle run`)
    FRAME_STDOUT = 64,
    FRAME_STDERR,
    FRAME_ARTIFACT,      // JSON {"name","size","mode"}: begins one
    FRAME_ARTIFACT_DATA, // its bytes
    FRAME_FINAL,         // JSON: the SandboxResult; the last frame
    // front -> service
    FRAME_FDS = 96, // u32 count; that many descriptors (at most FRAME_MAX_FDS) come with the
                    // frame's first byte (SCM_RIGHTS)
    FRAME_JOB,      // JSON: the job, as every entry of the product takes it (model/job.h); the
                    // descriptors it names by index are those of all FDS frames before it, in order
    FRAME_CANCEL,   // empty
};

enum frame_direction { FRAME_TO_GUEST, FRAME_FROM_GUEST, FRAME_TO_FRONT, FRAME_FROM_FRONT };

#define FRAME_MAGIC UINT32_C(0x4c534931) // bytes "1ISL" little-endian on the wire
enum { FRAME_HEADER_BYTES = 20, FRAME_MAX_FDS = 16 };

// On the wire, little-endian: u32 magic, u32 type, u32 exec (execution, from 1), u32 seq (from 1,
// +1 each, per direction), u32 length, then the payload.
struct frame {
    uint32_t type, exec, seq, length;
    const char *payload; // into the decoder's buffer; valid until the next call
};

struct frame_decoder {
    enum frame_direction direction;
    uint32_t next_seq;
    struct buf in;
    size_t used; // bytes of `in` already handed out
    int error;   // sticky
};

// May a frame of this type go this way?
bool frame_allowed(enum frame_direction direction, uint32_t type);
// Largest payload of a type in this direction; 0 for an empty one (CANCEL) and for a type that may
// not come that way.
size_t frame_bound(enum frame_direction direction, uint32_t type);

// Appends one frame to `out`. 0 or -errno: -EMSGSIZE past the type's bound, -EINVAL for a type that
// does not go this way and for exec or seq 0. `out` is unchanged on failure.
int frame_encode(struct buf *out, enum frame_direction direction, uint32_t type, uint32_t exec,
                 uint32_t seq, const void *payload, size_t len);

void frame_decoder_init(struct frame_decoder *d, enum frame_direction direction);
void frame_decoder_done(struct frame_decoder *d);
// Feeds bytes as they come (at most 1 MiB a time; take every whole frame before the next). 0 or the
// sticky error.
int frame_feed(struct frame_decoder *d, const void *data, size_t len);
// Next whole frame: 1 and *ret, 0 if more bytes are needed, -EBADMSG (malformed), -EMSGSIZE (too
// long; ret->type and ret->length say what was announced).
int frame_next(struct frame_decoder *d, struct frame *ret);

#endif
