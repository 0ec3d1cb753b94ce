// The process a user started. It keeps its rights and stays outside; of the instance it keeps no
// descriptor, above all not the lock.
#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"
#include "kernel/sys.h"
#include "kernel/userns.h"
#include "plan/plan.h"
#include "start/folders.h"
#include "start/internal.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { LOCK_LIMIT_MS = 3000 }; // between the service's end and the launcher's

// From inside, owners on the host look alike: there the launcher cannot tell whose a set is. So
// nobody but its owner may have put any there.
static int check_cache(struct start *s)
{
    const char *path = s->config->cache_dir;
    struct stat st;
    if (!path || stat(path, &st) || !(st.st_mode & 022)) {
        return 0; // one that is not there is told of by step mounts
    }
    return start_fail(
        s, 0, "SANDBOX_PACKAGES_ROOT %s: must be writable by nobody but its owner (chmod 755)",
        path);
}

int front_check(struct start *s)
{
    start_mode_find_user(s->host.groups.root, &s->host.mode);
    s->record.user = s->host.mode.user;
    if (s->host.mode.refused[0]) {
        return start_fail(s, 0, "%s", s->host.mode.refused);
    }
    int e = check_cache(s);
    if (e) {
        return e;
    }
    if (access("/proc/self/ns/user", F_OK)) {
        return start_fail(s, -errno,
                          "no user namespaces: /proc is not mounted, or the kernel lacks them "
                          "(CONFIG_USER_NS)");
    }
    struct sigaction plain = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
    // a caller's ignored SIGCHLD would take the child's status away
    // and a file size limit of the caller's is an error to tell, no reason to die half-way
    if (sigaction(SIGCHLD, &plain, NULL) || sigaction(SIGPIPE, &ignored, NULL) ||
        sigaction(SIGXFSZ, &ignored, NULL)) {
        return start_fail(s, -errno, "signals");
    }
    // a launcher whose service is gone is ours to wait for: pid 1 of a container may reap nobody
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) ? start_fail(s, -errno, "subreaper") : 0;
}

int front_find_groups(struct start *s)
{
    struct groups *g = &s->host.groups;
    if (s->record.user != START_ROOT) {
        groups_detect_own(g->root, g);
        return 0;
    }
    groups_detect(g->root, g);
    // a container's are mounted read-only: made writable where nobody else sees it
    int root, mounts;
    if (groups_lacking(g) && groups_any_read_only(g->root) &&
        !groups_open_writable(&root, &mounts)) {
        close(s->host.root);
        s->host.root = root;
        s->host.mounts = mounts;
        groups_detect_writable(root, g); // what stays read-only is not of use
    }
    return 0;
}

// What the launcher and the new image are to know (start_record, plan/seat.h).
static int fill_record(struct start *s)
{
    const struct start_config *c = s->config;
    struct seat_config *seat = &s->record.seat;
    if (c->n_calls > SEAT_MAX_CALLS) {
        return start_fail(s, 0, "%u system calls are more than the maximum of %d", c->n_calls,
                          SEAT_MAX_CALLS);
    }
    if (strlen(c->hostname) >= sizeof seat->hostname) {
        return start_fail(s, 0, "host name %s: longer than %zu bytes", c->hostname,
                          sizeof seat->hostname - 1);
    }
    if (c->python && strlen(c->python) >= sizeof s->record.python) {
        return start_fail(s, 0, "Python %s: longer than %zu bytes", c->python,
                          sizeof s->record.python - 1);
    }
    s->record.magic = START_MAGIC;
    s->record.ahead_network = c->ahead_network;
    s->record.instance = s->instance;
    s->record.serves = c->serves;
    s->record.n_passed = c->n_passed;
    *seat = (struct seat_config){
        .magic = SEAT_MAGIC,
        .version = SEAT_VERSION,
        .v1_controllers = s->groups.v1_controllers,
        .v2_controllers = s->groups.v2_controllers,
        .uid_base = s->uid_base,
        .uid_count = s->uid_count,
        .single_uid = s->record.user == START_SINGLE,
        .test_refuse_rungs = c->test_refuse_rungs,
        .require_user_namespace = c->require_user_namespace,
        .allow_host_network = c->allow_host_network || c->plain == START_PLAIN_ALL,
        .allow_plain = c->plain != START_PLAIN_NEVER,
        .launcher = c->plain == START_PLAIN_ALL ? SEAT_NONE : SEAT_NATIVE,
        .n_calls = c->n_calls,
    };
    memcpy(seat->hostname, c->hostname, strlen(c->hostname) + 1);
    if (c->python) {
        memcpy(s->record.python, c->python, strlen(c->python) + 1);
    }
    if (c->n_calls) {
        memcpy(seat->calls, c->calls, c->n_calls * sizeof *c->calls);
    }
    if (c->bwrap && c->plain != START_PLAIN_ALL) {
        seat->launcher = SEAT_BWRAP;
        seat->bwrap_version = c->bwrap->version;
        memcpy(seat->bwrap_path, c->bwrap->path, sizeof c->bwrap->path);
        memcpy(s->record.bwrap_version, c->bwrap->version_text, sizeof c->bwrap->version_text);
    }
    return 0;
}

