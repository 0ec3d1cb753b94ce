// test_launcher: the launcher, for real: starts an instance as `isle run` does and, as its dropped
// service, asks for sandboxes and attacks it. Needs root and a runtime root ($ISLE_RUNTIME_ROOT or
// /var/lib/isle/runtime/current); without them it is skipped (77).
//
//   test_launcher LIBEXEC_DIR [GROUP... | hosts | kills | inject [GROUP...]]
#include "base/fd.h"
#include "checks.h"
#include "kernel/seccomp.h"
#include "launcher/inject.h"
#include "launcher/launcher.h"
#include "plan/steps.h"
#include "start/bwrap.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

char output[65536];
static int failed, passed;

void check(const char *name, bool ok, const char *detail)
{
    fprintf(stderr, "%s %s%s%s\n", ok ? "ok  " : "FAIL", name, ok ? "" : ": ", ok ? "" : detail);
    *(ok ? &passed : &failed) += 1;
}

const char *say(const struct plan_record *r, int e)
{
    static char text[1024];
    snprintf(text, sizeof text,
             "e %d error %d step %s status %x flags %u cpu %.1f ms peak %llu pids %llu; output: "
             "%.500s",
             e, r->error, plan_step_name(r->step), (unsigned)r->status, r->flags,
             (double)r->cpu_ns / 1e6, (unsigned long long)r->memory_peak_bytes,
             (unsigned long long)r->pids_peak, output);
    return text;
}

bool clean_exit(const struct plan_record *r, int e, int status)
{
    return !e && !r->error && !r->flags && WIFEXITED(r->status) && WEXITSTATUS(r->status) == status;
}

// To append: what is not opened by a path has no lock on its offset, and writers would overlap.
int memory_file(void)
{
    int fd = memfd_create("out", MFD_CLOEXEC);
    return fcntl(fd, F_SETFL, O_APPEND) ? -1 : fd;
}

void slurp(int fd)
{
    ssize_t n = pread(fd, output, sizeof output - 1, 0);
    output[n > 0 ? n : 0] = '\0';
}

struct try try_of(const char *const *argv) { return (struct try){.argv = argv, .tmpfs_no = -1}; }

int run_try(struct client *c, const struct try *t, int timeout_ms, struct plan_record *ret)
{
    struct try copy = *t;
    AUTO_CLOSE int out = memory_file();
    copy.fd[PLAN_FD_STDOUT] = copy.fd[PLAN_FD_STDERR] = out;
    int e = client_run(c, 0, &copy, timeout_ms, ret);
    slurp(out);
    return e;
}

int run_sh(struct client *c, const char *script, struct plan_record *ret)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct try t = try_of(argv);
    return run_try(c, &t, CLIENT_PATIENCE_MS, ret);
}

int run_python(struct client *c, const char *script, struct plan_record *ret)
{
    const char *const argv[] = {"/usr/bin/python3.13", "-c", script, NULL};
    struct try t = try_of(argv);
    return run_try(c, &t, CLIENT_PATIENCE_MS, ret);
}

static const struct {
    const char *name;
    void (*run)(struct client *c);
    bool asked; // only when named: another kind of instance, or by hand
} groups[] = {
    {"exits", check_exits},
    {"execution", check_execution},
    {"limits", check_limits},
    {"signals", check_signals},
    {"view", check_view},
    {"policy", check_policy},
    {"border", check_border},
    {"parked", check_parked},
    {"stock", check_stock},
    {"requests", check_requests},
    {"locks", check_locks},
    {"bare", check_bare},
    {"speed", check_speed, true},
    {"full", check_full, true},
    {"network", check_network, true},
    {"plain", check_plain, true},
    {"asked", check_asked, true},
    {"bwrap-asks", check_bwrap_requests, true},
    {"bwrap-old", check_old_bwrap, true},
    {"bwrap-lies", check_rogue_bwrap, true},
#ifdef ISLE_INJECT
    {"inject-plain", check_inject_plain, true},
    {"inject", check_inject, true},
    {"inject-rung", check_inject_rung, true},
    {"inject-loop", check_inject_loop, true},
    {"inject-ahead", check_inject_ahead, true},
    {"inject-bwrap", check_inject_bwrap, true},
    {"inject-one", check_inject_single, true},
    {"inject-one-bwrap", check_inject_single_bwrap, true},
    {"inject-network", check_inject_network, true},
    {"inject-locks", check_inject_locks, true},
#endif
};

