// bench.c: isle beside Bubblewrap and bare interpreters, job by job interleaved in one run; medians
// and ratios. Every kind is timed from the request until exit status and result are known.
//
//   bench [N [PAUSE_US]] [--json]      as root, after ./bootstrap run
//
// The program is front and service at once, as `isle` is: the service runs real pipelines on a
// resident launcher, the front times other programs.
#include "base/clock.h"
#include "base/fd.h"
#include "io/loop.h"
#include "job/pipeline.h"
#include "job/runner.h"
#include "model/lower.h"
#include "plan/args.h"
#include "start/start.h"
#include "workspace/uids.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum kind { BARE, BWRAP, COLD, LAUNCH, PARKED, WHOLE, N_KINDS };
enum program { TRUE_, PYTHON, NODE, N_PROGRAMS };

static const char *const kind_names[N_KINDS] = {
    "bare (fork, chroot, exec)", "bwrap",
    "isle, pipeline, resident",  "isle, resident launcher",
    "isle, parked sandbox",      "isle run, whole program"};
static const char *const program_names[N_PROGRAMS] = {"/bin/true", "python print(1)",
                                                      "node console.log(1)"};
static const char *const commands[N_PROGRAMS][4] = {
    {"/bin/true", NULL},
    {"/usr/bin/python3.13", "-c", "print(1)", NULL},
    {"/usr/bin/node", "-e", "console.log(1)", NULL}};
static const char *const jobs[N_PROGRAMS] = {
    "{\"command\":[\"/bin/true\"]}", "{\"language\":\"python\",\"code\":\"print(1)\"}",
    "{\"language\":\"javascript\",\"code\":\"console.log(1)\"}"};

// Targets: this median over that one, at most.
static const struct target {
    enum kind kind, base;
    enum program program;
    double at_most, tried;
} targets[] = {
    {LAUNCH, BWRAP, TRUE_, 0.65, 0.5}, {PARKED, BWRAP, TRUE_, 0.33, 0.25},
    {COLD, BWRAP, PYTHON, 1.0, 1.0},   {WHOLE, BWRAP, TRUE_, 2.2, 1.5},
    {WHOLE, BWRAP, PYTHON, 1.4, 1.15},
};

struct order {
    uint32_t kind, program;
};
struct answer {
    int32_t error;
    uint32_t ended_well;
    uint64_t ns;
    uint64_t marks_ns[PLAN_N_MARKS]; // LAUNCH, PARKED: of the launcher, from the request on
    int32_t launcher_pid;
};

// ---- The service: one job per order -------------------------------------------------------------

struct service {
    struct loop *loop;
    struct runner *runner;
    struct pipeline_config config;
    bool done, well;
    struct plan_record record; // the last answer of the launcher
    int fd;
};

static void finished(void *ctx, struct result *r)
{
    struct service *s = ctx;
    s->done = true;
    s->well = r->reason == REASON_OK;
    if (!s->well) {
        fprintf(stderr, "bench: %s: %s\n", reason_names[r->reason], r->error ? r->error : "");
    }
}

static int run_cold(struct service *s, const char *json)
{
    struct job job;
    struct job_error error;
    struct pipeline *p = NULL;
    struct job_sink sink = {.ctx = s, .done = finished};
    s->done = false;
    int e = job_parse(json, strlen(json), 0, &job, &error);
    e = e ? e : pipeline_start(s->loop, s->runner, &s->config, &job, &sink, &p);
    while (!e && !s->done) {
        e = loop_step(s->loop, -1);
    }
    pipeline_free(p);
    return e;
}

static void answered(struct runner_call *c, const struct plan_record *r, int fd)
{
    struct service *s = c->ctx;
    s->record = *r;
    s->done = true;
    if (fd >= 0) {
        fd_close(s->fd);
        s->fd = fd;
    }
}

