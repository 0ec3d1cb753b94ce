// Artifacts in --output-dir: only what was asked for, never through a link, never half.
#include "base/fd.h"
#include "cli/outdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[32];
static char out[64];

static struct job_artifact asked[] = {{(char *)(uintptr_t) "output/d/a.bin", false},
                                      {(char *)(uintptr_t) "b", false},
                                      {(char *)(uintptr_t) "output/x", false}};
static const struct job job = {.artifacts = asked, .n_artifacts = ARRAY_LEN(asked)};

static const char *below(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void expect(const char *name, const char *text)
{
    char got[100] = "";
    AUTO_CLOSE int fd = open(below(name), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(fd_read_full(fd, got, sizeof got - 1) >= 0);
    assert_string_equal(got, text);
}

static size_t entries(const char *name)
{
    size_t n = 0;
    DIR *d = opendir(below(name));
    assert_non_null(d);
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n - 2;
}

static void writes_whole_files(void **state)
{
    (void)state;
    struct outdir o;
    assert_int_equal(outdir_open(&o, out, &job), 0); // made: only its last part was missing
    outdir_begin(&o, "output/d/a.bin", 6);
    outdir_write(&o, "abc", 3);
    assert_int_equal(access(below("out/output/d/a.bin"), F_OK), -1); // not before it is whole
    outdir_write(&o, "def", 3);
    outdir_begin(&o, "b", 0);
    assert_string_equal(o.error, "");
    expect("out/output/d/a.bin", "abcdef");
    expect("out/b", "");
    struct stat st;
    assert_int_equal(stat(below("out/b"), &st), 0);
    assert_int_equal(st.st_mode & 07111, 0);
    outdir_begin(&o, "b", 3); // replaced as a whole
    outdir_write(&o, "new", 3);
    expect("out/b", "new");
    outdir_done(&o);
}

static void removes_halves(void **state)
{
    (void)state;
    struct outdir o;
    assert_int_equal(outdir_open(&o, out, &job), 0);
    outdir_begin(&o, "b", 6);
    outdir_write(&o, "abc", 3);
    outdir_done(&o);
    assert_int_equal(entries("out"), 0);
    assert_int_equal(outdir_open(&o, out, &job), 0);
    outdir_begin(&o, "b", 2);
    outdir_write(&o, "abc", 3);
    assert_string_equal(o.error, "--output-dir: b is longer than announced");
    outdir_write(&o, "abc", 3);
    outdir_begin(&o, "output/x", 0); // nothing after a failure
    assert_int_equal(entries("out"), 0);
    outdir_done(&o);
}

static void believes_no_name(void **state)
{
    (void)state;
    static const char *const names[] = {"c",        "../b",          "/etc/passwd", "",
                                        "output/d", "output/d/../x", "./b",         ".isle-0"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct outdir o;
        assert_int_equal(outdir_open(&o, out, &job), 0);
        outdir_begin(&o, names[i], 1);
        outdir_write(&o, "x", 1);
        assert_string_equal(o.error, "--output-dir: the service sent a file nobody asked for");
        outdir_done(&o);
    }
    assert_int_equal(entries("out"), 0);
}

static void follows_no_link(void **state)
{
    (void)state;
    struct outdir o;
    assert_int_equal(mkdir(out, 0755), 0);
    assert_int_equal(mkdir(below("precious"), 0755), 0);
    AUTO_CLOSE int fd = open(below("precious/x"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_int_equal(fd_write_all(fd, "mine", 4), 0);
    assert_int_equal(symlink("../precious/x", below("out/b")), 0);
    assert_int_equal(symlink("../precious", below("out/output")), 0);
    assert_int_equal(outdir_open(&o, out, &job), 0);
    outdir_begin(&o, "b", 1);
    outdir_write(&o, "!", 1);
    assert_string_equal(o.error, "");
    expect("out/b", "!"); // the link itself was replaced
    outdir_begin(&o, "output/x", 1);
    outdir_write(&o, "!", 1);
    assert_string_equal(o.error,
                        "--output-dir: output/x: a link or a file stands where a folder must be");
    outdir_done(&o);
    expect("precious/x", "mine");
    assert_int_equal(entries("precious"), 1);
}

static void without_a_folder_nothing_is_written(void **state)
{
    (void)state;
    struct outdir o;
    assert_int_equal(outdir_open(&o, NULL, &job), 0);
    outdir_begin(&o, "b", 1);
    outdir_write(&o, "x", 1);
    assert_string_equal(o.error, "");
    outdir_done(&o);
    assert_int_equal(outdir_open(&o, "/no/such/folder", &job), -ENOENT);
    assert_int_equal(outdir_open(&o, "/etc/passwd", &job), -ENOTDIR);
    outdir_done(&o);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(root, "/tmp/isle-test-XXXXXX");
    if (!mkdtemp(root)) {
        return -1;
    }
    snprintf(out, sizeof out, "%s/out", root);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {
        "out/output/d/a.bin", "out/output/d", "out/output", "out/b", "out",
        "precious/x",         "precious"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        remove(below(names[i]));
    }
    unlink(below("out/output"));
    return rmdir(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_whole_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(removes_halves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(believes_no_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(follows_no_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_folder_nothing_is_written, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("outdir", tests, NULL, NULL);
}
