#include "agent/memory.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void view_done(struct memory_view *v)
{
    free(v->path);
    free(v->lines);
    *v = (struct memory_view){0};
}

void memory_done(struct agent_memory *m)
{
    for (uint32_t i = 0; i < m->n; i++) {
        view_done(&m->views[i]);
    }
    for (uint32_t i = 0; i < m->registers_n; i++) {
        free(m->registers[i].data);
    }
    *m = (struct agent_memory){0};
}

static void forget(struct agent_memory *m, uint32_t i)
{
    view_done(&m->views[i]);
    memmove(&m->views[i], &m->views[i + 1], (m->n - i - 1) * sizeof m->views[0]);
    m->n--;
}

static void make_room(struct agent_memory *m, uint32_t lines)
{
    uint32_t total = lines;
    for (uint32_t i = 0; i < m->n; i++) {
        total += m->views[i].n;
    }
    while (m->n > 0 && (m->n == MEMORY_VIEWS_MAX || total > MEMORY_TOTAL_MAX)) {
        total -= m->views[0].n;
        forget(m, 0);
    }
}

struct shown {
    const uint32_t *numbers, *hashes; // hashes: NULL, or of each line; 0: not known
    size_t n;
};

// The shown lines with what is around them: ascending, each once.
static size_t with_context(const struct text *t, const struct shown *s, struct memory_line *ret)
{
    size_t made = 0, at = 0; // at: the first shown line that is not before `line`
    uint32_t next = 1;       // not yet looked at
    for (size_t i = 0; i < s->n; i++) {
        uint32_t number = s->numbers[i];
        uint32_t from = number > MEMORY_CONTEXT ? number - MEMORY_CONTEXT : 1;
        uint32_t to = t->count - number < MEMORY_CONTEXT ? t->count : number + MEMORY_CONTEXT;
        for (uint32_t line = from > next ? from : next; line <= to; line++) {
            while (at < s->n && s->numbers[at] < line) {
                at++;
            }
            bool shown = at < s->n && s->numbers[at] == line;
            uint32_t hash = shown && s->hashes ? s->hashes[at] : 0;
            ret[made++] = (struct memory_line){line, hash ? hash : text_line_hash(t, line), shown};
        }
        next = to + 1 > next ? to + 1 : next;
    }
    return made;
}

static size_t merge(const struct memory_line *a, size_t a_n, const struct memory_line *b,
                    size_t b_n, struct memory_line *ret)
{
    size_t i = 0, j = 0, n = 0;
    while (i < a_n || j < b_n) {
        if (j == b_n || (i < a_n && a[i].number < b[j].number)) {
            ret[n++] = a[i++];
        } else if (i == a_n || b[j].number < a[i].number) {
            ret[n++] = b[j++];
        } else {
            ret[n] = a[i++];
            ret[n++].shown |= b[j++].shown;
        }
    }
    return n;
}

int memory_show(struct agent_memory *m, const char *path, const struct text *t,
                const uint32_t *numbers, const uint32_t *hashes, size_t n)
{
    if (strlen(path) > MEMORY_PATH_MAX) {
        return -EINVAL;
    }
    size_t most = MEMORY_LINES_MAX / (2 * MEMORY_CONTEXT + 1);
    bool dense = n > 0 && numbers[n - 1] - numbers[0] + 1 == n; // one range: context at its ends
    most = dense ? MEMORY_LINES_MAX - 2 * MEMORY_CONTEXT : most;
    if (n > most) {
        numbers += n - most;
        hashes = hashes ? hashes + (n - most) : NULL;
        n = most;
    }
    AUTO_FREE struct memory_line *fresh = malloc((n * 5 + 1) * sizeof *fresh);
    AUTO_FREE char *name = strdup(path);
    if (!fresh || !name) {
        return -ENOMEM;
    }
    size_t fresh_n = with_context(t, &(struct shown){numbers, hashes, n}, fresh);
    uint32_t old = m->n;
    for (uint32_t i = 0; i < m->n; i++) {
        old = m->views[i].hash == t->hash && strcmp(m->views[i].path, path) == 0 ? i : old;
    }
    size_t old_n = old < m->n ? m->views[old].n : 0;
    AUTO_FREE struct memory_line *all = malloc((old_n + fresh_n + 1) * sizeof *all);
    if (!all) {
        return -ENOMEM;
    }
    size_t all_n = merge(old_n ? m->views[old].lines : NULL, old_n, fresh, fresh_n, all);
    if (all_n > MEMORY_LINES_MAX) { // what was shown before is forgotten
        memcpy(all, fresh, fresh_n * sizeof *fresh);
        all_n = fresh_n;
    }
    if (old < m->n) {
        forget(m, old);
    }
    make_room(m, (uint32_t)all_n);
    struct memory_view *v = &m->views[m->n++];
    *v = (struct memory_view){name, t->hash, "", t->count, all, (uint32_t)all_n};
    memcpy(v->tag, t->tag, sizeof v->tag);
    name = NULL;
    all = NULL;
    return 0;
}

const struct memory_view *memory_find(const struct agent_memory *m, const char *path,
                                      const char *tag)
{
    for (uint32_t i = m->n; i-- > 0;) {
        if (strcmp(m->views[i].tag, tag) == 0 && strcmp(m->views[i].path, path) == 0) {
            return &m->views[i];
        }
    }
    return NULL;
}

const struct memory_line *memory_line(const struct memory_view *v, uint32_t number)
{
    uint32_t low = 0, high = v->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (v->lines[mid].number < number) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < v->n && v->lines[low].number == number ? &v->lines[low] : NULL;
}

const struct memory_register *memory_register(const struct agent_memory *m, const char *name)
{
    for (uint32_t i = 0; i < m->registers_n; i++) {
        if (strcmp(m->registers[i].name, name) == 0) {
            return &m->registers[i];
        }
    }
    return NULL;
}

int memory_set_register(struct agent_memory *m, const char *name, char *data, uint32_t len)
{
    uint64_t total = len;
    uint32_t at = m->registers_n;
    for (uint32_t i = 0; i < m->registers_n; i++) {
        bool same = strcmp(m->registers[i].name, name) == 0;
        at = same ? i : at;
        total += same ? 0 : m->registers[i].len;
    }
    if (at == MEMORY_REGISTERS_MAX || total > MEMORY_REGISTER_BYTES_MAX ||
        strlen(name) > MEMORY_REGISTER_NAME_MAX) {
        return -ENOSPC;
    }
    if (at == m->registers_n) {
        m->registers_n++;
    } else {
        free(m->registers[at].data);
    }
    m->registers[at] = (struct memory_register){.data = data, .len = len};
    memcpy(m->registers[at].name, name, strlen(name) + 1);
    return 0;
}
