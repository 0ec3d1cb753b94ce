// locks.c: the one kind of kernel memory that a job can take without end and no control group
// counts: locks on parts of files (fcntl(2); 192 bytes each). The kernel's own accounting of them
// was taken back in Linux 5.15. So the host's figure for memory of this kind is looked at now and
// then, and when it has grown, a child counts what the jobs hold: their processes' fdinfo(5) lists
// every such lock, for it lives as long as a descriptor of its file. The other kinds of locks are
// bounded by what is counted (flock: by open files) or refused by the filter (those of an open
// file, leases).
#include "base/clock.h"
#include "base/fd.h"
#include "kernel/sys.h"
#include "launcher/launcher.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
    LOOK_MS = 250,
    WAIT_MS = 10,         // for the child that counts
    PAUSE = 4,            // it counts for a fifth of the time at most
    GROWN_KB = 16 * 1024, // of the whole host: no verdict, only a reason to count
    MAX_LOCKS = 65536,    // 12 MB; programs hold a handful
    MAX_MEMBERS = 32768,
};

// 0: unknown.
static uint64_t uncounted_kb(const struct launcher *l)
{
    static const char key[] = "\nSUnreclaim:";
    char text[4096];
    if (fd_read_at(l->proc, "meminfo", text, sizeof text) <= 0) {
        return 0;
    }
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

// ---- the child ----------------------------------------------------------------------------------

// Lines "lock:" of one file of fdinfo.
static unsigned count_file(int folder, const char *name)
{
    static const char key[] = "lock:";
    static char text[64 * 1024];
    size_t matched = 0; // of the key, at the start of a line; more than its length: not this line
    unsigned count = 0;
    AUTO_CLOSE int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    for (ssize_t n; fd >= 0 && (n = read(fd, text, sizeof text)) > 0;) {
        for (ssize_t i = 0; i < n; i++) {
            bool same = matched < strlen(key) && text[i] == key[matched];
            matched = text[i] == '\n' ? 0 : same ? matched + 1 : sizeof key;
            count += same && matched == strlen(key);
        }
    }
    return count;
}

typedef unsigned counter(int folder, const char *name);

// The sum over a folder's entries, up to the limit.
static unsigned count_folder(int parent, const char *name, counter *each)
{
    unsigned count = 0;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        fd_close(fd);
        return 0; // it ended meanwhile
    }
    for (struct dirent *d; count <= MAX_LOCKS && (d = readdir(dir));) {
        count += d->d_name[0] == '.' ? 0 : each(fd, d->d_name);
    }
    closedir(dir);
    return count;
}

// A thread need not share its process's descriptors.
static unsigned count_thread(int tasks, const char *tid)
{
    char path[32];
    snprintf(path, sizeof path, "%.15s/fdinfo", tid);
    return count_folder(tasks, path, count_file);
}

static unsigned count_box(const struct launcher *l, const struct box *b)
{
    static pid_t pids[MAX_MEMBERS];
    char path[32];
    unsigned count = 0;
    int n = cgroup_members(&l->groups, b->group, pids, MAX_MEMBERS);
    for (int i = 0; i < n && count <= MAX_LOCKS; i++) {
        snprintf(path, sizeof path, "%d/task", pids[i]);
        count += count_folder(l->proc, path, count_thread);
    }
    return count;
}

static _Noreturn void count_all(const struct launcher *l)
{
    struct pollfd p = {.fd = l->self_pidfd, .events = POLLIN};
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    prctl(PR_SET_NAME, "isle-counter");
    if (poll(&p, 1, 0) != 0) {
        _exit(1);
    }
    // nobody must wait for an end of file that we delay
    close(SEAT_SERVICE);
    close(SEAT_SERVICE_PIDFD);
    for (int i = 0; i < PLAN_MAX_SANDBOXES; i++) {
        const struct box *b = &l->box[i];
        if (!b->id) {
            continue; // its numbers are others' by now
        }
        fd_close(b->sock);
        if (b->executed && !b->gone && count_box(l, b) > MAX_LOCKS) {
            l->locks.over[i] = b->id;
        }
    }
    _exit(0);
}

// ---- the launcher's side ------------------------------------------------------------------------

int locks_init(struct launcher *l)
{
    void *shared = mmap(NULL, PLAN_MAX_SANDBOXES * sizeof *l->locks.over, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return -errno;
    }
    l->locks.over = shared;
    l->locks.base_kb = uncounted_kb(l);
    return 0;
}

static bool any_runs(const struct launcher *l)
{
    for (int i = 0; i < PLAN_MAX_SANDBOXES; i++) {
        if (l->box[i].id && l->box[i].executed && !l->box[i].gone) {
            return true;
        }
    }
    return false;
}

static void counted(struct launcher *l, uint64_t now_ns)
{
    struct locks *k = &l->locks;
    k->pid = 0;
    k->due_ns = now_ns + LOOK_MS * NS_PER_MS + PAUSE * (now_ns - k->began_ns);
    for (int i = 0; i < PLAN_MAX_SANDBOXES; i++) {
        struct box *b = &l->box[i];
        if (b->id && b->id == k->over[i] && !b->gone) {
            b->r.flags |= PLAN_HIT_MEMORY;
            box_kill(l, b);
        }
    }
    k->base_kb = uncounted_kb(l);
}

uint64_t locks_tick(struct launcher *l, uint64_t now_ns)
{
    struct locks *k = &l->locks;
    if (k->pid) {
        if (waitpid(k->pid, NULL, WNOHANG) == 0) {
            return now_ns + WAIT_MS * NS_PER_MS;
        }
        counted(l, now_ns);
    }
    if (!any_runs(l)) {
        k->due_ns = 0;
        return UINT64_MAX;
    }
    if (!k->due_ns) { // most jobs are over before the first look
        k->due_ns = now_ns + LOOK_MS * NS_PER_MS;
    }
    if (now_ns < k->due_ns) {
        return k->due_ns;
    }
    k->due_ns = now_ns + LOOK_MS * NS_PER_MS;
    uint64_t kb = uncounted_kb(l);
    if (kb < k->base_kb) {
        k->base_kb = kb;
    }
    if (kb <= k->base_kb + GROWN_KB) {
        return k->due_ns;
    }
    k->began_ns = now_ns;
    pid_t pid = fork();
    if (pid == 0) {
        count_all(l);
    }
    k->pid = pid > 0 ? pid : 0; // else at the next look
    return now_ns + WAIT_MS * NS_PER_MS;
}

void locks_done(struct launcher *l)
{
    if (l->locks.pid) {
        kill(l->locks.pid, SIGKILL);
        waitpid(l->locks.pid, NULL, 0);
        l->locks.pid = 0;
    }
}
