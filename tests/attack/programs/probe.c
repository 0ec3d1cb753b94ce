// probe.c: asks the kernel what each of a list of system calls answers, from wherever it runs.
//
// Standard input: one call per line, "ID NUMBER A0 A1 A2 A3 A4 A5", numbers in hex. Standard
// output: "ID ANSWER", where ANSWER is ok, an errno, "blocked" (no answer within 200 ms), or
// "signal N" or "exit N" for a call that ended its process. Each call has a process of its own.
// Static: it runs in a root with another libc.
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS = 6, PATIENCE_MS = 200 };

static void child(int to, long number, const uint64_t a[ARGS])
{
    // High, so that a call which closes or replaces low descriptors leaves it.
    int out = dup2(to, 200);
    errno = 0;
    long r = syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    int answer = r == -1 ? errno : 0;
    if (write(out, &answer, sizeof answer) != sizeof answer) {
        _exit(1);
    }
    kill(getpid(),
         SIGKILL); // _exit() would flush nothing, but a vfork child must not run on either
}

static void ask(const char *id, long number, const uint64_t a[ARGS])
{
    int p[2], answer, status;
    if (pipe(p)) {
        exit(1);
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(p[0]);
        child(p[1], number, a);
    }
    close(p[1]);
    struct pollfd wait = {.fd = p[0], .events = POLLIN};
    int ready = poll(&wait, 1, PATIENCE_MS);
    ssize_t n = ready > 0 ? read(p[0], &answer, sizeof answer) : 0;
    if (ready == 0) {
        kill(pid, SIGKILL);
    }
    waitpid(pid, &status, 0);
    close(p[0]);
    if (ready == 0) {
        printf("%s blocked\n", id);
    } else if (n == sizeof answer) {
        answer ? printf("%s %d\n", id, answer) : printf("%s ok\n", id);
    } else if (WIFSIGNALED(status)) {
        printf("%s signal %d\n", id, WTERMSIG(status));
    } else {
        printf("%s exit %d\n", id, WEXITSTATUS(status));
    }
    fflush(stdout);
}

int main(void)
{
    char id[64];
    uint64_t n, a[ARGS];
    while (scanf("%63s %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
                 " %" SCNx64,
                 id, &n, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5]) == 2 + ARGS) {
        ask(id, (long)n, a);
    }
    return 0;
}
