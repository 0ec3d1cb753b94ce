// A download here: whole or not at all, no link followed, nothing left behind.
#include "base/fd.h"
#include "client/local.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/isle-local-XXXXXX");
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") || system(command);
}

static size_t count(const char *path)
{
    size_t n = 0;
    DIR *d = opendir(path);
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n - 2;
}

static void whole_or_not_at_all(void **state)
{
    (void)state;
    struct local l;
    char sum[SHA256_HEX], text[10] = "";
    assert_int_equal(local_begin(&l, "a", "ignored"), 0);
    assert_int_equal(local_add(&l, "abc", 3), 0);
    assert_int_not_equal(access("a", F_OK), 0);
    local_end(&l, sum);
    assert_string_equal(sum, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(local_commit(&l), 0);
    local_drop(&l);
    assert_int_equal(fd_read_at(AT_FDCWD, "a", text, sizeof text), 3);
    assert_string_equal(text, "abc");
    assert_int_equal(local_begin(&l, "a", "ignored"), 0);
    assert_int_equal(local_add(&l, "other", 5), 0);
    local_drop(&l);
    assert_int_equal(fd_read_at(AT_FDCWD, "a", text, sizeof text), 3);
    assert_int_equal(count("."), 1);
}

static void into_a_folder_under_its_name(void **state)
{
    (void)state;
    struct local l;
    assert_int_equal(mkdir("d", 0755), 0);
    assert_int_equal(local_begin(&l, "d", "base"), 0);
    assert_int_equal(local_commit(&l), 0);
    local_drop(&l);
    assert_int_equal(access("d/base", F_OK), 0);
    static const char *const wrong[][2] = {{"d", ".."}, {"d", ""}, {"d/../x/", "b"}, {"d/", "."}};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_true(local_begin(&l, wrong[i][0], wrong[i][1]) < 0);
        local_drop(&l);
    }
    assert_int_equal(mkdir("d/sub", 0755), 0);
    assert_int_equal(local_begin(&l, "d/sub", "x"), 0); // in it
    local_drop(&l);
    assert_int_equal(local_begin(&l, "d", "sub"), 0); // it may yet become sub.zip
    assert_int_equal(local_commit(&l), -EISDIR);
    local_drop(&l);
    assert_int_equal(local_begin(&l, "d", "sub"), 0);
    assert_int_equal(local_is_archive(&l), 0);
    assert_int_equal(local_commit(&l), 0);
    local_drop(&l);
    assert_int_equal(access("d/sub.zip", F_OK), 0);
    assert_int_equal(local_begin(&l, "nowhere/x", "b"), -ENOENT);
    local_drop(&l);
    assert_int_equal(count("d"), 3);
}

static void a_link_is_replaced(void **state)
{
    (void)state;
    struct local l;
    struct stat st;
    assert_int_equal(symlink("target", "link"), 0);
    assert_int_equal(local_begin(&l, "link", "b"), 0);
    assert_int_equal(local_add(&l, "x", 1), 0);
    assert_int_equal(local_commit(&l), 0);
    local_drop(&l);
    assert_int_equal(lstat("link", &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_not_equal(access("target", F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whole_or_not_at_all, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(into_a_folder_under_its_name, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_link_is_replaced, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
