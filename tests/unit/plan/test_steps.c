// The order of a launch, held to its rules. A step that moves for a good reason moves here too.
#include "plan/steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define BEFORE(a, b)                                                                               \
    {                                                                                              \
        PLAN_STEP_##a, PLAN_STEP_##b, #a " before " #b                                             \
    }

static const struct {
    enum plan_step first, then;
    const char *rule;
} rules[] = {
    // limits and membership before anything runs
    BEFORE(slot, groups),
    BEFORE(groups, clone),
    BEFORE(channels, clone),
    BEFORE(limits, order),
    BEFORE(limits, exec),
    // joined while the uid may, then hidden
    BEFORE(pid1_descriptors, fork),
    BEFORE(join_groups, cgroup_namespace),
    BEFORE(join_groups, fork),
    BEFORE(cgroup_namespace, fork),
    BEFORE(network, fork),
    BEFORE(join_groups, shim_identity),
    // nothing outlives the launcher: after birth, and again after each change of credentials
    BEFORE(pid1_parent_death, join_groups),
    BEFORE(pid1_parent_death, fork),
    BEFORE(shim_identity, shim_parent_death),
    BEFORE(shim_parent_death, shim_exec),
    BEFORE(user_namespace, pid2_parent_death),
    BEFORE(capabilities, pid2_parent_death),
    BEFORE(pid2_parent_death, exec),
    // the bounding set goes while there is a right to cut it
    BEFORE(shim_capabilities, shim_identity),
    BEFORE(shim_no_new_privs, shim_exec),
    // mounts: targets first, a tenant's tree last, all before the fences
    BEFORE(proc, root),
    BEFORE(root, fork),
    BEFORE(root, mounts),
    BEFORE(mounts, mount_proc),
    BEFORE(mount_proc, mask_proc),
    BEFORE(mask_proc, mount_tmp),
    BEFORE(mount_tmp, mount_workspace),
    BEFORE(mount_shm, mount_workspace),
    BEFORE(mask_proc, landlock_rules),
    BEFORE(mount_tmp, landlock_rules),
    BEFORE(mount_shm, landlock_rules),
    BEFORE(size_tmp, identity_files),
    BEFORE(size_tmp, mount_workspace),
    BEFORE(mount_sets, mount_workspace),
    BEFORE(mount_workspace, landlock_workspace),
    BEFORE(landlock_workspace, landlock),
    BEFORE(mount_workspace, user_namespace),
    BEFORE(park, receive),
    // as inner root
    BEFORE(loopback, user_namespace),
    BEFORE(hostname, user_namespace),
    BEFORE(oom_score, user_namespace),
    // the launcher checks before it gives
    BEFORE(check, workspace),
    BEFORE(workspace, order),
    BEFORE(session_tmp, order),
    BEFORE(package_sets, order),
    // the last namespace, and what must follow it
    BEFORE(user_namespace, seal_namespaces),
    BEFORE(user_namespace, keyring),
    BEFORE(user_namespace, capabilities),
    BEFORE(user_namespace, rlimits),
    BEFORE(user_namespace, chdir),
    BEFORE(seal_namespaces, capabilities),
    BEFORE(keyring, filter),
    // nothing of ours is open when a byte of the tenant counts
    BEFORE(arguments, descriptors),
    BEFORE(descriptors, exec),
    BEFORE(chdir, landlock),
    BEFORE(chdir, filter),
    // no_new_privs before what needs it; the filter last of all
    BEFORE(no_new_privs, landlock),
    BEFORE(no_new_privs, filter),
    BEFORE(landlock, filter),
    BEFORE(filter, exec),
};

static void test_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct plan_step_info *a = &plan_steps[rules[i].first],
                                    *b = &plan_steps[rules[i].then];
        // phase one is over before phase two begins; within one, the order of the list counts
        if (a->phase > b->phase || (a->phase == b->phase && rules[i].first > rules[i].then)) {
            fail_msg("order broken: %s", rules[i].rule);
        }
    }
}

