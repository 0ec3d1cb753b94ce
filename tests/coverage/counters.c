// counters.c: linked into every program of a build with -Dcoverage=true, never into another. gcov's
// counters live in memory and are written at exit; most processes of isle have no exit (they are
// killed, or execute something else) and no file system to write to. Here the counters are the
// pages of a file instead, mapped shared when a program starts and inherited by whatever it forks:
// a line is counted in the moment it runs. tests/coverage/counters.ld puts them on pages of their
// own.
//
// The file is FOLDER/PROGRAM-SIZE. No folder: gcov as it always is. A program that is run with
// ISLE_COVERAGE_DUMP=FILE writes what the file has counted as .gcda files, and ends.
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern char coverage_begin[], coverage_end[]; // counters.ld
void __gcov_dump(void);                       // libgcov
void __real___gcov_exit(void);
void __wrap___gcov_exit(void);

static bool mapped;

void __wrap___gcov_exit(void)
{
    if (!mapped) {
        __real___gcov_exit();
    }
}

static void dump(const char *path, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || mmap(coverage_begin, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
                       0) == MAP_FAILED) {
        perror(path);
        _exit(1);
    }
    __gcov_dump();
    _exit(0);
}

// What a sandbox's first process in Bubblewrap is given by the launcher (launcher/inject.h): the
// folder is far from there.
enum { INSIDE_FD = 9 };

static char file_path[PATH_MAX + 128];

// Another descriptor of the file, or -1.
int coverage_open(void);
int coverage_open(void) { return mapped ? open(file_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1; }

void coverage_start(int argc, char **argv);
__attribute__((constructor)) void coverage_start(int argc, char **argv)
{
    const size_t size = (size_t)(coverage_end - coverage_begin);
    const char *from = getenv("ISLE_COVERAGE_DUMP");
    char self[PATH_MAX];
    if (from) {
        dump(from, size);
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    snprintf(file_path, sizeof file_path, "%s/%s-%zu", ISLE_COVERAGE_FOLDER, basename(self), size);
    int fd = open(file_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) { // fs.protected_regular: not in one call, for a file of somebody else
        fd = open(file_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    }
    if (fd < 0 && argc == 2 && !strcmp(argv[1], "inside")) {
        fd = INSIDE_FD;
    }
    if (fd < 0) {
        return;
    }
    struct stat st;
    if (!fstat(fd, &st) && (st.st_size >= (off_t)size || !ftruncate(fd, (off_t)size)) &&
        mmap(coverage_begin, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
            MAP_FAILED) {
        mapped = true;
    }
    if (!fchmod(fd, 0666)) { // whoever makes it: its other processes have other ids
    }
    close(fd);
}
