// Python's statements: lines are put together by brackets, strings and backslashes, and a block is
// a statement with what is indented below it.
#include "agent/block.h"
#include "base/fd.h"

#include <string.h>

struct scanner {
    const struct text *t;
    uint32_t next; // line
    char quote;    // of a string that is open; 0: none
    bool triple;
    uint32_t depth; // of brackets
};

struct statement {
    uint32_t first, last;
    struct block_indent indent;
    const char *data; // from its first character on, on its first line
    size_t len;
    bool comment;
};

// Scans the line. 1: the statement goes on, 0: it ends here, -1: this is not Python.
static int scan(struct scanner *s, struct text_line line)
{
    const char *p = line.data;
    for (size_t i = 0; i < line.len; i++) {
        char c = p[i];
        if (s->quote) {
            if (c == '\\') {
                if (++i >= line.len) {
                    return line.ending_len ? 1 : -1;
                }
            } else if (c == s->quote && !s->triple) {
                s->quote = 0;
            } else if (c == s->quote && i + 2 < line.len && p[i + 1] == c && p[i + 2] == c) {
                s->quote = 0;
                i += 2;
            }
            continue;
        }
        if (c == '#') {
            break;
        }
        if (c == '"' || c == '\'') {
            s->quote = c;
            s->triple = i + 2 < line.len && p[i + 1] == c && p[i + 2] == c;
            i += s->triple ? 2 : 0;
        } else if (c == '(' || c == '[' || c == '{') {
            s->depth++;
        } else if (c == ')' || c == ']' || c == '}') {
            if (s->depth-- == 0) {
                return -1;
            }
        } else if (c == '\\' && i + 1 == line.len) {
            return 1;
        }
    }
    if (s->quote && !s->triple) {
        return -1;
    }
    return s->quote || s->depth > 0;
}

// 1: a statement or a comment, 0: the end, -1: not understood (ret->first is where).
static int next_statement(struct scanner *s, struct statement *ret)
{
    struct text_line line;
    for (;; s->next++) {
        if (s->next > s->t->count) {
            return 0;
        }
        line = text_line(s->t, s->next);
        if (!block_indent(line).blank) {
            break;
        }
    }
    *ret = (struct statement){.first = s->next, .indent = block_indent(line)};
    size_t skip = ret->indent.one;
    ret->data = line.data + skip;
    ret->len = line.len - skip;
    ret->comment = ret->data[0] == '#';
    int r;
    while ((r = scan(s, text_line(s->t, s->next))) == 1) {
        if (++s->next > s->t->count) {
            return -1;
        }
    }
    ret->last = s->next++;
    return r < 0 ? -1 : 1;
}

static size_t word(const struct statement *s)
{
    size_t n = 0;
    while (n < s->len && (s->data[n] == '_' || (s->data[n] >= '0' && s->data[n] <= '9') ||
                          ((s->data[n] | 32) >= 'a' && (s->data[n] | 32) <= 'z') ||
                          (unsigned char)s->data[n] >= 0x80)) {
        n++;
    }
    return n;
}

static bool begins_with(const struct statement *s, const char *const *words)
{
    size_t len = word(s);
    for (; *words; words++) {
        if (strlen(*words) == len && memcmp(*words, s->data, len) == 0) {
            return true;
        }
    }
    return false;
}

static const char *const heads[] = {"def",   "class", "if",   "for",    "while",   "with", "try",
                                    "async", "elif",  "else", "except", "finally", NULL};
static const char *const with_clauses[] = {"if", "for", "while", "try", "async", NULL};
static const char *const clauses[] = {"elif", "else", "except", "finally", NULL};
static const char *const decorated[] = {"def", "class", "async", NULL};

static int not_understood(struct agent_refusal *ret_why, uint32_t line)
{
    return agent_refuse(ret_why,
                        "the Python cannot be understood from line %u on (a string, a "
                        "bracket or the indentation): name the lines instead of a block",
                        line);
}

// The statement that line begins, *ret_first being before it where it has decorators.
static int seek(struct scanner *s, uint32_t line, struct statement *ret, uint32_t *ret_first,
                struct agent_refusal *ret_why)
{
    uint32_t decorators = 0; // where those that stand before the next statement begin
    for (;;) {
        struct statement st;
        int r = next_statement(s, &st);
        if (r < 0) {
            return not_understood(ret_why, st.first);
        }
        if (r == 0 || (st.last >= line && st.first != line) || (st.first == line && st.comment)) {
            return r > 0 && !st.comment
                       ? agent_refuse(ret_why,
                                      "line %u is inside a statement that begins at line "
                                      "%u: anchor there",
                                      line, st.first)
                       : agent_refuse(ret_why, "line %u begins no block", line);
        }
        if (st.comment) {
            continue;
        }
        bool decorator = st.data[0] == '@';
        if (decorator && !decorators) {
            decorators = st.first;
        }
        if (st.first == line) {
            *ret_first = decorators ? decorators : line;
            *ret = st;
            return 0;
        }
        decorators = decorator ? decorators : 0;
    }
}

int block_python(const struct text *t, uint32_t line, struct block *ret,
                 struct agent_refusal *ret_why)
{
    struct scanner s = {.t = t, .next = 1};
    struct statement head = {.data = ""}, st = {.data = ""};
    uint32_t first = line;
    int r = seek(&s, line, &head, &first, ret_why);
    if (r != 0) {
        return r;
    }
    while (head.data[0] == '@' || head.comment) {
        if (next_statement(&s, &head) <= 0) {
            return not_understood(ret_why, line);
        }
    }
    if (first != head.first && !begins_with(&head, decorated)) {
        return not_understood(ret_why, head.first);
    }
    struct block found = {first, head.last};
    bool more = begins_with(&head, with_clauses), body = false;
    while ((r = next_statement(&s, &st)) > 0) {
        int order = block_compare(st.indent, head.indent);
        if (order == BLOCK_UNCLEAR && !st.comment) {
            return not_understood(ret_why, st.first);
        }
        if (st.comment && order != 1) {
            continue; // the block's only if more of the block follows
        }
        if (order < 0 || (order == 0 && !(more && begins_with(&st, clauses)))) {
            break;
        }
        body = body || !st.comment;
        found.last = st.last;
    }
    if (r < 0) {
        return not_understood(ret_why, st.first);
    }
    if (!body && first == head.first && !begins_with(&head, heads) && head.first == head.last) {
        return agent_refuse(ret_why, "line %u begins no block: it is a statement of one line",
                            line);
    }
    if (!body && !begins_with(&head, heads)) {
        found.last = head.last; // a comment that is indented below a call is not the call's
    }
    *ret = found;
    return 0;
}
