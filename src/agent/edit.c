#include "agent/edit.h"
#include "agent/block.h"
#include "agent/edit_build.h"
#include "agent/locate.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct editing {
    const struct text *t;
    const char *path;
    const struct agent_memory *m;
    const struct edit_request *r;
    struct locate locate; // .v: the version that the anchors name
    bool same;            // it is t
    size_t block_bytes;   // read for blocks so far
    struct edit_span spans[EDIT_MAX];
    struct edit_result *res;
    struct agent_refusal *why;
};

// Every refusal of an edit: which, why, and that nothing has happened.
#define REFUSE(g, i, format, ...)                                                                  \
    agent_refuse((g)->why, "edit %u (%s): " format ". Nothing was changed", (i) + 1,               \
                 edit_kinds[(g)->r->edits[i].op].name, ##__VA_ARGS__)

// Which version the anchors name: all of them the same.
static int find_version(struct editing *g)
{
    char tag[TEXT_TAG_SIZE];
    memcpy(tag, g->r->tag, sizeof tag);
    for (uint32_t i = 0; i < g->r->n; i++) {
        const struct edit *e = &g->r->edits[i];
        const struct edit_anchor *anchors[] = {&e->line, &e->end};
        for (int k = 0; k < 2; k++) {
            if (!anchors[k]->line) {
                continue;
            }
            const char *own = anchors[k]->tag[0] ? anchors[k]->tag : g->r->tag;
            if (!own[0]) {
                return REFUSE(g, i,
                              "line %u has no tag: write LINE#TAG as read shows it, or give "
                              "tag for the whole request",
                              anchors[k]->line);
            }
            if (tag[0] && strcmp(tag, own) != 0) {
                return REFUSE(g, i,
                              "its tag %s is not that of the other anchors, %s: one request "
                              "has one version. Read the lines again",
                              own, tag);
            }
            memcpy(tag, own, sizeof tag);
            g->locate.v = memory_find(g->m, g->path, tag);
            if (!g->locate.v) {
                return REFUSE(g, i,
                              "no version %s of this file was read in this session. Read "
                              "line %u first (the file is now %s)",
                              tag, anchors[k]->line, g->t->tag);
            }
        }
    }
    const struct memory_view *named = tag[0] ? memory_find(g->m, g->path, tag) : NULL;
    g->locate.v = g->locate.v ? g->locate.v : named;
    g->same = g->locate.v && g->locate.v->hash == g->t->hash;
    return 0;
}

static int not_located(struct editing *g, uint32_t i, int answer, uint32_t first, uint32_t last)
{
    static const char *const reasons[] = {
        [LOCATE_NOWHERE] = "it, or what is around it, is not there any more",
        [LOCATE_UNCLEAR] = "several places look alike",
        [LOCATE_TOO_MUCH] = "the file is too large to look for so many lines",
    };
    char last_of_all[16] = "";
    if (answer < 0) {
        return answer;
    }
    if (last > first) {
        snprintf(last_of_all, sizeof last_of_all, "-%u", last);
    }
    return REFUSE(g, i,
                  "the file has changed since version %s was read, and line %u%s of it "
                  "cannot be found again: %s. Read again: start_line %u, end_line %u",
                  g->locate.v->tag, first, last_of_all, reasons[answer],
                  first > 10 ? first - 10 : 1, last + 10);
}

// The lines first..last as the reader knows them are, in t, from *ret_first on.
static int map_lines(struct editing *g, uint32_t i, uint32_t first, uint32_t last,
                     uint32_t *ret_first)
{
    const struct memory_view *v = g->locate.v;
    if (!v) {
        return -EINVAL; // find_version() has refused an anchor without a version
    }
    if (last > v->count) {
        return REFUSE(g, i, "line %u: version %s has %u lines", last, v->tag, v->count);
    }
    for (uint32_t line = first; line <= last; line++) {
        const struct memory_line *known = memory_line(v, line);
        if (!known || !known->shown) {
            return REFUSE(g, i,
                          "line %u was not shown whole by read. Read it first: start_line "
                          "%u, end_line %u",
                          line, first, last);
        }
    }
    if (g->same) {
        *ret_first = first;
        return 0;
    }
    g->res->mapped = true;
    int r = locate_lines(&g->locate, first, last, ret_first);
    return r == 0 ? 0 : not_located(g, i, r, first, last);
}

// In another version than was read a block must be what was read, all of it.
static int check_block(struct editing *g, uint32_t i, uint32_t line, uint32_t now,
                       const struct block *block)
{
    for (uint32_t k = block->first; !g->same && k <= block->last; k++) {
        int64_t old = (int64_t)line + k - now;
        const struct memory_line *known = old > 0 ? memory_line(g->locate.v, (uint32_t)old) : NULL;
        if (!known || !known->shown || known->hash != text_line_hash(g->t, k)) {
            return REFUSE(g, i,
                          "the file has changed, and line %u of the block was not read as it "
                          "is now. Read again: start_line %u, end_line %u",
                          k, block->first, block->last);
        }
    }
    return 0;
}

// The lines that an edit is about, counted from 0, end exclusive.
static int resolve(struct editing *g, uint32_t i, uint32_t *ret_from, uint32_t *ret_to)
{
    const struct edit *e = &g->r->edits[i];
    unsigned flags = edit_kinds[e->op].flags;
    if (!(flags & EDIT_ANCHOR)) {
        *ret_from = *ret_to = flags & EDIT_AT_START ? 0 : g->t->count;
        return 0;
    }
    uint32_t first = e->line.line, last = e->end.line ? e->end.line : first, now = 0;
    if (last < first) {
        return REFUSE(g, i, "end_line %u is before line %u", last, first);
    }
    int r = map_lines(g, i, first, last, &now);
    if (r != 0) {
        return r;
    }
    struct block block = {now, now + (last - first)};
    if (flags & EDIT_BLOCK) {
        struct agent_refusal why;
        g->block_bytes += g->t->len;
        if (g->block_bytes > EDIT_BLOCK_BYTES_MAX) {
            return REFUSE(g, i,
                          "the file is too large for so many blocks in one request: name the "
                          "lines, or make fewer edits at once");
        }
        r = block_find(g->t, g->path, now, &block, &why);
        if (r != 0) {
            return r < 0 ? r : REFUSE(g, i, "%.300s", why.text);
        }
        r = check_block(g, i, first, now, &block);
        if (r != 0) {
            return r;
        }
    }
    *ret_from = block.first - 1;
    *ret_to = block.last;
    return 0;
}

// Pasted texts are registers' own bytes: what a register had is not replaced in the request that
// used it, and what was cut is not lost to another cut.
static int check_register(struct editing *g, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        unsigned flags = edit_kinds[g->r->edits[k].op].flags;
        if ((flags & (EDIT_STORES | EDIT_PASTES)) &&
            strcmp(g->r->edits[k].reg, g->r->edits[i].reg) == 0) {
            return REFUSE(g, i, "edit %u has used the register %s already: cut into another one",
                          k + 1, g->r->edits[i].reg);
        }
    }
    return 0;
}

