// bwrap_child.c: from the clone to Bubblewrap's own first instruction. In a copy of the launcher's
// memory, single-threaded; inner root until step identity, the workspace's uid afterwards.
#include "base/fd.h"
#include "base/msg.h"
#include "kernel/caps.h"
#include "kernel/mount.h"
#include "kernel/sys.h"
#include "launcher/inject.h"
#include "launcher/launcher.h"

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { FD_WORKSPACE = PLAN_N_START_FDS, FD_TMP_OR_SETS, SAID_MAX_BYTES = 64 * 1024 };

_Noreturn void bwrap_child(struct launch *c)
{
    uint32_t step = 0;
    int e = bsteps_run(c, PLAN_PHASE_ONE, PLAN_IN_BWRAP, &step);
    int sock = step == PLAN_BSTEP_exec ? BWRAP_FD_SOCK : c->child_sock;
    struct note n = {.kind = NOTE_ERROR, .step = step, .error = -e};
    msg_send(sock, &n, sizeof n, NULL, 0, MSG_DONTWAIT);
    _exit(125);
}

static int parent_death(const struct launch *c)
{
    struct pollfd p = {.fd = c->l->self_pidfd, .events = POLLIN};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)) {
        return -errno;
    }
    return poll(&p, 1, 0) == 0 ? 0 : -ESRCH;
}

int bstep_parent_death(struct launch *c) { return parent_death(c); }

int bstep_join_groups(struct launch *c)
{
    for (int i = 0; i < SEAT_N_V1; i++) {
        if (c->tasks[i] >= 0 && write(c->tasks[i], "0", 1) != 1) {
            return -errno;
        }
    }
    return 0;
}

int bstep_tree(struct launch *c)
{
    return setns(c->l->bwrap, CLONE_NEWNS) || unshare(CLONE_NEWNS) ? -errno : 0;
}

static int sized_tmpfs(const char *path, uint64_t bytes, unsigned inodes)
{
    char options[80];
    snprintf(options, sizeof options, "size=%llu,nr_inodes=%u,mode=1777", (unsigned long long)bytes,
             inodes);
    return mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) ? -errno : 0;
}

int bstep_mounts(struct launch *c)
{
    char path[32];
    // Of this pid namespace: Bubblewrap looks for its own child by number.
    if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL)) {
        return -errno;
    }
    int e = sized_tmpfs("job/shm", 64 << 20, 4096);
    if (!e && c->q.tmp_folder) {
        e = mount_attach(c->fds[FD_TMP_OR_SETS], AT_FDCWD, "job/tmp");
    } else if (!e) {
        e = sized_tmpfs("job/tmp", c->q.limits.tmp_bytes, c->q.limits.tmp_inodes);
    }
    for (uint32_t i = 0; i < c->q.n_sets && !e; i++) {
        snprintf(path, sizeof path, "job/packages/%u", i);
        e = mount_attach(c->fds[FD_TMP_OR_SETS + c->q.tmp_folder + i], AT_FDCWD, path);
    }
    return e ? e : mount_attach(c->fds[FD_WORKSPACE], AT_FDCWD, "job/workspace");
}

int bstep_oom_score(struct launch *c)
{
    return fd_write_at(c->l->proc, "self/oom_score_adj", "500");
}

int bstep_identity(struct launch *c)
{
    const bool single = c->l->config.single_uid;
    uint32_t uid = launcher_uid(c->l, c->q.uid);
    if ((!single && setgroups(0, NULL)) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)) {
        return -errno;
    }
    if (!single) {
        return child_try_undo(c->l);
    }
    // No change of uid took the rights. One is kept: who maps the uid that is root here must have
    // had it when the namespace was made (user_namespaces(7), CAP_SETFCAP). Bubblewrap drops it.
    int e = caps_bound(UINT32_C(1) << CAP_SETFCAP);
    return e ? e : caps_set(UINT32_C(1) << CAP_SETFCAP);
}

int bstep_parent_death_again(struct launch *c) { return parent_death(c); }

int bstep_keyring(struct launch *c)
{
    (void)c;
    int e = sys_keyring_new_session();
    return e == -EPERM ? 0 : e; // as in step_keyring()
}

int bstep_no_new_privs(struct launch *c)
{
    (void)c;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

int bstep_descriptors(struct launch *c)
{
    AUTO_CLOSE int null = open("/jail/dev/null", O_RDWR | O_CLOEXEC);
    int want[BWRAP_FD_END] = {null,          null,        c->said,      c->child_sock,
                              c->l->program, c->passport, c->arguments, c->filter};
    struct rlimit l;
    // in two moves: sources and targets overlap
    for (int i = 0; i < BWRAP_FD_END; i++) {
        want[i] = fcntl(want[i], F_DUPFD_CLOEXEC, SEAT_FD_END);
        if (want[i] < 0) {
            return -errno;
        }
    }
    if (getrlimit(RLIMIT_FSIZE, &l)) {
        return -errno;
    }
    l.rlim_cur = l.rlim_max < SAID_MAX_BYTES ? l.rlim_max : SAID_MAX_BYTES;
    if (setrlimit(RLIMIT_FSIZE, &l)) {
        return -errno;
    }
    for (int i = 0; i < BWRAP_FD_END; i++) {
        if (dup2(want[i], i) < 0) {
            return -errno;
        }
    }
    c->child_sock = BWRAP_FD_SOCK;
    return inject_pass_on(BWRAP_FD_END); // in tests; the rest is close-on-exec
}

int bstep_exec(struct launch *c)
{
    char *env[] = {NULL};
    (void)c;
    // the type lacks the const; it only reads
    execve("/bwrap", (char *const *)(uintptr_t)bwrap_command_line, env);
    return -errno;
}
