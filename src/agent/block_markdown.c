// A section of Markdown is a heading with all until the next one of its level or above; a fence of
// code is a block, too, and headings in it are none.
#include "agent/block.h"

#include <string.h>

struct reader {
    const struct text *t;
    char fence; // of the code that is open; 0: none
    size_t fence_len;
    uint32_t fence_at; // its first line
    bool matter;       // in the metadata at the beginning
};

static struct text_line shifted(struct text_line line, size_t *ret_blanks)
{
    size_t n = 0;
    while (n < line.len && line.data[n] == ' ') {
        n++;
    }
    *ret_blanks = n;
    line.data += n;
    line.len -= n;
    while (line.len > 0 && strchr(" \t\r", line.data[line.len - 1])) {
        line.len--;
    }
    return line;
}

static size_t run(struct text_line line, char c)
{
    size_t n = 0;
    while (n < line.len && line.data[n] == c) {
        n++;
    }
    return n;
}

// The level of an underline of the line before: 1 or 2; 0: it is none.
static int underline(const struct reader *g, uint32_t number)
{
    size_t blanks;
    if (number > g->t->count) {
        return 0;
    }
    struct text_line line = shifted(text_line(g->t, number), &blanks);
    if (line.len == 0 || blanks > 3) {
        return 0;
    }
    return run(line, '=') == line.len ? 1 : run(line, '-') == line.len ? 2 : 0;
}

static bool is_numbered(struct text_line line)
{
    size_t n = 0;
    while (n < line.len && line.data[n] >= '0' && line.data[n] <= '9') {
        n++;
    }
    return n > 0 && n + 1 < line.len && strchr(".)", line.data[n]) && line.data[n + 1] == ' ';
}

// Takes one line: the level of the heading it begins, or 0.
static int level(struct reader *g, uint32_t number)
{
    size_t blanks;
    struct text_line line = shifted(text_line(g->t, number), &blanks);
    if (number == 1 && line.len == 3 && run(line, '-') == 3) {
        g->matter = true;
        return 0;
    }
    if (g->matter) {
        g->matter = !(line.len == 3 && (run(line, '-') == 3 || run(line, '.') == 3));
        return 0;
    }
    char mark = line.len > 0 ? line.data[0] : 0;
    size_t marks = mark == '`' || mark == '~' ? run(line, mark) : 0;
    if (g->fence) {
        bool end = mark == g->fence && marks >= g->fence_len && marks == line.len && blanks <= 3;
        g->fence = end ? 0 : g->fence;
        return 0;
    }
    if (blanks > 3 || line.len == 0) {
        return 0;
    }
    if (marks >= 3 && !(mark == '`' && memchr(line.data + marks, '`', line.len - marks))) {
        g->fence = mark;
        g->fence_len = marks;
        g->fence_at = number;
        return 0;
    }
    size_t hashes = run(line, '#');
    if (hashes > 0) {
        bool heading = hashes <= 6 && (line.len == hashes || line.data[hashes] == ' ' ||
                                       line.data[hashes] == '\t');
        return heading ? (int)hashes : 0;
    }
    bool text = !strchr(">|-*+=", mark) && !is_numbered(line); // not a list, a quotation, a table
    return text ? underline(g, number + 1) : 0;
}

int block_markdown(const struct text *t, uint32_t line, struct block *ret,
                   struct agent_refusal *ret_why)
{
    struct reader g = {.t = t};
    int own = 0;
    for (uint32_t i = 1; i <= line; i++) {
        own = level(&g, i);
    }
    bool fence = g.fence && g.fence_at == line;
    if (!own && !fence) {
        return agent_refuse(ret_why,
                            "line %u begins no block: neither a heading nor a fence of "
                            "code",
                            line);
    }
    uint32_t last = line, i = line + 1;
    for (; i <= t->count; i++) {
        int next = level(&g, i);
        if (!fence && next > 0 && next <= own) {
            break;
        }
        last = block_indent(text_line(t, i)).blank ? last : i;
        if (fence && !g.fence) {
            break;
        }
    }
    if (fence && g.fence) {
        return agent_refuse(ret_why, "the fence of code at line %u is not closed", line);
    }
    *ret = (struct block){line, last};
    return 0;
}
