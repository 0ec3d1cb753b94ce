#include "doctor/bubblewrap.h"

#include "base/fd.h"

#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

bool bubblewrap_older(const char *a, const char *b)
{
    for (;;) {
        char *end_a, *end_b;
        unsigned long x = strtoul(a, &end_a, 10), y = strtoul(b, &end_b, 10);
        if (x != y) {
            return x < y;
        }
        if (*end_a != '.' && *end_b != '.') {
            return false;
        }
        a = end_a + (*end_a == '.'); // "0.12" is "0.12.0"
        b = end_b + (*end_b == '.');
    }
}

// `bwrap --version` says "bubblewrap 0.8.0". Bounded: a program that hangs is killed.
static void ask_version(const char *path, char *ret, size_t size)
{
    int out[2];
    if (pipe2(out, O_CLOEXEC)) {
        return;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = {(char *)(uintptr_t) "bwrap", (char *)(uintptr_t) "--version", NULL};
        char *env[] = {NULL};
        int null = open("/dev/null", O_RDWR); // NOLINT(android-cloexec-open): it is inherited
        if (null >= 0 && dup2(null, 0) == 0 && dup2(null, 2) == 2 && dup2(out[1], 1) == 1) {
            execve(path, argv, env);
        }
        _exit(127);
    }
    close(out[1]);
    char text[64] = "";
    struct pollfd p = {out[0], POLLIN, 0};
    ssize_t n = pid > 0 && poll(&p, 1, 1000) > 0 ? read(out[0], text, sizeof text - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    close(out[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    const char *number = strpbrk(text, "0123456789");
    if (number) {
        snprintf(ret, size, "%.*s", (int)strspn(number, "0123456789."), number);
    }
}

// A line "bubblewrap 0.11.0-2 amd64" of the root's list.
static void read_version(const char *runtime_root, char *ret, size_t size)
{
    char path[4200], line[256];
    snprintf(path, sizeof path, "%s/usr/share/isle/packages", runtime_root);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        char version[64];
        if (sscanf(line, "bubblewrap %63s", version) == 1) {
            snprintf(ret, size, "%.*s", (int)strspn(version, "0123456789."), version);
        }
    }
    if (f) {
        fclose(f);
    }
}

static bool try_path(struct bubblewrap *b, const char *folder, const char *name)
{
    struct stat st;
    int n = snprintf(b->path, sizeof b->path, "%s%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof b->path || stat(b->path, &st) || !S_ISREG(st.st_mode) ||
        !(st.st_mode & 0111)) {
        return false;
    }
    b->setuid = st.st_mode & S_ISUID;
    return true;
}

int bubblewrap_find(const char *given, const char *runtime_root, struct bubblewrap *ret)
{
    static const char *const folders[] = {"/usr/local/bin", "/usr/bin", "/bin"};
    *ret = (struct bubblewrap){.path = ""};
    if (given[0]) {
        if (!try_path(ret, given, "")) {
            return -ENOENT;
        }
        ask_version(ret->path, ret->version, sizeof ret->version);
        return 0;
    }
    if (try_path(ret, runtime_root, "/usr/bin/bwrap")) {
        read_version(runtime_root, ret->version, sizeof ret->version);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        if (try_path(ret, folders[i], "/bwrap")) {
            ask_version(ret->path, ret->version, sizeof ret->version);
            return 0;
        }
    }
    return -ENOENT;
}

const char *bubblewrap_holes(const struct bubblewrap *b)
{
    bool old = !b->version[0] || bubblewrap_older(b->version, "0.12.0");
    if (old && b->setuid) {
        return "CVE-2026-87766 (before 0.12.0: mount targets are made through links in a folder "
               "that is bound already) and CVE-2026-41163 (set-uid)";
    }
    if (b->setuid) {
        return "CVE-2026-41163 (set-uid)";
    }
    return old ? "CVE-2026-87766 (before 0.12.0: mount targets are made through links in a folder "
                 "that is bound already)"
               : NULL;
}
