// terminal.h: what a job says, for a terminal. A terminal obeys: it moves, hides and rewrites text,
// sets the clipboard, and answers some questions as if they had been typed at the shell.
#ifndef ISLE_CLI_TERMINAL_H
#define ISLE_CLI_TERMINAL_H

#include "base/buf.h"

#include <stddef.h>

// Appends data (whole characters) as text: valid UTF-8 in which every control character but tab,
// newline, carriage return and backspace is '?'. 0 or -errno.
int terminal_clean(struct buf *out, const char *data, size_t len);

// Room that it needs at most.
size_t terminal_room(size_t len);

#endif
