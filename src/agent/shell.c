#include "agent/shell.h"
#include "agent/shell_words.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGES_MAX = 32 };

struct change {
    size_t from, to;
    const char *text;
};

struct rewriting {
    struct change changes[CHANGES_MAX];
    uint32_t n;
    bool refused; // told at the end only, when all was understood
    struct agent_refusal why;
};

static bool is(const struct shell_word *w, const char *text)
{
    return w->plain && !w->glob && strcmp(w->value, text) == 0;
}

static bool one_of(const struct shell_word *w, const char *const *words)
{
    for (; *words; words++) {
        if (is(w, *words)) {
            return true;
        }
    }
    return false;
}

// "/" in one of its spellings, or all that is in it.
static bool is_root(const struct shell_word *w)
{
    if (!w->plain || w->len >= SHELL_VALUE_MAX || w->value[0] != '/') {
        return false;
    }
    for (const char *p = w->value; *p;) {
        p += strspn(p, "/");
        size_t len = strcspn(p, "/");
        bool dots = len <= 2 && strspn(p, ".") >= len;
        bool all = w->glob && len == 1 && *p == '*';
        if (!dots && !all) {
            return false;
        }
        p += len;
    }
    return true;
}

static int add_change(struct rewriting *g, const struct shell_word *w, const char *text)
{
    if (g->n == CHANGES_MAX) {
        return SHELL_UNSURE;
    }
    uint32_t i = g->n++;
    for (; i > 0 && g->changes[i - 1].from > w->from; i--) {
        g->changes[i] = g->changes[i - 1];
    }
    g->changes[i] = (struct change){w->from, w->to, text};
    return 0;
}

static void refuse(struct rewriting *g, const char *name)
{
    if (!g->refused) {
        agent_refuse(&g->why,
                     "%s over / would go through the whole system, and your files are in "
                     "/workspace: name that, or the folder you mean",
                     name);
    }
    g->refused = true;
}

static int look_at_find(struct rewriting *g, const struct shell_command *c, uint32_t name)
{
    static const char *const links[] = {"-H", "-L", "-P", NULL};
    static const char *const acts[] = {"-delete", "-exec", "-execdir", "-ok",      "-okdir",
                                       "-fprint", "-fls",  "-fprintf", "-fprint0", NULL};
    uint32_t i = name + 1, roots = 0, paths = 0, root = 0;
    while (i < c->n && one_of(&c->words[i], links)) {
        i++;
    }
    bool dashes = i < c->n && is(&c->words[i], "--");
    for (i += dashes;
         i < c->n && !strchr("-(!,", c->words[i].value[0] ? c->words[i].value[0] : 'x'); i++) {
        paths++;
        if (is_root(&c->words[i])) {
            roots++;
            root = i;
        }
    }
    if (roots == 0) {
        return 0;
    }
    bool acting = false;
    for (; i < c->n; i++) {
        acting = acting || one_of(&c->words[i], acts);
    }
    // What deletes or runs something does so where it was told, or not at all.
    if (paths == 1 && !dashes && is(&c->words[root], "/") && !c->piped && !c->nested && !acting) {
        return add_change(g, &c->words[root], "/workspace");
    }
    refuse(g, "find");
    return 0;
}

struct scanner { // a program that goes through folders
    const char *name;
    const char *letters; // options that make it do so; NULL: it always does
    const char *longs;
    const char *with_value; // letters of options whose value is the next word
    bool pattern;           // the first word that is no option is not a path
};

static const struct scanner scanners[] = {
    {"ls", "R", "--recursive", "IwT", false},
    {"grep", "rR", "--recursive", "efmABCdD", true},
    {"egrep", "rR", "--recursive", "efmABCdD", true},
    {"fgrep", "rR", "--recursive", "efmABCdD", true},
    {"rg", NULL, NULL, "efmABCgtTjMd", true},
    {"du", NULL, NULL, "dBtX", false},
    {"tree", NULL, NULL, "LPIoH", false},
};

