// A memory as bytes and back. Numbers are little-endian, 32 bits wide; a line's number has its
// highest bit set where the line was shown.
#include "agent/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char MAGIC[] = "isle-agent-1";
static const uint32_t SHOWN = 1u << 31;

static void put(struct buf *out, uint32_t value)
{
    char bytes[4] = {(char)value, (char)(value >> 8), (char)(value >> 16), (char)(value >> 24)};
    buf_add(out, bytes, sizeof bytes);
}

static void put_bytes(struct buf *out, const char *data, size_t len)
{
    put(out, (uint32_t)len);
    buf_add(out, data, len);
}

int memory_write(const struct agent_memory *m, struct buf *out)
{
    buf_add(out, MAGIC, sizeof MAGIC);
    put(out, m->n);
    for (uint32_t i = 0; i < m->n; i++) {
        const struct memory_view *v = &m->views[i];
        put_bytes(out, v->path, strlen(v->path));
        put(out, (uint32_t)v->hash);
        put(out, (uint32_t)(v->hash >> 32));
        put(out, v->count);
        put(out, v->n);
        for (uint32_t k = 0; k < v->n; k++) {
            put(out, v->lines[k].number | (v->lines[k].shown ? SHOWN : 0));
            put(out, v->lines[k].hash);
        }
    }
    put(out, m->registers_n);
    for (uint32_t i = 0; i < m->registers_n; i++) {
        put_bytes(out, m->registers[i].name, strlen(m->registers[i].name));
        put_bytes(out, m->registers[i].data, m->registers[i].len);
    }
    return out->error;
}

struct source {
    const char *data;
    size_t left;
    int error;
};

static const char *take_bytes(struct source *s, size_t len)
{
    if (s->left < len) {
        s->error = s->error ? s->error : -EBADMSG;
        s->left = 0;
        return NULL;
    }
    const char *data = s->data;
    s->data += len;
    s->left -= len;
    return data;
}

static uint32_t take(struct source *s)
{
    unsigned char b[4] = {0};
    const char *data = take_bytes(s, sizeof b);
    if (data) {
        memcpy(b, data, sizeof b);
    }
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

// A counted string as malloc'ed, NUL-terminated bytes; NULL: s->error says why.
static char *take_string(struct source *s, uint32_t max, bool text, uint32_t *ret_len)
{
    uint32_t len = take(s);
    const char *data = len <= max ? take_bytes(s, len) : NULL;
    if (!data || (text && len > 0 && memchr(data, 0, len))) {
        s->error = -EBADMSG;
        return NULL;
    }
    char *copy = malloc((size_t)len + 1);
    if (!copy) {
        s->error = -ENOMEM;
        return NULL;
    }
    memcpy(copy, data, len);
    copy[len] = 0;
    *ret_len = len;
    return copy;
}

static void take_view(struct source *s, struct memory_view *v, uint32_t *total)
{
    uint32_t len;
    v->path = take_string(s, MEMORY_PATH_MAX, true, &len);
    v->hash = take(s);
    v->hash |= (uint64_t)take(s) << 32;
    text_tag(v->hash, v->tag);
    v->count = take(s);
    uint32_t n = take(s);
    *total += n <= MEMORY_LINES_MAX ? n : 0;
    if (s->error || n > MEMORY_LINES_MAX || *total > MEMORY_TOTAL_MAX || s->left / 8 < n) {
        s->error = s->error ? s->error : -EBADMSG;
        return;
    }
    v->lines = malloc((n + 1) * sizeof *v->lines);
    if (!v->lines) {
        s->error = -ENOMEM;
        return;
    }
    uint32_t before = 0;
    for (; v->n < n; v->n++) {
        uint32_t number = take(s);
        v->lines[v->n] = (struct memory_line){number & ~SHOWN, take(s), number & SHOWN};
        if (v->lines[v->n].number <= before || v->lines[v->n].number > v->count) {
            s->error = -EBADMSG;
        }
        before = v->lines[v->n].number;
    }
}

static void take_register(struct source *s, struct agent_memory *m)
{
    uint32_t name_len, len;
    char *name = take_string(s, MEMORY_REGISTER_NAME_MAX, true, &name_len);
    char *data = take_string(s, MEMORY_REGISTER_BYTES_MAX, false, &len);
    if (!name || !data || memory_register(m, name) ||
        memory_set_register(m, name, data, len) != 0) {
        s->error = s->error ? s->error : -EBADMSG;
        free(data);
    }
    free(name);
}

int memory_read(const char *data, size_t len, struct agent_memory *ret_m)
{
    struct source s = {data, len, 0};
    struct agent_memory *m = calloc(1, sizeof *m);
    if (!m) {
        return -ENOMEM;
    }
    const char *magic = take_bytes(&s, sizeof MAGIC);
    uint32_t views = take(&s), total = 0;
    if (!magic || memcmp(magic, MAGIC, sizeof MAGIC) != 0 || views > MEMORY_VIEWS_MAX) {
        s.error = -EBADMSG;
    }
    for (uint32_t i = 0; i < views && !s.error; i++) {
        take_view(&s, &m->views[m->n++], &total);
    }
    uint32_t registers = take(&s);
    if (registers > MEMORY_REGISTERS_MAX) {
        s.error = s.error ? s.error : -EBADMSG;
    }
    for (uint32_t i = 0; i < registers && !s.error; i++) {
        take_register(&s, m);
    }
    if (!s.error && s.left > 0) {
        s.error = -EBADMSG;
    }
    if (s.error) {
        memory_done(m);
    } else {
        *ret_m = *m;
    }
    free(m);
    return s.error;
}
