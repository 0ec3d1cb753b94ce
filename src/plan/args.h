// args.h: argv, environment and working directory of a job in one sealed memfd. Written by the
// service, read by the job's own process alone (pid 2, just before its last drop): the launcher
// never parses a tenant's byte.
//
// Layout: struct args_header, then argc + envc + 1 NUL-terminated strings: argv, environment, cwd.
#ifndef ISLE_PLAN_ARGS_H
#define ISLE_PLAN_ARGS_H

#include <stddef.h>
#include <stdint.h>

enum {
    ARGS_MAGIC = 0x41524753,
    ARGS_MAX_BYTES = 256 * 1024, // argv 128 KiB, environment 64 KiB, and room
    ARGS_MAX_ARGV = 4096,
    ARGS_MAX_ENV = 1024,
};

struct args_header {
    uint32_t magic;
    uint32_t argc;  // 1..ARGS_MAX_ARGV
    uint32_t envc;  // 0..ARGS_MAX_ENV
    uint32_t bytes; // of the strings that follow
};

// Service side. A sealed memfd or -errno (-E2BIG past a bound, -EINVAL for argc 0 or an empty
// argv[0]).
int args_pack(const char *const *argv, const char *const *env, const char *cwd);

// Job side: async-signal-safe, no allocation, `data` stays where it is. Fills argv[0..argc] and
// env[0..envc] (NULL-terminated arrays of ARGS_MAX_ARGV + 1 and ARGS_MAX_ENV + 1) with pointers
// into data. 0 or -EINVAL.
int args_parse(char *data, size_t len, char **ret_argv, char **ret_env, char **ret_cwd);

#endif
