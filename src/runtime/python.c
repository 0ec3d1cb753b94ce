// Which program of a runtime root runs Python snippets. The root may be a container's own "/", and
// the words are of an environment that was written for another host: nothing here executes what it
// finds, and nothing outside the root is looked at, wherever links lead.
#include "runtime/runtime.h"

#include "base/fd.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

// Where /proc/self/fd says that it is. False: it does not say, or has been removed.
static bool path_of(int fd, char *ret, size_t size)
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, ret, size - 1);
    if (n <= 0 || (size_t)n >= size - 1) {
        return false;
    }
    ret[n] = '\0';
    return true;
}

// Descriptor of the program at `path` of the root, or -1.
static int open_program(int root, const char *path)
{
    enum { ALL = 0111 };
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    struct stat st;
    AUTO_CLOSE int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    bool good = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && (st.st_mode & ALL) == ALL;
    return good ? fd_take(&fd) : -1;
}

bool runtime_has_program(int root, const char *path)
{
    AUTO_CLOSE int fd = open_program(root, path);
    return fd >= 0;
}

// The program at `path` of the root, as jobs see it once all links are followed. That last name
// says which version it is: python3 leads to python3.13.
static bool find_at(int root, const char *path, char ret[RUNTIME_PYTHON_MAX])
{
    static const char seen[] = "/usr/", name[] = "/" RUNTIME_PYTHON_NAME;
    char top[4096], whole[4096];
    AUTO_CLOSE int fd = open_program(root, path);
    if (fd < 0 || !path_of(root, top, sizeof top) || !path_of(fd, whole, sizeof whole)) {
        return false;
    }
    const size_t cut = strcmp(top, "/") ? strlen(top) : 0;
    if (strncmp(whole, top, cut)) {
        return false;
    }
    const char *inside = whole + cut;
    const size_t len = strlen(inside);
    if (len < sizeof name - 1 || len >= RUNTIME_PYTHON_MAX ||
        strncmp(inside, seen, sizeof seen - 1) || strcmp(inside + len - (sizeof name - 1), name)) {
        return false;
    }
    memcpy(ret, inside, len + 1);
    return true;
}

static bool find_word(int root, const char *word, char ret[RUNTIME_PYTHON_MAX])
{
    static const char *const places[] = {"/usr/local/bin", "/usr/bin"}; // a job's PATH
    char path[512];
    if (*word == '/') {
        return find_at(root, word, ret);
    }
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        snprintf(path, sizeof path, "%s/%s", places[i], word);
        if (find_at(root, path, ret)) {
            return true;
        }
    }
    return false;
}

int runtime_find_python(int root, const char *words, char ret[RUNTIME_PYTHON_MAX])
{
    char word[256];
    for (const char *at = words; *at;) {
        size_t n = strcspn(at, ",");
        if (n < sizeof word) {
            memcpy(word, at, n);
            word[n] = '\0';
            if (find_word(root, word, ret)) {
                return 0;
            }
        }
        at += n + (at[n] == ',');
    }
    return -ENOENT;
}
