// line.h: text for one line of a person's screen, out of bytes that a job chose.
#ifndef ISLE_JOB_LINE_H
#define ISLE_JOB_LINE_H

#include "base/buf.h"

// Appends data as valid UTF-8 with every control character (line ends and terminal sequences among
// them) as a space; cut on a character border where the buffer's bound says so.
void line_add(struct buf *out, const char *data, size_t len);

#endif