int front_groups(struct start *s)
{
    struct groups_limits limits = {.memory_bytes = s->config->memory_bytes,
                                   .pids = s->config->pids,
                                   .owner = s->uid_base + PLAN_UID_LAUNCHER};
    int e = groups_make(&s->host.groups, s->instance, &limits, &s->groups);
    if (e) {
        return start_fail(s, e, "control groups isle/%u: limits of the whole instance",
                          s->instance);
    }
    *start_fd(s, CHILD_V2) = fd_take(&s->groups.fd[GROUPS_V2]);
    for (unsigned i = 0; i < SEAT_N_V1; i++) {
        *start_fd(s, CHILD_V1 + i) = fd_take(&s->groups.fd[i]);
    }
    return fill_record(s);
}

// A program that inner root, nobody special to the host, must be able to execute. A descriptor.
static int open_program(struct start *s, const char *path, int flags)
{
    struct stat st;
    AUTO_CLOSE int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        return start_fail(s, -errno, "program %s (is isle installed as a whole?)", path);
    }
    if (!S_ISREG(st.st_mode) || (st.st_mode & 0555) != 0555) {
        return start_fail(s, 0,
                          "program %s: mode %03o, must be readable and executable by all "
                          "(chmod 755)",
                          path, st.st_mode & 0777U);
    }
    return fd_take(&fd);
}

// Copies: what is the caller's stays so.
static int copy_passed(struct start *s)
{
    const struct start_config *c = s->config;
    if (c->n_passed > START_MAX_PASSED) {
        return start_fail(s, -E2BIG, "descriptors for the service");
    }
    for (uint32_t i = 0; i < c->n_passed; i++) {
        int fd = fcntl(c->passed[i], F_DUPFD_CLOEXEC, 3);
        if (fd < 0) {
            return start_fail(s, -errno, "descriptors for the service");
        }
        *start_fd(s, INNER_PASSED + i) = fd;
    }
    return 0;
}

int front_programs(struct start *s)
{
    char path[1024];
    int e = copy_passed(s);
    if (e) {
        return e;
    }
    AUTO_CLOSE int self = open_program(s, "/proc/self/exe", O_PATH);
    if (self < 0) {
        return self;
    }
    snprintf(path, sizeof path, "%s/isle-launcher", s->config->libexec_dir);
    int fd = open_program(s, path, O_PATH);
    if (fd < 0) {
        return fd;
    }
    *start_fd(s, CHILD_PROGRAM) = fd;
    snprintf(path, sizeof path, "%s/isle-shim", s->config->libexec_dir);
    fd = open_program(s, path, O_RDONLY);
    if (fd < 0) {
        return fd;
    }
    *start_fd(s, CHILD_SHIM) = fd;
    return 0;
}

// What the kernel counts per user across namespaces (user_namespaces(7)): a new one remembers its
// maker's soft limits as the most that the user may have while something in it asks for more. Half
// of the caller's, so that the account's own programs are never refused on a job's account.
static pid_t clone_with_half(struct clone_args *a)
{
    static const __rlimit_resource_t counted[] = {RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE,
                                                  RLIMIT_MEMLOCK};
    struct rlimit own[ARRAY_LEN(counted)];
    for (size_t i = 0; i < ARRAY_LEN(counted); i++) {
        getrlimit(counted[i], &own[i]);
        struct rlimit half = own[i];
        half.rlim_cur = half.rlim_cur == RLIM_INFINITY ? half.rlim_cur : half.rlim_cur / 2;
        setrlimit(counted[i], &half);
    }
    pid_t pid = sys_clone3(a);
    for (size_t i = 0; i < ARRAY_LEN(counted) && pid != 0; i++) {
        setrlimit(counted[i], &own[i]);
    }
    return pid;
}

