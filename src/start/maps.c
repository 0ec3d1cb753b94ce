// Id maps of an account's namespaces.
#include "base/fd.h"
#include "kernel/sys.h"
#include "kernel/userns.h"
#include "plan/plan.h"
#include "start/internal.h"
#include "start/range.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

// newuidmap(1) or newgidmap(1), which are allowed what the account's lines in subuid(5) allow.
static pid_t start_helper(const char *name, pid_t pid, uint32_t own, uint32_t first, uint32_t count)
{
    enum { N_WORDS = 8 };
    char path[64], word[N_WORDS][16], *argv[N_WORDS + 2];
    static char path_only[] = "PATH=/usr/bin:/bin";
    char *env[] = {path_only, NULL};
    const uint32_t numbers[N_WORDS - 1] = {(uint32_t)pid, 0, own, 1, 1, first, count};
    int e = mode_find_program(AT_FDCWD, "/", name, path);
    if (e) {
        return e;
    }
    argv[0] = path;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        snprintf(word[i], sizeof word[i], "%u", numbers[i]);
        argv[1 + i] = word[i];
    }
    argv[1 + ARRAY_LEN(numbers)] = NULL;
    pid_t helper;
    e = posix_spawn(&helper, path, NULL, NULL, argv, env);
    return e ? -e : helper;
}

static int wait_helper(pid_t pid)
{
    int status = 0;
    if (pid < 0) {
        return pid;
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return -errno;
        }
    }
    return status ? -EPERM : 0; // it has said why
}

static int write_range(pid_t pid, uint32_t uid_base, uint32_t gid_base, uint32_t count)
{
    // side by side: each takes some milliseconds
    pid_t gids = start_helper("newgidmap", pid, getegid(), gid_base + 1, count - 1);
    pid_t uids = start_helper("newuidmap", pid, geteuid(), uid_base + 1, count - 1);
    int e = wait_helper(gids), f = wait_helper(uids);
    return e ? e : f;
}

static int write_single(pid_t pid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", pid);
    AUTO_CLOSE int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const struct userns_map uids = {0, geteuid(), 1}, gids = {0, getegid(), 1};
    return dir < 0 ? -errno : userns_write_own_maps(dir, &uids, &gids);
}

int maps_write(const struct start_mode *m, pid_t pid, uint32_t uid_base, uint32_t gid_base,
               uint32_t count)
{
    return m->user == START_RANGE ? write_range(pid, uid_base, gid_base, count) : write_single(pid);
}

static _Noreturn void inside(const struct start_mode *m, int pipe_end, int (*work)(void *),
                             void *ctx)
{
    char mapped;
    if (read(pipe_end, &mapped, 1) != 1 || (m->user == START_RANGE && setgroups(0, NULL)) ||
        setresgid(0, 0, 0) || setresuid(0, 0, 0)) {
        _exit(EPERM);
    }
    _exit(-work(ctx) & 0x7f);
}

int maps_run_inside(const struct start_mode *m, int (*work)(void *ctx), void *ctx)
{
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC)) {
        return -errno;
    }
    struct clone_args a = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    fflush(NULL);
    pid_t pid = sys_clone3(&a);
    if (pid == 0) {
        close(ends[1]);
        inside(m, ends[0], work, ctx);
    }
    close(ends[0]);
    // all of the account's ids: it is not known which instance's files they are
    int e = pid < 0 ? pid : maps_write(m, pid, m->sub_uid - 1, m->sub_gid - 1, m->sub_count + 1);
    if (!e && write(ends[1], "", 1) != 1) {
        e = -errno;
    }
    close(ends[1]);
    if (pid > 0) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    return e ? e : WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}
