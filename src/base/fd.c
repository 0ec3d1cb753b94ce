#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

int fd_write_all(int fd, const void *data, size_t len)
{
    const char *p = data;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -errno;
        }
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

ssize_t fd_read_full(int fd, void *ret_buf, size_t size)
{
    char *p = ret_buf;
    size_t have = 0;
    while (have < size) {
        ssize_t n = read(fd, p + have, size - have);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -errno;
        }
        if (n == 0) {
            break;
        }
        have += (size_t)n;
    }
    return (ssize_t)have;
}

int fd_write_at(int dir, const char *path, const char *text)
{
    AUTO_CLOSE int fd = openat(dir, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return -errno;
    }
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int fd_write_num_at(int dir, const char *path, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return fd_write_at(dir, path, text);
}

ssize_t fd_read_at(int dir, const char *path, char *ret_buf, size_t size)
{
    ret_buf[0] = '\0';
    // a pipe in a file's place keeps nobody waiting
    AUTO_CLOSE int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return -errno;
    }
    ssize_t n = fd_read_full(fd, ret_buf, size - 1);
    ret_buf[n > 0 ? n : 0] = '\0';
    return n;
}

bool fd_is_program(int dir, const char *path)
{
    struct stat st;
    return !fstatat(dir, path, &st, 0) && S_ISREG(st.st_mode) &&
           !faccessat(dir, path, X_OK, AT_EACCESS);
}

int fd_sealed(const char *name, const void *data, size_t len)
{
    AUTO_CLOSE int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return -errno;
    }
    int e = fd_write_all(fd, data, len);
    if (e) {
        return e;
    }
    if (lseek(fd, 0, SEEK_SET) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)) {
        return -errno;
    }
    return fd_take(&fd);
}
