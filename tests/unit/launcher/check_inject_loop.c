// Failures outside the steps of a launch: operations, the maker, ends, the talk with the service.
#include "base/clock.h"
#include "base/fd.h"
#include "check_inject.h"
#include "checks.h"
#include "plan/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

static int ask(struct client *c, struct plan_request q, const int *fds, int n)
{
    struct plan_record r;
    int fd = -1;
    client_request(c, &q, fds, n);
    int e = client_wait(c, q.op, q.tag, CLIENT_PATIENCE_MS, &r, &fd);
    fd_close(fd);
    return e;
}

// One of each operation, around a job. Every request must be answered, whatever fails in it.
static int operations(struct client *c)
{
    const char *const job[] = {"/bin/sh", "-c", "sleep 0.05; exit 7", NULL};
    struct try t = try_of(job);
    struct plan_record r;
    AUTO_CLOSE int set = openat(c->seat.cache_root, "one", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int e = ask(
        c, (struct plan_request){.op = PLAN_TMPFS, .uid = V0, .size_bytes = 4096, .size_inodes = 8},
        NULL, 0);
    e = e ? e : ask(c, (struct plan_request){.op = PLAN_SET_ADD}, &set, 1);
    t.limits.cpu_ns = NS_PER_S;
    uint32_t tag = client_start(c, 0, &t);
    int g = client_wait(c, PLAN_EXECUTED, tag, 200, &r, NULL);
    for (uint32_t op = PLAN_SIGNAL; op <= PLAN_EXECUTION && !g && !e; op++) {
        if (op != PLAN_KILL) {
            e = ask(c, (struct plan_request){.op = op, .id = r.id, .signal = SIGURG}, NULL, 0);
        }
    }
    e = e ? e : client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    for (uint32_t i = 0; i < 2 && !e; i++) {
        e = ask(c, (struct plan_request){.op = PLAN_TMPFS_DROP, .workspace_no = i}, NULL, 0);
        e = e ? e : ask(c, (struct plan_request){.op = PLAN_SET_DROP, .sets = {i}}, NULL, 0);
    }
    return e;
}

static void check_operations(struct client *c)
{
    struct plan_record r;
    struct inject_left before, left;
    uint32_t call = 1;
    int e = operations(c);
    char title[128];
    inject_arm(c, NULL, &r, &before);
    for (bool hit = true; hit && !e && call < 500; call++) {
        const struct inject_plan plan = {.who = INJECT_LOOP, .target = call, .error = ENOMEM};
        inject_arm(c, &plan, &r, &left);
        e = operations(c);
        inject_arm(c, NULL, &r, &left);
        hit = r.status != 0;
        if (!e) {
            e = operations(c);
            inject_arm(c, NULL, &r, &left);
        }
        if (left.groups || left.fds > before.fds) {
            e = -EMFILE;
        }
    }
    snprintf(title, sizeof title, "%u calls of the operations failed one by one", call - 2);
    check(title, !e && call > 50, strerror(-e));
}

// More processes than a batch of signals, with every call of SIGNAL failing.
static void check_signal_batches(struct client *c)
{
    const char *const job[] = {
        "/bin/sh", "-c",
        "trap '' URG; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do for k in 1 2 3 4 5; do "
        "sleep 20 & done; done; echo ready; wait",
        NULL};
    struct try t = try_of(job);
    struct plan_record r, x;
    struct inject_left left;
    AUTO_CLOSE int out = memory_file();
    int failed = 0;
    t.fd[PLAN_FD_STDOUT] = out;
    t.limits.pids = 100;
    uint32_t tag = client_start(c, 0, &t), call = 1;
    int e = client_wait(c, PLAN_EXECUTED, tag, CLIENT_PATIENCE_MS, &x, NULL);
    for (int i = 0; i < CLIENT_PATIENCE_MS / 10 && !strstr(output, "ready"); i++) {
        clock_pause_ns(10 * NS_PER_MS);
        slurp(out);
    }
    for (bool hit = true; hit && !e && call < 500; call++) {
        const struct inject_plan plan = {.who = INJECT_LOOP, .target = call, .error = ENOMEM};
        inject_arm(c, &plan, &r, &left);
        failed += client_signal(c, x.id, SIGURG) != 0;
        inject_arm(c, NULL, &r, &left);
        hit = r.status != 0;
    }
    check("SIGNAL with each of its calls failing: told, or one process less",
          failed > 2 && call > 80, say(&x, e));
    struct plan_request q = {.op = PLAN_KILL, .id = x.id};
    client_ask(c, &q, &r);
    e = client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("and its end", !e && r.flags == PLAN_KILLED, say(&r, e));
}

// What the maker cannot make is made in line; it may die, or never live. The plan was made before
// this instance's start.
void check_inject_ahead(struct client *c)
{
    const char *const job[] = {"/bin/sh", "-c", "exit 7", NULL};
    struct plan_record r;
    int bad = 0, e = 0;
    for (int i = 0; i < 6; i++) {
        struct try t = try_of(job);
        e = client_run(c, 0, &t, CLIENT_PATIENCE_MS, &r);
        bad += !clean_exit(&r, e, 7);
        clock_pause_ns(i % 2 ? 15 * NS_PER_MS : 0);
    }
    if (bad) {
        check("jobs run on, whatever the maker does", false, say(&r, e));
    }
}

// Groups that cannot be removed for a while: no END until they are gone, and no answer is false.
static void check_stuck(struct client *c)
{
    const char *const job[] = {"/bin/sh", "-c", "exit 7", NULL};
    const struct inject_plan plan = {
        .who = INJECT_LOOP, .target = 1, .lasting = 1, .error = EBUSY, .only = "unlinkat"};
    struct try t = try_of(job), other = try_of(job);
    struct plan_record r, x;
    struct inject_left left;
    inject_arm(c, &plan, &r, &left);
    uint32_t tag = client_start(c, 0, &t);
    int e = client_wait(c, PLAN_EXECUTED, tag, CLIENT_PATIENCE_MS, &x, NULL);
    int told = 0; // until it has ended
    for (int i = 0; i < CLIENT_PATIENCE_MS / 10 && told != -ESRCH; i++) {
        told = client_signal(c, x.id, SIGURG);
        clock_pause_ns(10 * NS_PER_MS);
    }
    check("SIGNAL to what has ended, and is not removed", told == -ESRCH, strerror(-told));
    struct plan_request q = {.op = PLAN_KILL, .id = x.id};
    check("KILL of it", !client_ask(c, &q, &r), "");
    q = (struct plan_request){.op = PLAN_SAMPLE, .id = x.id};
    check("SAMPLE of it", !client_ask(c, &q, &r), "");
    other.uid = V0 + 1; // and what happens beside it
    other.workspace = "kept/beside";
    fd_close(client_make_workspace(c, "kept/beside", V0 + 1, false));
    uint32_t beside = client_start(c, 0, &other);
    int g = client_wait(c, PLAN_END, tag, 50, &r, NULL);
    check("no END while something is left", !e && g == -ETIMEDOUT, say(&r, g));
    inject_arm(c, NULL, &r, &left);
    e = client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("it comes when nothing is", clean_exit(&r, e, 7), say(&r, e));
    e = client_wait(c, PLAN_END, beside, CLIENT_PATIENCE_MS, &r, NULL);
    check("and that of another", clean_exit(&r, e, 7), say(&r, e));
    client_remove_workspace(c, "kept/beside");
}

// Before Linux 6.15 only what is attached can be cloned: EINVAL. What fails on that way is told,
// and nothing of it is in the way of the next job.
static void check_old_kernel(struct client *c)
{
    static const struct {
        const char *what, *only;
        uint32_t number, lasting;
        int error;
    } jobs[] = {
        {"a folder that cannot be made", "", 0, 1, EINVAL},
        {"a mount that cannot be attached", "syscall", 0, 1, EINVAL},
        {"all is well, and the folder is there already", "syscall", SYS_open_tree, 0, 0},
        {"it is attached, and cannot be cloned all the same", "syscall", SYS_open_tree, 1, EINVAL},
    };
    const char *const job[] = {"/bin/sh", "-c", "exit 7", NULL};
    struct plan_request q = {.op = PLAN_TMPFS, .uid = V0, .size_bytes = 1 << 20, .size_inodes = 64};
    struct plan_record r;
    struct inject_left left;
    int fd = -1;
    client_request(c, &q, NULL, 0);
    int e = client_wait(c, PLAN_TMPFS, q.tag, CLIENT_PATIENCE_MS, &r, &fd);
    uint32_t number = r.id;
    fd_close(fd);
    for (size_t i = 0; i < ARRAY_LEN(jobs) && !e; i++) {
        struct inject_plan plan = {.who = INJECT_LAUNCH,
                                   .target = 1,
                                   .lasting = jobs[i].lasting,
                                   .error = EINVAL,
                                   .number = jobs[i].number,
                                   .steps = UINT64_C(1) << PLAN_STEP_workspace};
        struct try t = try_of(job);
        char title[128];
        snprintf(plan.only, sizeof plan.only, "%s", jobs[i].only);
        t.tmpfs_no = (int)number;
        inject_arm(c, &plan, &r, &left);
        int g = client_run(c, 0, &t, CLIENT_PATIENCE_MS, &r);
        snprintf(title, sizeof title, "a tmpfs of an old kernel: %s", jobs[i].what);
        check(title,
              jobs[i].error ? !g && r.error == jobs[i].error && r.step == PLAN_STEP_workspace
                            : clean_exit(&r, g, 7),
              say(&r, g));
        inject_arm(c, NULL, &r, &left);
    }
    q = (struct plan_request){.op = PLAN_TMPFS_DROP, .workspace_no = number};
    check("it is dropped", !e && !client_ask(c, &q, &r), strerror(-e));
}

// A job with this failing must end well.
static void check_survived(struct client *c, const char *title, const struct inject_plan *plan,
                           const char *script, bool late)
{
    const char *const job[] = {"/bin/sh", "-c", script, NULL};
    struct try t = try_of(job);
    struct plan_record r, told;
    struct inject_left left;
    int pair[2] = {-1, -1};
    if (late && !pipe2(pair, O_CLOEXEC)) { // it goes on when the failure is planned
        t.fd[PLAN_FD_STDIN] = pair[0];
        t.limits.memory_bytes = 64 << 20;
    }
    if (!late) {
        inject_arm(c, plan, &told, &left);
    }
    uint32_t tag = client_start(c, 0, &t);
    int e = client_wait(c, PLAN_EXECUTED, tag, CLIENT_PATIENCE_MS, &r, NULL);
    if (late) {
        inject_arm(c, plan, &told, &left);
        fd_close(pair[0]);
        fd_close(pair[1]);
    }
    e = e ? e : client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    inject_arm(c, NULL, &told, &left);
    check(title, clean_exit(&r, e, 7) && told.status, say(&r, e));
}

void check_inject_loop(struct client *c)
{
    static const char quick[] = "exit 7";
    // a child that the kernel kills for its memory; the job goes on for longer than patience
    static const char hungry[] = "cat; python3.13 -c 'b=bytearray(200<<20)'; sleep 1.3; exit 7";
    static const struct {
        const char *title, *script;
        struct inject_plan plan;
        bool late; // from the beginning of the program on, which needs too much memory
    } survived[] = {
        {"an answer for which there is no memory at first",
         quick,
         {.who = INJECT_SERVICE, .target = 1, .error = ENOBUFS, .only = "sendmsg"},
         false},
        {"a request that is not there after all",
         quick,
         {.who = INJECT_SERVICE, .target = 1, .error = EAGAIN, .only = "recvmsg"},
         false},
        {"a poll that a signal interrupts",
         quick,
         {.who = INJECT_LOOP, .target = 1, .error = EINTR, .only = "ppoll"},
         false},
        {"an end that is not to be seen yet",
         quick,
         {.who = INJECT_LOOP, .target = 1, .error = 0, .only = "waitid"},
         false},
        {"a mount of the host that is noexec, and locked",
         quick,
         {.who = INJECT_LAUNCH,
          .target = 1,
          .error = EPERM,
          .only = "syscall",
          .number = SYS_mount_setattr,
          .steps = UINT64_C(1) << PLAN_STEP_workspace},
         false},
        {"a counter of kills that cannot be read",
         hungry,
         {.who = INJECT_LOOP, .target = 1, .lasting = 1, .error = ENOMEM, .only = "openat"},
         true},
        {"a note of the kernel that cannot be read",
         hungry,
         {.who = INJECT_LOOP, .target = 1, .lasting = 1, .error = ENOMEM, .only = "read"},
         true},
    };
    check_operations(c);
    check_signal_batches(c);
    check_stuck(c);
    check_old_kernel(c);
    for (size_t i = 0; i < ARRAY_LEN(survived); i++) {
        if (!survived[i].late || !(c->seat.downgrades & PLAN_NO_CGROUP_MEMORY)) {
            check_survived(c, survived[i].title, &survived[i].plan, survived[i].script,
                           survived[i].late);
        }
    }
    struct plan_record r;
    struct inject_left left;
    struct plan_request q = {.op = INJECT_OP, .signal = 1};
    int e = client_ask(c, &q, &r);
    for (int i = 0; i < 5; i++) {
        const char *const job[] = {"/bin/sh", "-c", quick, NULL};
        struct try t = try_of(job);
        e = e ? e : client_run(c, 0, &t, CLIENT_PATIENCE_MS, &r);
        check("numbers of sandboxes begin anew, and none is 0", clean_exit(&r, e, 7) && r.id != 0,
              say(&r, e));
    }
    inject_arm(c, NULL, &r, &left);
}

// Last things: the launcher ends, by itself or when the service does; the front cleans.
void check_inject_end(struct client *c, const char *how)
{
    const char *const sleeper[] = {"/bin/sleep", "100", NULL};
    struct inject_plan plan = {.who = INJECT_LOOP, .target = 1, .lasting = 1, .error = EINVAL};
    struct try t = try_of(sleeper);
    struct plan_record r;
    struct inject_left left;
    uint32_t tag = client_start(c, 0, &t);
    int e = client_wait(c, PLAN_EXECUTED, tag, CLIENT_PATIENCE_MS, &r, NULL);
    snprintf(plan.only, sizeof plan.only, "%s", how);
    if (!strcmp(how, "waitpid")) { // of the child that counts locks: it is never done
        plan.error = 0;
        e = e ? e : inject_locks_begin(c, &plan);
        check("locks are counted", !e && inject_wait(CLIENT_PATIENCE_MS), say(&r, e));
        return;
    }
    inject_arm(c, &plan, &r, &left);
    if (!strcmp(how, "ppoll")) {
        struct pollfd p = {.fd = c->seat.launcher_pidfd, .events = POLLIN};
        check("a launcher that cannot wait ends", !e && poll(&p, 1, CLIENT_PATIENCE_MS) == 1,
              say(&r, e));
    }
}
