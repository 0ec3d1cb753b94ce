// Requests that cannot be met: in the wrong moment, for what is not there, or for more than there
// is room for. Each is answered with its reason, and nothing else changes.
#include "base/clock.h"
#include "base/fd.h"
#include "checks.h"
#include "plan/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

static int ask(struct client *c, uint32_t op, uint32_t id)
{
    struct plan_request q = {.op = op, .id = id, .signal = SIGTERM};
    struct plan_record r;
    return client_ask(c, &q, &r);
}

// START with what client_start() does not do.
static uint32_t start_with(struct client *c, uint32_t id, const struct try *t,
                           void (*change)(struct plan_request *q))
{
    c->change = change;
    uint32_t tag = client_start(c, id, t);
    c->change = NULL;
    return tag;
}

static void no_files(struct plan_request *q) { q->limits.nofile = 0; }
static void other_root(struct plan_request *q) { q->root = 1; }
static void least_rung(struct plan_request *q) { q->rung = PLAN_RUNG_NONE; }
static void host_network(struct plan_request *q) { q->network = PLAN_NETWORK_HOST; }
static void other_number(struct plan_request *q) { q->workspace_no = 200; }

// A parked sandbox whose START is refused ends, with the reason; so it is with none.
static void without_sandbox(struct plan_request *q) { q->plain = 1; }

static void refused_starts(struct client *c)
{
    static const struct {
        const char *what;
        void (*change)(struct plan_request *q);
        int error, parked_error;
    } cases[] = {
        {"a limit of nothing", no_files, ERANGE, ERANGE},
        {"another runtime root", other_root, ENOENT, ENOENT},
        {"less isolation than there is", least_rung, EPERM, EPERM},
        {"the host's network, which is not allowed", host_network, EPERM, EINVAL},
        {"no sandbox, which is not allowed", without_sandbox, EPERM, EINVAL},
    };
    const char *const yes[] = {"/bin/true", NULL};
    struct try t = try_of(yes);
    struct plan_record r;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (int parked = 0; parked < 2; parked++) {
            uint32_t id = 0;
            char title[128];
            int e = parked ? client_prepare(c, &id, &r) : 0;
            uint32_t tag = start_with(c, id, &t, cases[i].change);
            e = e ? e : client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
            bool allowed = cases[i].change == least_rung && c->seat.rung == PLAN_RUNG_NONE;
            snprintf(title, sizeof title, "START of a %s sandbox with %s",
                     parked ? "parked" : "new", cases[i].what);
            check(title,
                  !e && r.id == id + (allowed && !parked ? r.id : 0) &&
                      (allowed ? clean_exit(&r, e, 0)
                               : r.error == (parked ? cases[i].parked_error : cases[i].error) &&
                                     (r.step == PLAN_STEP_check || r.step == PLAN_PSTEP_allowed)),
                  say(&r, e));
        }
    }
    int pair[2] = {-1, -1};
    t.fd[PLAN_FD_STDIN] = c->seat.passed[0];
    int e = client_run(c, 0, &t, CLIENT_PATIENCE_MS, &r);
    check("START with a socket of the host's network", !e && r.error == EPERM, say(&r, e));
    e = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ? -errno : 0;
    t.fd[PLAN_FD_STDIN] = pair[0];
    e = e ? e : client_run(c, 0, &t, CLIENT_PATIENCE_MS, &r);
    check("START with one that is not of it", clean_exit(&r, e, 0), say(&r, e));
    fd_close(pair[0]);
    fd_close(pair[1]);
    t.fd[PLAN_FD_STDIN] = 0;
    uint32_t id;
    e = client_prepare(c, &id, &r);
    start_with(c, id, &t, no_files);
    uint32_t tag = start_with(c, id, &t, no_files);
    e = e ? e : client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("START refused twice: one END, with the first reason", !e && r.error == ERANGE,
          say(&r, e));
    t.rung = c->seat.rung;
    e = client_run(c, 0, &t, CLIENT_PATIENCE_MS, &r);
    check("START with the host's own rung by name", clean_exit(&r, e, 0), say(&r, e));
}

