// runtime.h: how a job starts: its argv, the environment that is built for it, what its descriptor
// 3 is. One row per language (runtime.c).
#ifndef ISLE_RUNTIME_RUNTIME_H
#define ISLE_RUNTIME_RUNTIME_H

#include "base/buf.h"
#include "model/job.h"

enum runtime_fd3 {
    RUNTIME_FD3_NONE,   // commands have nothing above 2
    RUNTIME_FD3_FRAMES, // snippets: the wrapper's socket
    RUNTIME_FD3_SCRIPT, // bash: a sealed memfd that /script.sh leads to
};

// What runs Python snippets, unless a setting says otherwise: of the version that the wrapper is
// compiled for (src/guest/make-guest).
#define RUNTIME_PYTHON_NAME "python3.13"
#define RUNTIME_PYTHON "/usr/bin/" RUNTIME_PYTHON_NAME

enum { RUNTIME_MAX_ARGV = 16, RUNTIME_MAX_ENV = 32, RUNTIME_ENV_BYTES = 4096 };

struct runtime_start {
    const char *const *argv; // NULL-terminated
    const char *const *env;  // NULL-terminated; what the job gave comes last and wins
    enum runtime_fd3 fd3;
    // inner: what argv and env point to, beside the job itself
    const char *own_argv[RUNTIME_MAX_ARGV];
    const char **own_env;
    char *text;
};

// `python`: path of the interpreter as jobs see it; NULL or "": RUNTIME_PYTHON. `j` must outlive
// it, tz and python too. 0 or -errno.
int runtime_begin(struct runtime_start *s, const struct job *j, const char *tz, const char *python);
void runtime_done(struct runtime_start *s);

// The first of `words` (with commas between; names, or absolute paths) that is a Python of that
// version in `root`, a runtime root, and beneath its usr, which is what jobs see of it. Names are
// looked for where a job's PATH leads. *ret is the path of the program itself, links followed, as
// jobs see it. 0 or -ENOENT: none is.
enum { RUNTIME_PYTHON_MAX = 128 };
int runtime_find_python(int root, const char *words, char ret[RUNTIME_PYTHON_MAX]);
// Is there a program at this path of the root, as jobs see it? One that all may execute: a job's id
// owns nothing there.
bool runtime_has_program(int root, const char *path);

// JavaScript: the heap limit V8 is given for a job of memory_mb, in MB. Below the job's own, so
// that V8 can say so before the kernel ends it.
int64_t runtime_heap_mb(int64_t memory_mb);

#endif