int front_clone(struct start *s)
{
    // An account's child is born where it may mount; its own proc wants a pid namespace of its own.
    const uint64_t inside =
        s->record.user == START_ROOT ? 0 : CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
        return start_fail(s, -errno, "socket pair");
    }
    s->front = pair[0];
    *start_fd(s, INNER_FRONT) = pair[1];
    int v2 = *start_fd(s, CHILD_V2);
    AUTO_CLOSE int group = v2 < 0 ? -1 : openat(v2, "service", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct clone_args a = {.flags = inside | CLONE_PIDFD | (group < 0 ? 0ULL : CLONE_INTO_CGROUP),
                           .pidfd = (uintptr_t)&s->pidfd,
                           .exit_signal = SIGCHLD,
                           .cgroup = (unsigned)(group < 0 ? 0 : group)};
    s->record.marks_ns[START_T_CLONED] = clock_now_ns();
    fflush(NULL); // else the child holds a copy of what is not written yet
    pid_t pid = inside ? clone_with_half(&a) : sys_clone3(&a);
    if (pid < 0) {
        return start_fail(s, pid, "%s", inside ? "user namespace" : "child process");
    }
    if (pid == 0) {
        child_run(s);
    }
    s->pid = pid;
    for (unsigned i = 0; i < START_N_FDS; i++) {
        s->fd[i] = fd_close(s->fd[i]);
    }
    return 0;
}

// The child's next note; a failure is passed on. 0 or -errno.
static int front_note(struct start *s, enum start_note_what want)
{
    struct start_note note;
    ssize_t n = fd_read_full(s->front, &note, sizeof note);
    if (n != sizeof note) {
        return start_fail(s, n < 0 ? (int)n : -EPIPE,
                          "the service ended without a word while it was starting");
    }
    if (note.what == START_NOTE_FAILED) {
        *s->error = note.text;
        s->error->step[sizeof s->error->step - 1] = '\0';
        s->error->text[sizeof s->error->text - 1] = '\0';
        return note.error < 0 ? note.error : -EPROTO;
    }
    s->launcher = note.launcher;
    return note.what == want ? 0 : start_fail(s, -EPROTO, "note of the service");
}

static int front_mapped(struct start *s)
{
    if (send(s->front, "", 1, MSG_NOSIGNAL) != 1) {
        return start_fail(s, -errno, "the service ended while it was starting");
    }
    return 0;
}

int front_maps(struct start *s)
{
    int e = front_note(s, START_NOTE_MAPS);
    if (e) {
        return e;
    }
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", s->pid);
    AUTO_CLOSE int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct userns_map map = {0, s->uid_base, s->uid_count};
    e = dir < 0 ? -errno : userns_write_maps(dir, &map, false);
    return e ? start_fail(s, e, "id map 0 %u %u", map.outer, map.count) : front_mapped(s);
}

int front_maps_range(struct start *s)
{
    int e = front_note(s, START_NOTE_MAPS);
    if (e) {
        return e;
    }
    e = maps_write(&s->host.mode, s->pid, s->uid_base, s->gid_base, s->uid_count);
    return e ? start_fail(s, e,
                          "newuidmap or newgidmap with the ids from %u and %u on (/etc/subuid)",
                          s->uid_base + 1, s->gid_base + 1)
             : front_mapped(s);
}

int front_maps_single(struct start *s)
{
    int e = front_note(s, START_NOTE_MAPS);
    if (e) {
        return e;
    }
    e = maps_write(&s->host.mode, s->pid, 0, 0, 1);
    return e ? start_fail(s, e, "id map 0 %u 1", geteuid()) : front_mapped(s);
}

int front_meanwhile(struct start *s)
{
    AUTO_CLOSE int once =
        s->config->meanwhile ? folders_open_once(s->data_dir, s->folder_name) : -1;
    if (once >= 0) {
        s->config->meanwhile(once, s->uid_base);
    }
    return 0; // what it does not do, the service does
}

int front_serving(struct start *s)
{
    int e = front_note(s, START_NOTE_SERVING);
    if (e) {
        return e;
    }
    if (s->record.user != START_ROOT) { // it dies with the service, pid 1 of both
        s->launcher = 0;
        return 0;
    }
    int pidfd = sys_pidfd_open(s->launcher);
    if (pidfd == -ESRCH) { // a service that had nothing to do has waited for it already
        return 0;
    }
    s->launcher_pidfd = pidfd;
    return pidfd < 0 ? start_fail(s, pidfd, "isle-launcher") : 0;
}

