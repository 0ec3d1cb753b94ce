// locks.c: locks.c WHO FILES LOCKS: takes LOCKS locks on parts of each of FILES files, which no
// control group counts, and waits. WHO: "main"; "orphan": a process that shares its descriptors
// with the main one takes them, and ends; "thread": one that does not share them, and is a thread.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 16, SECONDS = 60 };

static int n_files, n_locks;
static volatile int taken;

static int take(void *unused)
{
    (void)unused;
    for (int i = 0; i < n_files; i++) {
        int fd = memfd_create("locks", MFD_CLOEXEC);
        for (int k = n_locks - 1; k >= 0; k--) {
            struct flock l = {.l_type = F_WRLCK, .l_start = 2L * k, .l_len = 1};
            if (fd < 0 || fcntl(fd, F_SETLK, &l)) {
                perror("lock");
                exit(1);
            }
        }
    }
    taken = 1;
    return 0;
}

static int take_and_stay(void *unused)
{
    take(unused);
    sleep(SECONDS);
    return 0;
}

int main(int argc, char **argv)
{
    static char stack[STACK_BYTES] __attribute__((aligned(16)));
    const int thread = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
    n_files = argc > 3 ? atoi(argv[2]) : 0;
    n_locks = argc > 3 ? atoi(argv[3]) : 0;
    int pid = 0;
    if (n_files && !strcmp(argv[1], "orphan")) {
        pid = clone(take, stack + sizeof stack, CLONE_FILES | CLONE_VM | SIGCHLD, NULL);
        waitpid(pid, NULL, 0);
    } else if (n_files && !strcmp(argv[1], "thread")) {
        pid = clone(take_and_stay, stack + sizeof stack, thread, NULL);
    } else {
        take(NULL);
    }
    for (int i = 0; i < SECONDS * 10 && !taken && pid >= 0; i++) {
        usleep(100000);
    }
    printf("%s\n", taken ? "taken" : "not taken");
    fflush(stdout);
    sleep(n_files * n_locks > 100000 ? SECONDS : 0);
    return 0;
}
