// Every uid is given once, and a freed one comes back last.
#include "place.h"

#include "workspace/uids.h"

static void all_are_given_once(void **state)
{
    (void)state;
    struct uids *u = calloc(1, sizeof *u);
    for (uint32_t i = 0; i < UIDS_COUNT; i++) {
        assert_int_equal(uids_take(u), PLAN_UID_WORKSPACE_0 + i);
    }
    assert_int_equal(uids_take(u), 0);
    uids_give(u, PLAN_UID_WORKSPACE_0 + 77);
    uids_give(u, 0);
    uids_give(u, PLAN_UID_WORKSPACE_END);
    assert_int_equal(uids_take(u), PLAN_UID_WORKSPACE_0 + 77);
    assert_int_equal(uids_take(u), 0);
    free(u);
}

static void a_freed_one_comes_back_last(void **state)
{
    (void)state;
    struct uids *u = calloc(1, sizeof *u);
    uint32_t first = uids_take(u);
    uids_give(u, first);
    assert_int_not_equal(uids_take(u), first);
    free(u);
}

static void one_of_before_is_claimed(void **state)
{
    (void)state;
    struct uids *u = calloc(1, sizeof *u);
    assert_int_equal(uids_claim(u, PLAN_UID_WORKSPACE_0), 0);
    assert_int_equal(uids_claim(u, PLAN_UID_WORKSPACE_0), -EBUSY);
    assert_int_equal(uids_take(u), PLAN_UID_WORKSPACE_0 + 1);
    assert_int_equal(uids_claim(u, PLAN_UID_WORKSPACE_0 - 1), -ERANGE);
    assert_int_equal(uids_claim(u, PLAN_UID_WORKSPACE_END), -ERANGE);
    u->count = 10;
    assert_int_equal(uids_claim(u, PLAN_UID_WORKSPACE_0 + 10), -ERANGE);
    free(u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_given_once),
        cmocka_unit_test(a_freed_one_comes_back_last),
        cmocka_unit_test(one_of_before_is_claimed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
