// bwrap.h: the command line of Bubblewrap as a table: the platform's documented one, in its order,
// and what isle adds, each with its reason. The launcher makes the arguments of it, `isle run
// --show-plan` prints it. Pure: looks at nothing but its input.
//
// Paths on the left are those of the tree that Bubblewrap is started in, which is isle's, not the
// host's: /jail is the model of a job's root (as for the native launcher, launcher/template.c),
// /job has what this job is given.
#ifndef ISLE_PLAN_BWRAP_H
#define ISLE_PLAN_BWRAP_H

#include <stddef.h>
#include <stdint.h>

// 0.12.0 is 0x000c00; 0: unknown. Versions before BWRAP_SOUND make mount targets through links of a
// folder that is bound already (CVE-2026-87766).
#define BWRAP_VERSION(major, minor, patch)                                                         \
    ((uint32_t)(major) << 16 | (uint32_t)(minor) << 8 | (uint32_t)(patch))
enum {
    BWRAP_SOUND = BWRAP_VERSION(0, 12, 0),
    BWRAP_OLDEST = BWRAP_VERSION(0, 5, 0), // --clearenv
};

// Descriptors that it is started with; nothing else is open but 0 to 2.
enum bwrap_fd {
    BWRAP_FD_SOCK = 3, // of isle's first process inside, to the launcher
    BWRAP_FD_PROGRAM,  // that process's program
    BWRAP_FD_PASSPORT, // sealed memfd: launcher/inside.h
    BWRAP_FD_ARGS,     // sealed memfd: bwrap_arguments()
    BWRAP_FD_FILTER,   // sealed memfd: the compiled seccomp filter
    BWRAP_FD_END,
};

// The command line itself; its last words are what is executed inside.
#define BWRAP_COMMAND "/proc/self/fd/4"
extern const char *const bwrap_command_line[]; // NULL-terminated

struct bwrap_row {
    const char *words[4]; // of one option; "%h": the host name
    const char *instead;  // the documented option that this one stands for, or ""
    const char *why;      // of the difference; NULL: as documented
    uint32_t since;       // older versions do not have it: then it is left out
    enum bwrap_when { BWRAP_ALWAYS, BWRAP_WITHOUT_NETWORK, BWRAP_WITH_NETWORK } when;
};
extern const struct bwrap_row bwrap_rows[];
extern const size_t bwrap_n_rows;

struct bwrap_input {
    uint32_t version; // 0: taken for one that has everything
    const char *hostname;
    // Paths below /proc that are covered, each by what lies at `cover` in /jail; ends with NULL.
    const struct bwrap_cover {
        const char *path, *cover;
    } * covers;
    uint32_t n_sets;       // package sets, mounted at /packages/N
    uint32_t host_network; // 1: the job has the host's network
};

// What follows `--args`: every word with its NUL. Bytes, or -E2BIG.
enum { BWRAP_ARGUMENTS_MAX = 8192 }; // room for all rows
int bwrap_arguments(const struct bwrap_input *in, char *ret, size_t size);

// "bubblewrap 0.12.0" and what follows. 0 where it is no such text.
uint32_t bwrap_version_read(const char *text);

// What a line on its standard error means, with what helps; NULL where it is not known.
const char *bwrap_translate(const char *line);

#endif
