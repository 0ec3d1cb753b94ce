#include "agent/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_BYTES = 256, LINE_BYTES = 24 };

static uint64_t mix(uint64_t h, uint64_t word)
{
    __uint128_t product = (__uint128_t)(h ^ word) * 0x9e3779b97f4a7c15u;
    return ((uint64_t)product ^ (uint64_t)(product >> 64)) + ((h << 23) | (h >> 41));
}

static uint64_t word_at(const char *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return word;
}

// Not against an enemy: who could make two contents collide would deceive his own session only.
// Eight bytes at a time, and of what is long four times eight side by side, because a file is
// hashed with every call.
uint64_t text_hash(const char *data, size_t len)
{
    uint64_t h = 0x51ed270b35a1f4c7u ^ len, word;
    size_t i = 0;
    if (len >= LONG_BYTES) {
        uint64_t a = h, b = h + 1, c = h + 2, d = h + 3;
        for (; i + 32 <= len; i += 32) {
            a = mix(a, word_at(data + i));
            b = mix(b, word_at(data + i + 8));
            c = mix(c, word_at(data + i + 16));
            d = mix(d, word_at(data + i + 24));
        }
        h = mix(mix(mix(a, b), c), d);
    }
    for (; i + 8 <= len; i += 8) {
        memcpy(&word, data + i, 8);
        h = mix(h, word);
    }
    word = 0;
    if (i < len) {
        memcpy(&word, data + i, len - i);
    }
    return mix(mix(h, word), 0xd6e8feb86659fd93u);
}

void text_tag(uint64_t hash, char ret[TEXT_TAG_SIZE])
{
    snprintf(ret, TEXT_TAG_SIZE, "%04x", (unsigned)(hash >> 48));
}

// The place behind the line that begins at i.
static size_t line_end(const struct text *t, size_t i)
{
    const char *p = memchr(t->data + i, t->lone_cr ? '\r' : '\n', t->len - i);
    return p ? (size_t)(p - t->data) + 1 : t->len;
}

// Lines of LINE_BYTES are what there is room for at first.
static int index_lines(struct text *t, struct agent_refusal *ret_why)
{
    size_t room = t->len / LINE_BYTES + 16, count = 0;
    uint32_t *at = malloc((room + 1) * sizeof *at);
    for (size_t i = t->start; at && i < t->len; i = line_end(t, i)) {
        if (count == TEXT_MAX_LINES) {
            free(at);
            return agent_refuse(ret_why,
                                "the file has more than %d lines, which is more than this tool "
                                "takes: use bash (sed -n, head, tail)",
                                TEXT_MAX_LINES);
        }
        if (count == room) {
            room *= 2;
            uint32_t *grown = reallocarray(at, room + 1, sizeof *at);
            if (!grown) {
                free(at);
                return -ENOMEM;
            }
            at = grown;
        }
        at[count++] = (uint32_t)i;
    }
    if (!at) {
        return -ENOMEM;
    }
    at[count] = (uint32_t)t->len;
    t->at = at;
    t->count = (uint32_t)count;
    return 0;
}

int text_init(struct text *t, const char *data, size_t len, struct agent_refusal *ret_why)
{
    if (len > TEXT_MAX_BYTES) {
        return agent_refuse(ret_why,
                            "the file has %zu bytes, and this tool takes %d: use bash (sed -n, "
                            "head, tail, grep)",
                            len, TEXT_MAX_BYTES);
    }
    if (len > 0 && memchr(data, 0, len)) {
        return agent_refuse(ret_why,
                            "the file is binary (it has a NUL byte, %zu bytes in all): "
                            "use bash or Python for it",
                            len);
    }
    struct text made = {.data = data ? data : "", .len = len};
    made.start = len >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    made.lone_cr = len > 0 && !memchr(data, '\n', len) && memchr(data, '\r', len);
    int r = index_lines(&made, ret_why);
    if (r != 0) {
        return r;
    }
    made.hash = text_hash(made.data, len);
    text_tag(made.hash, made.tag);
    *t = made;
    return 0;
}

void text_done(struct text *t)
{
    free(t->at);
    *t = (struct text){0};
}

struct text_line text_line(const struct text *t, uint32_t number)
{
    const char *data = t->data + t->at[number - 1];
    size_t whole = t->at[number] - t->at[number - 1], ending = 0;
    if (whole > 0 && data[whole - 1] == (t->lone_cr ? '\r' : '\n')) {
        ending = !t->lone_cr && whole > 1 && data[whole - 2] == '\r' ? 2 : 1;
    }
    return (struct text_line){data, whole - ending, data + whole - ending, ending};
}

static bool tells(const char *data, size_t len)
{
    int seen = 0;
    for (size_t i = 0; i < len && seen < 4; i++) {
        unsigned char c = (unsigned char)data[i];
        seen += (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c >= 0x80;
    }
    return seen == 4;
}

uint32_t text_line_hash(const struct text *t, uint32_t number)
{
    struct text_line line = text_line(t, number);
    return ((uint32_t)(text_hash(line.data, line.len) >> 32) & ~1u) | tells(line.data, line.len);
}