static int wait_for(struct service *s, uint32_t op)
{
    do {
        s->done = false;
        while (!s->done) {
            int e = loop_step(s->loop, -1);
            if (e) {
                return e;
            }
        }
        if (s->record.error) {
            return -s->record.error;
        }
    } while (s->record.op != op);
    return 0;
}

// A sandbox that waits between the phases.
static int park(struct service *s, uint32_t *ret_id)
{
    struct runner_call call = RUNNER_CALL_INIT(answered, s);
    struct plan_request prepare = {.op = PLAN_PREPARE};
    int e = runner_send(s->runner, &prepare, NULL, 0, &call);
    e = e ? e : wait_for(s, PLAN_PARKED);
    runner_forget(s->runner, &call);
    *ret_id = s->record.id;
    usleep(3000); // its shim has settled
    return e;
}

// /bin/true straight by the launcher, without a pipeline, until its END: both phases with a fresh
// tmpfs workspace, or phase two alone in a parked sandbox, whose workspace is made ahead as well.
static int run_launch(struct service *s, bool parked, struct answer *a)
{
    static const char small[] = "{\"command\":[\"/bin/true\"],\"limits\":{\"disk_mb\":64}}";
    static const char *const argv[] = {"/bin/true", NULL}, *const env[] = {"PATH=/usr/bin", NULL};
    struct job job;
    struct job_error error;
    struct lowered plan;
    struct runner_call call = RUNNER_CALL_INIT(answered, s);
    uint32_t id = 0;
    int e = job_parse(small, sizeof small - 1, 0, &job, &error);
    e = e || !parked ? e : park(s, &id);
    if (e) {
        return e;
    }
    uint64_t begin = clock_now_ns();
    lower_job(&job, &s->config.host, &(struct lower_staged){0, 4}, &plan);
    plan.start.uid = uids_take(s->config.uids);
    e = runner_tmpfs(s->runner, plan.start.uid, plan.workspace_bytes, plan.workspace_inodes, &call);
    e = e ? e : wait_for(s, PLAN_TMPFS);
    begin = parked ? clock_now_ns() : begin;
    AUTO_CLOSE int args = args_pack(argv, env, "/workspace");
    int null = s->config.null;
    const int fds[PLAN_N_START_FDS] = {null, null, null, null, args};
    plan.start.id = id;
    plan.start.workspace_no = s->record.id;
    e = e ? e : runner_send(s->runner, &plan.start, fds, PLAN_N_START_FDS, &call);
    e = e ? e : wait_for(s, PLAN_END);
    s->well = !e && s->record.status == 0;
    a->ns = clock_now_ns() - begin;
    runner_tmpfs_drop(s->runner, plan.start.workspace_no);
    for (int i = 0; i < PLAN_N_MARKS; i++) {
        a->marks_ns[i] = s->record.marks_ns[i] > begin ? s->record.marks_ns[i] - begin : 0;
    }
    uids_give(s->config.uids, plan.start.uid);
    job_done(&job);
    return e;
}

static int serve(const struct seat *seat)
{
    static struct uids uids;
    struct service s = {.fd = -1,
                        .config = {.workspace_root = seat->workspace_root,
                                   .null = open("/dev/null", O_RDWR | O_CLOEXEC),
                                   .uids = &uids,
                                   .host = {200, 8192, 64},
                                   .artifact_max_bytes = 1 << 20,
                                   .artifacts_max_bytes = 1 << 20,
                                   .downgrades = seat->downgrades,
                                   .tz = "UTC"}};
    int e = loop_new(&s.loop);
    e = e ? e : runner_new(s.loop, seat->launcher, seat->launcher_pidfd, NULL, NULL, &s.runner);
    struct order o;
    while (!e && fd_read_full(seat->front, &o, sizeof o) == (ssize_t)sizeof o) {
        struct answer a = {.launcher_pid = seat->launcher_pid};
        uint64_t begin = clock_now_ns();
        s.well = false;
        if (o.kind == COLD) {
            a.error = run_cold(&s, jobs[o.program]);
            a.ns = clock_now_ns() - begin;
        } else {
            a.error = run_launch(&s, o.kind == PARKED, &a);
        }
        a.ended_well = s.well;
        e = fd_write_all(seat->front, &a, sizeof a);
    }
    runner_free(s.runner);
    loop_free(s.loop);
    return e != 0;
}

