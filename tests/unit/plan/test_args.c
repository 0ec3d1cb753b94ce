// args.h: what is packed comes out, and a hostile block does not.
#include "base/fd.h"
#include "plan/args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char data[ARGS_MAX_BYTES + 8];
static char *argv[ARGS_MAX_ARGV + 1], *env[ARGS_MAX_ENV + 1], *cwd;

static int unpack(int fd, ssize_t *ret_len)
{
    *ret_len = fd_read_full(fd, data, sizeof data);
    return args_parse(data, (size_t)*ret_len, argv, env, &cwd);
}

static void test_round_trip(void **state)
{
    (void)state;
    const char *const a[] = {"sh", "-c", "", "\xff\x01 \n", NULL}, *const v[] = {"A=", "B=2", NULL},
                      *const none[] = {NULL};
    ssize_t len;
    AUTO_CLOSE int fd = args_pack(a, v, "/workspace/x y");
    assert_true(fd >= 0);
    assert_int_equal(unpack(fd, &len), 0);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(argv[i], a[i]);
    }
    assert_null(argv[4]);
    assert_string_equal(env[1], "B=2");
    assert_null(env[2]);
    assert_string_equal(cwd, "/workspace/x y");
    assert_int_equal(write(fd, "x", 1), -1); // sealed
    AUTO_CLOSE int bare = args_pack(a, none, "/");
    assert_int_equal(unpack(bare, &len), 0);
    assert_null(env[0]);
}

static void test_bounds(void **state)
{
    (void)state;
    static const char *many[ARGS_MAX_ARGV + 2];
    static char big[ARGS_MAX_BYTES];
    const char *const none[] = {NULL}, *const empty[] = {"", NULL}, *const ok[] = {"a", NULL};
    memset(big, 'x', sizeof big - 1);
    const char *const huge[] = {big, NULL};
    for (int i = 0; i < ARGS_MAX_ARGV + 1; i++) {
        many[i] = "a";
    }
    assert_int_equal(args_pack(none, none, "/"), -EINVAL);
    assert_int_equal(args_pack(NULL, none, "/"), -EINVAL);
    assert_int_equal(args_pack(empty, none, "/"), -EINVAL);
    assert_int_equal(args_pack(ok, none, NULL), -EINVAL);
    assert_int_equal(args_pack(huge, none, "/"), -E2BIG);
    assert_int_equal(args_pack(ok, huge, "/"), -E2BIG);
    assert_int_equal(args_pack(ok, none, big), -E2BIG);
    assert_int_equal(args_pack(many, none, "/"), -E2BIG);
    many[ARGS_MAX_ARGV] = NULL;
    ssize_t len;
    AUTO_CLOSE int fd = args_pack(many, NULL, "/");
    assert_true(fd >= 0);
    assert_int_equal(unpack(fd, &len), 0);
    assert_null(argv[ARGS_MAX_ARGV]);
}

static void expect_bad(const void *block, size_t len)
{
    memcpy(data, block, len);
    assert_int_equal(args_parse(data, len, argv, env, &cwd), -EINVAL);
}

static void test_hostile(void **state)
{
    (void)state;
    const char *const a[] = {"sh", "x", NULL}, *const v[] = {"A=1", NULL};
    static char good[256], copy[256];
    AUTO_CLOSE int fd = args_pack(a, v, "/w");
    ssize_t n = fd_read_full(fd, good, sizeof good);
    assert_true(n > 0);
    size_t len = (size_t)n;
    for (size_t cut = 0; cut < len; cut++) {
        expect_bad(good, cut);
    }
    expect_bad(good, len + 1);
    const struct {
        size_t offset;
        uint32_t value;
    } fields[] = {
        {offsetof(struct args_header, magic), 0},
        {offsetof(struct args_header, argc), 0},
        {offsetof(struct args_header, argc), 3},
        {offsetof(struct args_header, argc), 1},
        {offsetof(struct args_header, argc), ARGS_MAX_ARGV + 1},
        {offsetof(struct args_header, argc), UINT32_MAX},
        {offsetof(struct args_header, envc), UINT32_MAX},
        {offsetof(struct args_header, envc), ARGS_MAX_ENV + 1},
        {offsetof(struct args_header, envc), 0},
        {offsetof(struct args_header, bytes), 0},
        {offsetof(struct args_header, bytes), UINT32_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        memcpy(copy, good, len);
        memcpy(copy + fields[i].offset, &fields[i].value, 4);
        expect_bad(copy, len);
    }
    memcpy(copy, good, len);
    copy[len - 1] = 'x'; // no end
    expect_bad(copy, len);
    memcpy(copy, good, len);
    copy[sizeof(struct args_header)] = '\0'; // then the program has no name
    expect_bad(copy, len);
    memcpy(copy, good, len);
    copy[len - 3] = 'w'; // "/w": now relative
    expect_bad(copy, len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
