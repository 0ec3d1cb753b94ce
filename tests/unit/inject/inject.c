#include "inject.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static unsigned countdown;
static bool hit;

void inject_at(unsigned n)
{
    countdown = n;
    hit = false;
}

bool inject_hit(void) { return hit; }

static bool fails(void)
{
    if (countdown == 0 || --countdown > 0) {
        return false;
    }
    hit = true;
    return true;
}

// One wrapper: the real call's prototype, its arguments, what failure looks like.
#define WRAP(type, name, parameters, arguments, error, failure)                                    \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        if (fails()) {                                                                             \
            errno = error;                                                                         \
            return failure;                                                                        \
        }                                                                                          \
        return __real_##name arguments;                                                            \
    }

WRAP(void *, malloc, (size_t n), (n), ENOMEM, NULL)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), ENOMEM, NULL)
WRAP(void *, realloc, (void *p, size_t n), (p, n), ENOMEM, NULL)
WRAP(void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size), ENOMEM, NULL)
WRAP(char *, strdup, (const char *s), (s), ENOMEM, NULL)
WRAP(char *, strndup, (const char *s, size_t n), (s, n), ENOMEM, NULL)
WRAP(int, vasprintf, (char **ret, const char *format, va_list args), (ret, format, args), ENOMEM,
     -1)
WRAP(ssize_t, read, (int fd, void *data, size_t n), (fd, data, n), EIO, -1)
WRAP(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n), ENOSPC, -1)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), EMFILE, -1)
WRAP(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode), ENOSPC, -1)
WRAP(int, renameat, (int from, const char *a, int to, const char *b), (from, a, to, b), EIO, -1)

// The variadic ones by hand. With 64-bit offsets open(2) and openat(2) have these names in libc.
int __wrap_asprintf(char **ret, const char *format, ...);
int __wrap_asprintf(char **ret, const char *format, ...)
{
    va_list args;
    if (fails()) {
        errno = ENOMEM;
        return -1;
    }
    va_start(args, format);
    int n = __real_vasprintf(ret, format, args);
    va_end(args);
    return n;
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (fails()) {
        errno = EMFILE;
        return -1;
    }
    return __real_open64(path, flags, mode);
}

int __real_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (fails()) {
        errno = EMFILE;
        return -1;
    }
    return __real_openat64(dir, path, flags, mode);
}

unsigned inject_all(int (*what)(void), int good)
{
    unsigned n = 1;
    for (;; n++) {
        inject_at(n);
        int result = what();
        bool was_hit = inject_hit();
        inject_at(0);
        if (!was_hit) {
            assert_int_equal(result, good);
            return n - 1;
        }
        assert_true(result <= 0); // refused, or coped with: never something in between
    }
}
