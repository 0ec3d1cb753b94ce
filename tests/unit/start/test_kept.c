// What a service keeps: the folder's lock, the record of ids, and giving a tree to other ids.
#include "base/fd.h"
#include "base/tree.h"
#include "fixture.h"
#include "start/folders.h"
#include "start/kept.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cmocka.h>

static const struct kept_ids a = {3, 500000, 600000, 65536}, b = {4, 700000, 800000, 65536};

static int make(void)
{
    int fd = kept_open(fixture_root);
    assert_true(fd >= 0);
    return fd;
}

static void test_opened(void **state)
{
    (void)state;
    AUTO_CLOSE int fd = make();
    AUTO_CLOSE int again = make();
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(unlinkat(fixture_root, FOLDERS_SERVE, AT_REMOVEDIR), 0);
    assert_int_equal(symlinkat("/tmp", fixture_root, FOLDERS_SERVE), 0);
    assert_int_equal(kept_open(fixture_root), -EEXIST);
    assert_int_equal(unlinkat(fixture_root, FOLDERS_SERVE, 0), 0);
    fixture_put(FOLDERS_SERVE, "a file");
    assert_int_equal(kept_open(fixture_root), -EEXIST);
}

// One start alone, then those that live with it; nobody empties or claims it meanwhile.
static void test_locked(void **state)
{
    (void)state;
    AUTO_CLOSE int one = make();
    AUTO_CLOSE int two = make();
    assert_int_equal(kept_lock(one), 0);
    assert_int_equal(kept_share(two), -EWOULDBLOCK);
    assert_int_equal(kept_share(one), 0);
    assert_int_equal(kept_share(two), 0); // the launcher's own
    one = fd_close(one);
    AUTO_CLOSE int three = make();
    assert_int_equal(flock(three, LOCK_EX | LOCK_NB), -1);
    assert_int_equal(kept_lock(three), -EWOULDBLOCK); // after its patience
    two = fd_close(two);
    assert_int_equal(kept_lock(three), 0);
}

static void test_record(void **state)
{
    (void)state;
    AUTO_CLOSE int fd = make();
    struct kept_record r = {.n = 9};
    assert_int_equal(kept_read(fd, &r), 0);
    assert_int_equal(r.n, 0);
    const struct kept_record two = {.ids = {a, b}, .n = 2};
    assert_int_equal(kept_write(fd, &two), 0);
    assert_int_equal(kept_read(fd, &r), 0);
    assert_int_equal(r.n, 2);
    assert_memory_equal(r.ids, two.ids, 2 * sizeof a);
    const struct kept_record one = {.ids = {b}, .n = 1};
    assert_int_equal(kept_write(fd, &one), 0);
    assert_int_equal(kept_read(fd, &r), 0);
    assert_int_equal(r.n, 1);
    struct kept_record most = {.n = KEPT_MAX};
    for (size_t i = 0; i < KEPT_MAX; i++) {
        most.ids[i] = (struct kept_ids){999, 4000000000, 4000000000, 65536};
    }
    assert_int_equal(kept_write(fd, &most), 0);
    assert_int_equal(kept_read(fd, &r), 0);
    assert_int_equal(r.n, KEPT_MAX);
    // what a service that was taken over leaves in the places of both files
    assert_int_equal(unlinkat(fd, "instance", 0), 0);
    fixture_put(FOLDERS_SERVE "/instance/x/y", "");
    fixture_put(FOLDERS_SERVE "/instance.new/x/y", "");
    assert_int_equal(kept_read(fd, &r), -EBADMSG);
    assert_int_equal(kept_write(fd, &one), 0);
    assert_int_equal(kept_read(fd, &r), 0);
    assert_int_equal(unlinkat(fd, "instance", 0), 0);
    assert_int_equal(symlinkat("elsewhere", fd, "instance"), 0);
    assert_int_equal(symlinkat("elsewhere", fd, "instance.new"), 0);
    fixture_put(FOLDERS_SERVE "/elsewhere", "stays");
    assert_int_equal(kept_read(fd, &r), -EBADMSG);
    assert_int_equal(kept_write(fd, &one), 0);
    char text[16];
    assert_int_equal(fd_read_at(fd, "elsewhere", text, sizeof text), 5);
    assert_string_equal(text, "stays");
    assert_int_equal(unlinkat(fd, "instance", 0), 0);
    assert_int_equal(mkfifoat(fd, "instance", 0600), 0);
    assert_int_equal(kept_read(fd, &r), -EBADMSG); // and does not wait for a writer
}

