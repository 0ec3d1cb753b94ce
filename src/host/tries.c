#include "host/tries.h"

#include "base/fd.h"
#include "kernel/landlock.h"
#include "kernel/net.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { NOBODY = 65534 };

// Runs `f` in a child that ends with this process. What the child writes to *ret stays.
static void in_child(void (*f)(struct tries_userns *ret), struct tries_userns *ret)
{
    struct tries_userns *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        *ret = (struct tries_userns){TRIES_UNSHARE, errno};
        return;
    }
    *shared = (struct tries_userns){TRIES_UNSHARE, EIO}; // a child that is killed on the way
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        f(shared);
        _exit(0);
    }
    if (pid < 0) {
        shared->error = errno;
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    *ret = *shared;
    munmap(shared, sizeof *shared);
}

static void say(struct tries_userns *ret, enum tries_step at, int error)
{
    ret->at = at;
    ret->error = error;
}

// 0, or the positive errno of the step that was refused.
static int enter_userns(struct tries_userns *ret, unsigned more)
{
    char users[32], groups[32];
    snprintf(users, sizeof users, "0 %u 1", geteuid());
    snprintf(groups, sizeof groups, "0 %u 1", getegid());
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); // else /proc/self/uid_map is host root's
    if (unshare(CLONE_NEWUSER | (int)more)) {
        say(ret, TRIES_UNSHARE, errno);
        return errno;
    }
    int e = fd_write_at(AT_FDCWD, "/proc/self/setgroups", "deny");
    e = e ? e : fd_write_at(AT_FDCWD, "/proc/self/gid_map", groups);
    e = e ? e : fd_write_at(AT_FDCWD, "/proc/self/uid_map", users);
    if (e) {
        say(ret, TRIES_MAP, -e);
    }
    return -e;
}

static int private_tmpfs(void)
{
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
                   mount("tmpfs", "/proc", "tmpfs", MS_NOSUID | MS_NODEV, "size=4k")
               ? errno
               : 0;
}

static void try_userns(struct tries_userns *ret)
{
    if (enter_userns(ret, 0)) {
        return;
    }
    int error = unshare(CLONE_NEWNS) ? errno : private_tmpfs();
    say(ret, error ? TRIES_MOUNT : TRIES_DONE, error);
}

static void try_plain(struct tries_userns *ret)
{
    if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
        setresuid(NOBODY, NOBODY, NOBODY)) {
        say(ret, TRIES_UNSHARE, errno);
        return;
    }
    try_userns(ret);
}

// In a user namespace where this process could not do it otherwise, as isle would.
static int enter_namespaces(struct tries_userns *ret, unsigned which)
{
    if (geteuid() == 0 && unshare((int)which) == 0) {
        return 0;
    }
    return enter_userns(ret, which);
}

static void try_proc(struct tries_userns *ret)
{
    if (enter_namespaces(ret, CLONE_NEWNS | CLONE_NEWPID)) {
        return;
    }
    pid_t pid = fork(); // the first of the new pid namespace, whose proc it is
    if (pid == 0) {
        const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
        bool failed = mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
                      mount("proc", "/proc", "proc", flags, NULL);
        say(ret, failed ? TRIES_MOUNT : TRIES_DONE, failed ? errno : 0);
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

static void try_loopback(struct tries_userns *ret)
{
    if (enter_namespaces(ret, CLONE_NEWNET)) {
        return;
    }
    int e = net_loopback_up();
    say(ret, e ? TRIES_MOUNT : TRIES_DONE, -e);
}

void tries_make(struct tries *ret)
{
    struct tries_userns proc, loopback;
    struct tries t = {.landlock = landlock_abi()};
    in_child(try_userns, &t.own);
    t.plain = t.own;
    if (geteuid() == 0) {
        in_child(try_plain, &t.plain);
    }
    in_child(try_proc, &proc);
    in_child(try_loopback, &loopback);
    t.proc = proc.error;
    t.loopback = loopback.error;
    const unsigned action = SECCOMP_RET_ERRNO;
    t.seccomp = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
    *ret = t;
}
