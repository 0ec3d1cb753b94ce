// Blocks of languages with braces. The whole file is read, so that strings, comments and templates
// are known for what they are, and a file whose brackets do not match is not guessed at.
#include "agent/block.h"
#include "base/fd.h"

#include <string.h>

enum { DEPTH_MAX = 200 };

struct lexer {
    const char *data;
    size_t len, at;
    unsigned flags;
    char open[DEPTH_MAX]; // ( [ { ` and $, the last one for ${
    uint32_t depth;
    char before;       // last character that is not white space or a comment
    bool before_value; // a word or number that can stand left of a division
    bool broken;
};

static char peek(const struct lexer *x, size_t ahead)
{
    return x->at + ahead < x->len ? x->data[x->at + ahead] : 0;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '$' ||
           (unsigned char)c >= 0x80;
}

static void push(struct lexer *x, char c)
{
    if (x->depth == DEPTH_MAX) {
        x->broken = true;
    } else {
        x->open[x->depth++] = c;
    }
}

// at is behind the opening quote; goes behind the closing one.
static void skip_string(struct lexer *x, char quote, bool lines)
{
    for (; x->at < x->len; x->at++) {
        char c = x->data[x->at];
        if (c == '\\') {
            x->at += peek(x, 1) == '\r' && peek(x, 2) == '\n' ? 2 : 1;
        } else if (c == quote) {
            x->at++;
            return;
        } else if ((c == '\n' || c == '\r') && !lines) {
            break;
        }
    }
    x->broken = true;
}

static void skip_until(struct lexer *x, const char *end)
{
    const char *p = memmem(x->data + x->at, x->len - x->at, end, strlen(end));
    if (p) {
        x->at = (size_t)(p - x->data) + strlen(end);
    } else {
        x->at = x->len;
        x->broken = true;
    }
}

static void skip_regex(struct lexer *x)
{
    bool set = false;
    for (x->at++; x->at < x->len; x->at++) {
        char c = x->data[x->at];
        if (c == '\\') {
            x->at++;
        } else if (c == '\n' || c == '\r') {
            break;
        } else if (c == '/' && !set) {
            x->at++;
            return;
        } else {
            set = c == '[' || (set && c != ']');
        }
    }
    x->broken = true;
}

// In a template: until its end or ${.
static void skip_template(struct lexer *x)
{
    for (; x->at < x->len; x->at++) {
        char c = x->data[x->at];
        if (c == '\\') {
            x->at++;
        } else if (c == '`') {
            x->at++;
            x->depth--;
            return;
        } else if (c == '$' && peek(x, 1) == '{') {
            x->at += 2;
            push(x, '$');
            return;
        }
    }
    x->broken = true;
}

// r"..", r#".."#, and br, cr. False: something else.
static bool skip_raw(struct lexer *x)
{
    size_t hashes = 0, mark = peek(x, 0) == 'b' || peek(x, 0) == 'c';
    if (peek(x, mark++) != 'r') {
        return false;
    }
    while (peek(x, mark + hashes) == '#' && hashes < 16) {
        hashes++;
    }
    if (peek(x, mark + hashes) != '"') {
        return false;
    }
    char end[20] = "\"";
    memset(end + 1, '#', hashes);
    x->at += mark + 1 + hashes;
    skip_until(x, end);
    return true;
}

static void skip_quoted(struct lexer *x, char c)
{
    bool lifetime = (x->flags & BRACES_LIFETIME) && c == '\'';
    if (lifetime) {
        size_t len = 1; // of the character
        while (((unsigned char)peek(x, 1 + len) & 0xc0) == 0x80) {
            len++;
        }
        if (peek(x, 1) != '\\' && peek(x, 1 + len) != '\'') {
            x->at++;
            return;
        }
    }
    if ((x->flags & BRACES_TRIPLE) && c == '"' && peek(x, 1) == '"' && peek(x, 2) == '"') {
        x->at += 3;
        skip_until(x, "\"\"\"");
        return;
    }
    x->at++;
    skip_string(x, c, (x->flags & BRACES_LIFETIME) && c == '"');
}