// ---- The front: order, time, tell ---------------------------------------------------------------

struct front_state {
    struct front front;
    const char *root, *isle;
    char data[64];
    int launcher_pid;
    uint64_t marks_ns[PLAN_N_MARKS]; // of the last order
};

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

static double time_program(const char *const *argv, const char *chroot_to, uid_t uid)
{
    int status = 0;
    uint64_t begin = clock_now_ns();
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        if (chroot_to && (chroot(chroot_to) || chdir("/"))) {
            _exit(126);
        }
        if (uid && (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))) {
            _exit(126);
        }
        char *env[] = {(char *)(uintptr_t) "PATH=/usr/bin:/bin", (char *)(uintptr_t) "LANG=C.UTF-8",
                       NULL, NULL};
        char root[512];
        if (!uid) {
            snprintf(root, sizeof root, "SANDBOX_RUNTIME_ROOT=%s", getenv("SANDBOX_RUNTIME_ROOT"));
            env[2] = getenv("SANDBOX_RUNTIME_ROOT") ? root : NULL;
        }
        execve(argv[0], (char *const *)(uintptr_t)argv, env);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    uint64_t end = clock_now_ns();
    if (status) {
        fprintf(stderr, "bench: %s: wait status %x\n", argv[0], (unsigned)status);
        exit(1);
    }
    return (double)(end - begin) / 1e6;
}

// The documented flags plus --unshare-net --unshare-cgroup --proc /proc.
static double time_bwrap(const struct front_state *f, enum program program, const char *workspace)
{
    enum { N_BINDS = 5, UID = 400000 };
    static const char *const binds[N_BINDS] = {"usr", "bin", "sbin", "lib", "lib64"};
    static const char *const flags[] = {"/usr/bin/bwrap",   "--unshare-user",    "--unshare-pid",
                                        "--unshare-ipc",    "--unshare-uts",     "--unshare-net",
                                        "--unshare-cgroup", "--die-with-parent", "--hostname",
                                        "clouisle-sandbox"};
    const char *argv[64];
    char from[N_BINDS][512], to[N_BINDS][16];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        argv[n++] = flags[i];
    }
    for (size_t i = 0; i < N_BINDS; i++) {
        snprintf(from[i], sizeof from[i], "%s/%s", f->root, binds[i]);
        snprintf(to[i], sizeof to[i], "/%s", binds[i]);
        argv[n++] = "--ro-bind";
        argv[n++] = from[i];
        argv[n++] = to[i];
    }
    const char *const rest[] = {"--proc", "/proc",   "--dev",      "/dev",
                                "--bind", workspace, "/workspace", "--tmpfs",
                                "/tmp",   "--chdir", "/workspace", "--"};
    for (size_t i = 0; i < ARRAY_LEN(rest); i++) {
        argv[n++] = rest[i];
    }
    for (size_t i = 0; i < 4; i++) {
        argv[n++] = commands[program][i];
    }
    return time_program(argv, NULL, UID);
}

static double time_whole(const struct front_state *f, enum program program)
{
    const char *const forms[N_PROGRAMS][8] = {
        {f->isle, "run", "--", "/bin/true", NULL},
        {f->isle, "run", "-l", "python", "-c", "print(1)", NULL},
        {f->isle, "run", "-l", "javascript", "-c", "console.log(1)", NULL}};
    return time_program(forms[program], NULL, 0);
}

