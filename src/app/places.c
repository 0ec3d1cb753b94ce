#include "app/places.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

// True when the programs are in `dir`, with the guest's files in dir/guest.
static int try_folder(struct places *p, const char *dir)
{
    char program[PATH_MAX + 16];
    snprintf(p->libexec, sizeof p->libexec, "%s", dir);
    int n = snprintf(p->guest, sizeof p->guest, "%s/guest", dir);
    snprintf(program, sizeof program, "%s/isle-launcher", p->libexec);
    return n > 0 && (size_t)n < sizeof p->guest && fd_is_program(AT_FDCWD, program);
}

int places_find(struct places *ret)
{
    const char *given = getenv("ISLE_LIBEXEC");
    if (given && given[0]) {
        return try_folder(ret, given) ? 0 : -ENOENT;
    }
    char here[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    if (n > 0) {
        here[n] = '\0';
        char *slash = strrchr(here, '/');
        *(slash ? slash : here) = '\0';
        if (try_folder(ret, here)) {
            return 0;
        }
    }
    return try_folder(ret, ISLE_LIBEXECDIR) ? 0 : -ENOENT;
}
