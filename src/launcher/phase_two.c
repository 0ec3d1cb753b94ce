// phase_two.c: pid 2's part of phase two: from an order to the job's program. Inner root of the
// outer user namespace until step user_namespace, the job's uid afterwards. In a copy of the
// launcher's memory; single-threaded; nothing here allocates. The request was checked by the
// launcher; the argument block (args.h) was not: it is read here, by the process it concerns.
#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"
#include "guest/policy/policy.h"
#include "kernel/caps.h"
#include "kernel/landlock.h"
#include "kernel/mount.h"
#include "kernel/rlimit.h"
#include "kernel/seccomp.h"
#include "kernel/sys.h"
#include "launcher/launcher.h"

#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { FD_WORKSPACE = PLAN_N_START_FDS, FD_TMP_OR_SETS };

int step_receive(struct launch *c)
{
    ssize_t n = msg_recv(CHILD_SOCK, &c->q, sizeof c->q, c->fds, ORDER_MAX_FDS, NULL, 0);
    if (n != sizeof c->q || c->fds[0] < 0) { // the launcher is gone, or there was no room for them
        return n < 0 ? (int)n : -EMFILE;
    }
    launcher_mark(c, PLAN_T_START);
    return 0;
}

int step_size_tmp(struct launch *c)
{
    char options[64];
    if (c->q.tmp_folder) {
        return mount_attach(c->fds[FD_TMP_OR_SETS], AT_FDCWD, "/tmp");
    }
    snprintf(options, sizeof options, "size=%llu,nr_inodes=%u",
             (unsigned long long)c->q.limits.tmp_bytes, c->q.limits.tmp_inodes);
    return mount(NULL, "/tmp", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, options) ? -errno : 0;
}

// A file of /etc replaced by one made in /dev/shm, which is never a tenant's folder, and has room
// whatever disk_mb is: mounted, then without a name anywhere.
static int replace_file(const char *path, const char *text)
{
    static const char made[] = "/dev/shm/.isle";
    AUTO_CLOSE int fd = open(made, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        return -errno;
    }
    int e = fd_write_all(fd, text, strlen(text));
    e = e ? e
          : mount_bind(AT_FDCWD, made, path,
                       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0);
    int gone = unlink(made) ? -errno : 0;
    return e ? e : gone;
}

int step_identity_files(struct launch *c)
{
    char text[256];
    uint32_t uid = launcher_uid(c->l, c->q.uid);
    if (c->q.rung != PLAN_RUNG_NONE) {
        return 0; // the template's say 1000, and so it is
    }
    snprintf(text, sizeof text,
             "root:x:0:0:root:/:/usr/sbin/nologin\nsandbox:x:%u:%u:sandbox:/workspace:/bin/bash\n",
             uid, uid);
    int e = replace_file("/etc/passwd", text);
    snprintf(text, sizeof text, "root:x:0:\nsandbox:x:%u:\n", uid);
    return e ? e : replace_file("/etc/group", text);
}

int step_mount_sets(struct launch *c)
{
    char path[24];
    for (uint32_t i = 0; i < c->q.n_sets; i++) {
        snprintf(path, sizeof path, "/packages/%u", i);
        int e = mount_attach(c->fds[FD_TMP_OR_SETS + c->q.tmp_folder + i], AT_FDCWD, path);
        if (e) {
            return e;
        }
    }
    return 0;
}

int step_mount_workspace(struct launch *c)
{
    return mount_attach(c->fds[FD_WORKSPACE], AT_FDCWD, "/workspace");
}

int step_landlock_workspace(struct launch *c)
{
    int abi = c->l->landlock_abi;
    int e = abi ? landlock_allow(CHILD_LANDLOCK, abi, "/workspace", LANDLOCK_ALL) : 0;
    if (!e && abi && c->q.tmp_folder) {
        e = landlock_allow(CHILD_LANDLOCK, abi, "/tmp", LANDLOCK_ALL);
    }
    return e;
}

int step_arguments(struct launch *c)
{
    // untouched in the launcher, so they cost it no memory
    static char data[ARGS_MAX_BYTES + 1];
    static char *argv[ARGS_MAX_ARGV + 1], *env[ARGS_MAX_ENV + 1];
    ssize_t n = pread(c->fds[PLAN_FD_ARGS], data, sizeof data, 0);
    if (n < 0) {
        return -errno;
    }
    c->argv = argv;
    c->env = env;
    return args_parse(data, (size_t)n, argv, env, &c->cwd);
}

int step_user_namespace(struct launch *c)
{
    return rung_enter(c->l, c->q.rung, c->q.uid, CHILD_PROC, CHILD_SOCK);
}

int step_seal_namespaces(struct launch *c)
{
    // in rung none it would be the outer namespace's own
    return c->q.rung == PLAN_RUNG_NONE
               ? 0
               : fd_write_at(CHILD_PROC, "sys/user/max_user_namespaces", "0");
}

int step_keyring(struct launch *c)
{
    (void)c;
    int e = sys_keyring_new_session();
    return e == -EPERM ? 0 : e; // a container's filter refuses keys, and to the job as well
}

