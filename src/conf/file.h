// file.h: the text of a settings file. NAME=VALUE, one a line; blank lines, and # at the beginning
// of a line or behind a blank, are for people. A value with blanks, quotes or # in it stands in
// '...' or
// "..." (there a backslash makes \" and \\). What this takes, a POSIX shell reads as the same
// value, unless it holds $ or `, which mean nothing here.
#ifndef ISLE_CONF_FILE_H
#define ISLE_CONF_FILE_H

#include "conf/conf.h"

enum { CONF_FILE_MAX = 64 * 1024 };

struct conf_file {
    char *text;                        // malloc'ed; the values point into it
    const char *values[SETTING_COUNT]; // NULL: not there, or empty
    unsigned lines[SETTING_COUNT];     // from 1 on
};

// Takes over `text` (len bytes, malloc'ed with one more for a NUL), in any case. `name` is for
// messages: "NAME:LINE: ...". 0, or -EINVAL with *ret_error.
int conf_file_parse(char *text, size_t len, const char *name, struct conf_file *ret,
                    struct conf_error *ret_error);

// The same for what fd is: a regular file that others cannot write and, where it holds a secret,
// cannot read. fd stays the caller's. 0 or -errno with *ret_error.
int conf_file_read(int fd, const char *name, struct conf_file *ret, struct conf_error *ret_error);

void conf_file_done(struct conf_file *f);

#endif
