// Frames of a hostile guest and of a front: in whatever pieces they come, the same frames come out
// or the same refusal, no frame is longer than its type's bound, and a refusal is for good.
#include "codec/frame.h"
#include "fuzz.h"

#include <string.h>

struct seen {
    uint32_t n, length, hash;
    int rc;
};

static uint32_t mix(uint32_t hash, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (uint8_t)data[i]) * UINT32_C(16777619);
    }
    return hash;
}

static struct seen decode(enum frame_direction direction, const uint8_t *data, size_t len,
                          size_t piece)
{
    struct seen s = {.hash = UINT32_C(2166136261)};
    struct frame_decoder d;
    struct frame f;
    frame_decoder_init(&d, direction);
    for (size_t at = 0; at < len && s.rc == 0; at += piece) {
        size_t n = len - at < piece ? len - at : piece;
        s.rc = frame_feed(&d, data + at, n);
        while (s.rc == 0 && (s.rc = frame_next(&d, &f)) == 1) {
            s.n++;
            MUST(f.seq == s.n && f.exec > 0);
            MUST(frame_allowed(direction, f.type) && f.length <= frame_bound(direction, f.type));
            s.length += f.length;
            s.hash = mix(s.hash, f.payload, f.length);
            s.rc = 0;
        }
    }
    if (s.rc < 0) {
        MUST(frame_next(&d, &f) < 0 && frame_feed(&d, "x", 1) < 0);
    }
    frame_decoder_done(&d);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 1 || len > 1 << 16) {
        return 0;
    }
    enum frame_direction direction = data[0] % 4;
    struct seen whole = decode(direction, data + 1, len - 1, len);
    struct seen bytes = decode(direction, data + 1, len - 1, 1 + data[0] / 4);
    MUST(memcmp(&whole, &bytes, sizeof whole) == 0);
    return 0;
}
