// Every call of a start that can fail fails once: in the front, in its child, in the service, in
// the launcher. A start that fails says at which step, and leaves nothing behind: no process, no
// descriptor, no claim, no folder. Needs root and a runtime root; without them it is skipped (77).
//
//   test_start_inject LIBEXEC_DIR
#include "base/fd.h"
#include "base/tree.h"
#include "launcher/inject.h"
#include "launcher/launcher.h"
#include "start/bwrap.h"
#include "start/start.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { MAX_CALLS = 1000, MAX_SHOWN = 12 };
static const char run_dir[] = "/run/isle";

static struct inject_page *page;
static struct start_config config;
static struct bwrap_found bwrap;
static int failed, quiet = -1, loud = -1;

static int service_main(int argc, char **argv)
{
    struct seat seat;
    struct start_error error;
    inject_init(INJECT_INNER);
    if (start_inner(argc, argv, &seat, &error)) {
        return 125;
    }
    inject_as(0, 0); // what follows is this test's
    start_seat_leave(&seat);
    start_seat_done(&seat);
    return 0;
}

static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++) {
        n += syscall(SYS_fcntl, fd, F_GETFD) >= 0;
    }
    return n;
}

// What of this test's instances is left. "" or a name.
static const char *left_over(int fds)
{
    static char text[512];
    const struct timespec ms = {.tv_nsec = 1000000};
    pid_t pid = 0;
    for (int i = 0; i < 20000; i++) { // the last of its processes may be on its way
        pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0) {
            break;
        }
        nanosleep(&ms, NULL);
    }
    if (pid >= 0) {
        return "a process";
    }
    if (count_fds() != fds) {
        return "a descriptor";
    }
    DIR *d = opendir(run_dir);
    const char *found = d ? "" : "no folder of locks";
    for (struct dirent *e; d && (e = readdir(d));) {
        if (fd_read_at(dirfd(d), e->d_name, text, sizeof text) > 0 &&
            strstr(text, config.data_dir)) {
            found = "a claim";
        }
    }
    closedir(d);
    return found;
}

static void complain(const char *title, uint32_t call, const char *what, const char *more)
{
    if (failed++ < MAX_SHOWN) {
        dprintf(loud, "FAIL %s: call %u (%.16s): %s%s%s\n", title, call, page->name, what,
                more[0] ? ": " : "", more);
    }
}

struct sweep {
    const char *title;
    uint32_t who;
    int32_t error;
    const char *only;
    uint32_t number, refuse;
    unsigned least;
    bool host_network, bwrap, plain, serves;
};

// One start with the Nth call failing. False when there was no such call.
static bool one_start(const struct sweep *s, uint32_t call)
{
    struct front front;
    struct start_error error = {.step = ""}, end = {.step = ""};
    char *const none[] = {NULL};
    int status = 0, fds = count_fds();
    config.test_refuse_rungs = s->refuse;
    config.allow_host_network = s->host_network;
    config.bwrap = s->bwrap ? &bwrap : NULL;
    config.plain = s->plain ? START_PLAIN_ALL : START_PLAIN_NEVER;
    config.serves = config.n_passed = s->serves;
    config.passed = &quiet;
    page->count = page->fired = 0;
    page->now =
        (struct inject_plan){.who = s->who, .target = call, .error = s->error, .number = s->number};
    snprintf(page->now.only, sizeof page->now.only, "%s", s->only ? s->only : "");
    inject_as(INJECT_FRONT, 0);
    int e = start_front(&config, none, none, &front, &error), f = 0;
    if (!e) {
        struct pollfd p = {front.pidfd, POLLIN, 0};
        syscall(SYS_poll, &p, 1, 5000);
        f = start_finish(&front, &status, &end);
    }
    inject_as(0, 0);
    page->now = (struct inject_plan){0};
    if (!page->fired) {
        if (e || f || status) {
            complain(s->title, call, "without a failure", error.text);
        }
        return false;
    }
    if (e && (!error.step[0] || !error.text[0])) {
        complain(s->title, call, "no step is named", error.text);
    }
    if (!e && !f && status && !WIFEXITED(status)) {
        complain(s->title, call, "the service was killed", "");
    }
    const char *left = left_over(fds);
    if (left[0] && !f) { // a finish that failed says so, and the next start cleans
        complain(s->title, call, left, e ? error.text : "start succeeded");
    }
    return true;
}

static void run_sweep(const struct sweep *s)
{
    uint32_t call = 1;
    int before = failed;
    while (call < MAX_CALLS && failed < 40 && one_start(s, call)) {
        call++;
    }
    if (call <= s->least) {
        complain(s->title, call, "so few calls", "");
    }
    dprintf(loud, "%s %s: %u calls failed one by one\n", failed == before ? "ok  " : "FAIL",
            s->title, call - 1);
}

