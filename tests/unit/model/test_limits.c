// The table of limits: bounds, formatting, who set a value.
#include "base/fd.h"
#include "model/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void defaults_are_within_their_own_bounds(void **state)
{
    (void)state;
    struct limits l;
    char text[256];
    limits_init(&l);
    for (int i = 0; i < LIMIT_COUNT; i++) {
        const struct limit_spec *s = &limit_specs[i];
        assert_non_null(s->name);
        assert_int_equal(limit_find(s->name), i);
        assert_int_equal(l.source[i], LIMIT_FROM_DEFAULT);
        assert_true((s->optional && l.value[i] == 0) ||
                    limit_check((enum limit)i, l.value[i], text, sizeof text) == 0);
    }
    assert_int_equal(limit_find("timeout"), -1);
}

static void documented_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t initial, min, max;
    } doc[] = {
        {"timeout_seconds", 30000, 1000, 600000},
        {"cpu_seconds", 0, 1000, 3600000},
        {"memory_mb", 512, 32, 65536},
        {"pids", 128, 8, 4096},
        {"nofile", 1024, 64, 65536},
        {"disk_mb", 1024, 0, 102400},
        {"max_stdout_kb", 256, 16, 8192},
        {"max_stderr_kb", 256, 16, 8192},
    };
    for (size_t i = 0; i < ARRAY_LEN(doc); i++) {
        int which = limit_find(doc[i].name);
        assert_true(which >= 0);
        assert_int_equal(limit_specs[which].initial, doc[i].initial);
        assert_int_equal(limit_specs[which].min, doc[i].min);
        assert_int_equal(limit_specs[which].max, doc[i].max);
    }
}

static void messages_name_value_and_bound(void **state)
{
    (void)state;
    char text[256];
    assert_int_not_equal(limit_check(LIMIT_TIMEOUT, 601000, text, sizeof text), 0);
    assert_string_equal(text, "timeout_seconds: 601 is above the maximum of 600 s");
    assert_int_not_equal(limit_check(LIMIT_CPUS, 5, text, sizeof text), 0);
    assert_string_equal(text, "cpus: 0.05 is below the minimum of 0.1 CPUs");
    assert_int_not_equal(limit_check(LIMIT_DISK, -1, text, sizeof text), 0);
    assert_string_equal(text, "disk_mb: -1 is below the minimum of 0 MB");
}

static void formats_as_written(void **state)
{
    (void)state;
    static const struct {
        enum limit which;
        int64_t value;
        const char *text;
    } cases[] = {
        {LIMIT_TIMEOUT, 2500, "2.5"}, {LIMIT_TIMEOUT, 30000, "30"}, {LIMIT_TIMEOUT, 1001, "1.001"},
        {LIMIT_CPUS, 150, "1.5"},     {LIMIT_CPUS, 5, "0.05"},      {LIMIT_TIMEOUT, -1500, "-1.5"},
        {LIMIT_MEMORY, 512, "512"},   {LIMIT_TIMEOUT, 0, "0"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[64];
        limit_format(cases[i].which, cases[i].value, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

static void the_smallest_wins_and_is_named(void **state)
{
    (void)state;
    struct limits l;
    limits_init(&l);
    limits_lower(&l, LIMIT_MEMORY, 1024, LIMIT_FROM_HOST);
    assert_int_equal(l.value[LIMIT_MEMORY], 512);
    assert_int_equal(l.source[LIMIT_MEMORY], LIMIT_FROM_DEFAULT);
    limits_lower(&l, LIMIT_MEMORY, 256, LIMIT_FROM_TEAM);
    limits_lower(&l, LIMIT_MEMORY, 256, LIMIT_FROM_HOST);
    assert_int_equal(l.value[LIMIT_MEMORY], 256);
    assert_int_equal(l.source[LIMIT_MEMORY], LIMIT_FROM_TEAM);
    limits_lower(&l, LIMIT_CPU, 10000, LIMIT_FROM_HOST); // from none
    assert_int_equal(l.value[LIMIT_CPU], 10000);
    assert_string_equal(limit_source_names[l.source[LIMIT_CPU]], "host");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_within_their_own_bounds),
        cmocka_unit_test(documented_ranges),
        cmocka_unit_test(messages_name_value_and_bound),
        cmocka_unit_test(formats_as_written),
        cmocka_unit_test(the_smallest_wins_and_is_named),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
