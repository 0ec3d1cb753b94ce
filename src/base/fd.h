// fd.h: descriptors and memory that clean up after themselves.
// AUTO_CLOSE and AUTO_FREE run at the end of the scope; take() hands ownership over.
#ifndef ISLE_BASE_FD_H
#define ISLE_BASE_FD_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

// Closes fd if it is one; errno is left as it was. Returns -1, so `fd = fd_close(fd)` forgets it.
static inline int fd_close(int fd)
{
    int saved = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = saved;
    return -1;
}

static inline void fd_cleanup(int *fd) { *fd = fd_close(*fd); }

// The descriptor, which the caller now owns; *fd no longer does.
static inline int fd_take(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

static inline void mem_cleanup(void *p) { free(*(void **)p); }

#define AUTO_CLOSE __attribute__((cleanup(fd_cleanup)))
#define AUTO_FREE __attribute__((cleanup(mem_cleanup)))
#define ARRAY_LEN(a) (sizeof(a) / sizeof *(a))

// All of len, through short writes and EINTR. 0 or -errno.
int fd_write_all(int fd, const void *data, size_t len);

// Up to size bytes or the end of the file. Bytes read or -errno.
ssize_t fd_read_full(int fd, void *ret_buf, size_t size);

// One write of `text` to the existing file `path` below `dir`. 0 or -errno. For control files.
int fd_write_at(int dir, const char *path, const char *text);
int fd_write_num_at(int dir, const char *path, uint64_t value);

// The file's first size-1 bytes, NUL-terminated. Bytes or -errno (then ret_buf is "").
ssize_t fd_read_at(int dir, const char *path, char *ret_buf, size_t size);

// Is it a file that this process may execute? A folder may be "executed", too, as access(2) has it.
bool fd_is_program(int dir, const char *path);

// Sealed memfd (write, grow, shrink, seal) holding `len` bytes, offset 0. Descriptor or -errno.
int fd_sealed(const char *name, const void *data, size_t len);

#endif