static void skip_word(struct lexer *x)
{
    static const char *const operators[] = {"return", "typeof", "case", "in",     "of",   "do",
                                            "else",   "void",   "new",  "delete", "throw"};
    size_t from = x->at;
    bool digits = x->data[x->at] >= '0' && x->data[x->at] <= '9';
    while (x->at < x->len &&
           (is_word(x->data[x->at]) || (digits && (x->flags & BRACES_SEPARATOR) &&
                                        x->data[x->at] == '\'' && is_word(peek(x, 1))))) {
        x->at++;
    }
    x->before_value = true;
    for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
        if (strlen(operators[i]) == x->at - from &&
            memcmp(operators[i], x->data + from, x->at - from) == 0) {
            x->before_value = false;
        }
    }
}

static void take_bracket(struct lexer *x, char c)
{
    static const char pairs[] = "()[]{}";
    const char *p = strchr(pairs, c);
    x->at++;
    if ((p - pairs) % 2 == 0) {
        push(x, c);
    } else if (x->depth > 0 &&
               (x->open[x->depth - 1] == p[-1] || (c == '}' && x->open[x->depth - 1] == '$'))) {
        x->depth--;
    } else {
        x->broken = true;
    }
    x->before_value = c == ')' || c == ']';
}

// Takes white space and comments. True: something was taken.
static bool skip_space(struct lexer *x)
{
    char c = peek(x, 0);
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v') {
        x->at++;
        return true;
    }
    if (c == '/' && peek(x, 1) == '*') {
        x->at += 2;
        skip_until(x, "*/");
        return true;
    }
    if (c == '/' && peek(x, 1) == '/' && (x->flags & BRACES_LINE_COMMENT)) {
        while (x->at < x->len && x->data[x->at] != '\n' && x->data[x->at] != '\r') {
            x->at++;
        }
        return true;
    }
    return false;
}

// Takes one thing that is no white space. Its first character, or 0 inside a template.
static char take(struct lexer *x)
{
    if (x->depth > 0 && x->open[x->depth - 1] == '`') {
        skip_template(x);
        x->before_value = x->depth == 0 || x->open[x->depth - 1] != '$';
        return 0;
    }
    char c = x->data[x->at];
    if (strchr("()[]{}", c)) {
        take_bracket(x, c);
    } else if (c == '"' || (c == '\'' && (x->flags & (BRACES_SINGLE | BRACES_LIFETIME)))) {
        char tail = x->at > 0 ? x->data[x->at - 1] : 0;
        // C++'s R"( )" and C#'s @" " have rules of their own.
        x->broken = x->broken ||
                    (c == '"' && (tail == '@' || (tail == 'R' && (x->flags & BRACES_SEPARATOR))));
        skip_quoted(x, c);
        x->before_value = true;
    } else if (c == '`' && (x->flags & BRACES_TEMPLATE)) {
        x->at++;
        push(x, '`');
    } else if (c == '`' && (x->flags & BRACES_RAW_TICK)) {
        x->at++;
        skip_until(x, "`");
        x->before_value = true;
    } else if (c == '/' && (x->flags & BRACES_TEMPLATE) && !x->before_value) {
        skip_regex(x);
        x->before_value = true;
    } else if ((x->flags & BRACES_LIFETIME) && skip_raw(x)) {
        x->before_value = true;
    } else if (is_word(c)) {
        skip_word(x);
    } else {
        x->at++;
        x->before_value = false;
    }
    x->before = c;
    return c;
}

static bool is_next(const struct lexer *x, const char *word)
{
    size_t len = strlen(word);
    return x->len - x->at > len && memcmp(x->data + x->at, word, len) == 0 &&
           !is_word(x->data[x->at + len]);
}

static bool goes_on(const struct lexer *x)
{
    return is_next(x, "else") || is_next(x, "catch") || is_next(x, "finally");
}