static double time_order(struct front_state *f, enum kind kind, enum program program)
{
    struct order o = {kind, program};
    struct answer a;
    if (fd_write_all(f->front.service, &o, sizeof o) ||
        fd_read_full(f->front.service, &a, sizeof a) != (ssize_t)sizeof a) {
        die("the service", "is gone");
    }
    if (a.error || !a.ended_well) {
        die(kind_names[kind], a.error ? strerror(-a.error) : "the job failed");
    }
    f->launcher_pid = a.launcher_pid;
    memcpy(f->marks_ns, a.marks_ns, sizeof f->marks_ns);
    return (double)a.ns / 1e6;
}

static double time_one(struct front_state *f, enum kind kind, enum program program)
{
    switch (kind) {
    case BARE:
        return time_program(commands[program], f->root, 400000);
    case BWRAP:
        return time_bwrap(f, program, f->data);
    case WHOLE:
        return time_whole(f, program);
    case COLD:
    case LAUNCH:
    case PARKED:
    case N_KINDS:
    default:
        return time_order(f, kind, program);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *values, int n, double q)
{
    double *copy = malloc((size_t)n * sizeof *copy);
    if (!copy) {
        die("memory", "none");
    }
    memcpy(copy, values, (size_t)n * sizeof *copy);
    qsort(copy, (size_t)n, sizeof *copy, compare);
    double v = copy[(int)(q * (n - 1))];
    free(copy);
    return v;
}

static bool applies(enum kind kind, enum program program)
{
    return (kind != PARKED && kind != LAUNCH) || program == TRUE_;
}

static long launcher_pss_kb(int pid)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    const char *line =
        fd_read_at(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, "\nPss:") : NULL;
    return line ? strtol(line + 5, NULL, 10) : -1;
}

static double *samples[N_KINDS][N_PROGRAMS];
static double *marks[2][PLAN_N_MARKS]; // of LAUNCH and PARKED

static void tell_marks(int n)
{
    static const char *const names[PLAN_N_MARKS] = {
        "request read", "groups made", "cloned", "parked",        "phase two",
        "exec",         "report read", "reaped", "groups removed"};
    printf("a launch and a start in a parked sandbox, us from the request, p50\n");
    for (int i = 0; i < PLAN_N_MARKS; i++) {
        printf("  %-16s %8.0f %8.0f\n", names[i], quantile(marks[0][i], n, .5) * 1e3,
               quantile(marks[1][i], n, .5) * 1e3);
    }
}

static void tell_kind(enum kind kind, enum program program, int n, bool json)
{
    const double *v = samples[kind][program];
    double low = quantile(v, n, .1), median = quantile(v, n, .5), high = quantile(v, n, .9);
    if (json) {
        printf("{\"kind\":\"%s\",\"program\":\"%s\",\"n\":%d,\"p10_ms\":%.3f,"
               "\"p50_ms\":%.3f,\"p90_ms\":%.3f}\n",
               kind_names[kind], program_names[program], n, low, median, high);
    } else {
        printf("%-28s %-20s n %4d   p10 %8.2f   p50 %8.2f   p90 %8.2f ms\n", kind_names[kind],
               program_names[program], n, low, median, high);
    }
}

static void tell_target(const struct target *t, int n, bool json)
{
    double ratio = quantile(samples[t->kind][t->program], n, .5) /
                   quantile(samples[t->base][t->program], n, .5);
    bool met = ratio <= t->at_most;
    if (json) {
        printf("{\"ratio\":%.3f,\"of\":\"%s\",\"to\":\"%s\",\"program\":\"%s\","
               "\"at_most\":%.2f,\"met\":%s}\n",
               ratio, kind_names[t->kind], kind_names[t->base], program_names[t->program],
               t->at_most, met ? "true" : "false");
    } else {
        printf("%6.2f x  %s / %s, %s (at most %.2f: %s; tried %.2f)\n", ratio, kind_names[t->kind],
               kind_names[t->base], program_names[t->program], t->at_most, met ? "met" : "missed",
               t->tried);
    }
}

