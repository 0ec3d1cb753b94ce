// A launcher that says what a test tells it: only for what the real one cannot be made to do, such
// as a late record or a death at a chosen moment. The jobs' real life is in tests/e2e.
#ifndef ISLE_TESTS_FAKE_H
#define ISLE_TESTS_FAKE_H

#include "base/fd.h"
#include "base/msg.h"
#include "io/loop.h"
#include "job/runner.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

struct fake {
    struct loop *loop;
    struct runner *runner;
    int ours, theirs; // theirs: the launcher's end, which the test speaks on
    pid_t pid;        // stands for the launcher: its death is the launcher's
    int pidfd;
    int lost;
};

static inline void fake_lost(void *ctx) { ((struct fake *)ctx)->lost++; }

static inline void fake_begin(struct fake *f)
{
    int pair[2];
    *f = (struct fake){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    f->ours = pair[0];
    f->theirs = pair[1];
    f->pid = fork();
    if (f->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pair[0]);
        close(pair[1]);
        pause();
        _exit(0);
    }
    f->pidfd = (int)syscall(SYS_pidfd_open, f->pid, 0);
    assert_true(f->pidfd >= 0);
    assert_int_equal(loop_new(&f->loop), 0);
    assert_int_equal(runner_new(f->loop, f->ours, f->pidfd, fake_lost, f, &f->runner), 0);
}

static inline void fake_die(struct fake *f)
{
    if (f->pid) {
        kill(f->pid, SIGKILL);
        waitpid(f->pid, NULL, 0);
        f->pid = 0;
    }
}

static inline void fake_end(struct fake *f)
{
    fake_die(f);
    runner_free(f->runner);
    loop_free(f->loop);
    close(f->ours);
    fd_close(f->theirs);
    close(f->pidfd);
}

// The next request; its descriptors in fds (PLAN_N_START_FDS).
static inline struct plan_request fake_hear(struct fake *f, int *fds)
{
    struct plan_request q = {0};
    ssize_t n = -EAGAIN;
    for (int i = 0; i < 200 && n == -EAGAIN; i++) {
        n = msg_recv(f->theirs, &q, sizeof q, fds, fds ? PLAN_N_START_FDS : 0, NULL, MSG_DONTWAIT);
        if (n == -EAGAIN) {
            loop_step(f->loop, 10);
        }
    }
    assert_int_equal(n, sizeof q);
    return q;
}

// True when no request waits.
static inline int fake_hears_nothing(struct fake *f)
{
    struct plan_request q;
    return msg_recv(f->theirs, &q, sizeof q, NULL, 0, NULL, MSG_DONTWAIT) == -EAGAIN;
}

static inline void fake_say(struct fake *f, struct plan_record r, int fd)
{
    assert_int_equal(msg_send(f->theirs, &r, sizeof r, &fd, fd >= 0, 0), 0);
    loop_step(f->loop, 100);
}

#endif
