// text.h: a file's bytes as lines. Nothing is converted: a line is a place in the bytes, and what
// ended it stays with it.
//
// A line ends with LF or CR LF. A CR alone ends lines only in a file without any LF; elsewhere it
// is a character like others, so that numbers agree with those of grep, sed and compilers. The last
// line may have no ending; an empty file has no line. A BOM belongs to no line.
//
// Memory: the bytes, which are the caller's, and four bytes for each line.
#ifndef ISLE_AGENT_TEXT_H
#define ISLE_AGENT_TEXT_H

#include "agent/refusal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TEXT_MAX_BYTES = 64 << 20,
    TEXT_MAX_LINES = 4 << 20,
    TEXT_TAG_SIZE = 5, // four hex digits and a NUL
};

struct text {
    const char *data;
    size_t len;
    uint32_t *at;   // where each line begins; at[count] == len
    uint32_t count; // of lines
    uint32_t start; // 3 behind a BOM, else 0
    bool lone_cr;   // CR ends the lines
    uint64_t hash;  // of all bytes: what tells versions apart
    char tag[TEXT_TAG_SIZE];
};

struct text_line {
    const char *data;
    size_t len; // without the ending
    const char *ending;
    size_t ending_len; // 0: the last line, not ended
};

// data stays the caller's and must outlive t. 0, -ENOMEM, or AGENT_REFUSED: larger than the bounds
// above, or binary (has a NUL).
int text_init(struct text *t, const char *data, size_t len, struct agent_refusal *ret_why);
void text_done(struct text *t);

// number: 1 to count.
struct text_line text_line(const struct text *t, uint32_t number);
// Of a line's bytes without its ending. The lowest bit is set where the line tells something: it
// has four letters or digits, so that meeting it twice is no accident of blank lines and brackets.
uint32_t text_line_hash(const struct text *t, uint32_t number);

uint64_t text_hash(const char *data, size_t len);
void text_tag(uint64_t hash, char ret[TEXT_TAG_SIZE]);

#endif
