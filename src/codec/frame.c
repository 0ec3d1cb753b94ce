#include "codec/frame.h"

#include <errno.h>
#include <string.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

// Which type may go which way, and how long it may be at most.
static const struct frame_rule {
    uint32_t type;
    enum frame_direction direction;
    size_t max;
} frame_rules[] = {
    {FRAME_CODE, FRAME_TO_GUEST, 1 * MIB},
    {FRAME_PARAMS, FRAME_TO_GUEST, 8 * MIB},
    {FRAME_RUN, FRAME_TO_GUEST, 64 * KIB},
    {FRAME_RETURN, FRAME_TO_GUEST, 8 * MIB},
    {FRAME_RESULT, FRAME_FROM_GUEST, 8 * MIB},
    {FRAME_ERROR, FRAME_FROM_GUEST, 256 * KIB},
    {FRAME_DISPLAY, FRAME_FROM_GUEST, 8 * MIB},
    {FRAME_CALL, FRAME_FROM_GUEST, 8 * MIB},
    {FRAME_STDOUT, FRAME_TO_FRONT, 256 * KIB},
    {FRAME_STDERR, FRAME_TO_FRONT, 256 * KIB},
    {FRAME_ARTIFACT, FRAME_TO_FRONT, 64 * KIB},
    {FRAME_ARTIFACT_DATA, FRAME_TO_FRONT, 256 * KIB},
    // Both outputs at their largest (8 MB each) with every byte a control character (six bytes in
    // JSON), the result, which for a command is its output once more, and the rest.
    {FRAME_FINAL, FRAME_TO_FRONT, 160 * MIB},
    {FRAME_FDS, FRAME_FROM_FRONT, 4},
    {FRAME_JOB, FRAME_FROM_FRONT, 24 * MIB},
    {FRAME_CANCEL, FRAME_FROM_FRONT, 0},
};

// A reader that feeds what one read gave and then takes every whole frame never has more than this
// beyond the frame it waits for.
#define FEED_ROOM MIB

static const struct frame_rule *rule_of(enum frame_direction direction, uint32_t type)
{
    for (size_t i = 0; i < sizeof frame_rules / sizeof *frame_rules; i++) {
        if (frame_rules[i].type == type && frame_rules[i].direction == direction) {
            return &frame_rules[i];
        }
    }
    return NULL;
}

bool frame_allowed(enum frame_direction direction, uint32_t type)
{
    return rule_of(direction, type) != NULL;
}

size_t frame_bound(enum frame_direction direction, uint32_t type)
{
    const struct frame_rule *rule = rule_of(direction, type);
    return rule ? rule->max : 0;
}

static void put_u32(char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (char)(v >> (8 * i));
    }
}

static uint32_t get_u32(const char *p)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        v |= (uint32_t)(uint8_t)p[i] << (8 * i);
    }
    return v;
}

int frame_encode(struct buf *out, enum frame_direction direction, uint32_t type, uint32_t exec,
                 uint32_t seq, const void *payload, size_t len)
{
    const struct frame_rule *rule = rule_of(direction, type);
    if (!rule || exec == 0 || seq == 0) {
        return -EINVAL;
    }
    if (len > rule->max) {
        return -EMSGSIZE;
    }
    int e = buf_reserve(out, FRAME_HEADER_BYTES + len);
    if (e) {
        return e;
    }
    char header[FRAME_HEADER_BYTES];
    put_u32(header, FRAME_MAGIC);
    put_u32(header + 4, type);
    put_u32(header + 8, exec);
    put_u32(header + 12, seq);
    put_u32(header + 16, (uint32_t)len);
    buf_add(out, header, sizeof header);
    return buf_add(out, payload, len);
}

void frame_decoder_init(struct frame_decoder *d, enum frame_direction direction)
{
    size_t max = 0;
    for (size_t i = 0; i < sizeof frame_rules / sizeof *frame_rules; i++) {
        if (frame_rules[i].direction == direction && frame_rules[i].max > max) {
            max = frame_rules[i].max;
        }
    }
    *d = (struct frame_decoder){.direction = direction, .next_seq = 1};
    d->in = BUF_INIT(FRAME_HEADER_BYTES + max + FEED_ROOM);
}

void frame_decoder_done(struct frame_decoder *d)
{
    buf_free(&d->in);
    d->used = 0;
}

int frame_feed(struct frame_decoder *d, const void *data, size_t len)
{
    if (d->error) {
        return d->error;
    }
    if (d->used > 0) {
        d->in.len -= d->used;
        memmove(d->in.data, d->in.data + d->used, d->in.len);
        d->used = 0;
    }
    int e = buf_add(&d->in, data, len);
    return e ? d->error = e : 0;
}

// The header's own checks, in the order in which a reader of the bytes can know them.
static int check_header(const struct frame_decoder *d, const char *header, struct frame *f)
{
    if (get_u32(header) != FRAME_MAGIC) {
        return -EBADMSG;
    }
    *f = (struct frame){.type = get_u32(header + 4),
                        .exec = get_u32(header + 8),
                        .seq = get_u32(header + 12),
                        .length = get_u32(header + 16)};
    const struct frame_rule *rule = rule_of(d->direction, f->type);
    if (!rule || f->exec == 0 || f->seq != d->next_seq) {
        return -EBADMSG;
    }
    return f->length > rule->max ? -EMSGSIZE : 0;
}

int frame_next(struct frame_decoder *d, struct frame *ret)
{
    if (d->error) {
        return d->error;
    }
    size_t have = d->in.len - d->used;
    if (have < FRAME_HEADER_BYTES) {
        return 0;
    }
    struct frame f;
    int e = check_header(d, d->in.data + d->used, &f);
    if (e) {
        if (e == -EMSGSIZE) {
            *ret = f;
        }
        buf_free(&d->in);
        d->used = 0;
        return d->error = e;
    }
    if (have - FRAME_HEADER_BYTES < f.length) {
        return 0;
    }
    f.payload = d->in.data + d->used + FRAME_HEADER_BYTES;
    d->used += FRAME_HEADER_BYTES + f.length;
    d->next_seq++;
    *ret = f;
    return 1;
}
