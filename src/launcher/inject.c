// inject.c: linked into test builds with -Wl,--wrap for every function below.
#include "launcher/inject.h"

#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

// Shared by launcher and children, so that one count goes through all of them.
struct page {
    uint32_t target, count, fired, step;
    char name[16];
};
static struct page *page;
static bool counting;
static uint32_t current_step;

void inject_init(void)
{
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        _exit(70);
    }
}

void inject_begin(uint32_t step)
{
    counting = true;
    current_step = step;
}

void inject_end(void) { counting = false; }

static bool fails(const char *name)
{
    if (!counting || !page || !page->target) {
        return false;
    }
    if (__atomic_add_fetch(&page->count, 1, __ATOMIC_SEQ_CST) != page->target) {
        return false;
    }
    page->fired = 1;
    page->step = current_step;
    snprintf(page->name, sizeof page->name, "%s", name);
    errno = ENOMEM; // no caller means anything special by it
    return true;
}

#define WRAP(type, name, params, args)                                                             \
    type __real_##name params;                                                                     \
    type __wrap_##name params;                                                                     \
    type __wrap_##name params { return fails(#name) ? (type)-1 : __real_##name args; }

WRAP(int, mount, (const char *a, const char *b, const char *c, unsigned long d, const void *e),
     (a, b, c, d, e))
WRAP(int, umount2, (const char *a, int b), (a, b))
WRAP(int, mkdir, (const char *a, mode_t b), (a, b))
WRAP(int, mkdirat, (int a, const char *b, mode_t c), (a, b, c))
WRAP(int, unlinkat, (int a, const char *b, int c), (a, b, c))
WRAP(int, unlink, (const char *a), (a))
WRAP(int, chdir, (const char *a), (a))
WRAP(int, fchdir, (int a), (a))
WRAP(int, dup2, (int a, int b), (a, b))
WRAP(int, dup3, (int a, int b, int c), (a, b, c))
WRAP(int, unshare, (int a), (a))
WRAP(int, setns, (int a, int b), (a, b))
WRAP(int, eventfd, (unsigned a, int b), (a, b))
WRAP(int, fstat64, (int a, struct stat64 *b), (a, b))
WRAP(int, statx, (int a, const char *b, int c, unsigned d, struct statx *e), (a, b, c, d, e))
WRAP(int, socket, (int a, int b, int c), (a, b, c))
WRAP(int, socketpair, (int a, int b, int c, int d[2]), (a, b, c, d))
WRAP(int, setsockopt, (int a, int b, int c, const void *d, socklen_t e), (a, b, c, d, e))
WRAP(ssize_t, sendmsg, (int a, const struct msghdr *b, int c), (a, b, c))
WRAP(ssize_t, recvmsg, (int a, struct msghdr *b, int c), (a, b, c))
WRAP(ssize_t, read, (int a, void *b, size_t c), (a, b, c))
WRAP(ssize_t, write, (int a, const void *b, size_t c), (a, b, c))
WRAP(ssize_t, pread64, (int a, void *b, size_t c, off64_t d), (a, b, c, d))
WRAP(pid_t, fork, (void), ())
WRAP(pid_t, setsid, (void), ())
WRAP(int, sethostname, (const char *a, size_t b), (a, b))
WRAP(int, setgroups, (size_t a, const gid_t *b), (a, b))
WRAP(int, setresuid, (uid_t a, uid_t b, uid_t c), (a, b, c))
WRAP(int, setresgid, (gid_t a, gid_t b, gid_t c), (a, b, c))
WRAP(int, getrlimit64, (__rlimit_resource_t a, struct rlimit64 *b), (a, b))
WRAP(int, setrlimit64, (__rlimit_resource_t a, const struct rlimit64 *b), (a, b))
WRAP(int, waitid, (idtype_t a, id_t b, siginfo_t *c, int d), (a, b, c, d))
WRAP(int, poll, (struct pollfd * a, nfds_t b, int c), (a, b, c))

// Those with a variable list take what the kernel would: words.
#define WORDS(last, count)                                                                         \
    long w[6] = {0};                                                                               \
    va_list list;                                                                                  \
    va_start(list, last);                                                                          \
    for (int i_ = 0; i_ < (count); i_++) {                                                         \
        w[i_] = va_arg(list, long);                                                                \
    }                                                                                              \
    va_end(list);

long __real_syscall(long nr, ...);
long __wrap_syscall(long nr, ...);
long __wrap_syscall(long nr, ...)
{
    WORDS(nr, 6)
    return fails("syscall") ? -1 : __real_syscall(nr, w[0], w[1], w[2], w[3], w[4], w[5]);
}

int __real_prctl(int op, ...);
int __wrap_prctl(int op, ...);
int __wrap_prctl(int op, ...)
{
    WORDS(op, 4)
    return fails("prctl") ? -1 : __real_prctl(op, w[0], w[1], w[2], w[3]);
}

int __real_fcntl64(int fd, int op, ...);
int __wrap_fcntl64(int fd, int op, ...);
int __wrap_fcntl64(int fd, int op, ...)
{
    WORDS(op, 1)
    return fails("fcntl") ? -1 : __real_fcntl64(fd, op, w[0]);
}

int __real_ioctl(int fd, unsigned long op, ...);
int __wrap_ioctl(int fd, unsigned long op, ...);
int __wrap_ioctl(int fd, unsigned long op, ...)
{
    WORDS(op, 1)
    return fails("ioctl") ? -1 : __real_ioctl(fd, op, w[0]);
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    WORDS(flags, 1)
    return fails("open") ? -1 : __real_open64(path, flags, (mode_t)w[0]);
}

int __real_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...)
{
    WORDS(flags, 1)
    return fails("openat") ? -1 : __real_openat64(dir, path, flags, (mode_t)w[0]);
}

// ---- what is there ----------------------------------------------------------------------------

static uint64_t count_lines(int proc, const char *path)
{
    static char text[1 << 16];
    uint64_t n = 0;
    if (fd_read_at(proc, path, text, sizeof text) > 0) {
        for (const char *p = text; (p = strchr(p, '\n')); p++) {
            n++;
        }
    }
    return n;
}

static uint64_t count_fds(void)
{
    uint64_t n = 0;
    for (int fd = 0; fd < 4096; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

static uint64_t count_groups(int folder)
{
    uint64_t n = 0;
    int fd = folder < 0 ? -1 : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *e; d && (e = readdir(d));) {
        // those made ahead ("a1") belong to no sandbox
        n += e->d_type == DT_DIR && e->d_name[0] == 'j';
    }
    if (d) {
        closedir(d);
    }
    return n;
}

bool inject_request(struct launcher *l, const struct plan_request *q)
{
    if (q->op != INJECT_OP) {
        return false;
    }
    struct plan_record r = {.op = q->op,
                            .tag = q->tag,
                            .id = page->count,
                            .status = (int32_t)page->fired,
                            .step = page->step,
                            .cpu_ns = count_lines(l->proc, "self/mountinfo"),
                            .memory_peak_bytes = count_fds(),
                            .pids_peak = count_groups(l->groups.v2)};
    for (int i = 0; i < SEAT_N_V1; i++) {
        r.pids_peak += count_groups(l->groups.v1[i]);
    }
    memcpy(r.marks_ns, page->name, sizeof page->name);
    *page = (struct page){.target = q->id};
    request_answer(l, &r, NULL, 0);
    return true;
}