// Waits for a child; kills it after limit_ms. Its status, 0 if somebody else has waited for it
// (pidfd -1: that is known).
static int reap(pid_t pid, int pidfd, int limit_ms)
{
    if (pidfd < 0) {
        return 0;
    }
    struct pollfd p = {pidfd, POLLIN, 0};
    uint64_t end = clock_now_ns() + (uint64_t)limit_ms * NS_PER_MS;
    for (uint64_t now = clock_now_ns(); now < end; now = clock_now_ns()) {
        if (poll(&p, 1, (int)((end - now) / NS_PER_MS) + 1) > 0) {
            break;
        }
    }
    int status = 0;
    if (!p.revents) {
        sys_pidfd_signal(pidfd, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

// After a failed start: nothing of the instance stays.
static void front_undo(struct start *s)
{
    s->front = fd_close(s->front); // the child ends when it waits for us
    if (s->pid > 0) {
        sys_pidfd_signal(s->pidfd, SIGKILL);
        reap(s->pid, s->pidfd, 0);
    }
    s->pidfd = fd_close(s->pidfd);
    s->launcher_pidfd = fd_close(s->launcher_pidfd);
    for (unsigned i = 0; i < START_N_FDS; i++) {
        s->fd[i] = fd_close(s->fd[i]);
    }
    groups_close(&s->groups);
    s->folder = s->host.kept = fd_close(s->folder);
    if (s->mark) {
        instance_release(&s->host, s->run_dir, s->instance, s->mark, LOCK_LIMIT_MS);
    }
}

// 0, 1 and 2 exist from here on: else the first thing opened would be taken for one of them.
static int std_exist(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR); // NOLINT(android-cloexec-open): they are to be inherited
    } while (fd >= 0 && fd <= 2);
    return fd < 0 ? -errno : close(fd);
}

int start_front(const struct start_config *c, char *const *argv, char *const *env,
                struct front *ret, struct start_error *ret_error)
{
    *ret_error = (struct start_error){.step = ""};
    AUTO_FREE struct start_host *host = malloc(sizeof *host);
    int e = host ? std_exist() : -ENOMEM;
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct start s = {.config = c,
                      .argv = argv,
                      .env = env,
                      .host = {.root = root, .mounts = -1, .kept = -1, .groups.root = root},
                      .run_dir = -1,
                      .data_dir = -1,
                      .folder = -1,
                      .groups = GROUPS_NONE,
                      .front = -1,
                      .pid = -1,
                      .pidfd = -1,
                      .launcher_pidfd = -1,
                      .error = ret_error};
    for (unsigned i = 0; i < START_N_FDS; i++) {
        s.fd[i] = -1;
    }
    s.record.marks_ns[START_T_BEGIN] = clock_now_ns();
    mode_t mask = umask(022); // a caller's 077 would make folders unreachable
    if (e) {
        snprintf(ret_error->step, sizeof ret_error->step, "%s", start_steps[0].name);
        start_fail(&s, e, "standard descriptors");
    } else {
        e = start_run_steps(&s, START_FRONT);
    }
    umask(mask);
    if (e || !host) {
        front_undo(&s);
    } else {
        *host = s.host;
        host->kept = -1;
        *ret = (struct front){.service = s.front,
                              .pid = s.pid,
                              .pidfd = s.pidfd,
                              .launcher = s.launcher,
                              .launcher_pidfd = s.launcher_pidfd,
                              .instance = s.instance,
                              .mark = s.mark,
                              .host = host,
                              .run_dir = c->run_dir};
        host = NULL;
    }
    fd_close(s.run_dir);
    fd_close(s.data_dir);
    fd_close(s.folder);
    if (e || s.host.mounts < 0) {
        fd_close(s.host.root); // start_finish() opens it again
    }
    if (e) {
        fd_close(s.host.mounts);
    }
    return e;
}

int start_finish(struct front *f, int *ret_status, struct start_error *ret_error)
{
    f->service = fd_close(f->service); // a service that still runs a job cancels it
    *ret_status = reap(f->pid, f->pidfd, START_END_MS);
    f->pidfd = fd_close(f->pidfd);
    reap(f->launcher, f->launcher_pidfd, LOCK_LIMIT_MS);
    f->launcher_pidfd = fd_close(f->launcher_pidfd);
    AUTO_CLOSE int run_dir = open(f->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int mounts = f->host->mounts;
    AUTO_CLOSE int root = mounts >= 0 ? f->host->root : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    f->host->groups.root = root;
    int e = run_dir < 0 || root < 0
                ? -errno
                : instance_release(f->host, run_dir, f->instance, f->mark, LOCK_LIMIT_MS);
    free(f->host);
    f->host = NULL;
    if (e) {
        snprintf(ret_error->step, sizeof ret_error->step, "instance");
        snprintf(ret_error->text, sizeof ret_error->text,
                 "instance %u is not wholly removed (the next start tries again): %s", f->instance,
                 strerror(-e));
    }
    return e;
}
