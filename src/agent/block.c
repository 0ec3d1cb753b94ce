#include "agent/block.h"
#include "base/fd.h"

#include <string.h>
#include <strings.h>

struct block_indent block_indent(struct text_line line)
{
    struct block_indent in = {0};
    size_t i = 0;
    for (; i < line.len && (line.data[i] == ' ' || line.data[i] == '\t'); i++) {
        in.eight = line.data[i] == '\t' ? (in.eight / 8 + 1) * 8 : in.eight + 1;
        in.one++;
    }
    while (i < line.len && strchr(" \t\r\f\v", line.data[i])) {
        i++;
    }
    in.blank = i == line.len;
    return in;
}

static int sign(uint32_t a, uint32_t b) { return (a > b) - (a < b); }

int block_compare(struct block_indent a, struct block_indent b)
{
    int s = sign(a.eight, b.eight);
    return s == sign(a.one, b.one) ? s : BLOCK_UNCLEAR;
}

// What ends a block at the indentation of its head: without it the block would be torn.
static bool closes(struct text_line line)
{
    static const char *const words[] = {"end",   "fi",    "done",   "esac",  "else",
                                        "elif",  "elsif", "elseif", "then",  "do",
                                        "until", "when",  "rescue", "ensure"};
    size_t from = 0;
    while (from < line.len && (line.data[from] == ' ' || line.data[from] == '\t')) {
        from++;
    }
    if (from < line.len && strchr("})]>{(", line.data[from])) { // a text has no NUL
        return true;
    }
    size_t len = 0;
    while (from + len < line.len && line.data[from + len] >= 'a' && line.data[from + len] <= 'z') {
        len++;
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strlen(words[i]) == len && memcmp(words[i], line.data + from, len) == 0) {
            return true;
        }
    }
    return false;
}

int block_indented(const struct text *t, uint32_t line, struct block *ret,
                   struct agent_refusal *ret_why)
{
    struct block_indent head = block_indent(text_line(t, line));
    uint32_t last = line, i = line + 1;
    for (; i <= t->count && !head.blank; i++) {
        struct block_indent in = block_indent(text_line(t, i));
        if (in.blank) {
            continue;
        }
        int order = block_compare(in, head);
        if (order == BLOCK_UNCLEAR) {
            return agent_refuse(ret_why,
                                "lines %u and %u mix tabs and blanks, so their "
                                "indentation cannot be compared",
                                line, i);
        }
        if (order <= 0) {
            if (order == 0 && last > line && closes(text_line(t, i))) {
                return agent_refuse(ret_why,
                                    "the block that begins at line %u goes on at line "
                                    "%u, and this kind of file is only understood by its "
                                    "indentation",
                                    line, i);
            }
            break;
        }
        last = i;
    }
    if (last == line) {
        return agent_refuse(ret_why,
                            "line %u begins no block: no line with more indentation "
                            "follows",
                            line);
    }
    *ret = (struct block){line, last};
    return 0;
}

static const struct {
    const char *ends; // of names, with blanks around each
    unsigned flags;
} braces[] = {
    {" c h cc cpp cxx hh hpp hxx m ", BRACES_LINE_COMMENT | BRACES_SINGLE | BRACES_SEPARATOR},
    {" js mjs cjs jsx ts mts cts tsx ", BRACES_LINE_COMMENT | BRACES_SINGLE | BRACES_TEMPLATE},
    {" java kt kts scala cs swift dart ", BRACES_LINE_COMMENT | BRACES_SINGLE | BRACES_TRIPLE},
    {" go ", BRACES_LINE_COMMENT | BRACES_SINGLE | BRACES_RAW_TICK},
    {" rs ", BRACES_LINE_COMMENT | BRACES_LIFETIME},
    {" scss less ", BRACES_LINE_COMMENT | BRACES_SINGLE},
    {" css ", BRACES_SINGLE},
    {" json jsonc json5 ", BRACES_LINE_COMMENT},
};

static bool ends_with(const char *path, const char *list)
{
    const char *name = strrchr(path, '/');
    const char *dot = strrchr(name ? name : path, '.');
    char wanted[16];
    if (!dot || strlen(dot) > sizeof wanted - 3) {
        return false;
    }
    size_t len = strlen(dot + 1);
    wanted[0] = ' ';
    memcpy(wanted + 1, dot + 1, len);
    memcpy(wanted + 1 + len, " ", 2);
    return strcasestr(list, wanted) != NULL;
}

int block_find(const struct text *t, const char *path, uint32_t line, struct block *ret,
               struct agent_refusal *ret_why)
{
    if (block_indent(text_line(t, line)).blank) {
        return agent_refuse(ret_why, "line %u is blank, and begins no block", line);
    }
    struct text_line first = text_line(t, 1);
    bool script = first.len > 2 && memcmp(first.data, "#!", 2) == 0;
    if (ends_with(path, " py pyi pyw ") || (script && memmem(first.data, first.len, "python", 6))) {
        return block_python(t, line, ret, ret_why);
    }
    if (ends_with(path, " md markdown ")) {
        return block_markdown(t, line, ret, ret_why);
    }
    for (size_t i = 0; i < ARRAY_LEN(braces); i++) {
        if (ends_with(path, braces[i].ends)) {
            return block_braces(t, line, braces[i].flags, ret, ret_why);
        }
    }
    return block_indented(t, line, ret, ret_why);
}
