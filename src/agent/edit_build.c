#include "agent/edit_build.h"
#include "base/fd.h"
#include "base/populate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct building {
    const struct text *t;
    const struct memory_view *v;
    struct edit_result *res;
    uint32_t known;     // lines of v that were passed
    size_t room;        // for shown lines
    uint32_t line;      // made so far
    bool open;          // the last line made has no ending
    bool made_last;     // the last line made is a new one
    size_t last_ending; // of it
};

static const char *own_ending(const struct text *t) { return t->lone_cr ? "\r" : "\n"; }

// What new lines at this place end with: as the first line they replace, else the one before, else
// the one behind, else the one before those (the last line has none).
static void ending_at(const struct text *t, uint32_t from, uint32_t to, char ret[3])
{
    uint32_t lines[] = {from < to ? from + 1 : 0, from, from + 1,
                        from > 0 ? from - 1 : 0}; // numbers; 0: none
    memcpy(ret, own_ending(t), 2);
    for (int i = 0; i < 4; i++) {
        if (lines[i] < 1 || lines[i] > t->count) {
            continue;
        }
        struct text_line line = text_line(t, lines[i]);
        if (line.ending_len > 0) {
            memcpy(ret, line.ending, line.ending_len);
            ret[line.ending_len] = 0;
            return;
        }
    }
}

// hash 0: not known.
static int add_shown(struct building *b, uint32_t line, uint32_t hash)
{
    struct edit_result *res = b->res;
    if (res->shown_n == b->room) {
        size_t room = b->room ? b->room * 2 : 256;
        uint32_t *lines = reallocarray(res->shown, room, sizeof *lines);
        res->shown = lines ? lines : res->shown;
        uint32_t *hashes = reallocarray(res->shown_hashes, room, sizeof *hashes);
        res->shown_hashes = hashes ? hashes : res->shown_hashes;
        if (!lines || !hashes) {
            return -ENOMEM;
        }
        b->room = room;
    }
    res->shown[res->shown_n] = line;
    res->shown_hashes[res->shown_n++] = hash;
    return 0;
}

static void end_open_line(struct building *b, const char *ending)
{
    if (b->open) {
        buf_puts(&b->res->data, ending);
        b->open = false;
    }
}

static int keep(struct building *b, uint32_t from, uint32_t to)
{
    const struct text *t = b->t;
    if (from == to) {
        return 0;
    }
    buf_add(&b->res->data, t->data + t->at[from], t->at[to] - t->at[from]);
    for (; b->v && b->known < b->v->n && b->v->lines[b->known].number <= to; b->known++) {
        const struct memory_line *line = &b->v->lines[b->known];
        if (line->number > from && line->shown &&
            add_shown(b, b->line + line->number - from, line->hash) < 0) {
            return -ENOMEM;
        }
    }
    b->line += to - from;
    b->open = text_line(t, to).ending_len == 0;
    b->made_last = false;
    return 0;
}

static int add_new(struct building *b, const struct edit_span *s)
{
    char ending[3];
    ending_at(b->t, s->from, s->to, ending);
    struct edit_change *change = &b->res->changes[s->edit];
    *change = (struct edit_change){.first = b->line + 1, .removed = s->to - s->from};
    for (size_t i = 0; i < s->text_len;) {
        const char *end = memchr(s->text + i, '\n', s->text_len - i);
        size_t len = (end ? (size_t)(end - s->text) : s->text_len) - i;
        size_t kept = !s->verbatim && len > 0 && s->text[i + len - 1] == '\r' ? len - 1 : len;
        end_open_line(b, ending);
        buf_add(&b->res->data, s->text + i, kept);
        buf_puts(&b->res->data, ending);
        b->line++;
        change->lines++;
        b->made_last = true;
        b->last_ending = strlen(ending);
        if (add_shown(b, b->line, 0) < 0) {
            return -ENOMEM;
        }
        i += len + 1;
    }
    return 0;
}

// The file had no final newline: it has none now, where its last line is a new one.
static void finish_end(struct building *b)
{
    const struct text *t = b->t;
    if (b->made_last && t->count > 0 && text_line(t, t->count).ending_len == 0) {
        b->res->data.len -= b->last_ending;
        b->res->data.data[b->res->data.len] = 0;
    }
}

int edit_build(const struct text *t, const struct edit_span *spans, uint32_t n,
               const struct memory_view *v, struct edit_result *ret, struct agent_refusal *ret_why)
{
    struct building b = {.t = t, .v = v, .res = ret};
    uint32_t at = 0;
    size_t whole = t->len;
    for (uint32_t i = 0; i < n; i++) {
        whole += spans[i].text_len;
    }
    if (whole <= TEXT_MAX_BYTES && !buf_reserve(&ret->data, whole)) { // endings are not counted
        populate(ret->data.data, whole);
    }
    buf_add(&ret->data, t->data, t->start);
    for (uint32_t i = 0; i <= n; i++) {
        uint32_t until = i < n ? spans[i].from : t->count;
        if (keep(&b, at, until) < 0 || (i < n && add_new(&b, &spans[i]) < 0)) {
            return -ENOMEM;
        }
        at = i < n ? spans[i].to : at;
    }
    if (ret->data.error == -EMSGSIZE) {
        return agent_refuse(ret_why, "the file would be larger than %d bytes. Nothing was changed",
                            TEXT_MAX_BYTES);
    }
    if (ret->data.error) {
        return ret->data.error;
    }
    finish_end(&b);
    int r = text_init(&ret->text, buf_text(&ret->data), ret->data.len, ret_why);
    if (r != 0) {
        return r;
    }
    memcpy(ret->tag, ret->text.tag, sizeof ret->tag);
    if (ret->text.count != b.line) {
        ret->shown_n = 0; // a CR of the new text counts otherwise now: what is where must be read
    }
    return 0;
}
