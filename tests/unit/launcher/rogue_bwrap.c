// rogue_bwrap.c: stands in for Bubblewrap, and makes no sandbox at all. What it says instead
// depends on the uid of its workspace (check_rogue.c).
#include "rogue.h"

#include "launcher/inside.h"
#include "plan/bwrap.h"
#include "plan/plan.h"
#include "plan/steps.h"

#include <sys/socket.h>

static void tell(int fd, uint32_t kind, uint64_t word)
{
    const struct note n = {
        .kind = kind, .step = (uint32_t)word, .error = 5, .status = (int32_t)(word >> 32)};
    call(SYS_write, fd, (long)&n, sizeof n, 0);
}

static uint64_t nonce(void)
{
    static struct passport p;
    call(SYS_pread64, BWRAP_FD_PASSPORT, (long)&p, sizeof p, 0);
    return p.nonce;
}

// The order, and with it the socket of the job's process. Its number, or -1.
static int receive(void)
{
    static struct plan_request q;
    static union {
        struct cmsghdr head;
        char data[CMSG_SPACE(sizeof(int) * INSIDE_N_FDS)];
    } control;
    struct iovec v = {&q, sizeof q};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (call(SYS_recvmsg, BWRAP_FD_SOCK, (long)&m, 0, 0) != sizeof q) {
        return -1;
    }
    return ((int *)(void *)CMSG_DATA(&control.head))[INSIDE_FD_SOCK];
}

static const char program[] = BWRAP_COMMAND;
static const char *const words[] = {program, "inside", NULL};

void rogue_main(void)
{
    const struct timespec long_time = {.tv_sec = 60};
    switch (call(SYS_getuid, 0, 0, 0, 0) - PLAN_UID_WORKSPACE_0) {
    case 0: // tells of things before their time, guesses, and tells the right word twice
        tell(BWRAP_FD_SOCK, NOTE_MAP, 0);
        tell(BWRAP_FD_SOCK, NOTE_EXEC, 0);
        tell(BWRAP_FD_SOCK, NOTE_INSIDE, ~nonce());
        tell(BWRAP_FD_SOCK, NOTE_INSIDE, nonce());
        tell(receive(), NOTE_INSIDE, nonce());
        break;
    case 1: // a failure, and the right word after it
        tell(BWRAP_FD_SOCK, NOTE_ERROR, PLAN_BSTEP_FIRST);
        tell(BWRAP_FD_SOCK, NOTE_INSIDE, nonce());
        break;
    case 2: // no sandbox at all: isle's own process finds out
        call(SYS_execve, (long)program, (long)words, (long)&words[2], 0);
        break;
    default: // nothing
        call(SYS_nanosleep, (long)&long_time, 0, 0, 0);
        break;
    }
    call(SYS_exit_group, 0, 0, 0, 0);
    __builtin_unreachable();
}
