#include "serve/agent_inner.h"

#include "base/fd.h"
#include "workspace/disk.h"
#include "workspace/path.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// Beside the workspace, whose names are "w" and "t".
#define KEPT_NAME "m"
#define KEPT_PART "m.part"

enum { // more than memory_write() can make of what memory.h allows
    KEPT_MAX_BYTES = MEMORY_TOTAL_MAX * 8 + MEMORY_VIEWS_MAX * (MEMORY_PATH_MAX + 64) +
                     MEMORY_REGISTER_BYTES_MAX + MEMORY_REGISTERS_MAX * 64 + 4096,
};

size_t agent_kept_bytes(const struct agent_memory *m)
{
    size_t n = sizeof(struct agent_session);
    for (uint32_t i = 0; i < m->n; i++) {
        n += m->views[i].n * sizeof m->views[i].lines[0] + strlen(m->views[i].path) + 1;
    }
    for (uint32_t i = 0; i < m->registers_n; i++) {
        n += m->registers[i].len;
    }
    return n;
}

static int load(int folder, struct agent_memory *m)
{
    struct stat st;
    AUTO_CLOSE int fd = path_open(folder, KEPT_NAME, O_RDONLY, 0);
    if (fd < 0) {
        return fd == -ENOENT ? 0 : fd;
    }
    if (fstat(fd, &st)) {
        return -errno;
    }
    if (!S_ISREG(st.st_mode) || st.st_size > KEPT_MAX_BYTES) {
        return -EBADMSG;
    }
    AUTO_FREE char *data = malloc((size_t)st.st_size + 1);
    if (!data) {
        return -ENOMEM;
    }
    ssize_t n = fd_read_full(fd, data, (size_t)st.st_size);
    return n < 0 ? (int)n : memory_read(data, (size_t)n, m);
}

int agent_kept_load(const struct session_lease *l, struct agent_memory *m)
{
    AUTO_CLOSE int folder = sessions_open_beside(l);
    return folder < 0 ? folder : load(folder, m);
}

// In its place whole, or not at all. Not forced to the disk: what a crash of the machine takes is a
// reader's to read again.
int agent_kept_save(const struct session_lease *l, const struct agent_memory *m)
{
    AUTO_BUF struct buf data = BUF_INIT(KEPT_MAX_BYTES);
    AUTO_CLOSE int folder = sessions_open_beside(l);
    if (folder < 0) {
        return folder;
    }
    int e = memory_write(m, &data);
    if (e) {
        return e;
    }
    uint64_t left;
    if (!disk_left(folder, &left) && left < data.len) {
        return -ENOSPC; // the last of the disk is for how jobs end
    }
    AUTO_CLOSE int fd = path_open(folder, KEPT_PART, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) {
        return fd;
    }
    e = fd_write_all(fd, data.data, data.len);
    if (!e && renameat(folder, KEPT_PART, folder, KEPT_NAME)) {
        e = -errno;
    }
    return e;
}