// What holds for a job in a sandbox holds for one without, as far as it has such steps; which of
// its own steps stands for one of those that it has not, stands here.
static int plain_step(unsigned step)
{
    static const struct {
        unsigned native, plain;
    } instead[] = {{PLAN_STEP_clone, PLAN_PSTEP_born_plain},
                   {PLAN_STEP_proc, PLAN_PSTEP_full_proc},
                   {PLAN_STEP_shim_exec, PLAN_PSTEP_shim_exec_plain},
                   {PLAN_STEP_user_namespace, PLAN_PSTEP_identity}};
    for (size_t i = 0; i < sizeof instead / sizeof *instead; i++) {
        if (instead[i].native == step) {
            return (int)(instead[i].plain - PLAN_PSTEP_FIRST);
        }
    }
    for (int i = 0; i < PLAN_N_PLAIN_STEPS; i++) {
        if (strcmp(plan_plain_steps[i].name, plan_steps[step].name) == 0) {
            return i;
        }
    }
    return -1;
}

static void test_plain_rules(void **state)
{
    (void)state;
    int held = 0;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        int a = plain_step(rules[i].first), b = plain_step(rules[i].then);
        enum plan_phase first = a < 0 ? PLAN_PHASE_ONE : plan_plain_steps[a].phase,
                        then = b < 0 ? PLAN_PHASE_TWO : plan_plain_steps[b].phase;
        if (a >= 0 && b >= 0 && (first > then || (first == then && a > b))) {
            fail_msg("order broken without a sandbox: %s", rules[i].rule);
        }
        held += a >= 0 && b >= 0;
    }
    assert_true(held > 40);
    // nothing is made for what nobody allowed; the filter stays the last, over all others
    assert_int_equal(PLAN_PSTEP_allowed, PLAN_PSTEP_FIRST);
    assert_int_equal(PLAN_PSTEP_exec, PLAN_PSTEP_END - 1);
    assert_int_equal(PLAN_PSTEP_filter, PLAN_PSTEP_exec - 1);
    assert_true(PLAN_PSTEP_no_new_privs < PLAN_PSTEP_no_shared_ipc);
    assert_true(PLAN_PSTEP_reaper < PLAN_PSTEP_fork);
    for (unsigned i = 0; i < PLAN_N_PLAIN_STEPS; i++) {
        assert_true(strlen(plan_plain_steps[i].why) > 20);
        assert_string_equal(plan_step_name(PLAN_PSTEP_FIRST + i), plan_plain_steps[i].name);
    }
    assert_string_equal(plan_step_name(PLAN_PSTEP_END), "?");
    assert_int_equal(plan_step_kind(PLAN_PSTEP_exec), PLAN_KIND_PROGRAM);
    assert_int_equal(plan_step_kind(PLAN_PSTEP_chdir), PLAN_KIND_CHDIR);
    assert_int_equal(plan_step_kind(PLAN_PSTEP_allowed), PLAN_KIND_SETUP);
    assert_int_equal(plan_step_kind(PLAN_PSTEP_END), PLAN_KIND_AFTER);
}

static void test_filter_is_last(void **state)
{
    (void)state;
    assert_int_equal(PLAN_STEP_exec, PLAN_N_STEPS - 1);
    assert_int_equal(PLAN_STEP_filter, PLAN_STEP_exec - 1);
    assert_int_equal(plan_steps[PLAN_STEP_exec].where, PLAN_IN_PID2);
}

static void test_places(void **state)
{
    (void)state;
    // each process's steps of a phase stand together, so that the list reads as a story
    for (unsigned i = 1; i < PLAN_N_STEPS; i++) {
        const struct plan_step_info *a = &plan_steps[i - 1], *b = &plan_steps[i];
        assert_true(a->phase <= b->phase);
        assert_true(a->phase < b->phase || a->where <= b->where);
    }
}

static void test_words(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PLAN_N_STEPS; i++) {
        assert_true(strlen(plan_steps[i].name) > 2);
        assert_true(strlen(plan_steps[i].why) > 20);
        assert_ptr_equal(plan_step_name(i), plan_steps[i].name);
    }
    assert_string_equal(plan_step_name(PLAN_STEP_end), "end");
    assert_string_equal(plan_step_name(PLAN_STEP_NAMES), "?");
    assert_string_equal(plan_step_name(UINT32_MAX), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),          cmocka_unit_test(test_plain_rules),
        cmocka_unit_test(test_filter_is_last), cmocka_unit_test(test_places),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
