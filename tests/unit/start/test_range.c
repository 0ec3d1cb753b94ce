// Which uids an instance gets, on made-up hosts.
#include "fixture.h"
#include "plan/plan.h"
#include "start/range.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const char full_map[] = "         0          0 4294967295\n";

static uint32_t base_of(uint32_t k)
{
    uint32_t base = 0, count;
    assert_int_equal(range_of_instance(fixture_root, k, &base, &count), 0);
    return base;
}

static void test_full_map(void **state)
{
    (void)state;
    fixture_put("proc/self/uid_map", full_map);
    uint32_t first = base_of(0);
    assert_true(first >= 0x70000000); // above what systemd and subordinate ids use
    for (uint32_t k = 1; k < RANGE_MAX_INSTANCES; k++) {
        assert_int_equal(base_of(k), first + k * PLAN_UID_COUNT);
    }
    uint32_t base = 7, count;
    assert_true((uint64_t)base_of(RANGE_MAX_INSTANCES - 1) + PLAN_UID_COUNT < UINT32_C(1) << 31);
    assert_int_equal(range_of_instance(fixture_root, RANGE_MAX_INSTANCES, &base, &count), -ERANGE);
    assert_int_equal(base, 7);
}

// Every file that may give ids away, at both ends of the range.
static void test_entries_touch(void **state)
{
    (void)state;
    static const struct {
        const char *file, *format;
        int64_t from_base; // of the number in the line
        int expected;
    } cases[] = {
        {"etc/passwd", "a:x:%u:1::/:/bin/sh\n", 0, -EBUSY},
        {"etc/passwd", "a:x:%u:1::/:/bin/sh\n", PLAN_UID_COUNT - 1, -EBUSY},
        {"etc/passwd", "a:x:%u:1::/:/bin/sh\n", PLAN_UID_COUNT, 0},
        {"etc/passwd", "a:x:%u:1::/:/bin/sh\n", -1, 0},
        {"etc/passwd", "a::%u:1::/:/bin/sh\n", 5, -EBUSY},
        {"etc/passwd", "a:x:1:%u::/:/bin/sh\n", 5, 0}, // a gid: group has those
        {"etc/group", "g:x:%u:\n", 5, -EBUSY},
        {"etc/subuid", "u:%u:65536\n", -65536, 0},
        {"etc/subuid", "u:%u:65536\n", -65535, -EBUSY},
        {"etc/subuid", "u:%u:65536\n", PLAN_UID_COUNT - 1, -EBUSY},
        {"etc/subuid", "u:%u:65536\n", PLAN_UID_COUNT, 0},
        {"etc/subgid", "u:%u:1\n", 77, -EBUSY},
        {"etc/subgid", "no number\n# %u\n", 77, 0},
        {"etc/subgid", "x\n\n:::\nu:%u:1\n", 77, -EBUSY},
    };
    fixture_put("proc/self/uid_map", full_map);
    uint32_t base = base_of(3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[128];
        uint32_t got, count;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(line, sizeof line, cases[i].format, (unsigned)(base + cases[i].from_base));
#pragma GCC diagnostic pop
        fixture_put(cases[i].file, line);
        if (range_of_instance(fixture_root, 3, &got, &count) != cases[i].expected) {
            fail_msg("case %zu: %s %s", i, cases[i].file, line);
        }
        fixture_put(cases[i].file, "");
    }
}

static void test_small_maps(void **state)
{
    (void)state;
    uint32_t base, count;
    // a container with 65536 ids: half of them, for every instance
    fixture_put("proc/self/uid_map", "0 100000 65536\n");
    for (uint32_t k = 0; k < 3; k++) {
        assert_int_equal(range_of_instance(fixture_root, k, &base, &count), 0);
        assert_int_equal(base, RANGE_SMALL_FIRST);
        assert_int_equal(count, RANGE_SMALL);
    }
    fixture_put("etc/passwd", "a:x:40000:1::/:/bin/sh\n");
    assert_int_equal(range_of_instance(fixture_root, 0, &base, &count), -EBUSY);
    fixture_put("etc/passwd", "");
    fixture_put("proc/self/uid_map", "0 100000 60000\n");
    assert_int_equal(range_of_instance(fixture_root, 0, &base, &count), -ERANGE);
    // four ranges above the container's own accounts
    fixture_put("proc/self/uid_map", "0 100000 327680\n");
    assert_int_equal(base_of(0), 65536);
    assert_int_equal(base_of(3), 4 * 65536);
    assert_int_equal(range_of_instance(fixture_root, 4, &base, &count), -ERANGE);
    // several extents: the largest
    fixture_put("proc/self/uid_map", "0 1000 1\n1 100000 65536\n200000 300000 131072\n");
    assert_int_equal(base_of(1), 265536);
    // ends inside the preferred ranges
    fixture_put("proc/self/uid_map", "0 0 2013265921\n");
    assert_int_equal(base_of(0), 65536);
    fixture_put("proc/self/uid_map", "");
    assert_int_equal(range_of_instance(fixture_root, 0, &base, &count), -ERANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_full_map, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_entries_touch, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_small_maps, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