// The sandbox that the start has asked for ahead: the tests count from an empty launcher.
static void end_ahead(struct client *c, bool rogue)
{
    struct plan_record r;
    int e = client_wait(c, PLAN_PREPARE, c->seat.ahead_tag, CLIENT_PATIENCE_MS, &r, NULL);
    if (c->seat.made_by != SEAT_NATIVE) {
        check("no sandbox is made ahead but by isle's own launcher", !e && r.error == EOPNOTSUPP,
              say(&r, e));
        return;
    }
    check("a sandbox was asked for ahead", !e && !r.error && r.id, strerror(-e));
    struct plan_request kill_it = {.op = PLAN_KILL, .id = r.id};
    client_request(c, &kill_it, NULL, 0);
    e = client_wait(c, PLAN_END, c->seat.ahead_tag, CLIENT_PATIENCE_MS, &r, NULL);
    // a rogue's may be over before it is killed
    check("and ends when it is not needed", !e && (rogue || r.flags & PLAN_KILLED), say(&r, e));
}

static int service_main(int argc, char **argv)
{
    static struct client c;
    struct start_error error;
    AUTO_CLOSE int proc = open("proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    c.proc = fcntl(proc, F_DUPFD_CLOEXEC, 100);
#ifdef ISLE_INJECT
    check_inject_open();
#endif
    if (start_inner(argc, argv, &c.seat, &error)) {
        return 125;
    }
    if (argc > 1 && !strcmp(argv[1], "soak")) {
        serve_soak(&c);
        start_seat_done(&c.seat);
        return 0;
    }
    end_ahead(&c, argc > 1 && !strcmp(argv[1], "rogue"));
    int one = client_make_workspace(&c, "once/t", V0, false);
    check("a workspace for the tests", one >= 0, strerror(-one));
    if (argc > 1 && !strcmp(argv[1], "flood")) {
        check_flood(&c);
    }
#ifdef ISLE_INJECT
    if (argc > 2 && !strcmp(argv[1], "inject-end")) {
        check_inject_end(&c, argv[2]);
    }
#endif
    if (argc > 2 && !strcmp(argv[1], "rogue")) {
        check_rogue(&c, argv[2]);
    }
    if (argc > 2 && !strcmp(argv[1], "rung")) {
        check_rung(&c, (uint32_t)atoi(argv[2]));
    }
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        bool wanted = argc < 2 && !groups[i].asked;
        for (int k = 1; k < argc; k++) {
            wanted |= !strcmp(argv[k], groups[i].name);
        }
        if (wanted) {
            groups[i].run(&c);
        }
    }
    fprintf(stderr, "%d passed, %d failed\n", passed, failed);
    start_seat_done(&c.seat);
    return failed != 0;
}

