// The start sequence as a table: whole, and in the order that its safety depends on.
#include "start/start.h"
#include "start/steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static size_t place(const char *name)
{
    for (size_t i = 0; i < start_n_steps; i++) {
        if (!strcmp(start_steps[i].name, name)) {
            return i;
        }
    }
    fail_msg("no step %s", name);
    return 0;
}

static void test_table_is_whole(void **state)
{
    (void)state;
    struct start_error error;
    for (size_t i = 0; i < start_n_steps; i++) {
        const struct start_step *step = &start_steps[i];
        assert_true(strlen(step->name) > 0 && strlen(step->name) < sizeof error.step);
        assert_true(step->where < START_N_WHERE);
        assert_non_null(step->run);
        assert_true(step->who && !(step->who & ~(uint32_t)START_FOR_ALL));
        assert_true(strlen(step->why) > 20);
        assert_int_equal(step->why[strlen(step->why) - 1], '.');
        assert_int_equal(place(step->name), i); // names are unique
    }
}

// {earlier, later}, each with its reason.
static void test_order(void **state)
{
    (void)state;
    static const char *const order[][2] = {
        {"rights", "instance"},       // nothing is made by who may not
        {"instance", "folders"},      // leftovers are gone before the number is used
        {"instance", "groups"},       //
        {"groups", "child"},          // born inside its limits
        {"child", "session"},         //
        {"session", "mounts"},        // joined v1 groups while still host root
        {"mounts", "user-namespace"}, // needs host root
        {"devices", "user-namespace"},
        {"user-namespace", "maps"},
        {"maps", "ids"},
        {"ids", "self-check"}, //
        // an account's: nothing is mounted before it is root of a namespace
        {"child", "born-inside"},
        {"born-inside", "subordinate-maps"},
        {"born-inside", "single-map"},
        {"subordinate-maps", "no-groups"},
        {"no-groups", "ids"},
        {"ids", "own-mounts"},
        {"own-mounts", "own-shares"}, // its proc
        {"own-mounts", "own-devices"},
        {"own-shares", "self-check"},
        {"own-devices", "self-check"},
        {"drop-rights", "filter"},
        {"self-check", "launcher"}, // nothing starts unproven
        {"launcher", "ready"},      //
        {"ids", "re-exec"},         // the new image has never been host root
        {"launcher", "re-exec"},    // with the descriptors that the service shall not have
        {"re-exec", "tree"},        //
        {"tree", "drop"},           // mounting needs inner root
        {"drop", "filter"},         // the filter forbids what the drop calls, needs no_new_privs
        {"filter", "undo"},         // everything locked is tried
        {"ready", "serving"},       //
        {"undo", "serving"},        // no job before the proof
        {"serving", "service"},     //
    };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (place(order[i][0]) >= place(order[i][1])) {
            fail_msg("%s must come before %s", order[i][0], order[i][1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_is_whole),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
