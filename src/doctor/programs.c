// Rows of isle's own programs, the runtime root, Bubblewrap, and of room: disk, memory, processes.
#include "doctor/doctor.h"

#include "base/fd.h"
#include "plan/bwrap.h"
#include "runtime/runtime.h"
#include "start/bwrap.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define MB (UINT64_C(1) << 20)

static struct doctor_row *add_bad(struct doctor *d, const char *name, enum doctor_state state,
                                  const char *cost, const char *fix)
{
    struct doctor_row *r = doctor_add(d, "programs", name);
    r->state = state;
    DOCTOR_COST(r, "%s", cost);
    DOCTOR_FIX(r, "%s", fix);
    return r;
}

// Who else may change what is there, which may run with this user's rights? The owner of all is
// root, or whoever starts isle.
static bool is_others(const struct doctor *d, const struct stat *st)
{
    return (st->st_uid != 0 && st->st_uid != d->host.uid) || (st->st_mode & 022);
}

static const char mount_exec[] = "mount that file system with exec (mount -o remount,exec)";

static void see_program(struct doctor *d, const char *name)
{
    char path[4200];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", d->libexec_dir, name);
    if (stat(path, &st)) {
        struct doctor_row *r =
            add_bad(d, name, DOCTOR_FAILED, "no job runs",
                    "install isle as a whole (meson install -C build, or set ISLE_LIBEXEC)");
        DOCTOR_FOUND(r, "%.180s: %s", path, strerror(errno));
        return;
    }
    struct statvfs on;
    if (!statvfs(path, &on) && (on.f_flag & ST_NOEXEC)) {
        struct doctor_row *r = add_bad(d, name, DOCTOR_FAILED, "no job runs", mount_exec);
        DOCTOR_FOUND(r, "%.180s is mounted noexec", path);
        return;
    }
    // inner root, nobody special to the host, executes them
    bool good = S_ISREG(st.st_mode) && (st.st_mode & 0555) == 0555 && !is_others(d, &st);
    struct doctor_row *r =
        good ? doctor_add(d, "programs", name)
             : add_bad(d, name, (st.st_mode & 0555) == 0555 ? DOCTOR_ADVICE : DOCTOR_FAILED,
                       (st.st_mode & 0555) == 0555 ? "others than you and root may change it"
                                                   : "no job runs: ids that own nothing execute it",
                       "chmod 755, and chown root where root starts isle");
    DOCTOR_FOUND(r, "%.180s, mode %04o, of uid %u", path, st.st_mode & 07777U, st.st_uid);
}

// ---- the runtime root -------------------------------------------------------------------------

static void see_runtime(struct doctor *d)
{
    const char *root = d->conf->text[SETTING_RUNTIME_ROOT];
    char build[64];
    AUTO_CLOSE int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        int e = errno;
        struct doctor_row *r = add_bad(
            d, "runtime root", DOCTOR_FAILED, "no job runs",
            e == EACCES ? "its owner lets others into the folders that lead there (chmod 755)"
                        : "./bootstrap, run by root, makes it; one elsewhere is named by "
                          "SANDBOX_RUNTIME_ROOT");
        DOCTOR_FOUND(r, "%.180s: %s", root, strerror(e));
        return;
    }
    if (host_stays_noexec(root)) {
        struct doctor_row *r = add_bad(d, "runtime root", DOCTOR_FAILED, "no job runs", mount_exec);
        DOCTOR_FOUND(r, "%.180s is mounted noexec", root);
        return;
    }
    fd_read_at(dir, "usr/share/isle/build-id", build, sizeof build);
    build[strcspn(build, "\n")] = '\0';
    const char *python = (d->python && *d->python ? d->python : RUNTIME_PYTHON) + 1;
    const char *const interpreters[] = {python, "usr/bin/node", "usr/bin/bash"};
    char missing[128] = "";
    for (size_t i = 0; i < ARRAY_LEN(interpreters); i++) {
        if (!runtime_has_program(dir, interpreters[i])) {
            size_t n = strlen(missing);
            snprintf(missing + n, sizeof missing - n, " %s", interpreters[i]);
        }
    }
    struct stat st, usr;
    bool others =
        fstat(dir, &st) || fstatat(dir, "usr", &usr, 0) || is_others(d, &st) || is_others(d, &usr);
    struct doctor_row *r =
        others && !missing[0] ? add_bad(d, "runtime root", DOCTOR_ADVICE,
                                        "others than you and root may change what all jobs run",
                                        "chown root and chmod 755 it and its usr")
        : missing[0] ? add_bad(d, "runtime root", DOCTOR_DEGRADED, "jobs of that language fail",
                               "make it anew: ./bootstrap")
                     : doctor_add(d, "programs", "runtime root");
    DOCTOR_FOUND(r, "%.100s, build %s%s%s", root, build[0] ? build : "not known",
                 missing[0] ? ", without" : "", missing);
}