static void tell(const struct front_state *f, int n, bool json)
{
    for (int k = 0; k < N_KINDS; k++) {
        for (int p = 0; p < N_PROGRAMS; p++) {
            if (applies((enum kind)k, (enum program)p)) {
                tell_kind((enum kind)k, (enum program)p, n, json);
            }
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        tell_target(&targets[i], n, json);
    }
    long pss_kb = launcher_pss_kb(f->launcher_pid);
    if (!json) {
        tell_marks(n);
    }
    if (json) {
        printf("{\"launcher_pss_kb\":%ld}\n", pss_kb);
    } else {
        printf("launcher PSS %ld kB\n", pss_kb);
    }
}

static void begin_service(struct front_state *f, char *self_dir)
{
    struct start_error error;
    static char guest[600], libexec[600];
    snprintf(guest, sizeof guest, "%s", getenv("BENCH_GUEST"));
    snprintf(libexec, sizeof libexec, "%s", self_dir);
    struct start_config config = {.data_dir = f->data,
                                  .run_dir = "/run/isle",
                                  .runtime_root = f->root,
                                  .guest_dir = guest,
                                  .libexec_dir = libexec,
                                  .hostname = "clouisle-sandbox"};
    char *argv[] = {(char *)(uintptr_t) "bench", NULL}, *env[] = {NULL};
    if (start_front(&config, argv, env, &f->front, &error)) {
        die(error.step, error.text);
    }
}

int main(int argc, char **argv)
{
    struct start_error error;
    if (start_is_inner(argc, argv)) {
        struct seat seat;
        if (start_inner(argc, argv, &seat, &error)) {
            die(error.step, error.text);
        }
        int status = serve(&seat);
        start_seat_done(&seat);
        return status;
    }
    bool json = argc > 1 && !strcmp(argv[argc - 1], "--json");
    argc -= json;
    int n = argc > 1 ? atoi(argv[1]) : 100;
    useconds_t pause_us = argc > 2 ? (useconds_t)atoi(argv[2]) : 3000;
    struct front_state f = {.root = getenv("SANDBOX_RUNTIME_ROOT"), .isle = getenv("ISLE")};
    if (n < 3 || !f.isle || !getenv("BENCH_GUEST") || !getenv("ISLE_LIBEXEC")) {
        die("usage", "run tests/bench/run [N [PAUSE_US]] [--json]");
    }
    f.root = f.root ? f.root : "/var/lib/isle/runtime/current";
    snprintf(f.data, sizeof f.data, "/tmp/isle-bench-XXXXXX");
    if (!mkdtemp(f.data) || chmod(f.data, 0777)) {
        die("mkdtemp", strerror(errno));
    }
    begin_service(&f, getenv("ISLE_LIBEXEC"));
    for (int k = 0; k < N_KINDS; k++) {
        for (int p = 0; p < N_PROGRAMS; p++) {
            samples[k][p] = calloc((size_t)n, sizeof(double));
        }
    }
    for (int i = 0; i < 2 * PLAN_N_MARKS; i++) {
        marks[i % 2][i / 2] = calloc((size_t)n, sizeof(double));
    }
    for (int i = -3; i < n; i++) { // three rounds to warm up
        for (int k = 0; k < N_KINDS; k++) {
            for (int p = 0; p < N_PROGRAMS; p++) {
                enum kind kind = (enum kind)((k + i + 3) % N_KINDS);
                if (applies(kind, (enum program)p)) {
                    usleep(pause_us);
                    double ms = time_one(&f, kind, (enum program)p);
                    for (int m = 0;
                         i >= 0 && m < PLAN_N_MARKS && (kind == LAUNCH || kind == PARKED); m++) {
                        marks[kind == PARKED][m][i] = (double)f.marks_ns[m] / 1e6;
                    }
                    if (i >= 0) {
                        samples[kind][p][i] = ms;
                    }
                }
            }
        }
    }
    tell(&f, n, json);
    int status;
    shutdown(f.front.service, SHUT_WR);
    int e = start_finish(&f.front, &status, &error);
    rmdir(f.data);
    return e || status;
}