int step_capabilities(struct launch *c)
{
    int e = 0;
    if (c->q.rung != PLAN_RUNG_NONE) { // there it had to be done before the change of uid
        e = caps_bound(0);
        e = e ? e : caps_lock();
    }
    e = e ? e : caps_set(0);
    return e ? e : child_try_undo(c->l);
}

// The limit when the downgrade is there, else none.
static uint64_t lacks(const struct launch *c, uint32_t downgrade, uint64_t limit)
{
    return c->l->downgrades & downgrade ? limit : RLIM_INFINITY;
}

int step_rlimits(struct launch *c)
{
    const struct plan_limits *l = &c->q.limits;
    const uint64_t cpu_s =
        l->cpu_ns ? (l->cpu_ns + NS_PER_S - 1) / NS_PER_S : (uint64_t)RLIM_INFINITY - 1;
    const struct {
        int resource;
        uint64_t soft, hard;
    } table[] = {
        {RLIMIT_NOFILE, l->nofile, l->nofile},
        {RLIMIT_FSIZE, l->file_bytes, l->file_bytes},
        {RLIMIT_NPROC, l->pids + 16,
         l->pids + 16}, // the group's limit comes first, if there is one
        {RLIMIT_STACK, 8 << 20, 64 << 20},
        {RLIMIT_MEMLOCK, 8 << 20, 8 << 20},
        {RLIMIT_SIGPENDING, 4096, 4096},
        {RLIMIT_MSGQUEUE, 819200, 819200},
        {RLIMIT_NICE, 0, 0},
        {RLIMIT_RTPRIO, 0, 0},
        // what no group enforces for the job as a whole, at least for each of its processes
        {RLIMIT_DATA, lacks(c, PLAN_NO_CGROUP_MEMORY, l->memory_bytes),
         lacks(c, PLAN_NO_CGROUP_MEMORY, l->memory_bytes)},
        {RLIMIT_CPU, lacks(c, PLAN_NO_CPU_TIME, cpu_s), lacks(c, PLAN_NO_CPU_TIME, cpu_s + 1)},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        int e = rlimit_lower(table[i].resource, table[i].soft, table[i].hard);
        if (e) {
            return e;
        }
    }
    return 0;
}

int step_descriptors(struct launch *c)
{
    for (int i = PLAN_FD_STDIN; i <= PLAN_FD_FRAMES; i++) {
        bool wanted = i != PLAN_FD_FRAMES || c->q.has_frames;
        if (wanted ? dup2(c->fds[i], i) < 0 : (close(i), false)) {
            return -errno;
        }
    }
    return sys_close_from(CHILD_END);
}

int step_pid2_parent_death(struct launch *c)
{
    (void)c;
    return child_parent_death();
}

int step_chdir(struct launch *c)
{
    // A session's earlier job may have made it a link: it leads nowhere but inside this root, with
    // this job's rights.
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_MAGICLINKS};
    AUTO_CLOSE int dir = sys_result(syscall(SYS_openat2, AT_FDCWD, c->cwd, &how, sizeof how));
    if (dir < 0) {
        return dir;
    }
    return fchdir(dir) ? -errno : 0;
}

int step_no_new_privs(struct launch *c)
{
    (void)c;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

int step_landlock(struct launch *c)
{
    return c->l->landlock_abi ? landlock_enter(CHILD_LANDLOCK) : 0;
}

int step_filter(struct launch *c)
{
    const struct policy_filter *f = &policy_stage2[c->q.filter];
    return seccomp_install_with(f->code, f->count, c->l->config.calls, c->l->config.n_calls);
}

// ---- the program ------------------------------------------------------------------------------

static const char *path_of(char **env)
{
    for (; *env; env++) {
        if (!strncmp(*env, "PATH=", 5)) {
            return *env + 5;
        }
    }
    return "/usr/local/bin:/usr/bin:/bin";
}

// As a shell looks for a command: every folder of PATH; what exists but cannot be executed is
// remembered, for the message. Returns only the error.
static int exec_by_path(struct launch *c)
{
    char file[4096];
    int error = -ENOENT;
    const char *name = c->argv[0];
    for (const char *dir = path_of(c->env); dir;) {
        const char *end = strchrnul(dir, ':');
        int n = snprintf(file, sizeof file, "%.*s%s%s", (int)(end - dir), dir, end > dir ? "/" : "",
                         name);
        if ((size_t)n < sizeof file) {
            execve(file, c->argv, c->env);
            if (errno != ENOENT && errno != ENOTDIR && error == -ENOENT) {
                error = -errno;
            }
        }
        dir = *end ? end + 1 : NULL;
    }
    return error;
}

// From here on it is the program that failed, not the sandbox: told as a shell does, on the job's
// own stderr, with a shell's exit status.
int step_exec(struct launch *c)
{
    char text[512];
    const char *name = c->argv[0];
    bool search = !strchr(name, '/');
    int error;
    launcher_mark(c, PLAN_T_EXEC);
    if (search) {
        error = exec_by_path(c);
    } else {
        execve(name, c->argv, c->env);
        error = -errno;
    }
    bool missing = error == -ENOENT;
    snprintf(text, sizeof text, "isle: %.256s: %s\n", name,
             missing && search ? "command not found" : strerror(-error));
    fd_write_all(STDERR_FILENO, text, strlen(text));
    _exit(missing ? 127 : 126);
}
