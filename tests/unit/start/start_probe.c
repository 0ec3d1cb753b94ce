// start_probe: the start without `isle`: claims an instance, starts service and launcher, and says
// what they are. For tests, and to look at a start that fails.
//
//   start_probe [--data DIR] [--run DIR] [--runtime DIR] [--guest DIR] [--libexec DIR]
//               [--memory BYTES] [--pids N] [--refuse MASK] [--must-exist] report|soak|times
//
// report: the service's view, one "key value" per line. soak: the same, then waits for the end of
// stdin. times: milliseconds of each moment, and of the whole.
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "start/start.h"

#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void add_status(struct buf *out, const char *key)
{
    char text[4096];
    if (fd_read_at(AT_FDCWD, "/proc/self/status", text, sizeof text) <= 0) {
        return;
    }
    const char *line = strstr(text, key);
    if (line) {
        buf_printf(out, "%.*s\n", (int)strcspn(line, "\n"), line);
    }
}

static void add_moments(struct buf *out, const struct seat *seat)
{
    static const char *const names[START_N_MARKS] = {"begin",  "claimed", "cloned",  "mounts",
                                                     "mapped", "image",   "dropped", "ready"};
    for (int i = 1; i < START_N_MARKS; i++) {
        buf_printf(out, "t_%s %.2f\n", names[i],
                   (double)(seat->marks_ns[i] - seat->marks_ns[0]) / 1e6);
    }
}

static void report(struct seat *seat)
{
    AUTO_BUF struct buf out = BUF_INIT(65536);
    struct stat st;
    static const char *const keys[] = {
        "Uid:", "Gid:", "Groups:", "CapEff:", "CapBnd:", "CapPrm:", "NoNewPrivs:", "Seccomp:"};
    buf_printf(&out, "pid %d\nlauncher %d\nrung %u\ndowngrades %u\nlandlock %u\n", getpid(),
               seat->launcher_pid, seat->rung, seat->downgrades, seat->landlock_abi);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        add_status(&out, keys[i]);
    }
    struct rlimit files, processes;
    if (!getrlimit(RLIMIT_NOFILE, &files) && !getrlimit(RLIMIT_NPROC, &processes)) {
        buf_printf(&out, "nofile %llu %llu\nnproc %lld\n", (unsigned long long)files.rlim_cur,
                   (unsigned long long)files.rlim_max, (long long)processes.rlim_max);
    }
    if (!fstatat(seat->workspace_root, "once", &st, 0)) {
        buf_printf(&out, "once %u %o\n", st.st_uid, st.st_mode & 07777U);
    }
    for (int fd = 0; fd < 64; fd++) {
        char path[32], target[128];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n > 0) {
            buf_printf(&out, "fd %d %.*s\n", fd, (int)n, target);
        }
    }
    add_moments(&out, seat);
    fd_write_all(seat->front, out.data, out.len);
}

static int service_main(int argc, char **argv)
{
    struct seat seat;
    struct start_error error;
    if (start_inner(argc, argv, &seat, &error)) {
        return 125;
    }
    report(&seat);
    struct pollfd p[2] = {{seat.front, POLLIN, 0}, {seat.launcher_pidfd, POLLIN, 0}};
    shutdown(seat.front, SHUT_WR);
    if (argc > 1 && !strcmp(argv[1], "soak")) {
        poll(p, 2, -1);
    }
    start_seat_done(&seat);
    return p[1].revents ? 3 : 0;
}

static void copy_report(int from)
{
    char text[4096];
    ssize_t n;
    while ((n = read(from, text, sizeof text)) > 0) {
        if (fd_write_all(1, text, (size_t)n)) {
            return;
        }
    }
}

static void parse(int argc, char **argv, struct start_config *c)
{
    static const struct option options[] = {{"data", 1, NULL, 'd'},
                                            {"run", 1, NULL, 'r'},
                                            {"runtime", 1, NULL, 't'},
                                            {"guest", 1, NULL, 'g'},
                                            {"libexec", 1, NULL, 'l'},
                                            {"memory", 1, NULL, 'm'},
                                            {"pids", 1, NULL, 'p'},
                                            {"refuse", 1, NULL, 'f'},
                                            {"must-exist", 0, NULL, 'e'},
                                            {"hostname", 1, NULL, 'h'},
                                            {0}};
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (o) {
        case 'd':
            c->data_dir = optarg;
            break;
        case 'r':
            c->run_dir = optarg;
            break;
        case 't':
            c->runtime_root = optarg;
            break;
        case 'g':
            c->guest_dir = optarg;
            break;
        case 'l':
            c->libexec_dir = optarg;
            break;
        case 'm':
            c->memory_bytes = strtoull(optarg, NULL, 10);
            break;
        case 'p':
            c->pids = strtoull(optarg, NULL, 10);
            break;
        case 'f':
            c->test_refuse_rungs = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'e':
            c->data_dir_must_exist = 1;
            break;
        case 'h':
            c->hostname = optarg;
            break;
        default:
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    if (start_is_inner(argc, argv)) {
        return service_main(argc, argv);
    }
    struct start_config c = {.data_dir = "/tmp/isle-probe/data",
                             .run_dir = "/run/isle",
                             .runtime_root = "/var/lib/isle/runtime/current",
                             .guest_dir = "/usr/lib/isle",
                             .libexec_dir = "/usr/libexec/isle",
                             .hostname = "clouisle-sandbox"};
    parse(argc, argv, &c);
    char *none[] = {NULL};
    struct front front;
    struct start_error error = {.step = ""};
    uint64_t begin = clock_now_ns();
    if (start_front(&c, argv + optind, none, &front, &error)) {
        fprintf(stderr, "start_probe: %s: %s\n", error.step, error.text);
        return 125;
    }
    uint64_t serving = clock_now_ns();
    printf("instance %u\nservice %d\n", front.instance, front.pid);
    fflush(stdout);
    copy_report(front.service);
    bool soak = optind < argc && !strcmp(argv[optind], "soak");
    struct pollfd p[2] = {{0, POLLIN, 0}, {front.pidfd, POLLIN, 0}};
    if (soak) {
        puts("soaking");
        fflush(stdout);
        poll(p, 2, -1);
    }
    int status;
    uint64_t ending = clock_now_ns();
    int e = start_finish(&front, &status, &error);
    if (e) {
        fprintf(stderr, "start_probe: %s: %s\n", error.step, error.text);
    }
    if (optind < argc && !strcmp(argv[optind], "times")) {
        printf("t_serving %.2f\nt_finish %.2f\nt_whole %.2f\n", (double)(serving - begin) / 1e6,
               (double)(clock_now_ns() - ending) / 1e6, (double)(clock_now_ns() - begin) / 1e6);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
