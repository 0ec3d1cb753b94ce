// The new image: inner root of the outer user namespace until inner_drop(), then the service.
// Single-threaded; the working folder is that of child_mounts() until inner_shed().
#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"
#include "base/tree.h"
#include "kernel/mount.h"
#include "kernel/sys.h"
#include "plan/plan.h"
#include "start/internal.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

// The lock, INNER_LOCK, stays open until this process ends: that is all it is for.
enum { READY_LIMIT_MS = 20000, LAUNCHER_END_MS = 5000 };

// All seals: the record is what the child wrote, and not a file somebody passed.
static int read_record(struct start_record *ret)
{
    const int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
    struct start_record r;
    if (fcntl(INNER_RECORD, F_GET_SEALS) != seals ||
        pread(INNER_RECORD, &r, sizeof r, 0) != sizeof r || r.magic != START_MAGIC) {
        return -EINVAL;
    }
    *ret = r;
    return 0;
}

int start_is_inner(int argc, char **argv)
{
    struct start_record r;
    return argc > 0 && !strcmp(argv[0], INNER_NAME) && !read_record(&r);
}

static void find_uids(const struct start *s, struct seat *seat)
{
    enum { APART = 64 };
    const uint32_t all = PLAN_UID_WORKSPACE_END - PLAN_UID_WORKSPACE_0;
    const uint32_t count = s->record.seat.uid_count;
    bool shared = s->record.user != START_ROOT || count < PLAN_UID_COUNT;
    // where there is one id only, workspaces have all the numbers
    seat->n_uids = count > PLAN_UID_WORKSPACE_0 ? count - PLAN_UID_WORKSPACE_0 : all;
    seat->first_uid = shared ? s->record.instance * APART % seat->n_uids : 0;
}

int inner_ready(struct start *s)
{
    struct seat *seat = s->seat;
    struct plan_record r;
    // its end is told by the pidfd: whoever holds a copy of the socket could delay an end of file
    struct pollfd p[2] = {{seat->launcher, POLLIN, 0}, {seat->launcher_pidfd, POLLIN, 0}};
    int n;
    do {
        n = poll(p, 2, READY_LIMIT_MS);
    } while (n < 0 && errno == EINTR);
    if (!(p[0].revents & POLLIN)) {
        return start_fail(s, n == 0 ? -ETIMEDOUT : -ECHILD, "isle-launcher is not ready");
    }
    int roots[2];
    ssize_t got = msg_recv(seat->launcher, &r, sizeof r, roots, 2, NULL, 0);
    seat->workspace_root = roots[0];
    seat->cache_root = roots[1];
    if (got == 0 || got == -ECONNRESET) { // reset: what was asked ahead was not read either
        const char *asked =
            s->record.seat.require_user_namespace
                ? ": SANDBOX_REQUIRE_USER_NAMESPACE=true may ask for more than this "
                  "host has"
                : "";
        return start_fail(
            s, 0, "isle-launcher cannot make sandboxes here%s (it says why on stderr)", asked);
    }
    if (got != sizeof r || r.op != PLAN_READY) {
        return start_fail(s, got < 0 ? (int)got : -EPROTO, "isle-launcher is not ready");
    }
    if (r.error) {
        return start_fail(s, -r.error, "isle-launcher cannot make sandboxes here (its step %u)",
                          r.step);
    }
    if (seat->workspace_root < 0) {
        return start_fail(s, -EPROTO, "isle-launcher gave no workspace root");
    }
    seat->rung = r.rung;
    seat->downgrades = r.downgrades;
    seat->landlock_abi = r.landlock_abi;
    find_uids(s, seat);
    s->record.marks_ns[START_T_READY] = clock_now_ns();
    return 0;
}

