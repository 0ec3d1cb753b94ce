#include "agent/shell_words.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HERE_MAX = 4 };

struct level {
    char closer;   // ) or `, 0 outside all
    bool subshell; // ( ), not a part of a word
    bool quoted;   // inside double quotes
    bool in_word;
    bool target; // the next word belongs to a redirection
    bool after_pipe;
    struct shell_word word;
    struct shell_command c;
};

struct walk {
    const char *p;
    size_t len, at;
    struct level *levels;
    uint32_t depth; // of the current one
    struct {
        char text[SHELL_VALUE_MAX];
        size_t len;
        bool tabs;  // <<-
        bool joins; // a line that ends with a backslash goes on in the next one
    } here[HERE_MAX];
    uint32_t heres;
    bool here_next; // the next word is the end mark of a here-document
    shell_command_fn *fn;
    void *ctx;
};

static char peek(const struct walk *w, size_t ahead)
{
    return w->at + ahead < w->len ? w->p[w->at + ahead] : 0;
}

static struct level *now(struct walk *w) { return &w->levels[w->depth]; }

static void begin_word(struct walk *w)
{
    struct level *l = now(w);
    if (!l->in_word) {
        l->in_word = true;
        memset(&l->word, 0, sizeof l->word);
        l->word.from = w->at;
        l->word.plain = l->word.bare = true;
    }
}

static void add_char(struct walk *w, char c)
{
    struct shell_word *word = &now(w)->word;
    if (word->len < SHELL_VALUE_MAX - 1) {
        word->value[word->len] = c;
    }
    word->len++;
}

// What is not there as it is written.
static void begin_quoted(struct walk *w)
{
    begin_word(w);
    now(w)->word.bare = false;
}

// ... and is not known, either.
static void begin_unknown(struct walk *w)
{
    begin_quoted(w);
    now(w)->word.plain = false;
}

static int end_word(struct walk *w)
{
    struct level *l = now(w);
    if (!l->in_word) {
        return 0;
    }
    l->in_word = false;
    l->word.to = w->at;
    if (w->here_next) {
        if (!l->word.plain || l->word.len >= SHELL_VALUE_MAX || w->heres == HERE_MAX) {
            return SHELL_UNSURE;
        }
        memcpy(w->here[w->heres].text, l->word.value, SHELL_VALUE_MAX);
        w->here[w->heres].joins = l->word.bare;
        w->here[w->heres++].len = l->word.len;
        w->here_next = false;
        return 0;
    }
    if (l->target) {
        l->target = false;
        return 0;
    }
    if (l->c.n == SHELL_WORDS_MAX || (l->c.n == 0 && strcmp(l->word.value, "case") == 0)) {
        return SHELL_UNSURE;
    }
    l->c.words[l->c.n++] = l->word;
    return 0;
}

static int end_command(struct walk *w, bool pipe)
{
    int r = end_word(w);
    struct level *l = now(w);
    if (r != 0 || w->here_next || l->target) {
        return r != 0 ? r : SHELL_UNSURE;
    }
    l->c.piped = pipe || l->after_pipe;
    l->c.nested = w->depth > 0;
    l->after_pipe = pipe || (l->c.n == 0 && l->after_pipe); // a newline may follow a pipe
    if (l->c.n > 0) {
        r = w->fn(w->ctx, &l->c);
    }
    l->c.n = 0;
    return r;
}

static int push(struct walk *w, char closer, bool subshell)
{
    if (w->depth + 1 == SHELL_DEPTH_MAX) {
        return SHELL_UNSURE;
    }
    struct level *l = &w->levels[++w->depth];
    l->closer = closer;
    l->subshell = subshell;
    l->quoted = l->in_word = l->target = l->after_pipe = false;
    l->c.n = 0;
    return 0;
}

static int pop(struct walk *w)
{
    int r = end_command(w, false);
    bool subshell = now(w)->subshell;
    if (r != 0 || w->heres > 0) {
        return r != 0 ? r : SHELL_UNSURE;
    }
    w->depth--;
    w->at++;
    if (!subshell) {
        now(w)->word.plain = false;
    }
    return 0;
}

static int skip_single(struct walk *w, bool escapes)
{
    for (w->at++; w->at < w->len && w->p[w->at] != '\''; w->at++) {
        if (escapes && w->p[w->at] == '\\') {
            w->at++;
        }
        add_char(w, peek(w, 0));
    }
    if (w->at >= w->len) {
        return SHELL_UNSURE;
    }
    w->at++;
    return 0;
}