static void test_records_that_are_none(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "isle 1\n",
        "isle 2\n1 2 3 4\n",
        "isle 1\n1 2 3\n",
        "isle 1\n1 2 3 4 5\n",
        "isle 1\n1 2 3 0\n",
        "isle 1\n1 4294967295 3 2\n",
        "isle 1\n1 2 4294967295 2\n",
        "isle 1\nx 2 3 4\n",
        "isle 1\n1 2 3 4\nrest",
        "isle 1\n1 2 3 4\n1 2 3 4\n1 2 3 4\n1 2 3 4\n1 2 3 4\n1 2 3 4\n1 2 3 4\n1 2 3 4\n1 2 3 4\n",
    };
    AUTO_CLOSE int fd = make();
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct kept_record r = {.n = 77};
        fixture_put(FOLDERS_SERVE "/instance", texts[i]);
        assert_int_equal(kept_read(fd, &r), -EBADMSG);
        assert_int_equal(r.n, 77);
    }
}

// ---- giving -------------------------------------------------------------------------------------

static void assert_owner(int dir, const char *name, uid_t uid, gid_t gid)
{
    struct stat st;
    assert_int_equal(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_uid, uid);
    assert_int_equal(st.st_gid, gid);
}

static void put_owned(int fd, const char *name, uid_t uid, gid_t gid)
{
    char path[256];
    snprintf(path, sizeof path, FOLDERS_SERVE "/%s", name);
    fixture_put(path, "");
    assert_int_equal(fchownat(fd, name, uid, gid, 0), 0);
}

static void test_given(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    AUTO_CLOSE int fd = make();
    put_owned(fd, "first", 500001, 600001);
    put_owned(fd, "last", 565535, 665535);
    put_owned(fd, "below", 500000, 600000); // inner 0
    put_owned(fd, "above", 565536, 665536);
    put_owned(fd, "mixed", 500005, 0);
    put_owned(fd, "kept/s/w/deep/file", 520480, 620480);
    fixture_put("outside", "");
    assert_int_equal(symlinkat("../outside", fd, "link"), 0);
    assert_int_equal(symlinkat("..", fd, "up"), 0);
    assert_int_equal(fchownat(fd, "link", 520480, 620480, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(fchownat(fd, "kept/s", 520480, 620480, 0), 0);
    assert_int_equal(fchmodat(fd, "kept/s", 0, 0), 0);
    assert_int_equal(fchown(fd, 500001, 600001), 0);
    for (int i = 0; i < 2; i++) { // the second time changes nothing
        assert_int_equal(kept_give(fd, &a, &b), 0);
        assert_owner(fd, ".", 700001, 800001);
        assert_owner(fd, "first", 700001, 800001);
        assert_owner(fd, "last", 765535, 865535);
        assert_owner(fd, "below", 500000, 600000);
        assert_owner(fd, "above", 565536, 665536);
        assert_owner(fd, "mixed", 700005, 0);
        assert_owner(fd, "kept/s", 720480, 820480);
        assert_owner(fd, "kept/s/w/deep/file", 720480, 820480);
        assert_owner(fd, "link", 720480, 820480);
        assert_owner(fixture_root, "outside", 0, 0);
        assert_owner(fixture_root, ".", 0, 0);
    }
}

// Deeper than a path can be long, and than descriptors can be open, with many in each of some.
static void test_given_whatever_it_looks_like(void **state)
{
    (void)state;
    enum { DEPTH = 4000, MIDDLE = 2000, WIDTH = 300 };
    if (geteuid() != 0) {
        skip();
    }
    AUTO_CLOSE int fd = make();
    AUTO_CLOSE int at = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int depth = 0; depth < DEPTH; depth++) {
        for (int i = 0; depth % MIDDLE == 0 && i < WIDTH; i++) {
            char name[16];
            snprintf(name, sizeof name, "n%d", i);
            assert_int_equal(mkdirat(at, name, 0700), 0);
            assert_int_equal(fchownat(at, name, 500007, 600007, 0), 0);
        }
        assert_int_equal(mkdirat(at, "n", 0700), 0);
        assert_int_equal(fchownat(at, "n", 500009, 600009, 0), 0);
        int down = openat(at, "n", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(down >= 0);
        close(at);
        at = down;
    }
    assert_int_equal(kept_give(fd, &a, &b), 0);
    assert_owner(at, ".", 700009, 800009);
    at = fd_close(at);
    AUTO_CLOSE int upper = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int depth = 0; depth <= MIDDLE; depth++) {
        for (int i = 0; depth % MIDDLE == 0 && i < WIDTH; i++) {
            char name[16];
            snprintf(name, sizeof name, "n%d", i);
            assert_owner(upper, name, 700007, 800007);
        }
        int down = openat(upper, "n", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(down >= 0);
        close(upper);
        upper = down;
    }
    assert_int_equal(tree_empty(fd), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_opened), TEST(test_locked),
        TEST(test_record), TEST(test_records_that_are_none),
        TEST(test_given),  TEST(test_given_whatever_it_looks_like),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
