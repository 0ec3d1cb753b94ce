// Removal of hostile trees, on the real file system of the temporary folder.
#include "base/fd.h"
#include "base/tree.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

static char top_path[64];
static int top = -1;

static int setup(void **state)
{
    (void)state;
    // In memory where there is such a place: ext4 keeps away from inode numbers that were freed in
    // the last minutes, and the second run in a row would spend half a minute in that search.
    snprintf(top_path, sizeof top_path, "/dev/shm/isle-tree-XXXXXX");
    if (!mkdtemp(top_path)) {
        snprintf(top_path, sizeof top_path, "/tmp/isle-tree-XXXXXX");
        if (!mkdtemp(top_path)) {
            return -1;
        }
    }
    top = open(top_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return top < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    top = fd_close(top);
    return rmdir(top_path); // fails when something is left
}

static void put(int dir, const char *name)
{
    AUTO_CLOSE int fd = openat(dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
}

static void make_chain(int levels)
{
    int dir = dup(top);
    for (int i = 0; i < levels; i++) {
        assert_int_equal(mkdirat(dir, "d", 0700), 0);
        int next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        if (i % 1000 == 0) {
            put(next, "f");
        }
        close(dir);
        dir = next;
    }
    close(dir);
}

static void test_empty_folder(void **state)
{
    (void)state;
    assert_int_equal(tree_empty(top), 0);
    assert_int_equal(tree_remove_at(top, "nothing"), 0);
}

static void test_deep_chain(void **state)
{
    (void)state;
    // deep enough for many rounds of flattening; a disk journal makes each level cost milliseconds
    make_chain(getenv("ISLE_LONG") ? 100000 : 3000);
    assert_int_equal(tree_empty(top), 0);
}

static void test_names_of_our_own_are_taken(void **state)
{
    (void)state;
    char name[32];
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, ".isle-%d", i);
        put(top, name);
    }
    make_chain(100);
    assert_int_equal(tree_empty(top), 0);
}

static void test_wide_and_bushy(void **state)
{
    (void)state;
    char name[64];
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "file %d", i);
        put(top, name);
    }
    for (int i = 0; i < 30; i++) {
        for (int j = -1; j < 10; j++) {
            snprintf(name, sizeof name, j < 0 ? "b%d" : "b%d/%d", i, j);
            assert_int_equal(mkdirat(top, name, 0755), 0);
        }
    }
    assert_int_equal(tree_empty(top), 0);
}

static void test_odd_names_and_kinds(void **state)
{
    (void)state;
    char longest[256];
    memset(longest, 'x', 255);
    longest[255] = '\0';
    put(top, longest);
    put(top, "new\nline");
    put(top, "\xff\xfe");
    put(top, "-rf");
    put(top, " ");
    put(top, "...");
    assert_int_equal(mkfifoat(top, "pipe", 0), 0);
    assert_int_equal(symlinkat("missing", top, "dangling"), 0);
    assert_int_equal(tree_empty(top), 0);
}

static void test_in_pieces(void **state)
{
    (void)state;
    struct tree_removal r = {0};
    tree_end(&r);
    char name[32];
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "file %d", i);
        put(top, name);
    }
    make_chain(100);
    assert_int_equal(tree_begin(&r, top), 0);
    int steps = 1;
    while (!tree_step(&r, 10)) {
        steps++;
    }
    assert_int_equal(r.error, 0);
    assert_in_range(steps, 60, 1000); // 600 entries, each read at most twice, and the rewinds
    make_chain(100);
    assert_int_equal(tree_begin(&r, top), 0);
    assert_int_equal(tree_step(&r, 30), 0);
    tree_end(&r); // given up in the middle: another removal takes over
    assert_int_equal(tree_empty(top), 0);
}

static void test_modes(void **state)
{
    (void)state;
    static const char *const folder[] = {"a", "a/b", "a/b/c"};
    for (size_t i = 0; i < ARRAY_LEN(folder); i++) {
        assert_int_equal(mkdirat(top, folder[i], 0700), 0);
    }
    put(top, "a/b/c/f");
    for (size_t i = ARRAY_LEN(folder); i-- > 0;) {
        assert_int_equal(fchmodat(top, folder[i], i == 1 ? 01000 : 0, 0), 0);
    }
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(tree_empty(top), 0);
}

static void test_follows_no_link(void **state)
{
    (void)state;
    char outside[] = "/tmp/isle-out-XXXXXX";
    assert_non_null(mkdtemp(outside));
    AUTO_CLOSE int out = open(outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(out, "kept");
    assert_int_equal(mkdirat(top, "d", 0700), 0);
    assert_int_equal(symlinkat(outside, top, "d/link"), 0);
    assert_int_equal(symlinkat(outside, top, "link"), 0);
    assert_int_equal(tree_remove_at(top, "link"), 0);
    assert_int_equal(tree_empty(top), 0);
    assert_int_equal(faccessat(out, "kept", F_OK, 0), 0);
    AUTO_CLOSE int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(tree_remove_at(tmp, outside + strlen("/tmp/")), 0);
    assert_int_equal(access(outside, F_OK), -1);
}

// In a child with its own mount namespace: 0, or the line that failed.
static int mount_child(void)
{
    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
        return 77;
    }
    // not by `top`: that descriptor belongs to a mount of the old namespace
    if (chdir(top_path) || mkdir("d", 0700) || mkdir("d/m", 0700) || mkdir("d/bind", 0700) ||
        mkdir("src", 0700) || mkdir("src/kept", 0700)) {
        return __LINE__;
    }
    if (mount("tmpfs", "d/m", "tmpfs", 0, NULL) || mkdir("d/m/kept", 0700) ||
        mount("src", "d/bind", NULL, MS_BIND, NULL)) {
        return __LINE__;
    }
    AUTO_CLOSE int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree_remove_at(here, "d") != -EBUSY) {
        return __LINE__;
    }
    if (access("d/m/kept", F_OK) || access("d/bind/kept", F_OK)) {
        return __LINE__;
    }
    return umount2("d/m", 0) || umount2("d/bind", 0) ? __LINE__ : 0;
}

static void test_enters_no_mount(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(mount_child());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(tree_empty(top), 0);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_empty_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deep_chain, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_of_our_own_are_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wide_and_bushy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_odd_names_and_kinds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_in_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_modes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_follows_no_link, setup, teardown),
        cmocka_unit_test_setup_teardown(test_enters_no_mount, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
