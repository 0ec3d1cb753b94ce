// edit.h: edits of a file, checked as a whole before any of them is made.
//
//   edit_parse()  the request's JSON
//   edit_make()   the new content, in memory; the file and the memory are as before
//   (the caller writes the file, if it still is what was read)
//   edit_commit() what was shown and cut is remembered
//
// Anchors are lines that a read has shown. In a file of another version than was shown, an anchored
// line must be found in exactly one place: equal, and with two equal lines (or the file's end)
// before or behind it. docs/agents.md has the rules as a whole.
#ifndef ISLE_AGENT_EDIT_H
#define ISLE_AGENT_EDIT_H

#include "agent/memory.h"

#include <yyjson.h>

enum {
    EDIT_MAX = 64,                    // edits of a request
    EDIT_NEW_MAX = 1000000,           // bytes of one edit's text
    EDIT_WORK_MAX = 64000000,         // lines compared to find those of an older version
    EDIT_BLOCK_BYTES_MAX = 128 << 20, // read to find blocks: each goes through the file
};

enum edit_op {
    EDIT_REPLACE,
    EDIT_REPLACE_BLOCK,
    EDIT_CUT,
    EDIT_CUT_BLOCK,
    EDIT_INSERT_BEFORE,
    EDIT_INSERT_AFTER,
    EDIT_INSERT_BLOCK_AFTER,
    EDIT_INSERT_HEAD,
    EDIT_INSERT_TAIL,
    EDIT_PASTE_BEFORE,
    EDIT_PASTE_AFTER,
    EDIT_PASTE_BLOCK_AFTER,
    EDIT_PASTE_HEAD,
    EDIT_PASTE_TAIL,
    EDIT_OPS,
};

enum { // what an op is made of
    EDIT_ANCHOR = 1 << 0,
    EDIT_RANGE = 1 << 1, // may have end_line
    EDIT_BLOCK = 1 << 2,
    EDIT_TEXT = 1 << 3,
    EDIT_TAKES = 1 << 4, // removes the lines
    EDIT_STORES = 1 << 5,
    EDIT_PASTES = 1 << 6,
    EDIT_AT_START = 1 << 7, // inserts before, not behind
};

struct edit_kind {
    const char *name;
    unsigned flags;
};
extern const struct edit_kind edit_kinds[EDIT_OPS];

struct edit_anchor {
    uint32_t line;           // 0: none
    char tag[TEXT_TAG_SIZE]; // "": none of its own
};

struct edit {
    enum edit_op op;
    struct edit_anchor line, end;
    const char *text; // new
    size_t text_len;
    const char *reg; // "default" unless named
};

struct edit_request { // texts are the JSON document's
    char tag[TEXT_TAG_SIZE];
    struct edit edits[EDIT_MAX];
    uint32_t n;
};

struct edit_change {                // of one edit, in the new content
    uint32_t first, lines, removed; // new lines from `first` on, and how many were there before
};

struct edit_result {
    struct buf data;  // the new content
    struct text text; // it as lines
    char tag[TEXT_TAG_SIZE];
    struct edit_change changes[EDIT_MAX];
    struct agent_memory staged; // registers that were cut
    uint32_t *shown;            // lines of the new content that are known to the reader
    uint32_t *shown_hashes;     // and of each the hash, where it is known
    size_t shown_n;
    bool mapped; // the file was not the version that was shown
};

// body: {path, tag?, edits: [{op, line, end_line?, new?, register?}]}; path is not looked at.
// 0 or AGENT_REFUSED; then *ret is not to be used.
int edit_parse(yyjson_val *body, struct edit_request *ret, struct agent_refusal *ret_why);

// 0, -ENOMEM or AGENT_REFUSED. ret is to be given to edit_result_done() after 0.
int edit_make(const struct text *t, const char *path, const struct agent_memory *m,
              const struct edit_request *r, struct edit_result *ret, struct agent_refusal *ret_why);
// Registers become m's, and the new content's lines that the reader knows are remembered as shown.
// 0 or -ENOMEM: then the lines are to be read again; the registers are there.
int edit_commit(struct edit_result *e, const char *path, struct agent_memory *m);
// For the reader: the new tag, and for each edit where its lines are now.
int edit_tell(const struct edit_result *e, const struct edit_request *r, struct buf *out);
void edit_result_done(struct edit_result *e);

#endif