// ${...} and $((...)) without anything in them that could hold a command or a quote.
static int skip_simple(struct walk *w, size_t skip, const char *end)
{
    for (w->at += skip; w->at < w->len; w->at++) {
        if (w->len - w->at >= strlen(end) && memcmp(w->p + w->at, end, strlen(end)) == 0) {
            w->at += strlen(end);
            return 0;
        }
        if (strchr("'\"`\\\n{(", w->p[w->at])) {
            return SHELL_UNSURE;
        }
    }
    return SHELL_UNSURE;
}

static int take_dollar(struct walk *w)
{
    begin_unknown(w);
    if (peek(w, 1) == '[') {
        return SHELL_UNSURE; // arithmetic, as it was once written
    }
    if (peek(w, 1) == '(' && peek(w, 2) == '(') {
        return skip_simple(w, 3, "))");
    }
    if (peek(w, 1) == '(') {
        w->at += 2;
        return push(w, ')', false);
    }
    if (peek(w, 1) == '{') {
        return skip_simple(w, 2, "}");
    }
    if (peek(w, 1) == '\'' && !now(w)->quoted) {
        w->at++;
        return skip_single(w, true);
    }
    w->at++;
    add_char(w, '$');
    return 0;
}

static int take_tick(struct walk *w)
{
    if (now(w)->closer == '`') {
        return now(w)->quoted ? SHELL_UNSURE : pop(w);
    }
    for (uint32_t i = 0; i <= w->depth; i++) {
        if (w->levels[i].closer == '`') {
            return SHELL_UNSURE;
        }
    }
    begin_unknown(w);
    w->at++;
    return push(w, '`', false);
}

static int take_backslash(struct walk *w)
{
    for (uint32_t i = 0; i <= w->depth; i++) {
        if (w->levels[i].closer == '`') {
            return SHELL_UNSURE; // means something else there
        }
    }
    if (w->at + 1 >= w->len) {
        return SHELL_UNSURE;
    }
    if (peek(w, 1) != '\n') {
        begin_quoted(w);
        if (now(w)->quoted && !strchr("$`\"\\", peek(w, 1))) {
            add_char(w, '\\');
        }
        add_char(w, peek(w, 1));
    }
    w->at += 2;
    return 0;
}

static bool goes_on(const char *line, size_t len)
{
    size_t n = 0;
    while (n < len && line[len - 1 - n] == '\\') {
        n++;
    }
    return n % 2 != 0;
}

// Behind a newline: the bodies of here-documents are no commands.
static int skip_heres(struct walk *w)
{
    if (w->heres > 0 && w->depth > 0) {
        return SHELL_UNSURE; // whose text is behind the outer command's line
    }
    for (uint32_t i = 0; i < w->heres; i++) {
        for (bool found = false; !found;) {
            if (w->at >= w->len) {
                return SHELL_UNSURE;
            }
            while (w->here[i].tabs && peek(w, 0) == '\t') {
                w->at++;
            }
            const char *end = memchr(w->p + w->at, '\n', w->len - w->at);
            size_t len = (end ? (size_t)(end - w->p) : w->len) - w->at;
            if (w->here[i].joins && goes_on(w->p + w->at, len)) {
                return SHELL_UNSURE;
            }
            found = len == w->here[i].len && memcmp(w->p + w->at, w->here[i].text, len) == 0;
            w->at += len + (end != NULL);
        }
    }
    w->heres = 0;
    return 0;
}

static bool digits_only(const struct walk *w, const struct shell_word *word)
{
    return word->len < SHELL_VALUE_MAX && strspn(word->value, "0123456789") == word->len &&
           w->at - word->from == word->len;
}

static int take_redirection(struct walk *w)
{
    struct level *l = now(w);
    if (l->in_word && digits_only(w, &l->word)) {
        l->in_word = false; // the descriptor's number
    }
    if (peek(w, 1) == '(') {
        begin_unknown(w);
        w->at += 2;
        return push(w, ')', false);
    }
    int r = end_word(w);
    if (r != 0 || l->target || w->here_next) {
        return r != 0 ? r : SHELL_UNSURE;
    }
    if (peek(w, 0) == '<' && peek(w, 1) == '<' && peek(w, 2) != '<') {
        w->at += 2;
        if (w->heres == HERE_MAX || w->depth > 0) {
            return SHELL_UNSURE;
        }
        w->here[w->heres].tabs = peek(w, 0) == '-';
        w->at += w->here[w->heres].tabs;
        w->here_next = true;
        return 0;
    }
    while (strchr("<>", peek(w, 0)) && peek(w, 0)) {
        w->at++;
    }
    w->at += peek(w, 0) == '&' || peek(w, 0) == '|';
    l->target = true;
    return 0;
}

