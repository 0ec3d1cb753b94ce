// SIGKILL at random moments to launcher, service, or both: nothing of the jobs may stay. The
// service's side keeps several sandboxes in every state; the front's side kills and then looks.
#include "base/clock.h"
#include "base/fd.h"
#include "checks.h"
#include "kernel/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

enum { GONE_MS = 30000, MAX_DELAY_MS = 60 };

static bool has_entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;
    while (dir && readdir(dir)) {
        n++; // "." and ".." too
    }
    if (dir) {
        closedir(dir);
    }
    return n > 2;
}

// Starts and ends sandboxes until somebody ends it.
void serve_soak(struct client *c)
{
    const char *const tree[] = {"/bin/sh", "-c",
                                "for i in 1 2 3; do (sleep 100; :) & done; sleep 100", NULL},
                      *const yes[] = {"/bin/true", NULL};
    struct plan_record r;
    char name[32];
    uint32_t id = 0;
    fd_write_all(c->seat.front, &c->seat.launcher_pid, sizeof c->seat.launcher_pid);
    for (uint32_t i = 1; i < 20; i++) {
        struct try t = try_of(i % 2 ? tree : yes);
        snprintf(name, sizeof name, "once/s%u", i);
        t.uid = V0 + i;
        t.workspace = name;
        AUTO_CLOSE int fd = client_make_workspace(c, name, t.uid, false);
        bool cold = c->seat.made_by != SEAT_NATIVE;
        if (fd < 0 || (!cold && client_prepare(c, &id, &r))) {
            break; // the launcher is gone
        }
        client_start(c, i % 3 && !cold ? id : 0, &t);
    }
    struct pollfd p[2] = {{c->seat.launcher_pidfd, POLLIN, 0}, {c->seat.front, POLLIN, 0}};
    poll(p, 2, 10000);
}

// When it was born, in clock ticks since boot, or 0 for a zombie: it waits for its new parent only.
static unsigned long long born(const char *pid)
{
    char path[300], text[1024], state;
    unsigned long long ticks;
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    if (fd_read_at(AT_FDCWD, path, text, sizeof text) <= 0) {
        return 0;
    }
    const char *after = strrchr(text, ')'); // proc_pid_stat(5): state is field 3, starttime 22
    int n = after ? sscanf(after + 1,
                           " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                           "%*d %*d %llu",
                           &state, &ticks)
                  : 0;
    return n == 2 && state != 'Z' ? ticks : 0;
}

static unsigned long long ticks_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    unsigned long long hz = (unsigned long long)sysconf(_SC_CLK_TCK);
    return (unsigned long long)t.tv_sec * hz + (unsigned long long)t.tv_nsec * hz / NS_PER_S;
}

// The first of its host ids, as its lock file says while it lives; an account has only its own.
static uint32_t base_of(const struct front *f)
{
    char path[PATH_MAX], text[512];
    uint32_t base = 0;
    snprintf(path, sizeof path, "%s/%u.lock", f->run_dir, f->instance);
    bool known = fd_read_at(AT_FDCWD, path, text, sizeof text) > 0 &&
                 sscanf(text, "isle %*u %*u %u", &base) == 1;
    return known ? base : 0;
}

static uint32_t uid_of(const char *pid)
{
    char path[300], text[2048];
    unsigned uid = 0;
    // by its status: the folder belongs to root when the process is not dumpable
    snprintf(path, sizeof path, "/proc/%s/status", pid);
    const char *line =
        fd_read_at(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, "\nUid:") : NULL;
    return line && sscanf(line, "\nUid: %u", &uid) == 1 ? uid : 0;
}

// Processes with an id of this instance that are not younger than `moment`: as soon as ours is
// dead, somebody else may have the number. By their ids, as accounts number theirs from 0 too.
static int living(uint32_t base, unsigned long long moment)
{
    const uint32_t count = geteuid() == 0 ? PLAN_UID_COUNT : 1;
    int n = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));) {
        bool other = e->d_name[0] >= '0' && e->d_name[0] <= '9' && atoi(e->d_name) != getpid();
        if (other && uid_of(e->d_name) - base < count) {
            unsigned long long ticks = born(e->d_name);
            n += ticks && ticks < moment;
        }
    }
    closedir(d);
    return n;
}

static bool mounts_left(const char *data)
{
    static char text[1 << 16];
    fd_read_at(AT_FDCWD, "/proc/self/mountinfo", text, sizeof text);
    return strstr(text, data) != NULL;
}

bool kill_and_look(struct front *f, int round, const char *data, bool stay)
{
    static const char *const names[] = {"launcher", "service", "both"};
    unsigned delay;
    pid_t launcher = 0;
    struct start_error error;
    int status, who = round % 3;
    char folder[128];
    uint32_t base = base_of(f);
    if (!base || fd_read_full(f->service, &launcher, sizeof launcher) != sizeof launcher ||
        getrandom(&delay, sizeof delay, 0) != sizeof delay) {
        return false;
    }
    delay %= MAX_DELAY_MS;
    clock_pause_ns(delay * NS_PER_MS);
    if (who != 1) {
        kill(launcher, SIGKILL);
    }
    if (who != 0) {
        sys_pidfd_signal(f->pidfd, SIGKILL);
    }
    unsigned long long moment = ticks_now();
    uint64_t until = clock_now_ns() + GONE_MS * NS_PER_MS;
    int left = living(base, moment);
    while (!stay && left > 0 && clock_now_ns() < until) {
        clock_pause_ns(2 * NS_PER_MS);
        left = living(base, moment);
    }
    snprintf(folder, sizeof folder, "%s/%u/once", data, f->instance); // it stays, empty
    int e = start_finish(f, &status, &error);
    left = stay ? living(base, moment) : left;
    bool folder_left = has_entries(folder), mount_left = mounts_left(data);
    bool clean = !e && !left && !folder_left && !mount_left;
    if (!clean) {
        fprintf(stderr, "FAIL kill %s after %u ms: finish %d, %d processes, folder %d, mount %d\n",
                names[who], delay, e, left, folder_left, mount_left);
    }
    return clean;
}