// Modules of sets that are machine code are mapped as programs are.
static void see_packages(struct doctor *d)
{
    const char *path = d->conf->text[SETTING_PACKAGES_ROOT];
    if (*path && host_stays_noexec(path)) {
        struct doctor_row *r =
            add_bad(d, "package sets", DOCTOR_ADVICE,
                    "their compiled modules and programs fail: Permission denied, or failed to map "
                    "segment from shared object",
                    mount_exec);
        DOCTOR_FOUND(r, "%.180s is mounted noexec", path);
    }
}

// ---- Bubblewrap -------------------------------------------------------------------------------

// The one that --launcher bwrap would take; where there is none, the host's own, for information.
static void see_bubblewrap(struct doctor *d)
{
    const char *setting = d->conf->text[SETTING_FILESYSTEM_ISOLATION_BINARY];
    const char *root = d->conf->text[SETTING_RUNTIME_ROOT];
    struct bwrap_found b;
    char why[200];
    int e = bwrap_find(setting, root, &b, why, sizeof why);
    if (e == -ENOENT && (!setting[0] || strcmp(setting, "native") == 0) && !d->wrapped) {
        struct doctor_row *r = doctor_add(d, "programs", "bubblewrap");
        r->state = DOCTOR_FACT;
        bool hosts = !bwrap_find("/usr/bin/bwrap", root, &b, why, sizeof why);
        if (hosts) {
            bwrap_ask_version(&b, root);
        }
        DOCTOR_FOUND(r, "the runtime root has none, which only --launcher bwrap needs%s%s",
                     hosts ? "; /usr/bin/bwrap is version " : "", hosts ? b.version_text : "");
        return;
    }
    if (e) {
        struct doctor_row *r =
            add_bad(d, "bubblewrap", d->wrapped ? DOCTOR_FAILED : DOCTOR_DEGRADED,
                    "no job runs with --launcher bwrap; isle's own launcher needs none",
                    "./bootstrap puts one into the runtime root");
        DOCTOR_FOUND(r, "%s", why);
        return;
    }
    bwrap_ask_version(&b, root);
    struct doctor_row *r =
        b.version >= BWRAP_SOUND
            ? doctor_add(d, "programs", "bubblewrap")
            : add_bad(d, "bubblewrap", DOCTOR_ADVICE,
                      "old_bubblewrap with --launcher bwrap: CVE-2026-87766, before 0.12.0 targets "
                      "of mounts are made through links in a folder that is bound already",
                      "bubblewrap 0.12.0 or newer: ./bootstrap puts one into the runtime root");
    DOCTOR_FOUND(r, "%s, version %s", b.path, b.version_text);
}

// ---- room -------------------------------------------------------------------------------------

// The path, or the nearest folder above it that exists, where it would be made.
static int stat_above(const char *path, char at[4096], struct statvfs *ret)
{
    snprintf(at, 4096, "%s", path);
    while (statvfs(at, ret)) {
        char *slash = strrchr(at, '/');
        if (!slash || errno != ENOENT) {
            return -errno;
        }
        slash[slash == at] = '\0';
    }
    return 0;
}

