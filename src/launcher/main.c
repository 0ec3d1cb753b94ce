// main.c: isle-launcher's start and its loop. See launcher.h.
#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"
#include "base/tree.h"
#include "guest/policy/policy.h"
#include "kernel/landlock.h"
#include "kernel/rlimit.h"
#include "kernel/seccomp.h"
#include "kernel/sys.h"
#include "launcher/inject.h"
#include "launcher/launcher.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>

enum {
    EXIT_START = 70,
    SHIM_MAX_BYTES = 65536,
    SHUT_DOWN_MS = 2000, // the front gives up after 3 s, and kills by group
    FDS_PER_BOX = 4,
};

// ---- end --------------------------------------------------------------------------------------

// Whatever the kernel says is our child: one that is in no table, too.
static void kill_children(const struct launcher *l)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "self/task/%d/children", getpid());
    if (fd_read_at(l->proc, path, text, sizeof text) <= 0) {
        return;
    }
    char *save = NULL;
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        long pid = strtol(word, NULL, 10);
        // the kernel writes numbers; but 0 and -1 are whole groups
        if (pid > 0) {
            kill((pid_t)pid, SIGKILL); // our own child, not yet waited for: the number is still its
        }
    }
}

static bool any_left(struct launcher *l)
{
    bool left = false;
    for (int i = 0; i < PLAN_MAX_SANDBOXES; i++) {
        struct box *b = &l->box[i];
        siginfo_t info;
        if (!b->id) {
            continue;
        }
        box_kill(l, b); // also what a plain job's shim has left
        if (!b->gone) {
            b->gone =
                !waitid((idtype_t)3 /* P_PIDFD */, (id_t)b->pidfd, &info, WEXITED | WNOHANG) &&
                info.si_pid;
        }
        if (b->gone && !cgroup_remove(&l->groups, b->group)) {
            b->id = 0;
        }
        left |= b->id != 0;
    }
    return left;
}