static void look_at_scanner(struct rewriting *g, const struct shell_command *c, uint32_t name,
                            const struct scanner *s)
{
    bool scans = !s->letters, pattern = s->pattern, root = false, options = true;
    for (uint32_t i = name + 1; i < c->n; i++) {
        const struct shell_word *w = &c->words[i];
        if (options && is(w, "--")) {
            options = false;
        } else if (options && w->value[0] == '-' && w->value[1] == '-') {
            scans = scans || (s->longs && is(w, s->longs));
            pattern = pattern && strncmp(w->value, "--regexp", 8) && strncmp(w->value, "--file", 6);
        } else if (options && w->value[0] == '-' && w->value[1]) {
            for (const char *p = w->value + 1; *p; p++) {
                scans = scans || (s->letters && strchr(s->letters, *p));
                if (strchr(s->with_value, *p)) {
                    pattern = pattern && *p != 'e' && *p != 'f';
                    i += p[1] == 0; // its value is the next word, else the rest of this one
                    break;
                }
            }
        } else if (pattern) {
            pattern = false;
        } else {
            root = root || is_root(w);
        }
    }
    if (scans && root) {
        refuse(g, s->name);
    }
}

// The word that names the program, behind what may stand before it.
static uint32_t name_of(const struct shell_command *c)
{
    static const char *const reserved[] = {"if",    "then",  "else", "elif", "do",
                                           "while", "until", "!",    "time", NULL};
    static const char *const runners[] = {"sudo", "env",     "nohup", "nice", // the first two
                                          "exec", "command", NULL};           // take assignments
    bool assigns = true;
    uint32_t i = 0;
    while (i < c->n && c->words[i].bare && one_of(&c->words[i], reserved)) {
        i++;
    }
    for (; i < c->n; i++) {
        const struct shell_word *w = &c->words[i];
        if (one_of(w, runners)) {
            assigns = is(w, "sudo") || is(w, "env");
        } else if (!assigns || !w->assignment) {
            break;
        }
    }
    if (i + 1 < c->n && is(&c->words[i], "timeout") && c->words[i + 1].value[0] != '-') {
        i += 2;
    }
    return i;
}

// What gives other meanings to words: to the name of a program (function, alias), to && and ||
// ([[).
static bool is_beyond(const struct shell_command *c, uint32_t at)
{
    const struct shell_word *name = &c->words[at];
    return is(name, "alias") || (name->bare && strcmp(name->value, "function") == 0) ||
           (strcmp(name->value, "[[") == 0 && strcmp(c->words[c->n - 1].value, "]]") != 0);
}

static int look_at(void *ctx, const struct shell_command *c)
{
    struct rewriting *g = ctx;
    uint32_t at = name_of(c);
    if (at < c->n && is_beyond(c, at)) {
        return SHELL_UNSURE;
    }
    if (at >= c->n || !c->words[at].plain || c->words[at].len >= SHELL_VALUE_MAX) {
        return 0;
    }
    const struct shell_word *word = &c->words[at];
    const char *name = word->value;
    name += strncmp(name, "/usr/bin/", 9) == 0 ? 9 : strncmp(name, "/bin/", 5) == 0 ? 5 : 0;
    bool pip = strcmp(word->value, "pip") == 0 || strcmp(word->value, "pip3") == 0;
    if (pip && word->to - word->from == word->len && at + 1 < c->n && is(word + 1, "install")) {
        return add_change(g, word, "python3 -m pip");
    }
    if (strcmp(name, "find") == 0) {
        return look_at_find(g, c, at);
    }
    for (size_t i = 0; i < ARRAY_LEN(scanners); i++) {
        if (strcmp(name, scanners[i].name) == 0) {
            look_at_scanner(g, c, at, &scanners[i]);
        }
    }
    return 0;
}

int shell_rewrite(const char *command, size_t len, struct buf *out, bool *ret_changed,
                  struct agent_refusal *ret_why)
{
    struct rewriting g = {.n = 0};
    int r = shell_walk(command, len, look_at, &g);
    if (r < 0) {
        return r;
    }
    if (r == 0 && g.refused) {
        *ret_why = g.why;
        return AGENT_REFUSED;
    }
    size_t at = 0;
    for (uint32_t i = 0; r == 0 && i < g.n; i++) {
        buf_add(out, command + at, g.changes[i].from - at);
        buf_puts(out, g.changes[i].text);
        at = g.changes[i].to;
    }
    buf_add(out, command + at, len - at);
    if (out->error) {
        return out->error;
    }
    *ret_changed = r == 0 && g.n > 0;
    return 0;
}