static void wrong_moments(struct client *c)
{
    const char *const sleeper[] = {"/bin/sleep", "20", NULL};
    struct try t = try_of(sleeper);
    struct plan_record r, x;
    uint32_t id;
    int e = client_prepare(c, &id, &r);
    check("SIGNAL to a parked sandbox", !e && ask(c, PLAN_SIGNAL, id) == -ESRCH, strerror(-e));
    check("EXECUTION of a parked sandbox", ask(c, PLAN_EXECUTION, id) == -EBUSY, "");
    uint32_t tag = client_start(c, id, &t);
    e = client_wait(c, PLAN_EXECUTED, tag, CLIENT_PATIENCE_MS, &x, NULL);
    uint32_t again = client_start(c, id, &t);
    int g = client_wait(c, PLAN_START, again, CLIENT_PATIENCE_MS, &r, NULL);
    check("START of a running sandbox", !e && !g && r.error == EBUSY, say(&r, g));
    again = start_with(c, id, &t, no_files);
    g = client_wait(c, PLAN_START, again, CLIENT_PATIENCE_MS, &r, NULL);
    check("START of a running sandbox, and wrong", !g && r.error == ERANGE, say(&r, g));
    // another parked one may not have its workspace meanwhile
    uint32_t other;
    e = client_prepare(c, &other, &r);
    again = client_start(c, other, &t);
    e = e ? e : client_wait(c, PLAN_END, again, CLIENT_PATIENCE_MS, &r, NULL);
    check("START in a workspace that is in use", !e && r.error == EBUSY && r.id == other,
          say(&r, e));
    check("the running one goes on", ask(c, PLAN_SAMPLE, id) == 0, "");
    ask(c, PLAN_KILL, id);
    e = client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("until it is killed", !e && r.flags == PLAN_KILLED && !r.error, say(&r, e));
    for (uint32_t op = PLAN_SIGNAL; op <= PLAN_EXECUTION; op++) {
        check("what is over is not there", ask(c, op, id) == -ENOENT, "");
    }
    struct plan_request drop = {.op = PLAN_TMPFS_DROP, .workspace_no = 17};
    check("a tmpfs that is not there cannot be dropped", client_ask(c, &drop, &r) == -ENOENT, "");
    drop = (struct plan_request){.op = PLAN_SET_DROP, .sets = {17}};
    check("a set that is not there cannot be dropped", client_ask(c, &drop, &r) == -ENOENT, "");
    t.tmpfs_no = 0;
    tag = start_with(c, 0, &t, other_number);
    e = client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("a tmpfs that is not there", !e && r.error == EPERM, say(&r, e));
    t = try_of(sleeper);
    t.n_sets = 2;
    t.sets[0] = 200;
    e = client_run(c, 0, &t, CLIENT_PATIENCE_MS, &r);
    check("a set that is not there, before another", !e && r.error == ENOENT, say(&r, e));
}

// Every place is taken: the next is told so, and there is room again afterwards.
static void full_house(struct client *c)
{
    static uint32_t tags[PLAN_MAX_SANDBOXES + 1], ids[PLAN_MAX_SANDBOXES + 1];
    struct plan_record r;
    int made = 0, ended = 0, e = 0;
    for (int i = 0; i <= PLAN_MAX_SANDBOXES && !e; i++) {
        e = client_prepare(c, &ids[i], &r);
        tags[i] = r.tag;
        made += !e;
    }
    check("256 sandboxes are parked, and no more", made == PLAN_MAX_SANDBOXES && e == -EAGAIN,
          say(&r, e));
    const char *const yes[] = {"/bin/true", NULL};
    struct try t = try_of(yes);
    e = client_run(c, 0, &t, CLIENT_PATIENCE_MS, &r);
    check("a job without a place is told", !e && r.error == EAGAIN && r.step == PLAN_STEP_slot,
          say(&r, e));
    e = client_run(c, ids[200], &t, CLIENT_PATIENCE_MS, &r);
    check("one that is parked runs", clean_exit(&r, e, 0), say(&r, e));
    for (int i = 0; i < made; i++) {
        if (i != 200) {
            ask(c, PLAN_KILL, ids[i]);
            ended += !client_wait(c, PLAN_END, tags[i], CLIENT_PATIENCE_MS, &r, NULL);
        }
    }
    check("all of them end", ended == made - 1, say(&r, 0));
    e = client_run(c, 0, &t, CLIENT_PATIENCE_MS, &r);
    check("and there is a place again", clean_exit(&r, e, 0), say(&r, e));
}

