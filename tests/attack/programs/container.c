// container: runs a command as the root of a container that has CAP_SYS_ADMIN besides the usual
// capabilities: masked /proc, read-only /proc/sys, /sys and control groups, no_new_privs, and a
// filter without pivot_root and keyctl.
//
//   container [--remap BASE] [--unmasked] [--image DIR] COMMAND...
//
// --remap: in a user namespace of its own, where only the ids 0 to 65535 exist. --unmasked: /proc
// as it is.
// --image DIR: DIR is "/".
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
    fprintf(stderr, "container: %s: %s\n", what, strerror(errno));
    exit(99);
}

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            die(#call);                                                                            \
    } while (0)

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        die(path);
    close(fd);
}

static void read_only(const char *path)
{
    if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) == 0)
        MUST(mount(NULL, path, NULL,
                   MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL));
}

static void mask_proc(void)
{
    static const char *const files[] = {"/proc/kcore", "/proc/keys", "/proc/timer_list",
                                        "/proc/latency_stats"};
    static const char *const folders[] = {"/proc/acpi", "/proc/scsi"};
    static const char *const closed[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                         "/proc/sysrq-trigger"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        mount("/dev/null", files[i], NULL, MS_BIND, NULL); // where there is one
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        mount("tmpfs", folders[i], "tmpfs", MS_RDONLY, NULL);
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
        read_only(closed[i]);
}

static void groups_read_only(void)
{
    static char line[4096], points[64][256];
    int n = 0;
    FILE *f = fopen("/proc/self/mountinfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, " - cgroup") && n < 64 &&
            sscanf(line, "%*s %*s %*s %*s %255s", points[n]) == 1)
            n++;
    if (!f)
        die("mountinfo");
    fclose(f);
    for (int i = 0; i < n; i++)
        MUST(mount(NULL, points[i], NULL,
                   MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL));
    mount(NULL, "/sys", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
          NULL);
}

// Docker's and containerd's default, and SYS_ADMIN.
static void capabilities(void)
{
    static const int kept[] = {CAP_CHOWN,   CAP_DAC_OVERRIDE, CAP_FSETID,           CAP_FOWNER,
                               CAP_MKNOD,   CAP_NET_RAW,      CAP_SETGID,           CAP_SETUID,
                               CAP_SETFCAP, CAP_SETPCAP,      CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT,
                               CAP_KILL,    CAP_AUDIT_WRITE,  CAP_SYS_ADMIN};
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};
    unsigned mask = 0;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        mask |= 1u << kept[i];
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if (cap >= 32 || !(mask & 1u << cap))
            MUST(prctl(PR_CAPBSET_DROP, cap, 0, 0, 0));
    data[0].effective = data[0].permitted = mask;
    MUST(syscall(SYS_capset, &head, data));
}

static void filter(void)
{
    static const int refused[] = {
        SYS_pivot_root,  SYS_keyctl,       SYS_add_key,           SYS_request_key,
        SYS_userfaultfd, SYS_kexec_load,   SYS_init_module,       SYS_delete_module,
        SYS_reboot,      SYS_swapon,       SYS_open_by_handle_at, SYS_io_uring_setup,
        SYS_acct,        SYS_settimeofday, SYS_clock_settime,     SYS_pidfd_getfd,
        SYS_kcmp,        SYS_vhangup,      SYS_move_pages,        SYS_finit_module};
    enum { N = sizeof refused / sizeof *refused };
    struct sock_filter code[2 * N + 2];
    int n = 0;
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < N; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, code};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

// A process outside writes the maps, as a container engine does.
static void remap(unsigned base)
{
    int ask[2], done[2];
    char path[64], map[64], c;
    MUST(pipe2(ask, O_CLOEXEC));
    MUST(pipe2(done, O_CLOEXEC));
    pid_t parent = getpid(), pid = fork();
    MUST(pid);
    if (pid == 0) {
        if (read(ask[0], &c, 1) != 1)
            _exit(1);
        snprintf(map, sizeof map, "0 %u 65536", base);
        snprintf(path, sizeof path, "/proc/%d/gid_map", parent);
        write_file(path, map);
        snprintf(path, sizeof path, "/proc/%d/uid_map", parent);
        write_file(path, map);
        _exit(write(done[1], "", 1) != 1);
    }
    MUST(unshare(CLONE_NEWUSER));
    if (write(ask[1], "", 1) != 1 || read(done[0], &c, 1) != 1)
        die("maps");
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    MUST(setresgid(0, 0, 0));
    MUST(setresuid(0, 0, 0));
}

// The command is pid 1 of the container; this process says how it ended.
static void become_pid1(void)
{
    int status;
    MUST(unshare(CLONE_NEWPID));
    pid_t pid = fork();
    MUST(pid);
    if (pid > 0) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    MUST(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL));
}

// `/` is the image, with the host's /proc, /dev, /sys and what a volume would bring.
static void enter_image(const char *image)
{
    static const char *const kept[] = {"/proc", "/dev", "/sys"};
    char path[4096];
    MUST(mount(image, image, NULL, MS_BIND | MS_REC, NULL));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        snprintf(path, sizeof path, "%s%s", image, kept[i]);
        MUST(mount(kept[i], path, NULL, MS_BIND | MS_REC, NULL));
    }
    MUST(chdir(image));
    MUST(syscall(SYS_pivot_root, ".", "."));
    MUST(umount2(".", MNT_DETACH));
    MUST(chdir("/"));
}

int main(int argc, char **argv)
{
    const char *image = NULL, *base = NULL;
    int unmasked = 0, i = 1;
    for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
        if (!strcmp(argv[i], "--remap"))
            base = argv[++i];
        else if (!strcmp(argv[i], "--image"))
            image = argv[++i];
        else if (!strcmp(argv[i], "--unmasked"))
            unmasked = 1;
        else
            break;
    }
    if (i >= argc)
        return 2;
    MUST(unshare(CLONE_NEWNS));
    MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    if (image)
        enter_image(image);
    if (base)
        remap((unsigned)strtoul(base, NULL, 10));
    if (base) // what an engine mounts belongs to its containers' namespace
        MUST(unshare(CLONE_NEWNS));
    if (base)
        become_pid1();
    if (!unmasked)
        mask_proc();
    groups_read_only();
    capabilities();
    filter();
    execvp(argv[i], argv + i);
    die(argv[i]);
}