static int cut(struct editing *g, uint32_t i, uint32_t from, uint32_t to)
{
    size_t len = 0;
    for (uint32_t k = from + 1; k <= to; k++) {
        len += text_line(g->t, k).len + 1;
    }
    if (len > MEMORY_REGISTER_BYTES_MAX) {
        return REFUSE(g, i,
                      "%zu bytes are more than registers hold (%d). Use replace with an "
                      "empty new, or bash",
                      len, MEMORY_REGISTER_BYTES_MAX);
    }
    char *data = malloc(len + 1);
    if (!data) {
        return -ENOMEM;
    }
    size_t at = 0;
    for (uint32_t k = from + 1; k <= to; k++) {
        struct text_line line = text_line(g->t, k);
        memcpy(data + at, line.data, line.len);
        at += line.len;
        data[at++] = '\n';
    }
    if (memory_set_register(&g->res->staged, g->r->edits[i].reg, data, (uint32_t)len) != 0) {
        free(data);
        return REFUSE(g, i, "registers hold %d bytes, under %d names, in all",
                      MEMORY_REGISTER_BYTES_MAX, MEMORY_REGISTERS_MAX);
    }
    return 0;
}

static int find_text(struct editing *g, uint32_t i, struct edit_span *s)
{
    const struct edit *e = &g->r->edits[i];
    s->text = e->text;
    s->text_len = e->text_len;
    if (!(edit_kinds[e->op].flags & EDIT_PASTES)) {
        return 0;
    }
    const struct memory_register *reg = memory_register(&g->res->staged, e->reg);
    if (!reg) {
        return REFUSE(g, i,
                      "the register %s is empty: cut lines into it first, in an edit before "
                      "this one",
                      e->reg);
    }
    s->text = reg->data;
    s->text_len = reg->len;
    s->verbatim = true;
    return 0;
}

static int plan(struct editing *g, uint32_t i)
{
    unsigned flags = edit_kinds[g->r->edits[i].op].flags;
    struct edit_span *s = &g->spans[i];
    uint32_t from = 0, to = 0;
    int r = resolve(g, i, &from, &to);
    if (r != 0) {
        return r;
    }
    *s = (struct edit_span){.edit = i, .from = from, .to = to};
    if (!(flags & EDIT_TAKES)) {
        s->from = s->to = flags & EDIT_AT_START ? from : to;
    }
    if (flags & EDIT_STORES) {
        r = check_register(g, i);
        r = r != 0 ? r : cut(g, i, from, to);
    }
    return r != 0 ? r : find_text(g, i, s);
}

