// locate.h: where lines of an older version of a file are now.
#ifndef ISLE_AGENT_LOCATE_H
#define ISLE_AGENT_LOCATE_H

#include "agent/memory.h"

struct locate {
    const struct text *t;
    const struct memory_view *v; // of the version that the lines are numbered by
    uint32_t *hashes;            // of all lines of t, made when first needed
    uint64_t work;               // lines compared
};

enum locate_answer { LOCATE_NOWHERE = 1, LOCATE_UNCLEAR, LOCATE_TOO_MUCH };

// Lines first..last of v, all of them shown, are at *ret_first in t. 0, -ENOMEM or an answer.
int locate_lines(struct locate *l, uint32_t first, uint32_t last, uint32_t *ret_first);
void locate_done(struct locate *l);

#endif
