// border_host.c: what a service that is taken over tries on processes, and on the host.
#include "border.h"

#include "base/fd.h"
#include "kernel/landlock.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

// A call must fail. True if it did.
#define REFUSED(call) ((call) < 0)

struct target {
    const char *name;
    pid_t pid;
};

static void name_of(char *text, size_t size, const struct target *t, const char *what)
{
    snprintf(text, size, "%s-%s", t->name, what);
}

// Has the folder entries beside "." and ".."?
static bool lists(int fd)
{
    uint64_t entries[64];
    long n = syscall(SYS_getdents64, fd, entries, sizeof entries);
    const long dots = 2 * 24; // what "." and ".." take
    return n > dots;
}

// Files that show or give power over a process, tried through a /proc that hides nothing.
static void attack_proc_files(struct border *b, const struct target *t)
{
    static const char *const files[] = {"mem",     "environ", "maps",      "smaps",    "auxv",
                                        "syscall", "stack",   "pagemap",   "io",       "fd/3",
                                        "fd/0",    "exe",     "cwd",       "root",     "ns/mnt",
                                        "ns/user", "ns/pid",  "map_files", "fdinfo/3", "timers"};
    char path[64], name[64], text[512], bad[128] = "";
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        for (int mode = O_RDONLY; mode <= O_RDWR; mode++) {
            snprintf(path, sizeof path, "%d/%s", t->pid, files[i]);
            int fd = openat(b->host_proc, path, mode | O_CLOEXEC | O_NONBLOCK);
            // Opening alone is harmless where every use is refused.
            if (fd >= 0 && (mode == O_RDONLY ? read(fd, text, sizeof text) > 0 || lists(fd)
                                             : write(fd, "0", 1) > 0)) {
                snprintf(bad, sizeof bad, "%s is of use, mode %d", path, mode);
            }
            fd_close(fd);
        }
    }
    name_of(name, sizeof name, t, "proc-files");
    border_check(b, name, !bad[0], "%s", bad);
    bad[0] = '\0';
    static const char *const maps[] = {"uid_map", "gid_map", "setgroups"};
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        snprintf(path, sizeof path, "%d/%s", t->pid, maps[i]);
        AUTO_CLOSE int fd = openat(b->host_proc, path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0 && write(fd, "0 0 1", 5) > 0) {
            snprintf(bad, sizeof bad, "%s was written", path);
        }
    }
    name_of(name, sizeof name, t, "id-maps");
    border_check(b, name, !bad[0], "%s", bad);
    // The service's own /proc does not show it at all.
    snprintf(path, sizeof path, "/proc/%d", t->pid);
    name_of(name, sizeof name, t, "hidden");
    border_check(b, name, access(path, F_OK) < 0 && errno == ENOENT, "%s is there", path);
}

// fcntl(2), F_SETOWN and F_SETSIG: the kernel sends the signal, with the rights of who asked.
static bool dies_by_file(int pid, int pidfd)
{
    int ends[2];
    struct pollfd p = {pidfd, POLLIN, 0};
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
        return false;
    }
    bool asked = !fcntl(ends[0], F_SETOWN, pid) && !fcntl(ends[0], F_SETSIG, SIGKILL) &&
                 !fcntl(ends[0], F_SETFL, O_ASYNC) && write(ends[1], "", 1) == 1;
    bool dead = asked && poll(&p, 1, 50) > 0;
    close(ends[0]);
    close(ends[1]);
    return dead;
}