// By place; at one place what only inserts stands before what removes, else the request's order.
static int compare_spans(const void *a, const void *b)
{
    const struct edit_span *x = a, *y = b;
    bool x_takes = x->from < x->to, y_takes = y->from < y->to;
    if (x->from != y->from) {
        return x->from < y->from ? -1 : 1;
    }
    if (x_takes != y_takes) {
        return x_takes ? 1 : -1;
    }
    return x->edit < y->edit ? -1 : x->edit > y->edit;
}

static int check_overlaps(struct editing *g)
{
    qsort(g->spans, g->r->n, sizeof g->spans[0], compare_spans);
    for (uint32_t i = 1; i < g->r->n; i++) {
        const struct edit_span *a = &g->spans[i - 1], *b = &g->spans[i];
        if (b->from < a->to) {
            return REFUSE(g, b->edit,
                          "it is about lines that edit %u takes (lines %u-%u): put "
                          "the two into one",
                          a->edit + 1, a->from + 1, a->to);
        }
    }
    return 0;
}

static int copy_registers(const struct agent_memory *from, struct agent_memory *to)
{
    for (uint32_t i = 0; i < from->registers_n; i++) {
        const struct memory_register *reg = &from->registers[i];
        char *data = malloc((size_t)reg->len + 1);
        if (!data) {
            return -ENOMEM;
        }
        memcpy(data, reg->data, reg->len);
        if (memory_set_register(to, reg->name, data, reg->len) != 0) {
            free(data);
            return -ENOMEM;
        }
    }
    return 0;
}

static int make(struct editing *g)
{
    int r = find_version(g);
    r = r != 0 ? r : copy_registers(g->m, &g->res->staged);
    for (uint32_t i = 0; r == 0 && i < g->r->n; i++) {
        r = plan(g, i);
    }
    r = r != 0 ? r : check_overlaps(g);
    return r != 0
               ? r
               : edit_build(g->t, g->spans, g->r->n, g->same ? g->locate.v : NULL, g->res, g->why);
}

int edit_make(const struct text *t, const char *path, const struct agent_memory *m,
              const struct edit_request *r, struct edit_result *ret, struct agent_refusal *ret_why)
{
    AUTO_FREE struct edit_result *res = calloc(1, sizeof *res);
    AUTO_FREE struct editing *g = calloc(1, sizeof *g);
    if (!res || !g) {
        return -ENOMEM;
    }
    res->data = BUF_INIT(TEXT_MAX_BYTES);
    *g = (struct editing){.t = t, .path = path, .m = m, .r = r, .res = res, .why = ret_why};
    g->locate.t = t;
    int result = make(g);
    locate_done(&g->locate);
    if (result != 0) {
        edit_result_done(res);
        return result;
    }
    *ret = *res;
    return 0;
}

int edit_commit(struct edit_result *e, const char *path, struct agent_memory *m)
{
    for (uint32_t i = 0; i < m->registers_n; i++) {
        free(m->registers[i].data);
    }
    memcpy(m->registers, e->staged.registers, sizeof m->registers);
    m->registers_n = e->staged.registers_n;
    e->staged.registers_n = 0;
    return e->shown_n > 0 ? memory_show(m, path, &e->text, e->shown, e->shown_hashes, e->shown_n)
                          : 0;
}

int edit_tell(const struct edit_result *e, const struct edit_request *r, struct buf *out)
{
    buf_printf(out, "tag %s\n", e->tag);
    if (e->mapped) {
        buf_puts(out, "[the file had changed since it was read; the lines were found again]\n");
    }
    for (uint32_t i = 0; i < r->n; i++) {
        const struct edit_change *c = &e->changes[i];
        buf_printf(out, "edit %u (%s): ", i + 1, edit_kinds[r->edits[i].op].name);
        if (c->removed > 0) {
            buf_printf(out, "%u %s removed%s", c->removed, c->removed == 1 ? "line" : "lines",
                       c->lines ? ", " : "");
        }
        if (c->lines > 0) {
            buf_printf(out, "new lines %u-%u", c->first, c->first + c->lines - 1);
        }
        buf_putc(out, '\n');
    }
    if (e->shown_n == 0) {
        buf_puts(out, "[read the file before the next edit]\n");
    }
    return out->error;
}

void edit_result_done(struct edit_result *e)
{
    text_done(&e->text);
    buf_free(&e->data);
    memory_done(&e->staged);
    free(e->shown);
    free(e->shown_hashes);
    *e = (struct edit_result){0};
}
