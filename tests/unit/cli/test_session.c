// The front's talk with a service: here a child process that plays one, well or badly.
#include "base/fd.h"
#include "base/msg.h"
#include "cli/session.h"
#include "codec/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

// ---- The service's side, in a child process

struct service {
    int sock;
    uint32_t seq;
    struct frame_decoder in;
    int fds[64];
    size_t n_fds;
};

static void say(struct service *s, enum frame_type type, const void *data, size_t len)
{
    AUTO_BUF struct buf b = BUF_INIT(1 << 20);
    if (frame_encode(&b, FRAME_TO_FRONT, type, 1, ++s->seq, data, len) ||
        fd_write_all(s->sock, b.data, b.len)) {
        _exit(2);
    }
}

static void say_text(struct service *s, enum frame_type type, const char *text)
{
    say(s, type, text, strlen(text));
}

// The next frame's type, 0 at the end; the JSON of a job goes into job.
static uint32_t hear(struct service *s, char *job, size_t size)
{
    struct frame f;
    int rc;
    while ((rc = frame_next(&s->in, &f)) == 0) {
        char data[4096];
        int fds[16];
        ssize_t n = msg_recv(s->sock, data, sizeof data, fds, 16, NULL, 0);
        if (n <= 0 || frame_feed(&s->in, data, (size_t)n)) {
            return 0;
        }
        for (size_t i = 0; i < 16 && fds[i] >= 0; i++) {
            s->fds[s->n_fds++] = fds[i];
        }
    }
    if (rc < 0) {
        _exit(3);
    }
    if (f.type == FRAME_JOB) {
        snprintf(job, size, "%.*s", (int)f.length, f.payload);
    }
    return f.type;
}

static void hear_job(struct service *s, char *job, size_t size)
{
    uint32_t type;
    while ((type = hear(s, job, size)) != FRAME_JOB) {
        if (type != FRAME_FDS) {
            _exit(4);
        }
    }
}

#define FINAL "{\"reason\":\"ok\"}"

static void serve_echo(struct service *s)
{
    char job[1000];
    hear_job(s, job, sizeof job);
    char text[64] = "";
    for (size_t i = 0; i < s->n_fds; i++) {
        char one[8] = "";
        if (read(s->fds[i], one, sizeof one - 1) < 0) {
            _exit(5);
        }
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s,", one);
    }
    say_text(s, FRAME_STDOUT, "out\n");
    say_text(s, FRAME_STDERR, "err");
    say_text(s, FRAME_STDOUT, job);
    say_text(s, FRAME_STDOUT, text);
    say_text(s, FRAME_FINAL, FINAL);
}

static void serve_flood(struct service *s)
{
    char job[1000], data[8192];
    hear_job(s, job, sizeof job);
    memset(data, 'x', sizeof data);
    for (int i = 0; i < 256; i++) {
        say(s, FRAME_STDOUT, data, sizeof data);
    }
    say_text(s, FRAME_FINAL, FINAL);
}

static void serve_until_cancel(struct service *s)
{
    char job[1000];
    hear_job(s, job, sizeof job);
    kill(getppid(), SIGTERM);
    if (hear(s, job, sizeof job) != FRAME_CANCEL) {
        _exit(6);
    }
    say_text(s, FRAME_FINAL, "{\"reason\":\"cancelled\"}");
}

static void serve_stubborn(struct service *s)
{
    char job[1000];
    hear_job(s, job, sizeof job);
    kill(getppid(), SIGTERM);
    if (hear(s, job, sizeof job) == FRAME_CANCEL) {
        kill(getppid(), SIGTERM);
        hear(s, job, sizeof job);
    }
}

static void serve_end(struct service *s)
{
    char job[1000];
    hear_job(s, job, sizeof job);
    say_text(s, FRAME_STDOUT, "partial");
}

static void serve_garbage(struct service *s)
{
    char job[1000];
    hear_job(s, job, sizeof job);
    say_text(s, FRAME_STDOUT, "good");
    if (fd_write_all(s->sock, "GARBAGE GARBAGE GARBAGE", 23)) {
        _exit(2);
    }
    hear(s, job, sizeof job);
}

static void serve_artifacts(struct service *s)
{
    char job[1000];
    hear_job(s, job, sizeof job);
    say_text(s, FRAME_ARTIFACT, "{\"name\":\"a\",\"size\":3,\"mode\":420}");
    say_text(s, FRAME_ARTIFACT_DATA, "abc");
    say_text(s, FRAME_FINAL, FINAL);
}

// ---- The front's side

static pid_t start_service(void (*serve)(struct service *), int *ret_sock)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(pair[0]);
        alarm(60);
        struct service s = {.sock = pair[1]};
        frame_decoder_init(&s.in, FRAME_FROM_FRONT);
        serve(&s);
        frame_decoder_done(&s.in);
        _exit(0);
    }
    close(pair[1]);
    *ret_sock = pair[0];
    return pid;
}

struct outcome {
    enum session_end end;
    char out[2000], err[100];
    bool cancelled, line_open;
    char final[200];
    int out_error;
};

static void read_back(int fd, char *text, size_t size)
{
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    ssize_t n = fd_read_full(fd, text, size - 1);
    assert_true(n >= 0);
    text[n] = '\0';
}