static void attack_calls(struct border *b, const struct target *t)
{
    char here[8] = "", name[64];
    struct iovec mine = {here, sizeof here}, far = {(void *)0x400000, sizeof here};
    struct rlimit limit = {100, 100};
    unsigned long cpus = 1;
    struct {
        int policy;
    } param = {0};
    AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
    const struct {
        const char *name;
        bool held;
    } calls[] = {
        {"kill", REFUSED(kill(t->pid, 0)) && REFUSED(kill(t->pid, SIGKILL)) &&
                     REFUSED(kill(t->pid, SIGSTOP))},
        {"tgkill", REFUSED(syscall(SYS_tgkill, t->pid, t->pid, SIGKILL))},
        {"sigqueue", REFUSED(syscall(SYS_rt_sigqueueinfo, t->pid, SIGKILL, NULL))},
        {"file-signal", !dies_by_file(t->pid, pidfd)},
        {"pidfd-signal", REFUSED(syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0))},
        {"pidfd-getfd", REFUSED(syscall(SYS_pidfd_getfd, pidfd, 0, 0)) &&
                            REFUSED(syscall(SYS_pidfd_getfd, pidfd, 3, 0))},
        {"ptrace", REFUSED(ptrace(PTRACE_ATTACH, t->pid, 0, 0)) &&
                       REFUSED(ptrace(PTRACE_SEIZE, t->pid, 0, 0))},
        {"process-vm", REFUSED(process_vm_readv(t->pid, &mine, 1, &far, 1, 0)) &&
                           REFUSED(process_vm_writev(t->pid, &mine, 1, &far, 1, 0))},
        {"kcmp", REFUSED(syscall(SYS_kcmp, getpid(), t->pid, 0, 0, 0))},
        {"madvise", REFUSED(syscall(SYS_process_madvise, pidfd, &far, 1, 21, 0))},
        {"mrelease", REFUSED(syscall(SYS_process_mrelease, pidfd, 0))},
        {"setns", REFUSED(setns(pidfd, CLONE_NEWNS)) && REFUSED(setns(pidfd, CLONE_NEWUSER)) &&
                      REFUSED(setns(pidfd, CLONE_NEWPID)) && REFUSED(setns(pidfd, CLONE_NEWNET))},
        {"prlimit", REFUSED(prlimit(t->pid, RLIMIT_NOFILE, &limit, NULL)) &&
                        REFUSED(prlimit(t->pid, RLIMIT_NOFILE, NULL, &limit))},
        {"priority", REFUSED(setpriority(PRIO_PROCESS, (id_t)t->pid, 19))},
        {"affinity", REFUSED(syscall(SYS_sched_setaffinity, t->pid, sizeof cpus, &cpus))},
        {"scheduler", REFUSED(syscall(SYS_sched_setscheduler, t->pid, SCHED_IDLE, &param))},
        {"ioprio", REFUSED(syscall(SYS_ioprio_set, 1, t->pid, 3 << 13))},
        {"migrate", REFUSED(syscall(SYS_migrate_pages, t->pid, 8, &cpus, &cpus))},
    };
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        name_of(name, sizeof name, t, calls[i].name);
        border_check(b, name, calls[i].held, "it worked");
    }
}

void attack_processes(struct border *b)
{
    struct plan_request q = {.op = PLAN_PREPARE};
    struct plan_record r = {};
    int e = border_ask(b, &q, NULL, 0, PLAN_PARKED, 30000, &r);
    border_check(b, "prepare", !e && !r.error && r.shim_pid > 1 && r.main_pid > 1,
                 "answer %d, error %d in step %u", e, r.error, r.step);
    usleep(2000000); // pid 1 executes the shim, its last step, on its own
    const struct target targets[] = {
        {"launcher", b->seat.launcher_pid}, {"shim", r.shim_pid}, {"waiting", r.main_pid}};
    for (size_t i = 0; i < ARRAY_LEN(targets) && !e && !r.error; i++) {
        attack_proc_files(b, &targets[i]);
        attack_calls(b, &targets[i]);
    }
    // The one that was attacked is still good.
    static const char *const argv[] = {"/bin/sh", "-c", "exit 5", NULL};
    struct plan_request start = border_good("once/alive", PLAN_UID_WORKSPACE_0 + 1);
    start.id = r.id;
    int fds[PLAN_N_START_FDS];
    border_fds(fds, argv);
    e = e ? e : border_ask(b, &start, fds, PLAN_N_START_FDS, PLAN_END, 30000, &r);
    border_fds_close(fds);
    border_check(b, "waiting-still-runs", !e && !r.error && r.status == 5 << 8, "%d %d %x", e,
                 r.error, r.status);
}

static void attack_identity(struct border *b)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct now[2] = {}, more[2];
    syscall(SYS_capget, &head, now);
    const uint32_t three = 1U << CAP_CHOWN | 1U << CAP_DAC_OVERRIDE | 1U << CAP_FOWNER;
    border_check(b, "three-capabilities",
                 now[0].effective == three && now[0].permitted == three && !now[0].inheritable &&
                     !now[1].permitted,
                 "%x %x", now[0].effective, now[0].permitted);
    unsigned bound = 0;
    for (int c = 0; c <= 63; c++) {
        bound += prctl(PR_CAPBSET_READ, c, 0, 0, 0) == 1;
    }
    border_check(b, "bounding-set", bound == 3, "%u capabilities", bound);
    bool held = true;
    for (int c = 0; c <= CAP_LAST_CAP; c++) {
        if (c < 32 && (three >> c & 1)) {
            continue;
        }
        memcpy(more, now, sizeof more);
        more[c / 32].permitted |= 1U << (c % 32);
        more[c / 32].effective |= 1U << (c % 32);
        held = held && REFUSED(syscall(SYS_capset, &head, more));
    }
    border_check(b, "no-more-capabilities", held, "capset gave one");
    border_check(b, "no-ambient",
                 REFUSED(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0)), "raised");
    border_check(b, "no-uid-0",
                 REFUSED(setuid(0)) && REFUSED(seteuid(0)) && REFUSED(setresuid(0, 0, 0)) &&
                     REFUSED(setreuid(0, 0)),
                 "it is uid 0");
    border_check(b, "no-other-uid", REFUSED(setresuid(PLAN_UID_WORKSPACE_0, (uid_t)-1, (uid_t)-1)),
                 "became one");
    border_check(b, "no-gid-0", REFUSED(setresgid(0, 0, 0)) && REFUSED(setgroups(0, NULL)),
                 "it is gid 0");
    border_check(b, "not-dumpable", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0, "dumpable");
    border_check(b, "no-new-privs", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, "unset");
}

