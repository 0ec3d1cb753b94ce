// block.h: which lines are the block that begins at a line. By the file's name: Python's syntax,
// Markdown's sections, braces; else indentation. What cannot be told for sure is refused.
#ifndef ISLE_AGENT_BLOCK_H
#define ISLE_AGENT_BLOCK_H

#include "agent/text.h"

struct block {
    uint32_t first, last; // lines; first is before the asked one where decorators are
};

// 0 or AGENT_REFUSED: the line begins no block, or the file cannot be understood.
int block_find(const struct text *t, const char *path, uint32_t line, struct block *ret,
               struct agent_refusal *ret_why);

// The ways, each as block_find().
int block_python(const struct text *t, uint32_t line, struct block *ret,
                 struct agent_refusal *ret_why);
int block_markdown(const struct text *t, uint32_t line, struct block *ret,
                   struct agent_refusal *ret_why);
int block_indented(const struct text *t, uint32_t line, struct block *ret,
                   struct agent_refusal *ret_why);

enum { // what a language of braces has beside strings in double quotes and /* */
    BRACES_LINE_COMMENT = 1 << 0, // two slashes
    BRACES_SINGLE = 1 << 1,       // '...' is a string or a character
    BRACES_TEMPLATE = 1 << 2,     // `...${ }...`, and regular expressions
    BRACES_RAW_TICK = 1 << 3,     // `...`
    BRACES_LIFETIME = 1 << 4,     // 'a without an end; strings go on over lines; r#"..."#
    BRACES_TRIPLE = 1 << 5,       // """..."""
    BRACES_SEPARATOR = 1 << 6,    // 1'000
};
int block_braces(const struct text *t, uint32_t line, unsigned flags, struct block *ret,
                 struct agent_refusal *ret_why);

// Columns of a line's white space with tabs to every eighth and to every column: two lines compare
// alike in both or cannot be compared.
struct block_indent {
    uint32_t eight, one;
    bool blank; // nothing but white space
};
struct block_indent block_indent(struct text_line line);
// <0, 0, >0 as a is less, as, or more indented than b; BLOCK_UNCLEAR: tabs and blanks are mixed.
enum { BLOCK_UNCLEAR = 2 };
int block_compare(struct block_indent a, struct block_indent b);

#endif