// Two good sets, one that others may write to, one of another owner, and a file.
static void make_cache(const char *path)
{
    static const struct {
        const char *name;
        mode_t mode;
        uid_t owner;
    } sets[] = {{"one", 0755, 0},
                {"two", 0555, 0},
                {"open", 0775, 0},
                {"foreign", 0755, 12345},
                {"closed", 0750, 0}};
    if (mkdir(path, 0755)) {
        return; // it is there
    }
    AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        bool made =
            !mkdirat(dir, sets[i].name, 0755) && !fchownat(dir, sets[i].name, sets[i].owner, 0, 0);
        AUTO_CLOSE int set = openat(dir, sets[i].name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        AUTO_CLOSE int file = openat(set, "name", O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
        if (!made || dprintf(file, "#!/bin/sh\necho %s\n", sets[i].name) < 0 ||
            fchmod(set, sets[i].mode)) {
            perror(sets[i].name);
        }
    }
    fd_close(openat(dir, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
}

// What is not as usual in the next instances.
static struct {
    const char *libexec, *hostname;
    bool no_cache, require_user_namespace, host_network;
    const struct bwrap_found *bwrap;
    uint32_t calls[1], n_calls;
    const char *run_dir, *bwrap_path;
    bool old_bwrap;
    enum start_plain plain;
} unusual;

static int start_instance(const char *libexec, const char *data, uint32_t refuse, char *const *argv,
                          struct front *ret)
{
    const char *root = getenv("ISLE_RUNTIME_ROOT");
    char guest[512], cache[512];
    snprintf(guest, sizeof guest, "%s/guest", data);
    mkdir(guest, 0755);
    snprintf(cache, sizeof cache, "%s/cache", data);
    if (!unusual.no_cache) {
        make_cache(cache);
    }
    // of the host's network, as a service that listens has one
    AUTO_CLOSE int of_the_host = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct start_config config = {
        .passed = &of_the_host,
        .n_passed = 1,
        .data_dir = data,
        .run_dir = unusual.run_dir ? unusual.run_dir : "/run/isle",
        .runtime_root = root ? root : "/var/lib/isle/runtime/current",
        .cache_dir = unusual.no_cache ? NULL : cache,
        .guest_dir = guest,
        .libexec_dir = unusual.libexec ? unusual.libexec : libexec,
        .hostname = unusual.hostname ? unusual.hostname : "clouisle-sandbox",
        .require_user_namespace = unusual.require_user_namespace,
        .allow_host_network = unusual.host_network,
        .calls = unusual.calls,
        .n_calls = unusual.n_calls,
        .memory_bytes = UINT64_C(2) << 30,
        .pids = 4096,
        .test_refuse_rungs = refuse,
        .bwrap = unusual.bwrap,
        .plain = unusual.plain,
    };
    char *const env[] = {NULL};
    struct start_error error;
    int e = start_front(&config, argv, env, ret, &error);
    if (e) {
        fprintf(stderr, "start: %s: %s\n", error.step, error.text);
    }
    return e;
}

// The service's exit status, or -1.
static int run_instance(const char *libexec, const char *data, uint32_t refuse, char *const *argv)
{
    struct front f;
    struct start_error error;
    int status;
    if (start_instance(libexec, data, refuse, argv, &f)) {
        return -1;
    }
    struct pollfd p = {.fd = f.pidfd, .events = POLLIN};
    poll(&p, 1, 240000);
    if (start_finish(&f, &status, &error)) {
        fprintf(stderr, "finish: %s: %s\n", error.step, error.text);
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The same host with less of control groups: in a mount namespace where hierarchies are missing.
// 0, or what failed.
static int run_lesser_host(const char *libexec, const char *data, bool v1, bool v2, bool few)
{
    static const char *const trees[] = {"memory", "pids", "cpu", "cpuacct", "unified"};
    char names[][10] = {"exits", "execution", "view", "border", "parked", "stock"};
    char bare[] = "bare";
    char *args[] = {names[0], names[1], names[2], names[3], names[4], names[5], bare, NULL};
    if (few) {
        args[1] = NULL;
    }
    fprintf(stderr, "a host with%s v1, with%s v2:\n", v1 ? "" : "out", v2 ? "" : "out");
    pid_t pid = fork();
    if (pid == 0) {
        bool bad = unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
        for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
            char path[64];
            bool kept = i + 1 < ARRAY_LEN(trees) ? v1 : v2;
            snprintf(path, sizeof path, "/sys/fs/cgroup/%s", trees[i]);
            if (!kept && umount2(path, MNT_DETACH) && errno != EINVAL && errno != ENOENT) {
                bad = true;
            }
        }
        _exit(bad || run_instance(libexec, data, 0, args) != 0);
    }
    int status;
    return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

// A kernel without Landlock, for this process and its children.
static int refuse_landlock(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return seccomp_install(code, ARRAY_LEN(code));
}

static int run_without_landlock(const char *libexec, const char *data)
{
    char names[][10] = {"exits", "stock"};
    char *const args[] = {names[0], names[1], NULL};
    pid_t pid = fork();
    if (pid == 0) {
        fprintf(stderr, "a host without Landlock:\n");
        _exit(refuse_landlock() || run_instance(libexec, data, LAUNCHER_REFUSE_SCOPES, args) != 0);
    }
    int status;
    return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

// DATA/NAME with the launcher and this shim.
static int make_libexec(const char *libexec, const char *data, const char *name, const char *shim,
                        char ret[512])
{
    char from[600], to[600];
    char *launcher = realpath(libexec, NULL);
    snprintf(ret, 512, "%s/%s", data, name);
    snprintf(from, sizeof from, "%s/isle-launcher", launcher ? launcher : "");
    snprintf(to, sizeof to, "%s/isle-launcher", ret);
    free(launcher);
    int e = mkdir(ret, 0755) || symlink(from, to);
    snprintf(to, sizeof to, "%s/isle-shim", ret);
    return e || symlink(shim, to);
}

static int run_rogues(const char *libexec, const char *data, const char *rogue)
{
    char folder[512], rogues[] = "rogue";
    if (make_libexec(libexec, data, "rogue", rogue, folder)) {
        return 1;
    }
    int bad = 0;
    for (const char *mode = "sdecnh"; *mode; mode++) {
        char letter[] = {*mode, '\0'}, name[] = {'r', 'o', 'g', 'u', 'e', '-', *mode, '\0'};
        char *const args[] = {rogues, letter, NULL};
        unusual.libexec = folder;
        unusual.hostname = name;
        bad |= run_instance(libexec, data, 0, args) != 0;
    }
    unusual.libexec = unusual.hostname = NULL;
    return bad;
}

// The launcher with a seat that no start of this build makes. Its exit status.
static int run_with_seat(const char *libexec, const struct seat_config *seat, size_t size, int last)
{
    char path[512];
    int status = -1;
    snprintf(path, sizeof path, "%s/isle-launcher", libexec);
    pid_t pid = fork();
    if (pid == 0) {
        AUTO_CLOSE int config = fd_sealed("seat", seat, size);
        int high = fcntl(config, F_DUPFD, 32), null = open("/dev/null", O_RDWR);
        for (int fd = SEAT_SERVICE; fd <= last; fd++) {
            dup2(fd == SEAT_CONFIG ? high : null, fd);
        }
        close_range((unsigned)last + 1, ~0U, 0);
        // a word that means nothing, too
        execl(path, "isle-launcher", last < SEAT_CONFIG ? "word" : NULL, NULL);
        _exit(126);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run_bad_seats(const char *libexec)
{
    const struct seat_config good = {
        .magic = SEAT_MAGIC, .version = SEAT_VERSION, .uid_count = 65536};
    struct seat_config bad[] = {good, good, good, good, good, good, good};
    bad[5].launcher = SEAT_N_LAUNCHERS;
    bad[6].launcher = SEAT_NONE; // which nothing allows
    bad[4].uid_count = 0;
    bad[0].magic = 1;
    bad[1].version++;
    bad[2].n_calls = SEAT_MAX_CALLS + 1;
    memset(bad[3].hostname, 'x', sizeof bad[3].hostname);
    int failures = 0;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        failures += run_with_seat(libexec, &bad[i], sizeof bad[i], SEAT_CONFIG) != 70;
    }
    failures += run_with_seat(libexec, &good, sizeof good - 1, SEAT_CONFIG) != 70;
    failures += run_with_seat(libexec, &good, sizeof good, SEAT_CONFIG - 1) != 70;
    fprintf(stderr, "%s a seat of another build is refused\n", failures ? "FAIL" : "ok  ");
    return failures;
}

// Starts that the launcher refuses.
static int run_refused(const char *libexec, const char *data)
{
    static const struct {
        const char *name;
        off_t bytes;
    } shims[] = {{"empty", 0}, {"large", 70000}};
    char *const none[] = {NULL};
    char folder[512], path[512];
    int bad = 0;
    for (size_t i = 0; i < ARRAY_LEN(shims); i++) {
        snprintf(path, sizeof path, "%s/shim-%s", data, shims[i].name);
        AUTO_CLOSE int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
        bad |= fd < 0 || ftruncate(fd, shims[i].bytes) ||
               make_libexec(libexec, data, shims[i].name, path, folder);
        unusual.libexec = folder;
        int e = run_instance(libexec, data, 0, none);
        fprintf(stderr, "%s a shim that is %s is refused\n", e == -1 ? "ok  " : "FAIL",
                shims[i].name);
        bad |= e != -1;
    }
    unusual.libexec = NULL;
    unusual.require_user_namespace = true;
    int e = run_instance(libexec, data, 6, none);
    fprintf(stderr, "%s no user namespace where one is required: refused\n",
            e == -1 ? "ok  " : "FAIL");
    unusual.require_user_namespace = false;
    return bad | (e != -1);
}

static int run_unusual(const char *libexec, const char *data)
{
    char names[][10] = {"exits", "requests", "full"};
    char *const args[] = {names[0], names[1], NULL}, *const full[] = {names[2], NULL};
    unusual.no_cache = true;
    unusual.calls[0] = SYS_kcmp;
    unusual.n_calls = 1;
    fprintf(stderr, "no package sets, one more system call:\n");
    int bad = run_instance(libexec, data, 0, args);
    unusual.no_cache = false;
    unusual.n_calls = 0;
    fprintf(stderr, "the host's network:\n");
    char network[] = "network";
    char *const network_args[] = {network, NULL};
    unusual.host_network = true;
    bad |= run_instance(libexec, data, 0, network_args);
    unusual.host_network = false;
    fprintf(stderr, "no user namespace, no loopback, an older Landlock:\n");
    bad |= run_instance(libexec, data, 6 | LAUNCHER_REFUSE_LOOPBACK | LAUNCHER_REFUSE_SCOPES, args);
#ifdef __SANITIZE_ADDRESS__
    (void)full; // 500 processes with a sanitizer's memory do not fit into an instance
    return bad;
#else
    return bad | run_instance(libexec, data, 0, full);
#endif
}

// What makes the sandboxes is another program; all else is as it was.
static int with_bwrap(int (*run)(const char *, const char *, uint32_t, char *const *),
                      const char *libexec, const char *data, char *const *args)
{
    const char *root = getenv("ISLE_RUNTIME_ROOT");
    struct bwrap_found found;
    char text[400];
    root = root ? root : "/var/lib/isle/runtime/current";
#ifdef __SANITIZE_ADDRESS__
    fprintf(stderr, "with Bubblewrap: not here: a sanitized launcher cannot be executed inside\n");
    return 0;
#endif
    if (bwrap_find(unusual.bwrap_path, root, &found, text, sizeof text)) {
        fprintf(stderr, "FAIL %s\n", text);
        return 1;
    }
    bwrap_ask_version(&found, root);
    found.version = unusual.old_bwrap ? BWRAP_SOUND - 1 : found.version;
    unusual.bwrap = &found;
    fprintf(stderr, "with Bubblewrap:\n");
    int bad = run(libexec, data, 0, args) != 0;
    unusual.bwrap = NULL;
    return bad;
}

static int run_on_v1(const char *libexec, const char *data, uint32_t refuse, char *const *argv)
{
    (void)refuse;
    (void)argv;
    return run_lesser_host(libexec, data, true, false, true);
}

static int run_bwrap(const char *libexec, const char *data)
{
    char names[][10] = {"exits", "execution", "limits", "signals", "stock"};
    char *const args[] = {names[0], names[1], names[2], names[3], names[4], NULL};
    char network[] = "network", asks[] = "bwrap-asks", old[] = "bwrap-old", lies[] = "bwrap-lies";
    char *const network_args[] = {network, NULL}, *const asks_args[] = {asks, NULL},
                *const old_args[] = {old, NULL}, *const lies_args[] = {lies, NULL},
                *const none[] = {NULL};
    int bad = with_bwrap(run_instance, libexec, data, args);
    bad |= with_bwrap(run_instance, libexec, data, asks_args);
    unusual.host_network = true;
    bad |= with_bwrap(run_instance, libexec, data, network_args);
    unusual.host_network = false;
    unusual.calls[0] = SYS_socket;
    unusual.n_calls = 1;
    bad |= with_bwrap(run_on_v1, libexec, data, none);
    unusual.calls[0] = SYS_kcmp;
    unusual.old_bwrap = true;
    bad |= with_bwrap(run_instance, libexec, data, old_args);
    unusual.old_bwrap = false;
    unusual.n_calls = 0;
    unusual.bwrap_path = ISLE_ROGUE_BWRAP;
    bad |= with_bwrap(run_instance, libexec, data, lies_args);
    unusual.bwrap_path = NULL;
    return bad;
}

static int run_kills(const char *libexec, const char *data, uint32_t refuse, char *const *argv)
{
    const char *text = getenv("ISLE_TEST_KILLS");
    int rounds = text ? atoi(text) : 12, bad = 0;
    for (int i = 0; i < rounds; i++) {
        struct front f;
        if (start_instance(libexec, data, refuse, argv, &f)) {
            return 1;
        }
        bad += !kill_and_look(&f, i, data, unusual.plain == START_PLAIN_ALL);
    }
    fprintf(stderr, "%s killed at %d random moments, nothing stays: %d left something\n",
            bad ? "FAIL" : "ok  ", rounds, bad);
    return bad;
}

static int copy_program(const char *from, const char *name, const char *to)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", from, name);
    AUTO_CLOSE int in = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/%s", to, name);
    AUTO_CLOSE int out = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
    ssize_t n;
    if (in < 0 || out < 0) {
        return 1;
    }
    do {
        n = sendfile(out, in, NULL, 1 << 20);
    } while (n > 0);
    return n < 0;
}

enum { NOBODYS_ID = 65531 }; // no account, so without subordinate ids

// As an account that has nothing but its one id. argv: NULL-terminated groups.
static int run_single(const char *libexec, const char *data, bool bwrap, char *const *argv)
{
    static int serial;
    char own[256], programs[300], run[300];
    snprintf(own, sizeof own, "%s/single%d", data, ++serial);
    snprintf(programs, sizeof programs, "%s/programs", own);
    snprintf(run, sizeof run, "%s/run", own);
    if (mkdir(own, 0755) || mkdir(programs, 0755) || chown(own, NOBODYS_ID, NOBODYS_ID) ||
        copy_program(libexec, "isle-launcher", programs) ||
        copy_program(libexec, "isle-shim", programs)) {
        perror(own);
        return 1;
    }
    fprintf(stderr, "an account with one id:\n");
    pid_t pid = fork();
    if (pid == 0) {
        // dumpable: the start reads and executes what /proc/self shows
        if (setgroups(0, NULL) || setresgid(NOBODYS_ID, NOBODYS_ID, NOBODYS_ID) ||
            setresuid(NOBODYS_ID, NOBODYS_ID, NOBODYS_ID) || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)) {
            _exit(1);
        }
        unusual.run_dir = run;
        unusual.no_cache = true;
        unusual.libexec = programs;
        _exit((bwrap ? with_bwrap(run_instance, programs, own, argv)
                     : run_instance(programs, own, 0, argv)) != 0);
    }
    int status;
    return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

// Jobs without sandboxes: all of them, or where the service asks for one.
static int run_plain(const char *libexec, const char *data)
{
    char names[][10] = {"exits", "limits", "signals"}, plain[] = "plain", asked[] = "asked";
    char *const args[] = {plain, names[0], names[1], names[2], NULL};
    char *const asked_args[] = {asked, NULL};
    char kills[] = "soak";
    char *const kill_args[] = {kills, NULL};
    unusual.plain = START_PLAIN_ALL;
    int bad = run_instance(libexec, data, 0, args);
    bad |= run_kills(libexec, data, 0, kill_args);
    bad |= run_lesser_host(libexec, data, true, false, true);
    int lesser = run_lesser_host(libexec, data, false, false, true),
        single = run_single(libexec, data, false, asked_args);
    fprintf(stderr, "%s no groups, or one user id: no jobs without sandboxes\n",
            lesser && single ? "ok  " : "FAIL");
    bad |= !lesser || !single;
    unusual.plain = START_PLAIN_ASKED;
    bad |= run_instance(libexec, data, 0, asked_args);
    bad |= with_bwrap(run_instance, libexec, data, asked_args);
    unusual.plain = START_PLAIN_NEVER;
    return bad;
}

#ifdef ISLE_INJECT
// An instance with failures planned before its start (NULL: none). Their number, or -1.
static int run_with_page(const char *libexec, const char *data, uint32_t refuse, char *const *argv,
                         const struct inject_plan *plan)
{
    struct inject_page *page = inject_page_make();
    if (!page) {
        return -1;
    }
    if (plan) {
        page->now = *plan;
    }
    int bad = run_instance(libexec, data, refuse, argv), fired = (int)page->fired;
    inject_page_remove();
    return bad ? -1 : fired;
}

// Every call of the maker, and of its birth.
static int run_ahead(const char *libexec, const char *data)
{
    char name[] = "inject-ahead";
    char *const args[] = {name, NULL};
    struct inject_plan plans[] = {
        {.who = INJECT_MAKER, .error = ENOMEM},
        {.who = INJECT_MAKER, .lasting = 1, .error = ENOMEM, .only = "unshare"},
        {.who = INJECT_LOOP, .error = ENOMEM, .only = "fork"},
        {.who = INJECT_LOOP, .error = ENOMEM, .only = "socketpair"},
    };
    int calls = 0, fired = 0;
    for (size_t i = 0; i < ARRAY_LEN(plans) && fired >= 0; i++) {
        do {
            plans[i].target++;
            fired = run_with_page(libexec, data, 0, args, &plans[i]);
            calls += fired > 0;
        } while (fired > 0 && plans[i].target < (plans[i].lasting ? 1 : 26)); // one round of it
    }
    fprintf(stderr, "%s maker: %d calls failed one by one\n",
            fired >= 0 && calls > 15 ? "ok  " : "FAIL", calls);
    return fired < 0 || calls <= 15;
}

static int run_with_empty_page(const char *libexec, const char *data, uint32_t refuse,
                               char *const *argv)
{
    return run_with_page(libexec, data, refuse, argv, NULL) < 0;
}

static int run_injected_bwrap(const char *libexec, const char *data)
{
    char bwrap[] = "inject-bwrap";
    char *const args[] = {bwrap, NULL};
    return with_bwrap(run_with_empty_page, libexec, data, args);
}

static int run_injected_plain(const char *libexec, const char *data)
{
    char plain[] = "inject-plain";
    char *const args[] = {plain, NULL};
    unusual.plain = START_PLAIN_ALL;
    int bad = run_with_page(libexec, data, 0, args, NULL) < 0;
    unusual.plain = START_PLAIN_NEVER;
    return bad;
}

static int run_injected_single(const char *libexec, const char *data)
{
    char one[] = "inject-one", bwrap[] = "inject-one-bwrap";
    char *const args[] = {one, NULL}, *const bwrap_args[] = {bwrap, NULL};
    int bad = !inject_page_make() || run_single(libexec, data, false, args);
    bad |= run_single(libexec, data, true, bwrap_args);
    inject_page_remove();
    return bad;
}

static int run_injected(const char *libexec, const char *data)
{
    char all[] = "inject", rung[] = "inject-rung";
    char *const args[] = {all, NULL}, *const rung_args[] = {rung, NULL};
    char loop[] = "inject-loop", end[] = "inject-end",
         names[][10] = {"unlinkat", "waitid", "ppoll", "openat", "waitpid"};
    char *const loop_args[] = {loop, NULL};
    int bad = run_with_page(libexec, data, 0, args, NULL) < 0;
    bad |= run_ahead(libexec, data);
    bad |= run_with_page(libexec, data, 0, loop_args, NULL) < 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *const end_args[] = {end, names[i], NULL};
        bad |= run_with_page(libexec, data, 0, end_args, NULL) < 0;
    }
    char locks[] = "inject-locks", network[] = "inject-network";
    char *const locks_args[] = {locks, NULL}, *const network_args[] = {network, NULL};
    bad |= run_injected_plain(libexec, data);
    bad |= run_with_page(libexec, data, 0, locks_args, NULL) < 0;
    unusual.host_network = true;
    bad |= run_with_page(libexec, data, LAUNCHER_REFUSE_SCOPES, network_args, NULL) < 0;
    unusual.host_network = false;
    bad |= run_injected_bwrap(libexec, data);
    bad |= run_injected_single(libexec, data);
    bad |= run_with_page(libexec, data, 1 << PLAN_RUNG_PARENT, rung_args, NULL) < 0;
    bad |= run_with_page(libexec, data, 1 << PLAN_RUNG_PARENT | 1 << PLAN_RUNG_SELF, rung_args,
                         NULL) < 0;
    return bad;
}
#endif

int main(int argc, char **argv)
{
    if (start_is_inner(argc, argv)) {
        return service_main(argc, argv);
    }
    if (argc < 2 || geteuid() != 0 ||
        (!getenv("ISLE_RUNTIME_ROOT") && access("/var/lib/isle/runtime/current", F_OK))) {
        fprintf(stderr, "test_launcher: skipped: needs root and a runtime root\n");
        return 77;
    }
    char data[] = "/tmp/isle-launcher-XXXXXX";
    if (!mkdtemp(data) || chmod(data, 0711)) {
        perror(data);
        return 1;
    }
    bool only_kills = argc > 2 && !strcmp(argv[2], "kills");
    bool injected = argc > 2 && !strcmp(argv[2], "inject");
    bool only_hosts = argc > 2 && !strcmp(argv[2], "hosts");
    bool only_bwrap = argc > 2 && !strcmp(argv[2], "bwrap");
    bool only_single = argc > 2 && !strcmp(argv[2], "single");
    bool only_plain = argc > 2 && !strcmp(argv[2], "plain");
    int bad = only_plain || only_single || only_kills || only_hosts || only_bwrap || injected
                  ? 0
                  : run_instance(argv[1], data, 0, argv + 2) != 0;
#ifdef ISLE_INJECT
    if (only_bwrap) {
        bad |= run_injected_bwrap(argv[1], data) != 0;
    }
    if (only_plain) {
        bad |= run_injected_plain(argv[1], data);
    }
    if (injected) {
        bad |= argc > 3 ? run_with_page(argv[1], data, 0, argv + 3, NULL) < 0
                        : run_injected(argv[1], data) != 0;
    }
#endif
    for (uint32_t rung = PLAN_RUNG_PARENT; argc == 2 && rung <= PLAN_RUNG_NONE; rung++) {
        char name[] = "rung", number[2] = {(char)('0' + rung), '\0'};
        char *const args[] = {name, number, NULL};
        uint32_t refuse = rung == PLAN_RUNG_PARENT ? 0 : rung == PLAN_RUNG_SELF ? 2 : 6;
        bad |= run_instance(argv[1], data, refuse, args) != 0;
    }
    if (argc == 2) {
        char flood[] = "flood";
        char *const args[] = {flood, NULL};
        bad |= run_instance(argv[1], data, 0, args) != 0;
    }
    if (argc == 2) {
        bad |= run_lesser_host(argv[1], data, true, false, false);
        bad |= run_lesser_host(argv[1], data, false, true, false);
        bad |= run_lesser_host(argv[1], data, false, false, false);
    }
    if (argc == 2 || only_bwrap) {
        bad |= run_bwrap(argv[1], data);
    }
    if (argc == 2 || only_plain) {
        bad |= run_plain(argv[1], data);
    }
    if (argc == 2 || only_single) {
        char names[][10] = {"exits", "execution", "bare"};
        char *const args[] = {names[0], names[1], names[2], NULL};
        bad |= run_single(argv[1], data, false, args);
#ifdef ISLE_INJECT
        bad |= only_single && run_injected_single(argv[1], data);
#endif
    }
    if (argc == 2 || only_hosts) {
        bad |= run_without_landlock(argv[1], data);
        bad |= run_unusual(argv[1], data);
        bad |= run_refused(argv[1], data);
        bad |= run_bad_seats(argv[1]);
        bad |= run_rogues(argv[1], data, ISLE_ROGUE_SHIM);
    }
    if (argc == 2 || only_kills) {
        char soak[] = "soak";
        char *const args[] = {soak, NULL};
        bad |= run_kills(argv[1], data, 0, args) != 0;
        bad |= with_bwrap(run_kills, argv[1], data, args);
    }
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", data);
    return system(command) || bad;
}
