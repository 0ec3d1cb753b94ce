// Archives of hostile folders, read back by another's reader (Python's zipfile, unzip).
#include "place.h"

#include "workspace/zip.h"

#include <sys/wait.h>

static const struct zip_options wide = {.max_entries = 1 << 20, .max_bytes = UINT64_C(1) << 40};

// Makes p->outer/"made.zip". 0 or the -errno that ended it.
static int make(struct place *p, struct zip_options o, size_t piece, struct zip_count *ret)
{
    struct zip *z = NULL;
    AUTO_CLOSE int spool = openat(p->outer, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    AUTO_CLOSE int out =
        openat(p->outer, "made.zip", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    AUTO_FREE char *data = malloc(piece);
    assert_true(spool >= 0 && out >= 0);
    o.uid = getuid();
    o.spool = spool;
    assert_int_equal(zip_begin(p->ws, &o, &z), 0);
    ssize_t n;
    while ((n = zip_next(z, data, piece)) > 0 || n == -EAGAIN) {
        assert_int_equal(n > 0 ? fd_write_all(out, data, (size_t)n) : 0, 0);
    }
    struct stat st;
    assert_int_equal(fstat(out, &st), 0);
    *ret = zip_count(z);
    assert_true(n < 0 || (uint64_t)st.st_size == ret->archive_bytes);
    zip_end(z, NULL, 0);
    return (int)n;
}

// Runs a Python program on the archive: its exit status.
static int python(struct place *p, const char *program)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (fchdir(p->outer) == 0) {
            execl("/usr/bin/python3", "python3", "-Ic", program, NULL);
        }
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void files_and_folders_are_read_back(void **state)
{
    struct place *p = *state;
    struct zip_count count;
    AUTO_FREE char *big = malloc(3 << 20);
    for (int i = 0; i < 3 << 20; i++) { // nothing that deflate could make smaller
        big[i] = (char)((unsigned)i * 2654435761U >> 13);
    }
    assert_int_equal(mkdirat(p->ws, "d", 0700), 0);
    assert_int_equal(mkdirat(p->ws, "d/empty", 0750), 0);
    place_write(p->ws, "d/big", big, 3 << 20);
    place_write(p->ws, "d/none", "", 0);
    place_write(p->ws, "\xe4\xb8\xad", "text", 4);
    place_write(p->ws, "..\\..\\x", "y", 1);
    place_write(p->ws, "\xff\n", "z", 1);
    assert_int_equal(fchmodat(p->ws, "d/none", 0640, 0), 0);
    assert_int_equal(symlinkat("../secret", p->ws, "link"), 0);
    assert_int_equal(mkfifoat(p->ws, "fifo", 0600), 0);
    static const size_t pieces[] = {1 << 16, 1000};
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        assert_int_equal(make(p, wide, pieces[i], &count), 0);
        assert_int_equal(count.entries, 7);
        assert_int_equal(count.left_out, 2);
        assert_int_equal(count.content_bytes, (3 << 20) + 6);
        assert_int_equal(python(p,
                                "import zipfile\n"
                                "z = zipfile.ZipFile('made.zip')\n"
                                "assert z.testzip() is None\n"
                                "i = {x.filename: x for x in z.infolist()}\n"
                                "assert set(i) == {'d/', 'd/empty/', 'd/big', 'd/none', '\\u4e2d',"
                                " '..%5C..%5Cx', '%FF%0A'}, i.keys()\n"
                                "assert z.read('d/big') == open('w/d/big', 'rb').read()\n"
                                "assert z.read('\\u4e2d') == b'text'\n"
                                "assert i['d/none'].external_attr >> 16 == 0o100640\n"
                                "assert i['d/empty/'].external_attr >> 16 == 0o40750\n"
                                "assert i['d/big'].date_time[0] >= 2024\n"),
                         0);
    }
}

static void an_empty_folder_is_an_archive(void **state)
{
    struct place *p = *state;
    struct zip_count count;
    assert_int_equal(make(p, wide, 100, &count), 0);
    assert_int_equal(python(p, "import zipfile; assert not zipfile.ZipFile('made.zip').namelist()"),
                     0);
}

static void bounds_end_it(void **state)
{
    struct place *p = *state;
    struct zip_count count;
    struct zip_options o = wide;
    place_write(p->ws, "a", "12345", 5);
    place_write(p->ws, "b", "12345", 5);
    o.max_bytes = 10;
    assert_int_equal(make(p, o, 100, &count), 0);
    o.max_bytes = 9;
    assert_int_equal(make(p, o, 100, &count), -EFBIG);
    o.max_bytes = 10;
    o.max_entries = 1;
    assert_int_equal(make(p, o, 100, &count), -E2BIG);
}

static void more_than_65535_entries(void **state)
{
    struct place *p = *state;
    struct zip_count count;
    char name[32];
    if (!getenv("ISLE_LONG")) {
        skip(); // a disk takes long to make and remove them
    }
    for (int i = 0; i < 66000; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_int_equal(mkdirat(p->ws, name, 0700), 0);
    }
    assert_int_equal(make(p, wide, 1 << 16, &count), 0);
    assert_int_equal(
        python(p, "import zipfile; assert len(zipfile.ZipFile('made.zip').namelist()) == 66000"),
        0);
}

static void a_file_over_4_gigabytes(void **state)
{
    struct place *p = *state;
    struct zip_count count;
    if (!getenv("ISLE_LONG")) {
        skip(); // a minute of deflating zeros
    }
    place_write(p->ws, "sparse", "", 0);
    AUTO_CLOSE int fd = openat(p->ws, "sparse", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, (off_t)5 << 30), 0);
    assert_int_equal(make(p, wide, 1 << 16, &count), 0);
    assert_int_equal(python(p, "import zipfile; z = zipfile.ZipFile('made.zip')\n"
                               "assert z.testzip() is None\n"
                               "assert z.infolist()[0].file_size == 5 << 30"),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(files_and_folders_are_read_back),
        PLACE_TEST(an_empty_folder_is_an_archive),
        PLACE_TEST(bounds_end_it),
        PLACE_TEST(more_than_65535_entries),
        PLACE_TEST(a_file_over_4_gigabytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
