// shell.h: a command for the bash tool, before it runs.
#ifndef ISLE_AGENT_SHELL_H
#define ISLE_AGENT_SHELL_H

#include "agent/refusal.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

// Appends the command to run: as it is, but
//   - `find /`, standing for itself, searches /workspace
//   - `pip install` and `pip3 install` are `python3 -m pip install`
// AGENT_REFUSED: another scan of the whole file system (find, ls -R, grep -r, rg, du, tree): its
// output would be the system's, and minutes of it. This serves a model that means its own files; it
// protects nothing. What the splitter does not understand (case, arrays, arithmetic commands and
// the like) is left alone. 0 or -errno otherwise.
int shell_rewrite(const char *command, size_t len, struct buf *out, bool *ret_changed,
                  struct agent_refusal *ret_why);

#endif
