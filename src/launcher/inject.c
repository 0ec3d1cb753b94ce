// inject.c: linked into test builds with -Wl,--wrap for every function below (meson.build).
#include "launcher/inject.h"

#include "plan/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct inject_page *page;
static uint32_t who_now, step_now;
// Kept open by the launcher, out of the way of all numbers that mean something.
enum { KEPT_PAGE = 900, KEPT_COUNTERS, KEPT_END };
static bool kept[KEPT_END - KEPT_PAGE];
_Static_assert(PLAN_BSTEP_FIRST % 64 == 0 && PLAN_PSTEP_FIRST % 64 == 0, "bits of a plan's steps");

// The host's /run: of a start, only the front's part could reach a folder of its own.
static const char page_path[] = ISLE_INJECT_FILE;

struct inject_page *inject_page_map(void)
{
    int fd = open(page_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct inject_page *p =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) {
        close(fd);
    }
    return p == MAP_FAILED ? NULL : p;
}

struct inject_page *inject_page_make(void)
{
    inject_page_remove();
    int fd = open(page_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool made = fd >= 0 && !ftruncate(fd, sizeof *page) && !fchmod(fd, 0666); // for inner ids
    if (fd >= 0) {
        close(fd);
    }
    return made ? inject_page_map() : NULL;
}

void inject_page_remove(void) { unlink(page_path); }

int coverage_open(void) __attribute__((weak)); // tests/coverage/counters.c, where it is linked in

static void keep(int fd, int at)
{
    kept[at - KEPT_PAGE] = fd >= 0 && dup3(fd, at, O_CLOEXEC) == at;
    if (fd >= 0) {
        close(fd);
    }
}

int inject_pass_on(int at)
{
    for (int i = 0; i < KEPT_END - KEPT_PAGE; i++) {
        if (kept[i] && dup2(KEPT_PAGE + i, at + i) < 0) {
            return -errno;
        }
    }
    return 0;
}

void inject_init(enum inject_who who)
{
    struct inject_page *p = inject_page_map();
    who_now = who;
    if (!p) {
        p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) {
            _exit(70);
        }
    }
    if (who == INJECT_START) { // its children in Bubblewrap are far from that path
        keep(open(page_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), KEPT_PAGE);
        keep(coverage_open ? coverage_open() : -1, KEPT_COUNTERS);
    }
    if (who == INJECT_FRONT) {
        p->front = getpid();
    }
    page = p;
}

struct inject_page *inject_page_now(void) { return page; }

void inject_init_fd(int fd, enum inject_who who)
{
    struct inject_page *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    page = p == MAP_FAILED ? NULL : p;
    who_now = who;
}

uint64_t inject_as(enum inject_who who, uint32_t step)
{
    uint64_t before = (uint64_t)who_now << 32 | step_now;
    who_now = who;
    step_now = step;
    return before;
}

void inject_back(uint64_t before)
{
    who_now = (uint32_t)(before >> 32);
    step_now = (uint32_t)before;
}

static bool fails(const char *name, long number)
{
    if (!page || !page->now.target) {
        return false;
    }
    if (who_now == INJECT_FRONT && getpid() != page->front) {
        who_now = INJECT_CHILD;
    }
    const struct inject_plan *p = &page->now;
    if (!(p->who & who_now) || (p->steps && !(p->steps >> step_now % 64 & 1)) ||
        (p->only[0] && strcmp(p->only, name) != 0) || (p->number && p->number != number)) {
        return false;
    }
    uint32_t n = __atomic_add_fetch(&page->count, 1, __ATOMIC_SEQ_CST);
    if (n != p->target && !(p->lasting && n > p->target)) {
        return false;
    }
    if (__atomic_fetch_add(&page->fired, 1, __ATOMIC_SEQ_CST) == 0) {
        page->who = who_now;
        page->step = step_now;
        snprintf(page->name, sizeof page->name, "%s", name);
    }
    errno = p->error;
    return true;
}

// What a call that fails returns.
static long failure(void) { return page->now.error ? -1 : 0; }