// The network namespace is the host's: what listens there under an abstract name is in reach.
static void attack_abstract_socket(struct border *b)
{
    static const char name[] = "\0canary-abstract"; // of the harness
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, name, sizeof name - 1);
    AUTO_CLOSE int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof name - 1);
    bool refused = connect(s, (struct sockaddr *)&at, len) && errno == EPERM;
    border_check(b, "no-abstract-sockets", s >= 0 && (refused || landlock_abi() < 6),
                 "connected, or not there");
}

// A service that listens has sockets of the host's network: shut down, or disconnected, they could
// be connected anew. By the call, as no descriptor is looked at before the filter.
static void attack_connecting(struct border *b)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct msghdr message = {0};
    const struct sockaddr *a = (const struct sockaddr *)&at;
    bool held = connect(-1, a, sizeof at) && errno == EPERM;
    held = held && bind(-1, a, sizeof at) && errno == EPERM;
    held = held && listen(-1, 1) && errno == EPERM;
    held = held && sendto(-1, "", 1, MSG_FASTOPEN, a, sizeof at) < 0 && errno == EPERM;
    held = held && sendmsg(-1, &message, MSG_FASTOPEN) < 0 && errno == EPERM;
    held = held && sendmmsg(-1, NULL, 0, MSG_FASTOPEN) < 0 && errno == EPERM;
    border_check(b, "no-new-connections", held, "not refused by the filter");
}

static void attack_kernel(struct border *b)
{
    char *const none[] = {NULL};
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", b->seat.workspace_root);
    border_check(b, "no-mount",
                 REFUSED(mount("x", "/proc", "tmpfs", 0, "")) &&
                     REFUSED(mount(path, "/proc", NULL, MS_BIND, NULL)) &&
                     REFUSED(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL)) &&
                     REFUSED(umount2("/proc", MNT_DETACH)),
                 "mounted");
    border_check(
        b, "no-new-mount-api",
        REFUSED(syscall(SYS_fsopen, "tmpfs", 0)) && REFUSED(syscall(SYS_open_tree, -100, "/", 1)) &&
            REFUSED(syscall(SYS_move_mount, b->seat.workspace_root, "", -100, "/proc", 4)) &&
            REFUSED(syscall(SYS_mount_setattr, -100, "/", 0, NULL, 0)),
        "worked");
    border_check(b, "no-unshare",
                 REFUSED(unshare(CLONE_NEWUSER)) && REFUSED(unshare(CLONE_NEWNS)) &&
                     REFUSED(unshare(CLONE_NEWNET)) && REFUSED(unshare(CLONE_NEWPID)) &&
                     REFUSED(unshare(CLONE_NEWCGROUP)),
                 "unshared");
    border_check(b, "no-clone-namespaces",
                 REFUSED(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)) &&
                     REFUSED(syscall(SYS_clone3, 0, 0)),
                 "cloned");
    border_check(b, "no-exec",
                 REFUSED(execve("/proc/self/exe", none, none)) &&
                     REFUSED(syscall(SYS_execveat, b->host_proc, "self/exe", none, none, 0)),
                 "executed");
    border_check(b, "no-chroot", REFUSED(chroot("/")) && REFUSED(syscall(SYS_pivot_root, ".", ".")),
                 "worked");
    border_check(b, "no-bpf",
                 REFUSED(syscall(SYS_bpf, 0, 0, 0)) &&
                     REFUSED(syscall(SYS_perf_event_open, 0, 0, 0, 0, 0)),
                 "worked");
    border_check(b, "no-keyrings",
                 REFUSED(syscall(SYS_keyctl, 0, -3, 0)) &&
                     REFUSED(syscall(SYS_add_key, "user", "k", "v", 1, -3)) &&
                     REFUSED(syscall(SYS_request_key, "user", "k", NULL, -3)),
                 "worked");
    border_check(b, "no-host-ipc",
                 REFUSED(syscall(SYS_shmget, 0, 4096, 01666)) &&
                     REFUSED(syscall(SYS_shmat, 0, NULL, 010000)) &&
                     REFUSED(syscall(SYS_semget, 0, 1, 01666)) &&
                     REFUSED(syscall(SYS_msgget, 0, 01666)) &&
                     REFUSED(syscall(SYS_mq_open, "isle", 0102, 0666, NULL)),
                 "the host's ipc namespace is in reach");
    bool newer = false;
    for (int nr = 467; nr < 600; nr++) { // open_tree_attr, file_setattr, and what no kernel has yet
        newer = newer || syscall(nr, 0, 0, 0, 0, 0, 0) != -1 || errno != ENOSYS;
    }
    border_check(b, "no-newer-calls", !newer, "a call that nobody knows reaches the kernel");
    border_check(b, "no-userfaultfd-uring",
                 REFUSED(syscall(SYS_userfaultfd, 0)) &&
                     REFUSED(syscall(SYS_io_uring_setup, 1, NULL)),
                 "worked");
    border_check(b, "no-modules",
                 REFUSED(syscall(SYS_init_module, NULL, 0, "")) &&
                     REFUSED(syscall(SYS_kexec_load, 0, 0, 0, 0)) &&
                     REFUSED(syscall(SYS_reboot, 0, 0, 0, 0)) &&
                     REFUSED(swapon("/proc/self/exe", 0)),
                 "worked");
    border_check(b, "no-handles",
                 REFUSED(syscall(SYS_open_by_handle_at, b->seat.workspace_root, NULL, 0)),
                 "worked");
    border_check(b, "no-device-nodes",
                 REFUSED(mknodat(b->seat.workspace_root, "once/dev", S_IFCHR | 0666, 0x0101)),
                 "made one");
    static const int families[] = {AF_NETLINK, AF_PACKET, AF_VSOCK, AF_ALG};
    bool held = true;
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        held = held && REFUSED(socket(families[i], SOCK_DGRAM, 0)) &&
               REFUSED(socket(families[i], SOCK_RAW, 0));
    }
    border_check(b, "no-odd-sockets", held && REFUSED(socket(AF_INET, SOCK_RAW, 1)), "opened");
    border_check(b, "no-network",
                 REFUSED(socket(AF_INET, SOCK_STREAM, 0)) &&
                     REFUSED(socket(AF_INET, SOCK_DGRAM, 0)) &&
                     REFUSED(socket(AF_INET6, SOCK_STREAM, 0)),
                 "opened");
    attack_abstract_socket(b);
    attack_connecting(b);
    border_check(b, "no-x32", REFUSED(syscall(0x40000000 | 39)), "worked");
}