static void see_disk(struct doctor *d)
{
    const char *path = d->conf->text[SETTING_WORKSPACE_ROOT];
    struct statvfs s = {0};
    char at[4096];
    struct doctor_row *r = doctor_add(d, "room", "data folder");
    bool missing = access(path, F_OK) != 0;
    // one that a setting names is not made by a start
    int e =
        missing && conf_given(d->conf, SETTING_WORKSPACE_ROOT) ? -errno : stat_above(path, at, &s);
    e = e ? e : access(at, W_OK | X_OK) ? -errno : 0;
    if (e) {
        r->state = DOCTOR_FAILED;
        DOCTOR_FOUND(r, "%.180s: %s", path, strerror(-e));
        DOCTOR_COST(r, "no job runs");
        DOCTOR_FIX(r, "%s, or set SANDBOX_WORKSPACE_ROOT to a folder of yours",
                   e == -EROFS ? "mount it for writing" : "make it");
        return;
    }
    uint64_t free_mb = s.f_bavail * s.f_frsize / MB;
    DOCTOR_FOUND(r, "%.120s%s, %llu MB and %llu inodes free", path,
                 missing ? " (made at the first job)" : "", (unsigned long long)free_mb,
                 (unsigned long long)s.f_favail);
    bool full = free_mb < 1024, noexec = host_stays_noexec(at);
    if (full || noexec) {
        r->state = DOCTOR_ADVICE;
        DOCTOR_COST(r, "%s%s%s",
                    full ? "jobs with a large disk_mb end when the disk is nearly full" : "",
                    full && noexec ? "; " : "",
                    noexec ? "it is mounted noexec: in workspaces on disk nothing can be executed "
                             "(Permission denied, status 126)"
                           : "");
        DOCTOR_FIX(r, "%sset SANDBOX_WORKSPACE_ROOT to a folder elsewhere%s",
                   full ? "free some, or " : "mount it with exec (mount -o remount,exec), or ",
                   full && noexec ? " that is mounted with exec" : "");
    }
}

static void see_accounting(struct doctor *d)
{
    struct doctor_row *r = doctor_add(d, "room", "disk limits");
    r->state = DOCTOR_FACT;
    DOCTOR_FOUND(r,
                 "up to %lld MB a workspace is a tmpfs, bounded by the kernel; above that its "
                 "folder is measured every 20 ms, and isle uses no quota of the file system",
                 (long long)d->conf->number[SETTING_TMPFS_WORKSPACE_MB]);
}

static void see_memory(struct doctor *d)
{
    char text[4096];
    unsigned long long total = 0, available = 0;
    struct doctor_row *r = doctor_add(d, "room", "memory");
    fd_read_at(d->root, "proc/meminfo", text, sizeof text);
    const char *t = strstr(text, "MemTotal:"), *a = strstr(text, "MemAvailable:");
    if (!t || !a || sscanf(t, "MemTotal: %llu", &total) != 1 ||
        sscanf(a, "MemAvailable: %llu", &available) != 1) {
        r->state = DOCTOR_FACT;
        DOCTOR_FOUND(r, "not known");
        return;
    }
    DOCTOR_FOUND(r, "%llu MB, %llu MB available", total / 1024, available / 1024);
    if (available / 1024 < 512) {
        r->state = DOCTOR_ADVICE;
        DOCTOR_COST(r, "a job may take 512 MB (the default of --memory)");
        DOCTOR_FIX(r, "more memory, or SANDBOX_INSTANCE_MEMORY_MB to bound all jobs together");
    }
}

static void see_processes(struct doctor *d)
{
    int64_t pids = host_number(d->root, "proc/sys/kernel/pid_max");
    int64_t threads = host_number(d->root, "proc/sys/kernel/threads-max");
    struct doctor_row *r = doctor_add(d, "room", "processes");
    int64_t most = pids < threads || threads == HOST_NO_VALUE ? pids : threads;
    DOCTOR_FOUND(r, "the host can have %lld", (long long)most);
    if (most < 4096) {
        r->state = DOCTOR_ADVICE;
        DOCTOR_COST(r, "a few jobs with many processes use them up");
        DOCTOR_FIX(r, "sysctl -w kernel.pid_max=65536, and kernel.threads-max likewise");
    }
}

void doctor_programs(struct doctor *d)
{
    see_program(d, "isle-launcher");
    see_program(d, "isle-shim");
    see_runtime(d);
    see_packages(d);
    see_bubblewrap(d);
    see_disk(d);
    see_accounting(d);
    see_memory(d);
    see_processes(d);
}
