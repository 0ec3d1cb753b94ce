// names.h: names that programs chose, as text. A file name may be any bytes; JSON, a terminal and a
// zip want text.
#ifndef ISLE_WORKSPACE_NAMES_H
#define ISLE_WORKSPACE_NAMES_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

// Appends a path: as it is when it is valid UTF-8 without control characters (C0, DEL, C1) and
// without the characters in `also`; else with each byte of those, each that is no valid UTF-8 and
// each "%" as %XX (upper-case digits), which names_unescape() turns back. *ret_escaped says which.
// 0 or the buffer's error.
int names_escape(struct buf *out, const char *path, size_t len, const char *also,
                 bool *ret_escaped);

// Appends the bytes that an escaped path stands for. 0; -EINVAL: a "%" without two digits, or a
// NUL; or the buffer's error.
int names_unescape(struct buf *out, const char *text, size_t len);

#endif
