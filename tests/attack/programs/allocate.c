// Takes disk space without writing: by fallocate(2), then by the ioctls that do the same. Prints
// how much it got.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct space { // of the ioctls that file systems have had from XFS
    short type, whence;
    long start, length;
    int sysid;
    unsigned pid;
    int pad[4];
};

static void say(const char *what, int fd)
{
    struct stat st = {0};
    fstat(fd, &st);
    printf("%s %ld MB\n", what, (long)st.st_blocks / 2048);
}

int main(void)
{
    static const struct {
        const char *name;
        unsigned long number;
    } calls[] = {{"RESVSP", _IOW('X', 40, struct space)},
                 {"RESVSP64", _IOW('X', 42, struct space)},
                 {"ZERO_RANGE", _IOW('X', 57, struct space)}};
    int fd = open("big", O_CREAT | O_RDWR, 0600);
    struct space space = {.whence = SEEK_SET, .length = 300L << 20};
    fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, space.length);
    say("fallocate", fd);
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
        ioctl(fd, calls[i].number, &space);
        say(calls[i].name, fd);
    }
    return 0;
}
