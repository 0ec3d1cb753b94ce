// shell_words.h: the simple commands of a shell text (POSIX, Shell Command Language, 2.2 to 2.10),
// with where their words stand. Nothing is expanded.
#ifndef ISLE_AGENT_SHELL_WORDS_H
#define ISLE_AGENT_SHELL_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHELL_WORDS_MAX = 64, SHELL_VALUE_MAX = 48, SHELL_DEPTH_MAX = 12 };

struct shell_word {
    size_t from, to;             // in the text
    char value[SHELL_VALUE_MAX]; // without quotes
    uint32_t len;                // of value; more than SHELL_VALUE_MAX - 1: cut
    bool plain;                  // value is what the shell will see, but for glob characters
    bool glob;                   // has *, ? or [ outside quotes
    bool bare;                   // has no quote, backslash or expansion: it may be a reserved word
    bool assignment;             // begins with NAME=
};

struct shell_command {
    struct shell_word words[SHELL_WORDS_MAX];
    uint32_t n;
    bool piped;  // has a pipe before or behind it
    bool nested; // in a substitution or subshell
};

// Called for each simple command, the inner before the outer. Non-zero ends the walk.
typedef int shell_command_fn(void *ctx, const struct shell_command *c);

enum { SHELL_UNSURE = 1000 }; // the text is not understood as a whole: forget what was told

// 0, SHELL_UNSURE, -ENOMEM, or what fn said.
int shell_walk(const char *text, size_t len, shell_command_fn *fn, void *ctx);

#endif
