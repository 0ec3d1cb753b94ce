#include "agent/read.h"
#include "base/fd.h"
#include "codec/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    const struct text *t;
    const struct read_request *r;
    struct buf *out;
    uint32_t *whole; // lines that were shown whole
    size_t whole_n, whole_cap;
    uint64_t left; // characters
    bool odd_bytes;
    uint32_t cut; // line that was shown in part; 0: none
    size_t cut_bytes;
    struct read_result res;
};

static size_t characters(const char *data, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        n += ((unsigned char)data[i] & 0xc0) != 0x80;
    }
    return n;
}

// Bytes of data that hold at most so many characters, whole ones.
static size_t prefix(const char *data, size_t len, size_t chars)
{
    size_t i = 0;
    while (i < len && (chars > 0 || ((unsigned char)data[i] & 0xc0) == 0x80)) {
        chars -= ((unsigned char)data[i] & 0xc0) != 0x80;
        i++;
    }
    return i;
}

static int remember(struct reading *g, uint32_t number)
{
    if (g->whole_n == g->whole_cap) {
        size_t cap = g->whole_cap ? g->whole_cap * 2 : 256;
        uint32_t *grown = reallocarray(g->whole, cap, sizeof *grown);
        if (!grown) {
            return -ENOMEM;
        }
        g->whole = grown;
        g->whole_cap = cap;
    }
    g->whole[g->whole_n++] = number;
    return 0;
}

enum { PREFIX_MAX = 32 };

// "12#ab3f| ". Its length. By hand, as it stands before every line.
static size_t write_prefix(const struct reading *g, uint32_t number, char ret[PREFIX_MAX])
{
    char digits[16];
    size_t n = 0, len = 0;
    do {
        digits[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (n > 0) {
        ret[len++] = digits[--n];
    }
    ret[len++] = '#';
    memcpy(ret + len, g->t->tag, TEXT_TAG_SIZE - 1);
    len += TEXT_TAG_SIZE - 1;
    ret[len++] = '|';
    ret[len++] = ' ';
    return len;
}

static void add_text(struct reading *g, const char *data, size_t len)
{
    if (utf8_valid(data, len)) {
        buf_add(g->out, data, len);
    } else {
        g->odd_bytes = true;
        utf8_clean(g->out, data, len);
    }
}

// 0: shown; 1: there is no room for it.
static int show(struct reading *g, uint32_t number, struct text_line line)
{
    char before[PREFIX_MAX];
    size_t before_len = write_prefix(g, number, before);
    size_t prefix_chars = before_len + 1;
    // No look at the whole of a line of which most will not be shown.
    size_t looked = line.len < 4 * g->left + 8 ? line.len : 4 * g->left + 8;
    size_t chars = characters(line.data, looked) + prefix_chars;
    size_t len = line.len;
    if (looked < line.len || chars > g->left) {
        if (g->res.shown > 0) {
            return 1;
        }
        len = g->left > prefix_chars ? prefix(line.data, looked, g->left - prefix_chars) : 0;
        g->cut = number;
        g->cut_bytes = len;
    }
    buf_add(g->out, before, before_len);
    add_text(g, line.data, len);
    buf_putc(g->out, '\n');
    g->res.first = g->res.first ? g->res.first : number;
    g->res.last = number;
    g->res.shown++;
    if (g->cut) {
        g->left = 0;
        return g->out->error;
    }
    g->left -= chars;
    int r = remember(g, number);
    return r < 0 ? r : g->out->error;
}

static void add_notes(struct reading *g, uint32_t from, uint32_t to)
{
    struct buf *out = g->out;
    if (g->t->count == 0) {
        buf_puts(out, "[the file has no lines]\n");
    } else if (g->r->search && g->res.matched == 0) {
        buf_printf(out,
                   "[no line of %u-%u contains the searched text; it is searched as it is "
                   "written, upper and lower case apart]\n",
                   from, to);
    }
    if (g->cut) {
        buf_printf(out,
                   "[line %u is cut: %zu of its %zu bytes are shown, so it cannot be an "
                   "anchor; use bash for the rest (cut -b, Python)]\n",
                   g->cut, g->cut_bytes, text_line(g->t, g->cut).len);
    }
    if (g->res.next) {
        buf_printf(out,
                   "[stopped at max_chars: %u lines shown, the file has %u; go on with "
                   "start_line=%u]\n",
                   g->res.shown, g->t->count, g->res.next);
    } else if (!g->r->search && to < g->t->count) {
        buf_printf(out, "[lines %u-%u of %u]\n", from, to, g->t->count);
    }
    if (g->odd_bytes) {
        buf_puts(out, "[bytes that are not UTF-8 are shown as \xef\xbf\xbd; they stay as they are "
                      "in lines that are not edited]\n");
    }
}

static int check(const struct text *t, const struct read_request *r, uint32_t from,
                 struct agent_refusal *ret_why)
{
    if (r->search && (r->search_len == 0 || r->search_len > READ_SEARCH_MAX)) {
        return agent_refuse(ret_why, "search: 1 to %d bytes", READ_SEARCH_MAX);
    }
    if (r->search &&
        (memchr(r->search, '\n', r->search_len) || memchr(r->search, 0, r->search_len))) {
        return agent_refuse(ret_why, "search: no line contains a line break; search for a part of "
                                     "one line");
    }
    if (r->end_line && r->end_line < from) {
        return agent_refuse(ret_why, "end_line %u is before start_line %u", r->end_line, from);
    }
    if (from > t->count && !(t->count == 0 && from == 1)) {
        return agent_refuse(ret_why, "start_line %u: the file has %u lines", from, t->count);
    }
    return 0;
}

int read_lines(const struct text *t, const struct read_request *r, struct agent_memory *m,
               struct buf *out, struct read_result *ret, struct agent_refusal *ret_why)
{
    uint32_t from = r->start_line ? r->start_line : 1;
    uint32_t to = r->end_line && r->end_line < t->count ? r->end_line : t->count;
    int result = check(t, r, from, ret_why);
    if (result != 0) {
        return result;
    }
    struct reading g = {.t = t, .r = r, .out = out};
    g.left = r->max_chars ? r->max_chars : READ_MAX_CHARS;
    for (uint32_t i = from; i <= to; i++) {
        struct text_line line = text_line(t, i);
        if (r->search && !memmem(line.data, line.len, r->search, r->search_len)) {
            continue;
        }
        g.res.matched++;
        if (g.res.next) {
            continue; // only counted
        }
        result = show(&g, i, line);
        if (result < 0) {
            break;
        }
        if (result == 1) {
            g.res.next = i;
            if (!r->search) {
                break;
            }
        }
    }
    if (result >= 0) {
        add_notes(&g, from, to);
        result = out->error;
    }
    if (result == 0 && (g.whole_n > 0 || g.cut)) {
        result = memory_show(m, r->path, t, g.whole, NULL, g.whole_n);
    }
    free(g.whole);
    if (result == 0) {
        g.res.cut = g.cut;
        *ret = g.res;
    }
    return result;
}