// What has been found of the block so far.
struct finding {
    const struct text *t;
    uint32_t line, base; // the anchor, and the depth before it
    uint32_t now;        // line of what was taken last
    size_t until;        // where that line ends
    bool brace;
    bool owed;     // else, catch or finally has come, and not yet its brace
    bool loop;     // do, whose while may stand on a line of its own
    uint32_t last; // 0: not yet
};

enum finding_end { GOES_ON, FOUND, NONE };

// Something is about to be taken at x->at, behind line f->now: is the block over with that line?
static enum finding_end line_ended(struct finding *f, const struct lexer *x)
{
    if (x->depth != f->base) {
        return x->depth < f->base ? NONE : GOES_ON;
    }
    if (x->at < x->len && !f->brace && x->data[x->at] == '{') {
        return GOES_ON; // the brace stands below its head
    }
    if (x->at < x->len && f->owed && x->data[x->at] == '{') {
        return GOES_ON;
    }
    if ((f->owed && x->before != ';') || (f->loop && x->at < x->len && is_next(x, "while"))) {
        return NONE;
    }
    if (x->at < x->len && f->brace && goes_on(x)) {
        return GOES_ON;
    }
    if (f->brace || f->now > f->line) {
        f->last = f->now;
        return FOUND;
    }
    return NONE;
}

static enum finding_end find_end(struct finding *f, struct lexer *x)
{
    while (!x->broken) {
        bool template = x->depth > 0 && x->open[x->depth - 1] == '`';
        if (!template && x->at < x->len && skip_space(x)) {
            continue;
        }
        if (x->at >= f->until || x->at >= x->len) {
            enum finding_end end = line_ended(f, x);
            if (end != GOES_ON || x->at >= x->len) {
                return end == FOUND ? FOUND : NONE;
            }
        }
        bool closed = f->brace && x->depth == f->base && x->before == '}';
        f->owed = f->owed || (closed && goes_on(x));
        f->loop = f->loop && !(closed && is_next(x, "while"));
        char c = take(x);
        if (c == '{' && x->depth == f->base + 1) {
            f->owed = false;
        }
        if (x->depth < f->base ||
            (c == ';' && x->depth == f->base && !f->brace && f->now == f->line)) {
            return NONE;
        }
        f->brace = f->brace || c == '{';
        while (f->now < f->t->count && f->t->at[f->now] < x->at) {
            f->until = f->t->at[++f->now];
        }
    }
    return NONE;
}

int block_braces(const struct text *t, uint32_t line, unsigned flags, struct block *ret,
                 struct agent_refusal *ret_why)
{
    struct lexer x = {.data = t->data, .len = t->len, .at = t->start, .flags = flags};
    size_t from = t->at[line - 1];
    from += block_indent(text_line(t, line)).one;
    while (x.at < from && !x.broken) {
        bool template = x.depth > 0 && x.open[x.depth - 1] == '`';
        if (template || !skip_space(&x)) {
            take(&x);
        }
    }
    bool inside = x.at != from || (x.depth > 0 && x.open[x.depth - 1] == '`');
    struct finding f = {.t = t, .line = line, .base = x.depth, .now = line, .until = t->at[line]};
    f.loop = is_next(&x, "do") || is_next(&x, "repeat");
    enum finding_end end = x.broken || inside ? NONE : find_end(&f, &x);
    while (!x.broken && x.at < x.len) {
        bool template = x.depth > 0 && x.open[x.depth - 1] == '`';
        if (template || !skip_space(&x)) {
            take(&x);
        }
    }
    if (x.broken || x.depth > 0) {
        return agent_refuse(ret_why, "the brackets, strings or comments of the file do not match, "
                                     "or are not understood: name the lines instead of a block");
    }
    if (end != FOUND && (f.owed || f.loop) && f.brace) {
        return agent_refuse(ret_why,
                            "the block that begins at line %u goes on in a part without braces "
                            "(line %u): name the lines instead of a block",
                            line, f.now);
    }
    if (end != FOUND) {
        return agent_refuse(ret_why,
                            "line %u begins no block of its own: anchor at the line where "
                            "the statement begins",
                            line);
    }
    *ret = (struct block){line, f.last};
    return 0;
}
