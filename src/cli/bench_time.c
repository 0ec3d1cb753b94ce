// Programs that the front of `isle bench` starts itself: a bare one, one in Bubblewrap, `isle run`.
#include "base/clock.h"
#include "base/fd.h"
#include "cli/bench.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { NOBODY = 65534, MAX_WORDS = 64 };

static const char *const commands[BENCH_N_PROGRAMS][4] = {
    {"/bin/true", NULL},
    {"/usr/bin/python3.13", "-c", "print(1)", NULL},
    {"/usr/bin/node", "-e", "console.log(1)", NULL}};

struct command {
    const char *argv[MAX_WORDS];
    size_t n;
    char text[10][512]; // words that are put together
    size_t n_texts;
    const char *root; // chroot into it; NULL: not
    uid_t uid;        // 0: stay
    char **env;
};

static void add(struct command *c, const char *const *words)
{
    for (; *words && c->n + 1 < MAX_WORDS; words++) {
        c->argv[c->n++] = *words;
    }
    c->argv[c->n] = NULL;
}

static const char *path_below(struct command *c, const char *root, const char *name)
{
    char *text = c->text[c->n_texts++];
    snprintf(text, sizeof c->text[0], "%s/%s", root, name);
    return text;
}

// The usual flags for a sandbox without network, on the same root.
static void add_bwrap(struct command *c, const struct bench_outside *o)
{
    static const char *const flags[] = {"--unshare-user",
                                        "--unshare-pid",
                                        "--unshare-ipc",
                                        "--unshare-uts",
                                        "--unshare-net",
                                        "--unshare-cgroup",
                                        "--hostname",
                                        "clouisle-sandbox",
                                        "--proc",
                                        "/proc",
                                        "--die-with-parent",
                                        "--dev",
                                        "/dev",
                                        NULL};
    static const char *const folders[] = {"usr", "bin", "sbin", "lib", "lib64"};
    add(c, (const char *const[]){o->bwrap, NULL});
    add(c, flags);
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        const char *from = path_below(c, o->root, folders[i]), *to = path_below(c, "", folders[i]);
        add(c, (const char *const[]){"--ro-bind", from, to, NULL});
    }
    add(c, (const char *const[]){"--bind", o->workspace, "/workspace", "--tmpfs", "/tmp", "--chdir",
                                 "/workspace", "--", NULL});
}

static void build(struct command *c, const struct bench_outside *o, enum bench_kind kind,
                  enum bench_program program)
{
    static const char *const runs[BENCH_N_PROGRAMS][5] = {
        {"--", "/bin/true", NULL},
        {"-l", "python", "-c", "print(1)", NULL},
        {"-l", "javascript", "-c", "console.log(1)", NULL}};
    static char path[] = "PATH=/usr/bin:/bin", lang[] = "LANG=C.UTF-8";
    static char *env[] = {path, lang, NULL};
    *c = (struct command){.env = env};
    if (kind == BENCH_RUN) {
        c->env = environ;
        const char *launcher = seat_launcher_names[o->launcher];
        add(c, (const char *const[]){o->isle, "run", "--launcher", launcher, NULL});
        add(c, runs[program]);
        return;
    }
    if (kind == BENCH_BWRAP) {
        add_bwrap(c, o);
    } else {
        c->root = o->root;
    }
    c->uid = geteuid() == 0 ? NOBODY : 0;
    add(c, commands[program]);
}

// In the child; between fork and exec.
static _Noreturn void become(const struct command *c)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0); // a Ctrl-C is the front's: it ends what is left in order
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    if (c->root && geteuid() != 0 && unshare(CLONE_NEWUSER)) { // which may then chroot
        _exit(126);
    }
    if (c->root && (chroot(c->root) || chdir("/"))) {
        _exit(126);
    }
    if (c->uid && (setgroups(0, NULL) || setresgid(c->uid, c->uid, c->uid) ||
                   setresuid(c->uid, c->uid, c->uid))) {
        _exit(126);
    }
    if (c->n > 0) {
        execve(c->argv[0], (char *const *)(uintptr_t)c->argv, c->env);
    }
    _exit(127);
}

// The next of our children that ends. Others of this process (the service, the launcher, which may
// become its child) are not waited for: their end is an error. Its pid, or -errno.
static pid_t wait_next(const struct bench_outside *o, const pid_t *children, uint32_t n,
                       int *ret_status)
{
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT)) {
            if (errno == EINTR) {
                continue;
            }
            return -errno;
        }
        pid_t pid = info.si_pid;
        if (pid == o->service_pid || pid == o->launcher_pid) {
            return -EPIPE;
        }
        waitpid(pid, ret_status, 0);
        for (uint32_t i = 0; i < n; i++) {
            if (children[i] == pid) {
                return pid;
            }
        } // else an orphan of a sandbox that was handed to us
    }
}

static void end_all(pid_t *children, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (children[i] > 0) {
            kill(children[i], SIGTERM); // `isle run` cleans up after itself
            waitpid(children[i], NULL, 0);
        }
    }
}

static int start_one(const struct command *c, pid_t *ret)
{
    pid_t pid = fork();
    if (pid == 0) {
        become(c);
    }
    *ret = pid > 0 ? pid : 0;
    return pid < 0 ? -errno : 0;
}

int bench_time(const struct bench_outside *o, enum bench_kind kind, enum bench_program program,
               uint32_t count, uint32_t in_flight, uint64_t *ret_ns, int *ret_status)
{
    struct command c;
    pid_t children[BENCH_MAX_IN_FLIGHT] = {0};
    uint32_t started = 0, ended = 0;
    int status = 0, e = 0;
    build(&c, o, kind, program);
    uint64_t begin = clock_now_ns();
    while (!e && started < count && started < in_flight) {
        e = start_one(&c, &children[started]);
        started += !e;
    }
    while (!e && ended < count) {
        pid_t pid = wait_next(o, children, BENCH_MAX_IN_FLIGHT, &status);
        e = pid < 0 ? pid : 0;
        uint32_t slot = 0;
        while (!e && children[slot] != pid) {
            slot++;
        }
        if (!e) {
            children[slot] = 0;
            ended++;
            e = status ? -EIO : 0;
        }
        if (!e && started < count) {
            e = start_one(&c, &children[slot]);
            started += !e;
        }
    }
    *ret_ns = clock_now_ns() - begin;
    *ret_status = status;
    end_all(children, BENCH_MAX_IN_FLIGHT);
    return e;
}