static int take_open(struct walk *w)
{
    struct level *l = now(w);
    if (l->in_word || l->c.n > 0 || peek(w, 1) == '(' || l->target || w->here_next) {
        return SHELL_UNSURE; // a function, an array, arithmetic, a pattern
    }
    w->at++;
    return push(w, ')', true);
}

static int take_separator(struct walk *w, char c)
{
    if (c == '&' && peek(w, 1) == '>') {
        int r = end_word(w);
        w->at++;
        return r != 0 ? r : take_redirection(w);
    }
    bool pipe = c == '|' && peek(w, 1) != '|';
    int r = end_command(w, pipe);
    w->at += c != '\n' && (peek(w, 1) == c || (pipe && peek(w, 1) == '&')) ? 2 : 1;
    return r == 0 && c == '\n' ? skip_heres(w) : r;
}

static bool is_name(const struct shell_word *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return word->bare && word->len > 0 && word->len < SHELL_VALUE_MAX &&
           strspn(word->value, letters) == word->len &&
           !(word->value[0] >= '0' && word->value[0] <= '9');
}

// At a [ : a[1 + 2]=3 is one word.
static bool blank_in_index(const struct walk *w)
{
    size_t at = w->at;
    while (at < w->len && !strchr("] \t\n;&|<>()'\"`\\", w->p[at])) {
        at++;
    }
    return at < w->len && w->p[at] != ']';
}

static int take_unquoted(struct walk *w, char c)
{
    switch (c) {
    case ' ':
    case '\t': {
        int r = end_word(w);
        w->at++;
        return r;
    }
    case '\n':
    case ';':
    case '&':
    case '|':
        return take_separator(w, c);
    case '<':
    case '>':
        return take_redirection(w);
    case '(':
        return take_open(w);
    case ')':
        return now(w)->closer == ')' ? pop(w) : SHELL_UNSURE;
    case '\'':
        begin_quoted(w);
        return skip_single(w, false);
    case '#':
        if (!now(w)->in_word) {
            while (w->at < w->len && w->p[w->at] != '\n') {
                w->at++;
            }
            return now(w)->closer == '`' ? SHELL_UNSURE : 0;
        }
        break;
    default:
        break;
    }
    begin_word(w);
    struct shell_word *word = &now(w)->word;
    if (c == '[' && is_name(word) && blank_in_index(w)) {
        return SHELL_UNSURE;
    }
    word->assignment |= c == '=' && is_name(word);
    word->glob |= c == '*' || c == '?' || c == '[';
    word->plain &= !(c == '~' || c == '{');
    add_char(w, c);
    w->at++;
    return 0;
}

static int take(struct walk *w)
{
    char c = w->p[w->at];
    switch (c) {
    case '\\':
        return take_backslash(w);
    case '"':
        begin_quoted(w);
        now(w)->quoted = !now(w)->quoted;
        w->at++;
        return 0;
    case '$':
        return take_dollar(w);
    case '`':
        return take_tick(w);
    case 0:
        return SHELL_UNSURE;
    default:
        break;
    }
    if (!now(w)->quoted) {
        return take_unquoted(w, c);
    }
    add_char(w, c);
    w->at++;
    return 0;
}

int shell_walk(const char *text, size_t len, shell_command_fn *fn, void *ctx)
{
    AUTO_FREE struct level *levels = calloc(SHELL_DEPTH_MAX, sizeof *levels);
    if (!levels) {
        return -ENOMEM;
    }
    struct walk w = {.p = text, .len = len, .levels = levels, .fn = fn, .ctx = ctx};
    int r = 0;
    while (r == 0 && w.at < len) {
        r = take(&w);
    }
    if (r == 0) {
        r = w.depth > 0 || levels[0].quoted ? SHELL_UNSURE : end_command(&w, false);
    }
    return r == 0 && w.heres > 0 ? SHELL_UNSURE : r;
}
