// rogue_shim.c: a shim that was taken over, or is broken: what it says and does depends on the host
// name of the sandbox (check_rogue.c). Built as the real one, without a libc.
#include "rogue.h"

#include <sys/utsname.h>

static void tell(uint32_t kind, uint32_t step, int32_t error, int32_t status, size_t size)
{
    const struct note n = {.kind = kind, .step = step, .error = error, .status = status};
    call(SYS_write, NOTE_SHIM_FD, (long)&n, (long)size, 0);
}

static int wait_main(void)
{
    int status = -1;
    while (call(SYS_wait4, 2, (long)&status, 0, 0) == -4) {
    }
    return status;
}

// The sandbox's host name is "rogue-" and a letter; until pid 2 has set it, another.
static char mode(void)
{
    static const char name[] = "rogue-";
    const struct timespec ms = {.tv_nsec = 1000000};
    for (;;) {
        struct utsname u;
        size_t i = 0;
        call(SYS_uname, (long)&u, 0, 0, 0);
        while (name[i] && u.nodename[i] == name[i]) {
            i++;
        }
        if (!name[i]) {
            return u.nodename[i];
        }
        call(SYS_nanosleep, (long)&ms, 0, 0, 0);
    }
}

void rogue_main(void)
{
    int status;
    switch (mode()) {
    case 's': // silent
        wait_main();
        break;
    case 'd': // dies: its sandbox with it
        break;
    case 'e': // ends early, with a report
        tell(NOTE_REPORT, 0, 0, 0, sizeof(struct note));
        break;
    case 'c': // chatter: what is not its to say, and two reports
        tell(99, 0, 0, 0, sizeof(struct note));
        tell(NOTE_PARKED, 0, 0, 0, sizeof(struct note));
        tell(NOTE_MAP, 0, 0, 0, sizeof(struct note));
        tell(NOTE_EXEC, 0, 0, 0, sizeof(struct note));
        wait_main();
        tell(NOTE_REPORT, 0, 0, 3 << 8, sizeof(struct note));
        tell(NOTE_REPORT, 0, 0, 4 << 8, sizeof(struct note));
        break;
    case 'n': // an error that is none
        tell(NOTE_ERROR, 7, 0, 0, sizeof(struct note));
        tell(NOTE_ERROR, 8, 5, 0, sizeof(struct note));
        wait_main();
        break;
    default: // half a note, after which nobody listens
        status = wait_main();
        tell(NOTE_REPORT, 0, 0, status, 4);
        tell(NOTE_REPORT, 0, 0, status, sizeof(struct note));
        break;
    }
    call(SYS_exit_group, 0, 0, 0, 0);
    __builtin_unreachable();
}
