#include "start/bwrap.h"

#include "base/fd.h"
#include "kernel/proc.h"
#include "kernel/sys.h"
#include "plan/bwrap.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    VERSION_MS = 5000, // some ms, but hosts are busy
    NOBODY = 65534,
};

#define IN_RUNTIME "usr/bin/bwrap"

static int wrong(int error, char *text, size_t size, const char *path, const char *why)
{
    snprintf(text, size, "Bubblewrap %s: %s", path, why);
    return error;
}

int bwrap_find(const char *setting, const char *runtime_root, struct bwrap_found *ret,
               char *ret_text, size_t size)
{
    struct bwrap_found b = {.is_runtimes = !setting || setting[0] != '/'};
    struct stat st;
    int n = b.is_runtimes ? snprintf(b.path, sizeof b.path, "%s/" IN_RUNTIME, runtime_root)
                          : snprintf(b.path, sizeof b.path, "%s", setting);
    if (n < 0 || (size_t)n >= sizeof b.path) {
        return wrong(-ENAMETOOLONG, ret_text, size, setting ? setting : runtime_root,
                     "the path is longer than 127 bytes");
    }
    if (stat(b.path, &st)) {
        int e = -errno;
        char why[128];
        snprintf(why, sizeof why, "%s (%s)", strerror(errno),
                 b.is_runtimes ? "./bootstrap puts it into the runtime root; or set "
                                 "SANDBOX_FILESYSTEM_ISOLATION_BINARY"
                               : "SANDBOX_FILESYSTEM_ISOLATION_BINARY");
        return wrong(e, ret_text, size, b.path, why);
    }
    if (!S_ISREG(st.st_mode) || (st.st_mode & 0111) != 0111) {
        return wrong(-EACCES, ret_text, size, b.path, "is no program that all may execute");
    }
    if (st.st_mode & (S_ISUID | S_ISGID)) {
        return wrong(-EPERM, ret_text, size, b.path,
                     "is set-uid, which is refused (CVE-2026-41163): chmod u-s it, isle needs "
                     "none of its rights");
    }
    snprintf(b.version_text, sizeof b.version_text, "unknown");
    *ret = b;
    return 0;
}

// The loader of a root is not the host's: it is told where that root's libraries are.
static int find_libraries(const char *root, char *ret_loader, char *ret_path)
{
    static const char *const places[][2] = {
        {"usr/lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu"},
        {"usr/lib/ld-linux-aarch64.so.1", "usr/lib/aarch64-linux-gnu"},
    };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        snprintf(ret_loader, PATH_MAX, "%s/%s", root, places[i][0]);
        snprintf(ret_path, PATH_MAX, "%s/%s", root, places[i][1]);
        if (fd_is_program(AT_FDCWD, ret_loader)) {
            return 0;
        }
    }
    return -ENOENT;
}

static _Noreturn void version_child(const struct bwrap_found *b, const char *loader,
                                    const char *libraries, int out)
{
    char bwrap[] = "bwrap", version[] = "--version", option[] = "--library-path";
    char *env[] = {NULL}, *plain[] = {bwrap, version, NULL};
    // execve's types lack the const; it only reads
    char *program = (char *)(uintptr_t)b->path, *path = (char *)(uintptr_t)libraries;
    char *loaded[] = {(char *)(uintptr_t)loader, option, path, program, version, NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    setsid();
    if (chdir("/") || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0 ||
        sys_close_from(3)) {
        _exit(126);
    }
    if (!geteuid() && (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
                       setresuid(NOBODY, NOBODY, NOBODY))) {
        _exit(126);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); // a change of uid would clear it
    if (b->is_runtimes) {
        execve(loader, loaded, env);
    } else {
        execve(program, plain, env);
    }
    _exit(127);
}

// In a pid namespace of its own where we may make one: with it ends whatever it has started.
static pid_t fork_alone(void)
{
    struct clone_args a = {.flags = CLONE_NEWPID, .exit_signal = SIGCHLD};
    pid_t pid = sys_clone3(&a);
    return pid < 0 ? fork() : pid;
}

void bwrap_ask_version(struct bwrap_found *b, const char *runtime_root)
{
    char loader[PATH_MAX], libraries[PATH_MAX], text[64] = "";
    int out[2];
    if ((b->is_runtimes && find_libraries(runtime_root, loader, libraries)) ||
        pipe2(out, O_CLOEXEC)) {
        return;
    }
    pid_t pid = fork_alone();
    if (pid == 0) {
        version_child(b, loader, libraries, out[1]);
    }
    close(out[1]);
    AUTO_CLOSE int in = out[0];
    struct pollfd p = {in, POLLIN, 0};
    ssize_t n = 0;
    if (pid > 0 && poll(&p, 1, VERSION_MS) > 0) {
        n = read(in, text, sizeof text - 1);
    }
    if (pid > 0) {
        kill(-pid, SIGKILL); // it has said what is wanted of it; its session, where it is in ours
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    text[n > 0 ? n : 0] = '\0';
    b->version = bwrap_version_read(text);
    if (b->version) {
        snprintf(b->version_text, sizeof b->version_text, "%u.%u.%u", b->version >> 16,
                 b->version >> 8 & 0xff, b->version & 0xff);
    }
}

int bwrap_words(const struct bwrap_found *b, const char *hostname, uint32_t n_sets,
                uint32_t host_network, char *ret, size_t size)
{
    struct bwrap_cover covers[PROC_MAX_COVERS];
    AUTO_CLOSE int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int e = proc_covers(proc, covers);
    if (e) {
        return e;
    }
    const struct bwrap_input in = {.version = b->version,
                                   .hostname = hostname,
                                   .covers = covers,
                                   .n_sets = n_sets,
                                   .host_network = host_network};
    return bwrap_arguments(&in, ret, size);
}