#define WRAP(type, name, params, args)                                                             \
    type __real_##name params;                                                                     \
    type __wrap_##name params;                                                                     \
    type __wrap_##name params { return fails(#name, 0) ? (type)failure() : __real_##name args; }

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
WRAP(int, setuid, (uid_t a), (a))
WRAP(int, seteuid, (uid_t a), (a))
WRAP(int, symlink, (const char *a, const char *b), (a, b))
WRAP(int, mknod, (const char *a, mode_t b, dev_t c), (a, b, c))
WRAP(ssize_t, sendfile64, (int a, int b, off64_t *c, size_t d), (a, b, c, d))
WRAP(ssize_t, send, (int a, const void *b, size_t c, int d), (a, b, c, d))
WRAP(int, fstatat64, (int a, const char *b, struct stat64 *c, int d), (a, b, c, d))
WRAP(off64_t, lseek64, (int a, off64_t b, int c), (a, b, c))
WRAP(int, lstat64, (const char *a, struct stat64 *b), (a, b))
WRAP(int, fchmod, (int a, mode_t b), (a, b))
WRAP(int, fchown, (int a, uid_t b, gid_t c), (a, b, c))
WRAP(int, fchownat, (int a, const char *b, uid_t c, gid_t d, int e), (a, b, c, d, e))
WRAP(int, access, (const char *a, int b), (a, b))
WRAP(int, faccessat, (int a, const char *b, int c, int d), (a, b, c, d))
WRAP(int, flock, (int a, int b), (a, b))
WRAP(int, memfd_create, (const char *a, unsigned b), (a, b))
WRAP(int, sigaction, (int a, const struct sigaction *b, struct sigaction *c), (a, b, c))
WRAP(int, ppoll, (struct pollfd * a, nfds_t b, const struct timespec *c, const sigset_t *d),
     (a, b, c, d))
WRAP(int, stat64, (const char *a, struct stat64 *b), (a, b))
WRAP(int, statvfs64, (const char *a, struct statvfs64 *b), (a, b))
WRAP(int, getresuid, (uid_t * a, uid_t *b, uid_t *c), (a, b, c))
WRAP(int, getresgid, (gid_t * a, gid_t *b, gid_t *c), (a, b, c))
WRAP(int, getgroups, (int a, gid_t *b), (a, b))
WRAP(pid_t, waitpid, (pid_t a, int *b, int c), (a, b, c))
WRAP(ssize_t, getrandom, (void *a, size_t b, unsigned c), (a, b, c))
WRAP(int, execve, (const char *a, char *const *b, char *const *c), (a, b, c))
WRAP(int, waitid, (idtype_t a, id_t b, siginfo_t *c, int d), (a, b, c, d))
WRAP(int, poll, (struct pollfd * a, nfds_t b, int c), (a, b, c))

void *__real_mmap64(void *a, size_t b, int c, int d, int e, off64_t f);
void *__wrap_mmap64(void *a, size_t b, int c, int d, int e, off64_t f);
void *__wrap_mmap64(void *a, size_t b, int c, int d, int e, off64_t f)
{
    return fails("mmap64", 0) ? MAP_FAILED : __real_mmap64(a, b, c, d, e, f);
}

void *__real_calloc(size_t a, size_t b);
void *__wrap_calloc(size_t a, size_t b);
void *__wrap_calloc(size_t a, size_t b) { return fails("calloc", 0) ? NULL : __real_calloc(a, b); }

void *__real_malloc(size_t a);
void *__wrap_malloc(size_t a);
void *__wrap_malloc(size_t a) { return fails("malloc", 0) ? NULL : __real_malloc(a); }

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
    if (fails("syscall", nr)) {
        return failure();
    }
    if (nr == SYS_close_range && (kept[0] || kept[1]) && w[0] < KEPT_PAGE) { // all but these
        long e = __real_syscall(nr, w[0], (long)KEPT_PAGE - 1, w[2], 0, 0, 0);
        return e ? e : __real_syscall(nr, (long)KEPT_END, w[1], w[2], 0, 0, 0);
    }
    return __real_syscall(nr, w[0], w[1], w[2], w[3], w[4], w[5]);
}

int __real_prctl(int op, ...);
int __wrap_prctl(int op, ...);
int __wrap_prctl(int op, ...)
{
    WORDS(op, 4)
    return fails("prctl", 0) ? (int)failure() : __real_prctl(op, w[0], w[1], w[2], w[3]);
}

int __real_fcntl64(int fd, int op, ...);
int __wrap_fcntl64(int fd, int op, ...);
int __wrap_fcntl64(int fd, int op, ...)
{
    WORDS(op, 1)
    return fails("fcntl", 0) ? (int)failure() : __real_fcntl64(fd, op, w[0]);
}

int __real_ioctl(int fd, unsigned long op, ...);
int __wrap_ioctl(int fd, unsigned long op, ...);
int __wrap_ioctl(int fd, unsigned long op, ...)
{
    WORDS(op, 1)
    return fails("ioctl", 0) ? (int)failure() : __real_ioctl(fd, op, w[0]);
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    WORDS(flags, 1)
    return fails("open", 0) ? (int)failure() : __real_open64(path, flags, (mode_t)w[0]);
}

int __real_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...)
{
    WORDS(flags, 1)
    return fails("openat", 0) ? (int)failure() : __real_openat64(dir, path, flags, (mode_t)w[0]);
}
