#include "agent/locate.h"
#include "agent/edit.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>

static int hash_lines(struct locate *l)
{
    if (l->hashes) {
        return 0;
    }
    l->hashes = malloc(((size_t)l->t->count + 1) * sizeof *l->hashes);
    if (!l->hashes) {
        return -ENOMEM;
    }
    for (uint32_t i = 1; i <= l->t->count; i++) {
        l->hashes[i - 1] = text_line_hash(l->t, i);
    }
    return 0;
}

// Of the lines wanted: how long the longest beginning is that also ends the first i + 1 of them
// (Knuth, Morris, Pratt: a file of equal lines must not cost their square).
static void borders(const uint32_t *wanted, uint32_t n, uint32_t *ret)
{
    ret[0] = 0;
    for (uint32_t i = 1, k = 0; i < n; i++) {
        while (k > 0 && wanted[i] != wanted[k]) {
            k = ret[k - 1];
        }
        k += wanted[i] == wanted[k];
        ret[i] = k;
    }
}

// Do the MEMORY_CONTEXT lines on one side of the old place agree with those of the new one? The
// file's end agrees with the file's end. *ret_tells: one of them tells something.
static bool agrees(const struct locate *l, int64_t old_line, int64_t new_line, int step,
                   bool *ret_tells)
{
    bool tells = false;
    for (int i = 0; i < MEMORY_CONTEXT; i++, old_line += step, new_line += step) {
        bool old_end = old_line < 1 || old_line > l->v->count;
        bool new_end = new_line < 1 || new_line > l->t->count;
        if (old_end || new_end) {
            if (old_end != new_end) {
                return false;
            }
            break;
        }
        const struct memory_line *known = memory_line(l->v, (uint32_t)old_line);
        if (!known || known->hash != l->hashes[new_line - 1]) {
            return false;
        }
        tells = tells || (known->hash & 1);
    }
    *ret_tells = tells;
    return true;
}

struct places {
    uint32_t both, one; // how many agree on both sides, on one
    uint32_t both_at, one_at;
};

static void judge(const struct locate *l, uint32_t first, uint32_t n, uint32_t at, bool tells,
                  struct places *p)
{
    bool tells_before = false, tells_behind = false;
    bool before = agrees(l, (int64_t)first - 1, (int64_t)at - 1, -1, &tells_before);
    bool behind = agrees(l, (int64_t)first + n, (int64_t)at + n, 1, &tells_behind);
    if (before && behind) {
        p->both++;
        p->both_at = at;
    } else if ((before && (tells || tells_before)) || (behind && (tells || tells_behind))) {
        p->one++;
        p->one_at = at;
    }
}

int locate_lines(struct locate *l, uint32_t first, uint32_t last, uint32_t *ret_first)
{
    uint32_t n = last - first + 1;
    l->work += l->t->count;
    if (l->work > EDIT_WORK_MAX) {
        return LOCATE_TOO_MUCH;
    }
    int r = hash_lines(l);
    AUTO_FREE uint32_t *wanted = malloc(2 * (size_t)n * sizeof *wanted);
    if (r < 0 || !wanted) {
        return -ENOMEM;
    }
    bool tells = false;
    for (uint32_t i = 0; i < n; i++) {
        wanted[i] = memory_line(l->v, first + i)->hash;
        tells = tells || (wanted[i] & 1);
    }
    uint32_t *border = wanted + n;
    borders(wanted, n, border);
    struct places p = {0};
    for (uint32_t i = 0, k = 0; i < l->t->count; i++) {
        while (k > 0 && l->hashes[i] != wanted[k]) {
            k = border[k - 1];
        }
        k += l->hashes[i] == wanted[k];
        if (k == n) {
            judge(l, first, n, i + 2 - n, tells, &p);
            k = border[k - 1];
        }
    }
    if (p.both == 1 || (p.both == 0 && p.one == 1)) {
        *ret_first = p.both ? p.both_at : p.one_at;
        return 0;
    }
    return p.both + p.one > 1 ? LOCATE_UNCLEAR : LOCATE_NOWHERE;
}

void locate_done(struct locate *l)
{
    free(l->hashes);
    l->hashes = NULL;
}
