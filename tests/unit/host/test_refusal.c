// KER-01: what refuses user namespaces, told apart on hosts that cannot all be had.
#include "host/refusal.h"

#include <errno.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ALL_CAPABILITIES UINT64_C(0x1ffffffffff)
#define DOCKER_CAPABILITIES UINT64_C(0xa80425fb)

// A usual host, seen by a user without rights.
static struct host usual(void)
{
    return (struct host){.has_proc = true,
                         .has_user_namespaces = true,
                         .uid = 1000,
                         .initial_ids = true,
                         .userns_clone = HOST_NO_VALUE,
                         .userns_apparmor = HOST_NO_VALUE,
                         .userns_max = 15000};
}

static struct refusal judged(const struct host *h, enum tries_step at, int error)
{
    struct tries_userns t = {at, error};
    struct refusal r;
    refusal_judge(h, &t, &r);
    return r;
}

static enum refusal_cause cause(const struct host *h, enum tries_step at, int error)
{
    return judged(h, at, error).cause;
}

static void test_causes(void **state)
{
    (void)state;
    struct host h = usual();
    assert_int_equal(cause(&h, TRIES_DONE, 0), REFUSAL_NONE);
    assert_int_equal(cause(&h, TRIES_UNSHARE, EPERM), REFUSAL_UNKNOWN);
    assert_int_equal(cause(&h, TRIES_UNSHARE, ENOSPC), REFUSAL_MAXIMUM);
    assert_int_equal(cause(&h, TRIES_UNSHARE, EUSERS), REFUSAL_DEPTH);
    assert_int_equal(cause(&h, TRIES_UNSHARE, EINVAL), REFUSAL_KERNEL);
    assert_int_equal(cause(&h, TRIES_UNSHARE, EACCES), REFUSAL_MODULE); // SELinux's user_namespace
    h.chrooted = true;
    assert_int_equal(cause(&h, TRIES_UNSHARE, EPERM), REFUSAL_CHROOT);
    h.has_user_namespaces = false;
    assert_int_equal(cause(&h, TRIES_UNSHARE, EPERM), REFUSAL_KERNEL);
    h.has_proc = false;
    assert_int_equal(cause(&h, TRIES_UNSHARE, EPERM), REFUSAL_NO_PROC);
}

// Debian up to 10 and hardened kernels
static void test_clone_setting(void **state)
{
    (void)state;
    struct host h = usual();
    h.userns_clone = 0;
    assert_int_equal(cause(&h, TRIES_UNSHARE, EPERM), REFUSAL_CLONE);
    h.uid = 0; // host root is above it
    h.capabilities = ALL_CAPABILITIES;
    assert_int_equal(cause(&h, TRIES_UNSHARE, EPERM), REFUSAL_UNKNOWN);
    h.userns_clone = 1;
    h.capabilities = 0;
    h.uid = 1000;
    assert_int_equal(cause(&h, TRIES_UNSHARE, EPERM), REFUSAL_UNKNOWN);
}

// Ubuntu 23.10 refuses the call or the map; 24.04 lets it pass and takes the capabilities.
static void test_apparmor(void **state)
{
    (void)state;
    struct host h = usual();
    h.userns_apparmor = 1;
    assert_int_equal(cause(&h, TRIES_UNSHARE, EACCES), REFUSAL_APPARMOR);
    assert_int_equal(cause(&h, TRIES_MAP, EACCES), REFUSAL_APPARMOR);
    assert_int_equal(cause(&h, TRIES_MAP, EPERM), REFUSAL_APPARMOR);
    assert_int_equal(cause(&h, TRIES_MOUNT, EACCES), REFUSAL_APPARMOR);
    assert_int_equal(cause(&h, TRIES_DONE, 0), REFUSAL_NONE); // with the profile
    struct refusal r = judged(&h, TRIES_MOUNT, EACCES);
    assert_non_null(strstr(r.instead, "deploy/apparmor/isle"));
    assert_string_equal(r.fix, "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
    h.userns_apparmor = 0;
    assert_int_equal(cause(&h, TRIES_MAP, EACCES), REFUSAL_MODULE);
}

// RHEL and CentOS 7 shipped 0; hardened hosts do
static void test_maximum(void **state)
{
    (void)state;
    struct host h = usual();
    h.userns_max = 0;
    struct refusal r = judged(&h, TRIES_UNSHARE, ENOSPC);
    assert_int_equal(r.cause, REFUSAL_MAXIMUM);
    assert_string_equal(r.what, "user.max_user_namespaces is 0");
    assert_non_null(strstr(r.persistent, "/etc/sysctl.d/"));
    h.userns_max = 5;
    r = judged(&h, TRIES_UNSHARE, ENOSPC);
    assert_string_equal(r.what, "user.max_user_namespaces is 5, and that many are in use");
}

static void test_containers(void **state)
{
    (void)state;
    struct host h = usual();
    h.place = HOST_CONTAINER;
    h.uid = 0;
    h.capabilities = DOCKER_CAPABILITIES;
    h.filtered = true;
    assert_int_equal(cause(&h, TRIES_UNSHARE, EPERM), REFUSAL_SECCOMP);
    h.filtered = false;
    assert_int_equal(cause(&h, TRIES_UNSHARE, EPERM), REFUSAL_CAPABILITY);
    h.capabilities |= UINT64_C(1) << CAP_SYS_ADMIN;
    assert_int_equal(cause(&h, TRIES_UNSHARE, EPERM), REFUSAL_UNKNOWN);
    // a setting is that of the machine around it
    h.userns_max = 0;
    struct refusal r = judged(&h, TRIES_UNSHARE, ENOSPC);
    assert_true(r.of_node);
    assert_non_null(strstr(r.fix, "on the machine outside"));
    h.place = HOST_POD;
    r = judged(&h, TRIES_UNSHARE, ENOSPC);
    assert_non_null(strstr(r.fix, "on the node, whose setting it is: sysctl -w "));
    h.place = HOST_MACHINE;
    assert_false(judged(&h, TRIES_UNSHARE, ENOSPC).of_node);
}

// Every cause has a text and a fix, and the line says both and where more is told.
static void test_lines(void **state)
{
    (void)state;
    struct host h = usual();
    char text[512];
    h.userns_clone = 0;
    struct refusal r = judged(&h, TRIES_UNSHARE, EPERM);
    assert_string_equal(refusal_line(&r, text, sizeof text),
                        "user namespaces are refused: kernel.unprivileged_userns_clone is 0 (to "
                        "mend it: sysctl -w kernel.unprivileged_userns_clone=1); isle doctor says "
                        "more");
    for (int i = 0; i < REFUSAL_COUNT; i++) {
        assert_non_null(refusal_names[i]);
    }
    refusal_find(true, &r); // whatever this host allows
    assert_true(r.cause < REFUSAL_COUNT && r.what[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_causes),     cmocka_unit_test(test_clone_setting),
        cmocka_unit_test(test_apparmor),   cmocka_unit_test(test_maximum),
        cmocka_unit_test(test_containers), cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
