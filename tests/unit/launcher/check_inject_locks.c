// Failures while locks are counted (launcher/locks.c).
#include "base/clock.h"
#include "base/fd.h"
#include "check_inject.h"
#include "checks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// A figure of the host that could not be read is 0, and so the next one has grown: it counts then.
int inject_locks_begin(struct client *c, const struct inject_plan *next)
{
    const struct inject_plan unread = {
        .who = INJECT_LOOP, .target = 1, .error = ENOMEM, .only = "openat"};
    struct plan_record r;
    struct inject_left left;
    int e = inject_arm(c, &unread, &r, &left);
    e = e ? e : inject_wait(CLIENT_PATIENCE_MS) ? 0 : -ETIMEDOUT;
    return e ? e : inject_arm(c, next, &r, &left);
}

// Each may hide locks from one count, nothing else.
void check_inject_locks(struct client *c)
{
    static const char script[] = "import fcntl,os\nf=open('/workspace/l','w')\n"
                                 "for i in range(9): fcntl.lockf(f,fcntl.LOCK_EX,1,2*i)\n"
                                 "os.read(0,1); exit(7)";
    const char *const job[] = {"/usr/bin/python3.13", "-c", script, NULL};
    struct try t = try_of(job);
    struct plan_record r, x;
    struct inject_left left;
    int pair[2], hits = 0;
    if (pipe2(pair, O_CLOEXEC)) {
        check("a pipe", false, strerror(errno));
        return;
    }
    t.fd[PLAN_FD_STDIN] = pair[0];
    uint32_t tag = client_start(c, 0, &t);
    int e = client_wait(c, PLAN_EXECUTED, tag, CLIENT_PATIENCE_MS, &x, NULL);
    for (uint32_t call = 1; call < 12 && !e; call++) { // the first open is the figure's
        struct inject_plan plan = {.who = INJECT_LOOP, .target = call, .error = ENOMEM};
        snprintf(plan.only, sizeof plan.only, "%s", call == 1 ? "poll" : "openat");
        e = inject_locks_begin(c, &plan);
        hits += inject_wait(1500);
    }
    inject_arm(c, NULL, &r, &left);
    e = e ? e : fd_write_all(pair[1], "x", 1);
    fd_close(pair[0]);
    fd_close(pair[1]);
    e = e ? e : client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("locks that cannot be counted: the job goes on", hits > 3 && clean_exit(&r, e, 7),
          say(&r, e));
}
