// The folder of an instance: made, emptied, kept; what is not ours is left alone.
#include "base/fd.h"
#include "fixture.h"
#include "start/folders.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cmocka.h>

#define ME ((struct folders_owner){geteuid(), geteuid()})
#define SOMEBODY ((struct folders_owner){geteuid() + 1, geteuid() + 1})

#define K "7"

static bool there(const char *path)
{
    return !faccessat(fixture_root, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

static void test_made_and_emptied(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(folders_empty(fixture_root, K, ME), 0); // there is none
    assert_int_equal(folders_make(fixture_root, K, ME), 0);
    assert_int_equal(folders_make(fixture_root, K, ME), 0); // and again
    assert_int_equal(fstatat(fixture_root, "7/once", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_false(folders_may_be_used(fixture_root, K));
    fixture_put("7/once/r1/w/file", "left");
    fixture_put("7/kept/s1/t/file", "left");
    fixture_put("7/other", "what a service that was taken over may put here");
    assert_true(folders_may_be_used(fixture_root, K));
    assert_int_equal(folders_empty(fixture_root, K, ME), 0);
    assert_true(there("7/once") && there("7/kept"));
    assert_false(there("7/once/r1") || there("7/kept/s1") || there("7/other"));
    assert_false(folders_may_be_used(fixture_root, K));
}

// Many live with it, one empties it alone.
static void test_locked(void **state)
{
    (void)state;
    assert_int_equal(folders_lock(fixture_root, K, LOCK_EX), -ENOENT);
    assert_int_equal(folders_make(fixture_root, K, ME), 0);
    AUTO_CLOSE int one = folders_lock(fixture_root, K, LOCK_SH);
    AUTO_CLOSE int two = folders_lock(fixture_root, K, LOCK_SH);
    assert_true(one >= 0 && two >= 0);
    one = fd_close(one);
    assert_int_equal(folders_lock(fixture_root, K, LOCK_EX), -EWOULDBLOCK);
    two = fd_close(two);
    AUTO_CLOSE int alone = folders_lock(fixture_root, K, LOCK_EX);
    assert_true(alone >= 0);
    assert_int_equal(folders_lock(fixture_root, K, LOCK_SH), -EWOULDBLOCK);
}

// A service that was taken over owns the folder: what it may have made of once/ and kept/.
static void test_tampered(void **state)
{
    (void)state;
    assert_int_equal(folders_make(fixture_root, K, ME), 0);
    fixture_put("outside/kept", "stays");
    assert_int_equal(unlinkat(fixture_root, "7/once", AT_REMOVEDIR), 0);
    assert_int_equal(unlinkat(fixture_root, "7/kept", AT_REMOVEDIR), 0);
    assert_int_equal(symlinkat("../outside", fixture_root, "7/once"), 0);
    fixture_put("7/kept", "a file");
    assert_int_equal(folders_empty(fixture_root, K, ME), 0);
    assert_true(there("outside/kept"));
    assert_false(there("7/once") || there("7/kept"));
    assert_int_equal(folders_make(fixture_root, K, ME), 0);
    assert_int_equal(fchmodat(fixture_root, "7/once", 0, 0), 0);
    assert_int_equal(folders_make(fixture_root, K, ME), geteuid() == 0 ? 0 : -EACCES);
}

static void test_of_somebody_else(void **state)
{
    (void)state;
    fixture_put("7/once/mine/file", "stays");
    assert_int_equal(folders_empty(fixture_root, K, SOMEBODY), -EEXIST);
    assert_int_equal(folders_make(fixture_root, K, SOMEBODY), -EEXIST);
    assert_true(there("7/once/mine/file"));
    // a file, a link
    fixture_put("8", "");
    assert_int_equal(folders_empty(fixture_root, "8", ME), -EEXIST);
    assert_int_equal(symlinkat("7", fixture_root, "9"), 0);
    assert_int_equal(folders_empty(fixture_root, "9", ME), -EEXIST);
    assert_int_equal(folders_make(fixture_root, "9", ME), -EEXIST);
    assert_true(there("7/once/mine/file"));
}

// A start that was killed between making the folder and giving it away.
static void test_half_made(void **state)
{
    (void)state;
    fixture_folder("7");
    assert_int_equal(folders_empty(fixture_root, K, SOMEBODY), 0);
    assert_false(there("7"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_made_and_emptied), TEST(test_locked),    TEST(test_tampered),
        TEST(test_of_somebody_else), TEST(test_half_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
