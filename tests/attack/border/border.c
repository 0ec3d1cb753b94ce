// border.c: the front and the frame of the hijacked service; the attacks are in border_host.c and
// border_plan.c.
#include "border.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"
#include "plan/args.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

void border_check(struct border *b, const char *name, bool ok, const char *detail, ...)
{
    char text[256] = "", line[400];
    va_list args;
    va_start(args, detail);
    if (detail) {
        vsnprintf(text, sizeof text, detail, args);
    }
    va_end(args);
    int n = ok ? snprintf(line, sizeof line, "PASS %s\n", name)
               : snprintf(line, sizeof line, "FAIL %s: %s\n", name, text);
    b->failed += !ok;
    fd_write_all(b->report, line, (size_t)n);
}

struct plan_request border_good(const char *name, uint32_t uid)
{
    struct plan_request q = {.op = PLAN_START,
                             .filter = PLAN_FILTER_FOLDER,
                             .uid = uid,
                             .workspace_kind = PLAN_WORKSPACE_FOLDER,
                             .limits = {.memory_bytes = 64 << 20,
                                        .tmp_bytes = 1 << 20,
                                        .file_bytes = 1 << 20,
                                        .tmp_inodes = 64,
                                        .cpu_percent = 100,
                                        .pids = 16,
                                        .nofile = 64}};
    snprintf(q.workspace, sizeof q.workspace, "%s", name);
    return q;
}

int border_workspace(struct border *b, const char *name, uint32_t uid)
{
    char w[PLAN_NAME_MAX + 4];
    snprintf(w, sizeof w, "%s/w", name);
    int root = b->seat.workspace_root;
    uid = b->seat.downgrades & PLAN_SINGLE_UID ? PLAN_UID_LAUNCHER : uid;
    if (mkdirat(root, name, 0711) || mkdirat(root, w, 0700) || fchownat(root, w, uid, uid, 0)) {
        return -errno;
    }
    return 0;
}

void border_fds(int fds[PLAN_N_START_FDS], const char *const *argv)
{
    static const char *const env[] = {"PATH=/usr/bin", NULL};
    for (int i = 0; i < PLAN_N_START_FDS; i++) {
        fds[i] = i == PLAN_FD_ARGS ? args_pack(argv, env, "/workspace")
                                   : open("/dev/null", O_RDWR | O_CLOEXEC);
    }
}

void border_fds_close(int fds[PLAN_N_START_FDS])
{
    for (int i = 0; i < PLAN_N_START_FDS; i++) {
        fds[i] = fd_close(fds[i]);
    }
}

int border_ask(struct border *b, struct plan_request *q, const int *fds, int n, uint32_t want_op,
               int limit_ms, struct plan_record *ret)
{
    q->tag = ++b->tag;
    int e = msg_send(b->seat.launcher, q, sizeof *q, fds, n, 0);
    if (e) {
        return e;
    }
    uint64_t end = clock_now_ns() + (uint64_t)limit_ms * NS_PER_MS;
    for (;;) {
        uint64_t now = clock_now_ns();
        struct pollfd p = {.fd = b->seat.launcher, .events = POLLIN};
        if (now >= end || poll(&p, 1, (int)((end - now) / NS_PER_MS) + 1) <= 0) {
            return -ETIMEDOUT;
        }
        struct plan_record r;
        int got = -1;
        ssize_t size = msg_recv(b->seat.launcher, &r, sizeof r, &got, 1, NULL, MSG_DONTWAIT);
        fd_close(got);
        if (size == 0 || size == -ECONNRESET) {
            return -EPIPE;
        }
        if (size == sizeof r && r.tag == q->tag && (r.op == want_op || r.error)) {
            *ret = r;
            return 0;
        }
    }
}

bool border_alive(struct border *b)
{
    static const char *const argv[] = {"/bin/true", NULL};
    struct plan_request q = border_good("once/alive", PLAN_UID_WORKSPACE_0 + 1);
    struct plan_record r = {};
    int fds[PLAN_N_START_FDS];
    border_fds(fds, argv);
    int e = border_ask(b, &q, fds, PLAN_N_START_FDS, PLAN_END, 30000, &r);
    border_fds_close(fds);
    if (!e && (r.error || r.status)) {
        border_check(b, "good-job", false, "error %d in step %u, status %x", r.error, r.step,
                     (unsigned)r.status);
    }
    return !e && !r.error && r.status == 0;
}

static int service(int argc, char **argv)
{
    struct border b = {};
    struct start_error error = {};
    int e = start_inner(argc, argv, &b.seat, &error);
    if (e) {
        return 1; // start_inner() has told the front
    }
    b.report = b.seat.front;
    char hello;
    if (msg_recv(b.seat.front, &hello, 1, &b.host_proc, 1, NULL, 0) != 1 || b.host_proc < 0) {
        return 2;
    }
    e = border_workspace(&b, "once/alive", PLAN_UID_WORKSPACE_0 + 1);
    border_check(&b, "before-all", !e && border_alive(&b), "%s", strerror(-e));
    attack_processes(&b);
    attack_host(&b);
    attack_plans(&b);
    attack_floods(&b);
    border_check(&b, "after-all", border_alive(&b), "the launcher does not run a job any more");
    shutdown(b.seat.front, SHUT_WR);
    start_seat_done(&b.seat);
    return 0;
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (!value) {
        fprintf(stderr, "border: %s is not set\n", name);
        exit(2);
    }
    return value;
}

// As a service that listens has one.
static int listener(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return s >= 0 && bind(s, (struct sockaddr *)&at, sizeof at) == 0 && listen(s, 1) == 0 ? s : -1;
}

static int front(void)
{
    const int socket_of_the_host = listener();
    struct start_config config = {
        .passed = &socket_of_the_host,
        .n_passed = 1,
        .data_dir = setting("BORDER_DATA"),
        .run_dir = setting("BORDER_RUN"),
        .runtime_root = setting("SANDBOX_RUNTIME_ROOT"),
        .guest_dir = setting("BORDER_GUEST"),
        .libexec_dir = setting("BORDER_LIBEXEC"),
        .hostname = "border",
        .memory_bytes = UINT64_C(1) << 30,
        .pids = 800,
    };
    static char name[] = "border";
    char *argv[] = {name, NULL}, *env[] = {NULL};
    struct front f;
    struct start_error error = {};
    int e = start_front(&config, argv, env, &f, &error);
    if (e) {
        fprintf(stderr, "border: %s: %s\n", error.step, error.text);
        return 2;
    }
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    e = msg_send(f.service, "p", 1, &proc, 1, 0);
    char text[4096];
    ssize_t n;
    while (!e && (n = read(f.service, text, sizeof text)) > 0) {
        fwrite(text, 1, (size_t)n, stdout);
        fflush(stdout);
    }
    int status = 0;
    e = start_finish(&f, &status, &error);
    if (e || status) {
        fprintf(stderr, "border: end: %s: %s, wait status %d\n", error.step, error.text, status);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    return start_is_inner(argc, argv) ? service(argc, argv) : front();
}
