// print.h: what the service says, for people and for scripts. None of it reaches a terminal with a
// control character in it, nor a line of columns with a tab or a newline.
#ifndef ISLE_CLIENT_PRINT_H
#define ISLE_CLIENT_PRINT_H

#include <stdbool.h>
#include <stdio.h>
#include <yyjson.h>

struct print_column {
    const char *head;
    const char *key; // of an object; "a.b" is a member of a member
    bool json;       // as JSON even where it is true, false or text
};

// Objects of an array, one a line: at a terminal in columns with a head, else with tabs between.
// Absent and null are "-". 0 or -ENOMEM.
int print_table(FILE *out, bool terminal, yyjson_val *array, const struct print_column *columns,
                size_t n);

// A list that `data` is or has, and on stderr how the next page is asked for. -EPROTO: it has none.
int print_list(yyjson_val *data, const struct print_column *columns, size_t n);

// The same; of a list without any entry stderr has the text instead.
int print_list_or(yyjson_val *data, const struct print_column *columns, size_t n, const char *none);

// The named members of an object that are there, each "HEAD: VALUE" on a line. -EPROTO: it is none.
int print_fields(FILE *out, yyjson_val *object, const struct print_column *columns, size_t n);

// An id, or what else is one text, on a line of its own. -EPROTO: it is none.
int print_word(FILE *out, yyjson_val *value);

// A job's output, if it is text: as it is, or for a terminal (cli/terminal.h).
int print_text(FILE *out, yyjson_val *text);

// Code for whoever wants to know what it does: as it is, or for a terminal, with '?' for all that
// would make it look like other code there.
int print_code(FILE *out, const char *text, size_t len);

// The whole value as one line of JSON. 0 or -errno.
int print_json(FILE *out, yyjson_val *value);

#endif