_Noreturn void launcher_shut_down(struct launcher *l)
{
    uint64_t until = clock_now_ns() + SHUT_DOWN_MS * NS_PER_MS;
    ahead_done(l);
    locks_done(l);
    kill_children(l);
    while (any_left(l) && clock_now_ns() < until) {
        clock_pause_ns(NS_PER_MS);
    }
    AUTO_CLOSE int once = openat(l->ws, "once", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (once >= 0) {
        tree_empty(once); // one-shot folders have no owner any more
    }
    _exit(0);
}

// ---- start ------------------------------------------------------------------------------------

static _Noreturn void fail(const char *what, int error)
{
    fprintf(stderr, "isle-launcher: %s: %s\n", what, strerror(-error));
    _exit(EXIT_START);
}

static void must(const char *what, int result)
{
    if (result < 0) {
        fail(what, result);
    }
}

static void must_call(const char *what, int result) { must(what, result < 0 ? -errno : result); }

// Children inherit dispositions and mask: made plain once, here, instead of in every job.
static void plain_process(void)
{
    sigset_t none;
    sigemptyset(&none);
    for (int sig = 1; sig < 65; sig++) {
        signal(sig, SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, &none, NULL);
    umask(022);
    // Not 0: a core_pattern that is a pipe is run by host root at 0, and only at 1 it is not
    // (fs/coredump.c in the kernel). Here, as our own filter lets nobody change it.
    must("rlimit", rlimit_lower(RLIMIT_CORE, 1, 1));
    // by the attribute, not by a file mode of 0711: then setns on our own children would fail
    must_call("dumpable", prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
}

static int seat_fd(int fd) { return fcntl(fd, F_SETFD, FD_CLOEXEC) ? -1 : fd; }

static void take_seat(struct launcher *l)
{
    int v1[SEAT_N_V1];
    for (int i = SEAT_SERVICE; i < SEAT_CGROUP_V2; i++) {
        must_call("seat", seat_fd(i));
    }
    for (int i = 0; i < SEAT_N_V1; i++) {
        v1[i] = seat_fd(SEAT_CGROUP_V1 + i);
    }
    sys_close_from(SEAT_FD_END);
    if (pread(SEAT_CONFIG, &l->config, sizeof l->config, 0) != sizeof l->config ||
        l->config.magic != SEAT_MAGIC || l->config.version != SEAT_VERSION ||
        l->config.n_calls > SEAT_MAX_CALLS || l->config.uid_count == 0 ||
        l->config.launcher >= SEAT_N_LAUNCHERS ||
        (l->config.launcher == SEAT_NONE && !l->config.allow_plain) ||
        !memchr(l->config.hostname, '\0', sizeof l->config.hostname)) {
        fail("seat: not of this build", -EINVAL);
    }
    cgroup_tree_init(&l->groups, seat_fd(SEAT_CGROUP_V2), v1, l->config.v1_controllers,
                     l->config.v2_controllers, NULL);
    // what is free of them shall stay so: children put things at fixed numbers
    for (int i = SEAT_SERVICE; i < SEAT_FD_END; i++) {
        if (fcntl(i, F_GETFD) < 0) {
            must_call("seat", dup3(SEAT_CONFIG, i, O_CLOEXEC));
        }
    }
}

static int open_folder(const char *path, uint64_t *ret_mount, uint32_t *ret_uid)
{
    struct statx s;
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &s)) {
        return -errno;
    }
    *ret_mount = s.stx_mnt_id;
    *ret_uid = s.stx_uid;
    return fd_take(&fd);
}

static void open_roots(struct launcher *l)
{
    uint64_t own = 0;
    uint32_t uid;
    const char *what;
    int e = template_build(&l->config, &what);
    if (e) {
        fail(what, e);
    }
    must_call("/proc", l->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (l->config.launcher == SEAT_BWRAP) {
        must("bw", l->bwrap = template_namespace(l->proc, "/bw"));
    }
    if (l->config.allow_plain) {
        must("plain", l->plain = template_namespace(l->proc, "/plain"));
    }
    must("template", l->template = template_namespace(l->proc, "/jail"));
    must("/ws", l->ws = open_folder("/ws", &l->ws_mount, &uid));
    // Shared, as the service gets this very descriptor: no start may empty it while either lives
    // (start/folders.h). The front holds one, too; a file system without locks has none.
    flock(l->ws, LOCK_SH | LOCK_NB);
    must("/cache", l->cache = open_folder("/cache", &l->cache_mount, &l->cache_uid));
    AUTO_CLOSE int root = open_folder("/", &own, &uid);
    must("/", root);
    if (l->cache_mount == own) { // nothing is mounted there: no package sets here
        l->cache = fd_close(l->cache);
    }
}

// The shim as a sealed memfd: nobody can write it, it has no path, and it belongs to inner root of
// this instance whoever owns the installed file. Mode 0111 makes what executes it not dumpable.
static void seal_shim(const struct launcher *l)
{
    static char data[SHIM_MAX_BYTES];
    char path[32];
    ssize_t n = fd_read_full(SEAT_SHIM, data, sizeof data);
    if (n <= 0 || n == sizeof data) {
        fail("shim", n < 0 ? (int)n : n ? -EFBIG : -ENOEXEC);
    }
    AUTO_CLOSE int sealed = fd_sealed("shim", data, (size_t)n);
    must("shim", sealed);
    must_call("shim", fchmod(sealed, 0111));
    // a descriptor that could write would make every exec of it ETXTBSY
    snprintf(path, sizeof path, "self/fd/%d", sealed);
    AUTO_CLOSE int shim = openat(l->proc, path, O_PATH | O_CLOEXEC);
    must_call("shim", shim);
    must_call("shim", dup3(shim, SEAT_SHIM, O_CLOEXEC));
}

// Bubblewrap clones with namespaces, speaks netlink and installs a filter by prctl(), which no
// other child of ours may; what it starts has the whole first stage again.
static int fence(const struct launcher *l)
{
    static const uint32_t more[] = {SYS_clone, SYS_socket, SYS_prctl};
    uint32_t calls[SEAT_MAX_CALLS + ARRAY_LEN(more)], n = l->config.n_calls;
    _Static_assert(ARRAY_LEN(calls) <= SECCOMP_MAX_CALLS, "the most that a filter takes");
    memcpy(calls, l->config.calls, n * sizeof *calls);
    for (size_t i = 0; i < ARRAY_LEN(more) && l->config.launcher == SEAT_BWRAP; i++) {
        calls[n++] = more[i];
    }
    return seccomp_install_with(policy_stage1.code, policy_stage1.count, calls, n);
}

static void find_rung(struct launcher *l)
{
    switch (l->config.launcher) {
    case SEAT_BWRAP: // it makes the namespace itself, as the workspace's uid, or fails
        l->rung = PLAN_RUNG_SELF;
        break;
    case SEAT_NONE:
        l->rung = PLAN_RUNG_NONE;
        if (plain_check_host(l)) {
            fail("jobs without isolation need control groups, which tell what one leaves behind, "
                 "and more than one user id",
                 -EOPNOTSUPP);
        }
        break;
    default:
        l->rung = rung_find(l);
    }
}

static void find_abilities(struct launcher *l)
{
    if (l->config.launcher == SEAT_BWRAP) {
        must_call("program", l->program = openat(l->proc, "self/exe", O_PATH | O_CLOEXEC));
    }
    l->landlock_abi = landlock_abi();
    if (l->config.test_refuse_rungs & LAUNCHER_REFUSE_SCOPES &&
        l->landlock_abi >= LANDLOCK_ABI_SCOPES) {
        l->landlock_abi = LANDLOCK_ABI_SCOPES - 1;
    }
    l->n_cpus = (unsigned)get_nprocs(); // at least 1
    find_rung(l);
    if (l->rung == PLAN_RUNG_NONE && l->config.require_user_namespace) {
        fail("no job can have a user namespace of its own on this host, and one is required",
             -EPERM);
    }
    l->downgrades = cgroup_downgrades(&l->groups);
    l->downgrades |= l->config.single_uid ? PLAN_SINGLE_UID : 0;
    l->downgrades |= l->landlock_abi ? 0 : PLAN_NO_LANDLOCK;
    l->downgrades |= l->config.n_calls ? PLAN_SECCOMP_ALLOW : 0;
    if (l->config.launcher == SEAT_NONE) {
        l->downgrades |= PLAN_NO_ISOLATION | begin_downgrades(l, PLAN_NETWORK_HOST);
    } else {
        l->downgrades |= l->rung == PLAN_RUNG_NONE ? PLAN_NO_USER_NAMESPACE : 0;
    }
    bool old = l->config.bwrap_version && l->config.bwrap_version < BWRAP_SOUND;
    l->downgrades |= l->config.launcher == SEAT_BWRAP && old ? PLAN_OLD_BWRAP : 0;
}

static void say_ready(struct launcher *l)
{
    const int fds[] = {l->ws, l->cache};
    const struct plan_record r = {.op = PLAN_READY,
                                  .status = -1,
                                  .rung = l->rung,
                                  .downgrades = l->downgrades,
                                  .landlock_abi = (uint32_t)l->landlock_abi};
    request_answer(l, &r, fds, l->cache >= 0 ? 2 : 1);
    // From here on nobody but the service hears of anything; no child shall keep its terminal.
    for (int i = 0; i < SEAT_SERVICE; i++) {
        must_call("0-2", fcntl(i, F_SETFD, FD_CLOEXEC));
    }
}

// ---- loop -------------------------------------------------------------------------------------

struct watch {
    struct pollfd p[2 + FDS_PER_BOX * PLAN_MAX_SANDBOXES];
    nfds_t n;
};

static void watch_add(struct watch *w, int fd)
{
    w->p[w->n++] = (struct pollfd){.fd = fd, .events = POLLIN}; // poll skips -1
}

// Fills the list and returns when the clock wants attention.
static uint64_t watch_build(struct launcher *l, struct watch *w, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    w->n = 0;
    watch_add(w, SEAT_SERVICE);
    watch_add(w, SEAT_SERVICE_PIDFD);
    for (int i = 0; i < PLAN_MAX_SANDBOXES; i++) {
        struct box *b = &l->box[i];
        if (!b->id) {
            continue;
        }
        uint64_t due = box_tick(l, b, now);
        next = due < next ? due : next;
        if (b->id && !b->gone) {
            watch_add(w, b->sock);
            watch_add(w, b->report);
            watch_add(w, b->oom);
            watch_add(w, b->pidfd);
        }
    }
    uint64_t locks = locks_tick(l, now);
    return locks < next ? locks : next;
}

static void serve_boxes(struct launcher *l, const struct watch *w)
{
    nfds_t k = 2;
    for (int i = 0; i < PLAN_MAX_SANDBOXES && k < w->n; i++) {
        struct box *b = &l->box[i];
        // as in watch_build(): in this loop nothing but box_end() of this very box frees one
        if (!b->id || b->gone) {
            continue;
        }
        const struct pollfd *p = &w->p[k];
        k += FDS_PER_BOX;
        if (p[0].revents || p[1].revents) {
            box_notes(l, b);
        }
        if (p[2].revents) {
            box_oom_event(b);
        }
        if (p[3].revents) {
            box_end(l, b);
        }
    }
}

// After a poll that failed: a host without memory at the moment is no reason to end all jobs.
static void wait_for_memory(void)
{
    if (errno != ENOMEM && errno != EINTR) {
        fail("poll", -errno);
    }
    clock_pause_ns(NS_PER_MS);
}

static _Noreturn void loop(struct launcher *l)
{
    static struct watch w;
    for (;;) {
        uint64_t now = clock_now_ns();
        uint64_t next = watch_build(l, &w, now);
        // what is due now was done just now; but a mistake there must not be a hang
        uint64_t wait = next > now ? next - now : 0;
        const struct timespec timeout = {.tv_sec = (time_t)(wait / NS_PER_S),
                                         .tv_nsec = (long)(wait % NS_PER_S)};
        int ready = ppoll(w.p, w.n, next == UINT64_MAX ? NULL : &timeout, NULL);
        if (ready < 0) {
            wait_for_memory();
        }
        if (ready <= 0) {
            continue;
        }
        if (w.p[1].revents) { // an end of file is no signal: others may hold a copy of the socket
            launcher_shut_down(l);
        }
        serve_boxes(l, &w);
        if (w.p[0].revents && !request_serve(l)) {
            launcher_shut_down(l);
        }
    }
}

int main(int argc, char **argv)
{
    static struct launcher l;
    if (argc == 2 && !strcmp(argv[1], "inside")) {
        inside_main();
    }
    l.maker = l.bwrap = l.plain = l.program = -1;
    inject_init(INJECT_START);
    plain_process();
    take_seat(&l);
    stock_init(&l);
    open_roots(&l);
    seal_shim(&l);
    must("pidfd", l.self_pidfd = sys_pidfd_open(getpid()));
    l.marks = mmap(NULL, PLAN_MAX_SANDBOXES * sizeof *l.marks, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (l.marks == MAP_FAILED) {
        fail("marks", -errno);
    }
    must("locks", locks_init(&l));
    // fences us too, and every child inherits it
    must("filter", fence(&l));
    must("test filter", rung_refuse(l.config.test_refuse_rungs));
    find_abilities(&l);
    say_ready(&l);
    inject_as(INJECT_LOOP, PLAN_STEP_end);
    loop(&l);
}
