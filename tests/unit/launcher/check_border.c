// A service that is taken over: what it may not do to the launcher, its sandboxes, the host. Every
// attack is tried as the dropped service, and must fail.
#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"
#include "checks.h"
#include "kernel/sys.h"
#include "plan/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

static void attack_files(struct client *c, const char *who, pid_t pid)
{
    static const char *const files[] = {
        "mem",    "root/ws", "cwd",     "fd/3",  "exe",         "environ", "maps",    "map_files",
        "ns/mnt", "fd",      "syscall", "stack", "personality", "auxv",    "uid_map", "gid_map"};
    char path[64], title[128], opened[64] = "", byte;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        for (int mode = O_RDONLY; mode <= O_RDWR; mode += O_RDWR) {
            snprintf(path, sizeof path, "%d/%s", pid, files[i]);
            AUTO_CLOSE int fd = openat(c->proc, path, mode | O_CLOEXEC | O_NONBLOCK);
            bool map = strstr(files[i], "id_map") != NULL; // anyone may read those
            if (fd >= 0 && ((mode == O_RDWR && write(fd, "0 0 1", 5) > 0) ||
                            (!map && read(fd, &byte, 1) >= 0))) {
                snprintf(opened, sizeof opened, "%s, mode %d", files[i], mode);
            }
        }
    }
    snprintf(title, sizeof title, "service: /proc of the %s is closed, even through a full /proc",
             who);
    check(title, opened[0] == '\0', opened);
    snprintf(path, sizeof path, "/proc/%d", pid);
    snprintf(title, sizeof title, "service: its own /proc does not show the %s", who);
    check(title, access(path, F_OK) < 0 && errno == ENOENT, "");
}

static void attack_process(struct client *c, const char *who, pid_t pid)
{
    char title[128], bytes[8];
    attack_files(c, who, pid);
    AUTO_CLOSE int fd = sys_pidfd_open(pid);
    struct iovec here = {bytes, 8}, there = {(void *)0x400000, 8};
    struct rlimit l = {100, 100};
    snprintf(title, sizeof title,
             "service: kill, ptrace, read, take descriptors of the %s: refused", who);
    bool held = kill(pid, 0) < 0 && kill(pid, SIGKILL) < 0 &&
                ptrace(PTRACE_ATTACH, pid, 0, 0) < 0 && ptrace(PTRACE_SEIZE, pid, 0, 0) < 0 &&
                process_vm_readv(pid, &here, 1, &there, 1, 0) < 0 &&
                process_vm_writev(pid, &here, 1, &there, 1, 0) < 0 &&
                syscall(SYS_pidfd_getfd, fd, 0, 0) < 0 && setns(fd, CLONE_NEWNS) < 0 &&
                sys_pidfd_signal(fd, SIGKILL) < 0 &&
                syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, &l, NULL) < 0;
    check(title, held, strerror(errno));
}

static void read_proc(struct client *c, pid_t pid, const char *file, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "%d/%s", pid, file);
    fd_read_at(c->proc, path, text, size);
}

static void attack_host(void)
{
    char text[8192];
    bool none = open("/sys/fs/cgroup", O_PATH) < 0 && open("/usr", O_PATH) < 0 &&
                fd_read_at(AT_FDCWD, "/proc/self/mountinfo", text, sizeof text) > 0 &&
                !strstr(text, "cgroup") && !strstr(text, "ext4");
    check("service: no control groups, no /sys, no /usr", none, text);
    check("service: mount, unshare, setns, exec, bpf, keyctl: refused",
          mount("x", "/proc", "tmpfs", 0, "") < 0 && unshare(CLONE_NEWUSER) < 0 &&
              unshare(CLONE_NEWNS) < 0 && execl("/proc/self/exe", "x", NULL) < 0 &&
              syscall(SYS_bpf, 0, 0, 0) < 0 && syscall(SYS_keyctl, 0, -3, 0) < 0 &&
              syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) < 0 &&
              syscall(SYS_clone3, 0, 0) < 0,
          strerror(errno));
    fd_read_at(AT_FDCWD, "/proc/self/status", text, sizeof text);
    check("service: uid 1, three capabilities, no more to get",
          strstr(text, "Uid:\t1\t1\t1\t1") && strstr(text, "CapEff:\t000000000000000b") &&
              strstr(text, "CapBnd:\t000000000000000b") && strstr(text, "NoNewPrivs:\t1"),
          text);
    check("service: core_pattern, init's environment: refused",
          open("/proc/sys/kernel/core_pattern", O_WRONLY) < 0 &&
              open("/proc/1/environ", O_RDONLY) < 0,
          "");
}