static void full_stock(struct client *c)
{
    struct plan_record r;
    int e = 0, n = 0;
    while (e >= 0 && n <= PLAN_MAX_TMPFS) {
        e = client_add_tmpfs(c, V0, 4096, NULL);
        n += e >= 0;
    }
    check("256 tmpfs workspaces at most", n == PLAN_MAX_TMPFS && e == -EAGAIN, strerror(-e));
    for (uint32_t i = 0; i < PLAN_MAX_TMPFS; i++) {
        struct plan_request q = {.op = PLAN_TMPFS_DROP, .workspace_no = i};
        n -= !client_ask(c, &q, &r);
    }
    check("all are dropped", n == 0, "");
    if (c->seat.cache_root < 0) {
        check("no cache, no package sets", client_add_set(c, c->seat.workspace_root) == -ENOENT,
              "");
        return;
    }
    AUTO_CLOSE int one = openat(c->seat.cache_root, "one", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (e = 0, n = 0; e >= 0 && n <= PLAN_MAX_SETS; n += e >= 0) {
        e = client_add_set(c, one);
    }
    check("256 package sets at most", n <= PLAN_MAX_SETS && e == -EAGAIN, strerror(-e));
    for (uint32_t i = 0; i < PLAN_MAX_SETS; i++) {
        struct plan_request q = {.op = PLAN_SET_DROP, .sets = {i}};
        client_ask(c, &q, &r);
    }
    e = client_add_set(c, one);
    check("and there is room again", e >= 0, strerror(-e));
}

// How the program of a job is found.
static void programs(struct client *c)
{
    static const char *const no_env[] = {NULL};
    static char long_path[5000];
    const char *path_env[] = {"A=1", long_path, NULL};
    const char *const name[] = {"id", NULL}, *const file[] = {"data", NULL};
    struct plan_record r;
    struct try t = try_of(name);
    t.env = no_env;
    int e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("without PATH: the usual one", clean_exit(&r, e, 0), say(&r, e));
    memset(long_path, 'x', sizeof long_path - 1);
    memcpy(long_path, "PATH=/", 6);
    memcpy(long_path + sizeof long_path - 1 - 20, ":/etc/passwd/a::/bin", 20);
    t.env = path_env;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("PATH with what is too long, no folder, empty", clean_exit(&r, e, 0), say(&r, e));
    const char *const here_env[] = {"PATH=:/bin:", NULL};
    e = run_sh(c, "echo text > data; echo text > both; chmod 755 both", &r);
    t = try_of(file);
    t.env = here_env;
    e = e ? e : run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("a file that may not be executed: 126",
          clean_exit(&r, e, 126) && strstr(output, "Permission denied"), say(&r, e));
    const char *const both[] = {"both", NULL};
    const char *const twice_env[] = {"PATH=/workspace:.:/bin", NULL};
    t = try_of(both);
    t.env = twice_env;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("no program at all: the first reason", clean_exit(&r, e, 126), say(&r, e));
}

// Descriptor 3, where a job has one.
static void frames(struct client *c)
{
    const char *const job[] = {"/bin/sh", "-c", "cat <&3", NULL};
    struct try t = try_of(job);
    struct plan_record r;
    AUTO_CLOSE int in = memfd_create("in", MFD_CLOEXEC);
    bool made = !fd_write_all(in, "three", 5) && !lseek(in, 0, SEEK_SET);
    t.fd[PLAN_FD_FRAMES] = in;
    int e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("a job has descriptor 3", made && clean_exit(&r, e, 0) && !strcmp(output, "three"),
          say(&r, e));
    t = try_of(job);
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("and another has none", !e && !r.error && r.status, say(&r, e));
}

// A host without control groups, or with few: the main process can be signalled, the budget of CPU
// time holds where it is counted.
void check_bare(struct client *c)
{
    const char *const sleeper[] = {"/bin/sleep", "20", NULL};
    const char *const burn[] = {"/bin/sh", "-c", "while :; do :; done", NULL};
    struct try t = try_of(sleeper);
    struct plan_record r, x;
    uint32_t tag = client_start(c, 0, &t);
    int e = client_wait(c, PLAN_EXECUTED, tag, CLIENT_PATIENCE_MS, &x, NULL);
    int g = client_signal(c, x.id, SIGTERM);
    e = e ? e : client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("SIGNAL reaches the main process on any host", !e && !g && r.status == SIGTERM,
          say(&r, e));
    t = try_of(burn);
    t.limits.cpu_ns = 100 * NS_PER_MS;
    bool counted = !(c->seat.downgrades & PLAN_NO_CPU_TIME);
    e = client_run(c, 0, &t, counted ? 20000 : 600, &r); // as long as the host is busy
    check("a budget of CPU time, where it is counted",
          !e && r.flags == (counted ? PLAN_HIT_CPU : PLAN_KILLED), say(&r, e));
}

// More processes than one batch of signals, that come and go while they are counted.
static void storm(struct client *c)
{
    const char *const job[] = {"/bin/sh", "-c",
                               "trap '' URG; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do "
                               "for k in 1 2 3 4 5; do sleep 3 & done; done; "
                               "while :; do /bin/true; done",
                               NULL};
    struct try t = try_of(job);
    struct plan_record r, x;
    int bad = 0;
    t.limits.pids = 200;
    t.limits.cpu_percent = 6400;
    t.limits.cpu_ns = 20 * NS_PER_S;
    uint32_t tag = client_start(c, 0, &t);
    int e = client_wait(c, PLAN_EXECUTED, tag, CLIENT_PATIENCE_MS, &x, NULL);
    for (int i = 0; i < 300; i++) {
        bad += client_signal(c, x.id, SIGURG) != 0;
    }
    check("a storm of signals over many processes", !e && !bad, say(&x, e));
    ask(c, PLAN_KILL, x.id);
    e = client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("and its end", !e && r.flags == PLAN_KILLED, say(&r, e));
}

// Where the host's network is not allowed, that is told before anything is made.
void check_bwrap_requests(struct client *c)
{
    const char *const yes[] = {"/bin/true", NULL};
    struct try t = try_of(yes);
    struct plan_record r;
    uint32_t tag = start_with(c, 0, &t, host_network);
    int e = client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("no host's network with Bubblewrap", !e && r.error == EPERM && r.step == PLAN_BSTEP_check,
          say(&r, e));
}

void check_old_bwrap(struct client *c)
{
    struct plan_record r;
    check("an old Bubblewrap is told", c->seat.downgrades & PLAN_OLD_BWRAP, "");
    int e = run_sh(c, "exit 7", &r);
    check("and used", clean_exit(&r, e, 7), say(&r, e));
}

// Where it is allowed: cold, and with groups made ahead, whose network is not used then.
void check_network(struct client *c)
{
    struct plan_record r;
    int bad = 0, e = 0;
    for (int i = 0; i < 6; i++) {
        c->change = host_network;
        e = run_sh(c, "exit 7", &r);
        c->change = NULL;
        bad += !clean_exit(&r, e, 7) || !(r.downgrades & PLAN_HOST_NETWORK);
        clock_pause_ns(30 * NS_PER_MS);
    }
    check("jobs with the host's network", !bad, say(&r, e));
    e = run_sh(c, "exit 7", &r);
    check("and one without", clean_exit(&r, e, 7) && !(r.downgrades & PLAN_HOST_NETWORK),
          say(&r, e));
}

void check_requests(struct client *c)
{
    refused_starts(c);
    wrong_moments(c);
    full_stock(c);
    programs(c);
    frames(c);
    storm(c);
}

void check_full(struct client *c) { full_house(c); }