static void attack_files(struct border *b)
{
    static const char *const absent[] = {"/usr",           "/etc",      "/etc/shadow", "/sys",
                                         "/sys/fs/cgroup", "/run/isle", "/var/lib",    "/root",
                                         "/home",          "/tmp",      "/rt/usr",     "/new"};
    char found[256] = "", info[8192] = "";
    for (size_t i = 0; i < ARRAY_LEN(absent); i++) {
        AUTO_CLOSE int fd = open(absent[i], O_PATH | O_CLOEXEC);
        if (fd >= 0) {
            snprintf(found + strlen(found), sizeof found - strlen(found), " %s", absent[i]);
        }
    }
    border_check(b, "no-host-tree", !found[0], "%s", found);
    ssize_t n = fd_read_at(AT_FDCWD, "/proc/self/mountinfo", info, sizeof info);
    border_check(b, "no-cgroup-mount", n > 0 && !strstr(info, "cgroup"), "%.200s", info);
    static const char *const knobs[] = {"/proc/sys/kernel/core_pattern",
                                        "/proc/sys/kernel/modprobe",
                                        "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger",
                                        "/proc/sys/user/max_user_namespaces"};
    found[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(knobs); i++) {
        AUTO_CLOSE int fd = open(knobs[i], O_WRONLY | O_CLOEXEC);
        AUTO_CLOSE int far = openat(b->host_proc, knobs[i] + 6, O_WRONLY | O_CLOEXEC);
        if (fd >= 0 || far >= 0) {
            snprintf(found + strlen(found), sizeof found - strlen(found), " %s", knobs[i]);
        }
    }
    border_check(b, "no-knobs", !found[0], "%s", found);
    AUTO_CLOSE int init = openat(b->host_proc, "1/environ", O_RDONLY | O_CLOEXEC);
    AUTO_CLOSE int root = openat(b->host_proc, "1/root/etc/shadow", O_RDONLY | O_CLOEXEC);
    border_check(b, "no-init", init < 0 && root < 0, "opened");
    // the descriptors it was born with lead nowhere: a way up from the workspace root would be the
    // host
    AUTO_CLOSE int up = openat(b->seat.workspace_root, "../../../../../etc", O_PATH | O_CLOEXEC);
    border_check(b, "no-way-up", up < 0, "there is a tree above the workspace root");
}

void attack_host(struct border *b)
{
    attack_identity(b);
    attack_kernel(b);
    attack_files(b);
}