// What the launcher must refuse: {error, at step check or workspace}.
static void refused_workspaces(struct client *c)
{
    static const struct {
        const char *what, *name;
        uint32_t uid;
        int error;
    } no[] = {
        {"a workspace of another uid", "kept/foreign", V0, EPERM},
        {"a zygote's uid", "once/t", PLAN_UID_ZYGOTE_0, EPERM},
        {"the service's uid", "once/t", PLAN_UID_SERVICE, EPERM},
        {"a slot's uid", "once/t", PLAN_UID_SLOT_0, EPERM},
        {"a uid past the block", "once/t", PLAN_UID_WORKSPACE_END, EPERM},
        {"a name that is not there", "once/none", V0, ENOENT},
        {"a name with ..", "once/..", V0, EINVAL},
        {"an absolute name", "/once/t", V0, EINVAL},
        {"one part", "once", V0, EINVAL},
        {"three parts", "once/t/w", V0, EINVAL},
        {"a link to a workspace", "kept/link", V0, ELOOP},
        {"a link in its place", "kept/inner", V0, ENOTDIR},
        {"a file in its place", "kept/file", V0, ENOTDIR},
    };
    const char *const yes[] = {"/bin/true", NULL};
    struct plan_record r;
    int root = c->seat.workspace_root;
    AUTO_CLOSE int foreign = client_make_workspace(c, "kept/foreign", V0 + 60, false);
    bool made = !symlinkat("../once/t", root, "kept/link") && !mkdirat(root, "kept/inner", 0711) &&
                !symlinkat("../../once/t/w", root, "kept/inner/w") &&
                !mkdirat(root, "kept/file", 0711);
    AUTO_CLOSE int file = openat(root, "kept/file/w", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    check("traps for the launcher", made && foreign >= 0 && file >= 0, strerror(errno));
    for (size_t i = 0; i < ARRAY_LEN(no); i++) {
        struct try t = try_of(yes);
        char title[128];
        t.uid = no[i].uid;
        t.workspace = no[i].name;
        int e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
        snprintf(title, sizeof title, "launcher refuses: %s", no[i].what);
        check(title, !e && r.error == no[i].error, say(&r, e));
    }
    struct try t = try_of(yes);
    t.tmpfs_no = 63;
    int e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("launcher refuses: a tmpfs that is not there", !e && r.error == EPERM, say(&r, e));
    t = try_of(yes);
    t.rung = PLAN_RUNG_NONE;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("launcher refuses: less isolation than the host can give",
          !e && (r.error == EPERM || c->seat.rung == PLAN_RUNG_NONE), say(&r, e));
    const char *const names[] = {"kept/foreign", "kept/link", "kept/inner", "kept/file"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        client_remove_workspace(c, names[i]);
    }
}

// Records that no service of this build sends. Each is answered, nothing else happens.
static void malformed(struct client *c)
{
    struct plan_record r;
    int bad = 0;
    char noise[sizeof(struct plan_request) + 8];
    for (size_t n = 1; n <= sizeof noise; n += 37) {
        memset(noise, (int)n, sizeof noise);
        if (n != sizeof(struct plan_request)) {
            msg_send(c->seat.launcher, noise, n, NULL, 0, 0);
            bad += client_wait(c, 0, 0, CLIENT_PATIENCE_MS, &r, NULL) || r.error != EINVAL;
        }
    }
    check("launcher: records of another size are refused", !bad, say(&r, 0));
    for (uint32_t op = 0; op < PLAN_OP_END + 3; op++) {
        if (op == PLAN_PREPARE) {
            continue;
        }
        struct plan_request q = {.op = op};
        int fds[3] = {c->seat.launcher, 0, 1};
        client_request(c, &q, fds, 3);
        uint32_t answer = op == PLAN_START ? PLAN_END : op;
        bad += client_wait(c, answer, q.tag, CLIENT_PATIENCE_MS, &r, NULL) || r.error == 0;
    }
    check("launcher: empty requests of every operation are refused", !bad, say(&r, 0));
}

void check_border(struct client *c)
{
    uint32_t id;
    struct plan_record r, parked;
    char text[4096];
    int e = client_prepare(c, &id, &parked);
    check("a parked sandbox to attack", !e, strerror(-e));
    for (int i = 0; i < CLIENT_PATIENCE_MS; i++) { // until pid 1 is the shim
        read_proc(c, parked.shim_pid, "comm", text, sizeof text);
        if (!strstr(text, "launcher")) {
            break;
        }
        clock_pause_ns(NS_PER_MS);
    }
    read_proc(c, parked.shim_pid, "status", text, sizeof text);
    check("shim: a slot's uid, no capability, no_new_privs, filter",
          strstr(text, "Uid:\t16384\t16384\t16384\t16384") &&
              strstr(text, "CapEff:\t0000000000000000") &&
              strstr(text, "CapBnd:\t0000000000000000") && strstr(text, "NoNewPrivs:\t1") &&
              strstr(text, "Seccomp:\t2"),
          text);
    read_proc(c, parked.main_pid, "status", text, sizeof text);
    check("pid 2 waits as inner root", strstr(text, "Uid:\t0\t0\t0\t0") != NULL, text);
    attack_process(c, "launcher", c->seat.launcher_pid);
    attack_process(c, "shim", parked.shim_pid);
    attack_process(c, "waiting pid 2", parked.main_pid);
    attack_host();
    refused_workspaces(c);
    malformed(c);
    const char *const five[] = {"/bin/sh", "-c", "exit 5", NULL};
    struct try t = try_of(five);
    e = client_run(c, id, &t, CLIENT_PATIENCE_MS, &r);
    check("after all that the parked sandbox still runs its job", clean_exit(&r, e, 5), say(&r, e));
}

// A service that asks and does not read the answers. The launcher keeps nothing for it: after some
// seconds it takes it for gone, and ends everything.
void check_flood(struct client *c)
{
    const char *const sleeper[] = {"/bin/sleep", "100", NULL};
    struct try t = try_of(sleeper);
    struct plan_record r;
    uint32_t tag = client_start(c, 0, &t);
    int e = client_wait(c, PLAN_EXECUTED, tag, CLIENT_PATIENCE_MS, &r, NULL);
    struct plan_request q = {.op = PLAN_SAMPLE, .id = r.id};
    struct pollfd p = {.fd = c->seat.launcher_pidfd, .events = POLLIN};
    int ended = 0;
    for (int i = 0; i < 15000 && !ended; i++) {
        for (int k = 0; k < 64; k++) {
            msg_send(c->seat.launcher, &q, sizeof q, NULL, 0, MSG_DONTWAIT);
        }
        ended = poll(&p, 1, 1);
    }
    check("launcher: ends for a service that does not read, and its jobs with it", !e && ended == 1,
          say(&r, e));
}