static const struct sweep sweeps[] = {
    {.title = "front", .who = INJECT_FRONT, .error = ENOMEM, .least = 40},
    {.title = "child", .who = INJECT_CHILD, .error = ENOMEM, .least = 60},
    {.title = "service", .who = INJECT_INNER, .error = ENOMEM, .least = 60},
    {.title = "launcher", .who = INJECT_START, .error = ENOMEM, .least = 150},
    {.title = "launcher's probes", .who = INJECT_PROBE, .error = ENOMEM, .least = 5},
    {.title = "launcher, told to refuse rungs",
     .who = INJECT_START,
     .error = ENOMEM,
     .only = "syscall",
     .number = SYS_seccomp,
     .refuse = 6 | LAUNCHER_REFUSE_LOOPBACK,
     .least = 3},
    {.title = "launcher, without files",
     .who = INJECT_START,
     .error = ENOENT,
     .only = "open",
     .least = 10},
    {.title = "launcher, without mounts",
     .who = INJECT_START,
     .error = ENOENT,
     .only = "syscall",
     .number = SYS_open_tree,
     .least = 3},
    {.title = "launcher, without trees of the runtime root",
     .who = INJECT_START,
     .error = 0,
     .only = "lstat64",
     .least = 3},
    {.title = "launcher with the host's network, folders",
     .who = INJECT_START,
     .error = ENOMEM,
     .only = "mkdir",
     .host_network = true,
     .least = 15},
    {.title = "launcher with the host's network, files",
     .who = INJECT_START,
     .error = ENOMEM,
     .only = "open",
     .host_network = true,
     .least = 15},
    {.title = "launcher with Bubblewrap, folders",
     .who = INJECT_START,
     .error = ENOMEM,
     .only = "mkdir",
     .bwrap = true,
     .least = 15},
    {.title = "launcher with Bubblewrap, mounts",
     .who = INJECT_START,
     .error = ENOMEM,
     .only = "syscall",
     .number = SYS_open_tree,
     .bwrap = true,
     .least = 8},
    {.title = "child with Bubblewrap",
     .who = INJECT_CHILD,
     .error = ENOMEM,
     .bwrap = true,
     .least = 60},
    {.title = "launcher without sandboxes, folders",
     .who = INJECT_START,
     .error = ENOMEM,
     .only = "mkdir",
     .plain = true,
     .least = 15},
    {.title = "launcher without sandboxes, covers",
     .who = INJECT_START,
     .error = ENOMEM,
     .only = "mount",
     .plain = true,
     .least = 20},
    {.title = "launcher without sandboxes, without parts of /proc",
     .who = INJECT_START,
     .error = ENOENT,
     .only = "mount",
     .plain = true,
     .least = 20},
    {.title = "launcher without sandboxes, mounts",
     .who = INJECT_START,
     .error = ENOMEM,
     .only = "syscall",
     .number = SYS_open_tree,
     .plain = true,
     .least = 8},
    {.title = "launcher without sandboxes, files",
     .who = INJECT_START,
     .error = ENOMEM,
     .only = "open",
     .plain = true,
     .least = 10},
    {.title = "front of a service",
     .who = INJECT_FRONT,
     .error = ENOMEM,
     .serves = true,
     .least = 60},
    {.title = "service with a store",
     .who = INJECT_INNER,
     .error = ENOMEM,
     .serves = true,
     .least = 60},
    {.title = "launcher's first words", .who = INJECT_SERVICE, .error = ENOMEM, .least = 1},
};

static void run_sweeps(const struct sweep *list, size_t n, const char *only)
{
    for (size_t i = 0; i < n; i++) {
        if (!only || strstr(list[i].title, only)) {
            run_sweep(&list[i]);
        }
    }
}

int main(int argc, char **argv)
{
    if (start_is_inner(argc, argv)) {
        return service_main(argc, argv);
    }
    const char *root = getenv("ISLE_RUNTIME_ROOT");
    root = root ? root : "/var/lib/isle/runtime/current";
    if (argc < 2 || geteuid() != 0 || access(root, F_OK)) {
        fprintf(stderr, "test_start_inject: skipped: needs root and a runtime root\n");
        return 77;
    }
    char data[] = "/tmp/isle-inject-XXXXXX", guest[64], cache[64];
    if (!mkdtemp(data) || chmod(data, 0711)) {
        return 1;
    }
    snprintf(guest, sizeof guest, "%s/guest", data);
    snprintf(cache, sizeof cache, "%s/cache", data);
    config = (struct start_config){.data_dir = data,
                                   .run_dir = run_dir,
                                   .runtime_root = root,
                                   .guest_dir = guest,
                                   .cache_dir = cache,
                                   .libexec_dir = argv[1],
                                   .hostname = "clouisle-sandbox",
                                   .memory_bytes = UINT64_C(1) << 30,
                                   .pids = 200};
    char text[300];
    if (bwrap_find(NULL, root, &bwrap, text, sizeof text)) {
        fprintf(stderr, "%s\n", text);
        return 1;
    }
    page = inject_page_make();
    if (mkdir(guest, 0755) || mkdir(cache, 0755) || !page) {
        return 1;
    }
    // what a failing launcher says is its own, and much here
    loud = fcntl(2, F_DUPFD_CLOEXEC, 3);
    quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(quiet, 2);
    inject_init(INJECT_FRONT);
    inject_as(0, 0);
    run_sweeps(sweeps, ARRAY_LEN(sweeps), argc < 3 ? NULL : argv[2]);
    inject_page_remove();
    AUTO_CLOSE int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tree_remove_at(tmp, data + strlen("/tmp/"));
    return failed != 0;
}