static struct outcome converse(void (*serve)(struct service *), const struct run_job *job,
                               struct outdir *artifacts)
{
    struct outcome o = {};
    struct outdir none = {.dir = -1, .folder = -1, .file = -1, .job = &job->job};
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, &before);
    AUTO_CLOSE int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    AUTO_CLOSE int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
    AUTO_CLOSE int sock = -1;
    int status;
    pid_t pid = start_service(serve, &sock);
    struct session s = {.service = sock,
                        .signals = signals,
                        .out = out,
                        .err = err,
                        .artifacts = artifacts ? artifacts : &none};
    assert_int_equal(session_run(&s, job, &o.end), 0);
    read_back(out, o.out, sizeof o.out);
    read_back(err, o.err, sizeof o.err);
    o.cancelled = s.cancelled;
    o.line_open = s.line_open;
    o.out_error = s.out_error;
    snprintf(o.final, sizeof o.final, "%s", buf_text(&s.final));
    session_done(&s);
    sock = fd_close(sock);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return o;
}

static struct run_job make_job(const char *json)
{
    struct run_job j = {.json = BUF_INIT(1000), .job = {.stdin_fd = -1, .stdin_index = -1}};
    buf_puts(&j.json, json);
    return j;
}

static void everything_arrives(void **state)
{
    (void)state;
    int fds[20];
    struct run_job j = make_job("{\"job\":1}");
    char want[2000] = "out\n{\"job\":1}";
    for (int i = 0; i < 20; i++) { // more than one frame carries
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        fds[i] = fd_sealed("x", text, strlen(text));
        assert_true(fds[i] >= 0);
        snprintf(want + strlen(want), sizeof want - strlen(want), "%d,", i);
    }
    j.fds = fds;
    j.n_fds = ARRAY_LEN(fds);
    struct outcome o = converse(serve_echo, &j, NULL);
    assert_int_equal(o.end, SESSION_FINAL);
    assert_string_equal(o.out, want);
    assert_string_equal(o.err, "err");
    assert_true(o.line_open);
    assert_false(o.cancelled);
    assert_string_equal(o.final, FINAL);
    for (int i = 0; i < 20; i++) {
        close(fds[i]);
    }
    buf_free(&j.json);
}

static void a_signal_cancels(void **state)
{
    (void)state;
    struct run_job j = make_job("{}");
    struct outcome o = converse(serve_until_cancel, &j, NULL);
    assert_int_equal(o.end, SESSION_FINAL);
    assert_true(o.cancelled);
    assert_string_equal(o.final, "{\"reason\":\"cancelled\"}");
    buf_free(&j.json);
}

static void a_second_signal_does_not_wait(void **state)
{
    (void)state;
    struct run_job j = make_job("{}");
    struct outcome o = converse(serve_stubborn, &j, NULL);
    assert_int_equal(o.end, SESSION_CANCELLED);
    buf_free(&j.json);
}

static void a_lost_service_is_noticed(void **state)
{
    (void)state;
    struct run_job j = make_job("{}");
    struct outcome o = converse(serve_end, &j, NULL);
    assert_int_equal(o.end, SESSION_LOST);
    assert_string_equal(o.out, "partial");
    o = converse(serve_garbage, &j, NULL);
    assert_int_equal(o.end, SESSION_LOST);
    assert_string_equal(o.out, "good");
    buf_free(&j.json);
}

static void artifacts_reach_their_folder(void **state)
{
    (void)state;
    char folder[] = "/tmp/isle-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    struct job_artifact asked = {(char *)(uintptr_t) "a", false};
    struct run_job j = make_job("{}");
    j.job.artifacts = &asked;
    j.job.n_artifacts = 1;
    struct outdir o;
    assert_int_equal(outdir_open(&o, folder, &j.job), 0);
    assert_int_equal(converse(serve_artifacts, &j, &o).end, SESSION_FINAL);
    assert_string_equal(o.error, "");
    outdir_done(&o);
    snprintf(path, sizeof path, "%s/a", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    buf_free(&j.json);
}

// A pipe that is read slowly, and one whose reader goes away.
static void flood_into(int (*reader)(int), bool expect_error)
{
    int ends[2], status, sock;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[1]);
        alarm(60);
        _exit(reader(ends[0]));
    }
    close(ends[0]);
    signal(SIGPIPE, SIG_IGN);
    pid_t service = start_service(serve_flood, &sock);
    struct run_job j = make_job("{}");
    struct outdir none = {.dir = -1, .folder = -1, .file = -1, .job = &j.job};
    struct session s = {
        .service = sock, .signals = -1, .out = ends[1], .err = -1, .artifacts = &none};
    enum session_end end;
    assert_int_equal(session_run(&s, &j, &end), 0);
    assert_int_equal(end, SESSION_FINAL);
    assert_int_equal(s.out_error, expect_error ? EPIPE : 0);
    assert_int_equal(s.cancelled, expect_error);
    session_done(&s);
    buf_free(&j.json);
    close(ends[1]);
    close(sock);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(service, &status, 0), service);
}

static int read_slowly(int fd)
{
    char data[10000];
    size_t all = 0;
    ssize_t n;
    while ((n = read(fd, data, sizeof data)) > 0) {
        all += (size_t)n;
        poll(NULL, 0, 1);
    }
    return all == 256 * 8192 ? 0 : 1;
}

static int read_once(int fd)
{
    char data[100];
    return read(fd, data, sizeof data) > 0 ? 0 : 1;
}

static void slow_and_leaving_readers(void **state)
{
    (void)state;
    flood_into(read_slowly, false);
    flood_into(read_once, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_arrives),
        cmocka_unit_test(a_signal_cancels),
        cmocka_unit_test(a_second_signal_does_not_wait),
        cmocka_unit_test(a_lost_service_is_noticed),
        cmocka_unit_test(artifacts_reach_their_folder),
        cmocka_unit_test(slow_and_leaving_readers),
    };
    return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
