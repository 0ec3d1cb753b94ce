// edit_build.h: the new content out of checked spans.
#ifndef ISLE_AGENT_EDIT_BUILD_H
#define ISLE_AGENT_EDIT_BUILD_H

#include "agent/edit.h"

struct edit_span {
    uint32_t edit;     // index in the request
    uint32_t from, to; // lines, counted from 0, to exclusive: removed; from == to: none
    const char *text;  // that stands there afterwards: lines separated by LF
    size_t text_len;
    bool verbatim; // it is out of a register: a CR before LF is a part of the line
};

// Spans by their places, none inside another. Fills ret->data, tag, changes and shown; v is
// what was shown of t itself; NULL: nothing, or of another version. 0, -ENOMEM or AGENT_REFUSED
// (too large).
int edit_build(const struct text *t, const struct edit_span *spans, uint32_t n,
               const struct memory_view *v, struct edit_result *ret, struct agent_refusal *ret_why);

#endif