int inner_shed(struct start *s)
{
    if (unshare(CLONE_NEWNS)) {
        return start_fail(s, -errno, "mount namespace");
    }
    if (mount("tmpfs", "new", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,nr_inodes=16,mode=755") ||
        mkdir("new/proc", 0555) || mkdir("new/dev", 0755)) {
        return start_fail(s, -errno, "tmpfs of the service");
    }
    // SQLite wants a path. Nothing there is executed, and no link of it followed, however the host
    // has mounted it.
    const uint64_t inert =
        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSYMFOLLOW;
    const bool stores = s->record.serves;
    if (stores && mkdir("new" START_STORE, 0700)) {
        return start_fail(s, -errno, "folder " START_STORE " of the service");
    }
    int e = stores ? mount_bind(AT_FDCWD, "ws/store", "new" START_STORE, inert, 0) : 0;
    e = e ? e : mount_bind(AT_FDCWD, "sproc", "new/proc", 0, 0);
    e = e ? e : mount_bind(AT_FDCWD, "dev", "new/dev", 0, AT_RECURSIVE);
    AUTO_CLOSE int root = open("new", O_PATH | O_DIRECTORY | O_CLOEXEC);
    e = e ? e : mount_set(root, MOUNT_ATTR_RDONLY, 0, 0);
    if (!e && chdir("new")) {
        e = -errno;
    }
    e = e ? e : mount_pivot();
    return e ? start_fail(s, e, "tree of the service") : 0;
}

int inner_serving(struct start *s)
{
    struct start_note note = {.what = START_NOTE_SERVING, .launcher = s->seat->launcher_pid};
    if (send(INNER_FRONT, &note, sizeof note, MSG_NOSIGNAL) != sizeof note) {
        return start_fail(s, -errno, "the front is gone");
    }
    return 0;
}

// Phase one of a sandbox knows nothing of a job, so the launcher may make it while this process
// sheds and drops: asked for before either. Its answer comes after READY.
static void ask_ahead(struct seat *seat)
{
    struct plan_request q = {
        .op = PLAN_PREPARE, .tag = START_AHEAD_TAG, .network = seat->ahead_network};
    if (!msg_send(seat->launcher, &q, sizeof q, NULL, 0, MSG_DONTWAIT)) {
        seat->ahead_tag = q.tag;
    }
}

int start_inner(int argc, char **argv, struct seat *ret, struct start_error *ret_error)
{
    (void)argc;
    (void)argv;
    *ret_error = (struct start_error){.step = ""};
    struct seat seat = {.front = INNER_FRONT,
                        .launcher = INNER_LAUNCHER,
                        .launcher_pidfd = INNER_LAUNCHER_PIDFD,
                        .cache_root = -1,
                        .workspace_root = -1};
    struct start s = {.seat = &seat, .error = ret_error};
    int e = read_record(&s.record);
    if (e) {
        return start_fail(&s, e, "record of the start");
    }
    s.record.marks_ns[START_T_IMAGE] = clock_now_ns();
    for (int fd = INNER_RECORD; fd < INNER_FD_END; fd++) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    close(INNER_RECORD);
    seat.launcher_pid = s.record.launcher_pid;
    seat.ahead_network = s.record.ahead_network;
    seat.made_by = s.record.seat.launcher;
    seat.single_uid = s.record.seat.single_uid;
    seat.n_passed = s.record.n_passed;
    for (uint32_t i = 0; i < START_MAX_PASSED; i++) {
        seat.passed[i] = i < seat.n_passed ? INNER_PASSED + (int)i : -1;
    }
    if (seat.made_by == SEAT_BWRAP) {
        snprintf(seat.bwrap, sizeof seat.bwrap, "%s %s", s.record.seat.bwrap_path,
                 s.record.bwrap_version);
    }
    memcpy(seat.python, s.record.python, sizeof seat.python);
    prctl(PR_SET_NAME, INNER_NAME);
    ask_ahead(&seat);
    e = start_run_steps(&s, START_INNER);
    if (e) {
        struct start_note note = {.what = START_NOTE_FAILED, .error = e, .text = *ret_error};
        send(INNER_FRONT, &note, sizeof note, MSG_NOSIGNAL);
        start_seat_done(&seat);
        return e;
    }
    memcpy(seat.marks_ns, s.record.marks_ns, sizeof seat.marks_ns);
    *ret = seat;
    return 0;
}

// One-shot folders are the launcher's to remove when the service dies, and ours when it does. Its
// jobs die with it, but not at once.
static void empty_once(int workspace_root)
{
    AUTO_CLOSE int once =
        openat(workspace_root, "once", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (int i = 0; once >= 0 && tree_empty(once) && i < 200; i++) {
        clock_pause_ns(5 * NS_PER_MS);
    }
}

void start_seat_done(struct seat *s)
{
    s->launcher = fd_close(s->launcher);
    struct pollfd p = {s->launcher_pidfd, POLLIN, 0};
    if (s->launcher_pid > 0 && poll(&p, 1, LAUNCHER_END_MS) > 0) {
        waitpid(s->launcher_pid, NULL, 0);
        empty_once(s->workspace_root);
    }
    // else it hangs, and we have no power over it: the front ends it by its group
    s->launcher_pidfd = fd_close(s->launcher_pidfd);
    s->workspace_root = fd_close(s->workspace_root);
    s->cache_root = fd_close(s->cache_root);
    s->front = fd_close(s->front);
}

void start_seat_leave(struct seat *s)
{
    struct pollfd p = {s->launcher_pidfd, POLLIN, 0};
    // As pid 1 of an account's instance we would take the launcher along in the middle of its work.
    if (getpid() == 1 || poll(&p, 1, 0) > 0) {
        start_seat_done(s);
    }
}
