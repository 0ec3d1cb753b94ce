// The command line of Bubblewrap: what stands in it, in which order, and what must not.
#include "base/fd.h"
#include "plan/bwrap.h"
#include "plan/steps.h"

#include <errno.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MAX = 8192 };

static const struct bwrap_cover covers[] = {
    {"cmdline", "tmp/empty"}, {"acpi", "tmp/folder"}, {NULL, NULL}};

// The arguments as one line.
static const char *line(const struct bwrap_input *in)
{
    static char text[MAX];
    int n = bwrap_arguments(in, text, sizeof text);
    assert_true(n > 0 && text[n - 1] == '\0');
    for (int i = 0; i < n - 1; i++) {
        text[i] = text[i] ? text[i] : ' ';
    }
    return text;
}

static size_t at(const char *text, const char *part)
{
    const char *found = strstr(text, part);
    if (!found) {
        fail_msg("%s is not in: %s", part, text);
    }
    assert_null(strstr(found + 1, part));
    return (size_t)(found - text);
}

static void documented_options_stand_in_their_order(void **state)
{
    static const char *const documented[] = {"--unshare-user",
                                             "--unshare-pid",
                                             "--unshare-ipc",
                                             "--unshare-uts",
                                             "--die-with-parent",
                                             "--hostname box",
                                             "--ro-bind /jail/usr /usr",
                                             "--ro-bind /jail/usr/bin /bin",
                                             "--ro-bind-try /jail/usr/sbin /sbin",
                                             "--ro-bind /jail/usr/lib /lib",
                                             "--ro-bind-try /jail/usr/lib64 /lib64",
                                             "--ro-bind /jail/etc /etc",
                                             "--proc /proc",
                                             "--dev-bind /jail/dev /dev",
                                             "--bind /job/tmp /tmp",
                                             "--bind /job/workspace /workspace",
                                             "--chdir /workspace"};
    const struct bwrap_input in = {.hostname = "box", .covers = covers};
    const char *text = line(&in);
    (void)state;
    for (size_t i = 1; i < ARRAY_LEN(documented); i++) {
        assert_true(at(text, documented[i - 1]) < at(text, documented[i]));
    }
}

static void what_makes_it_sound_is_there(void **state)
{
    static const char *const added[] = {"--unshare-net",
                                        "--unshare-cgroup",
                                        "--disable-userns",
                                        "--new-session",
                                        "--as-pid-1",
                                        "--cap-drop ALL",
                                        "--clearenv",
                                        "--uid 1000",
                                        "--gid 1000",
                                        "--seccomp 7",
                                        "--bind /job/shm /dev/shm",
                                        "--ro-bind /jail/tmp/empty /proc/cmdline",
                                        "--ro-bind /jail/tmp/folder /proc/acpi"};
    static const char *const never[] = {"--share-net", "--unshare-all", "-user-try",  "-cgroup-try",
                                        "--setenv",    "--cap-add",     "--dev /dev", "--overlay"};
    const struct bwrap_input in = {.hostname = "box", .covers = covers};
    const char *text = line(&in);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(added); i++) {
        at(text, added[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(never); i++) {
        assert_null(strstr(text, never[i]));
    }
    // covered before it can no longer be written to, and a tenant's folder last of the mounts
    assert_true(at(text, "/proc/acpi") < at(text, "--remount-ro /proc"));
    assert_true(at(text, "--bind /job/workspace") > at(text, "--symlink /proc/self/fd/3"));
    assert_true(at(text, "--bind /job/workspace") < at(text, "--remount-ro / "));
}

static void sets_are_bound_and_the_others_are_folders(void **state)
{
    const struct bwrap_input in = {.hostname = "box", .n_sets = 2};
    const char *text = line(&in);
    (void)state;
    at(text, "--ro-bind /job/packages/0 /packages/0");
    at(text, "--ro-bind /job/packages/1 /packages/1");
    at(text, "--dir /packages/2");
    at(text, "--dir /packages/7");
}

static void the_hosts_network_is_not_unshared(void **state)
{
    struct bwrap_input in = {.hostname = "box", .host_network = 1};
    (void)state;
    assert_null(strstr(line(&in), "--unshare-net"));
    at(line(&in), "--ro-bind-try /jail/tmp/net/resolv.conf /etc/resolv.conf");
    in.host_network = 0;
    at(line(&in), "--unshare-net");
    assert_null(strstr(line(&in), "/jail/tmp/net"));
}

static void old_versions_are_not_asked_for_new_options(void **state)
{
    struct bwrap_input in = {.hostname = "box", .version = BWRAP_VERSION(0, 7, 0)};
    (void)state;
    assert_null(strstr(line(&in), "--disable-userns"));
    in.version = BWRAP_VERSION(0, 8, 0);
    at(line(&in), "--disable-userns");
}

static void a_short_buffer_is_an_error(void **state)
{
    const struct bwrap_input in = {.hostname = "box", .covers = covers};
    char text[MAX];
    int n = bwrap_arguments(&in, text, sizeof text);
    (void)state;
    assert_int_equal(bwrap_arguments(&in, text, (size_t)n), n);
    assert_int_equal(bwrap_arguments(&in, text, (size_t)n - 1), -E2BIG);
}

static void versions(void **state)
{
    (void)state;
    assert_int_equal(bwrap_version_read("bubblewrap 0.12.0\n"), BWRAP_SOUND);
    assert_int_equal(bwrap_version_read("bubblewrap 0.8"), BWRAP_VERSION(0, 8, 0));
    assert_int_equal(bwrap_version_read("bubblewrap 1.0.0-rc1"), BWRAP_VERSION(1, 0, 0));
    assert_true(bwrap_version_read("bubblewrap 0.11.9") < BWRAP_SOUND);
    assert_int_equal(bwrap_version_read(""), 0);
    assert_int_equal(bwrap_version_read("bubblewrap"), 0);
    assert_int_equal(bwrap_version_read("bubblewrap 0.999.1"), 0);
    assert_int_equal(bwrap_version_read("busybox 1.2.3"), 0);
}

static void messages_are_translated(void **state)
{
    (void)state;
    assert_non_null(strstr(bwrap_translate("bwrap: No permissions to create new namespace, likely "
                                           "because the kernel does not allow it"),
                           "kernel.unprivileged_userns_clone"));
    assert_non_null(strstr(bwrap_translate("bwrap: Creating new namespace failed: Operation not "
                                           "permitted"),
                           "user namespaces"));
    assert_non_null(bwrap_translate("bwrap: setting up uid map: Permission denied"));
    assert_null(bwrap_translate("bwrap: what nobody has seen yet"));
    assert_null(bwrap_translate(""));
}

// Each difference to the documented line has its reason, each step a name of its own.
static void reasons(void **state)
{
    (void)state;
    for (size_t i = 0; i < bwrap_n_rows; i++) {
        assert_true(bwrap_rows[i].instead[0] == '\0' || bwrap_rows[i].why);
    }
    for (unsigned i = 0; i < PLAN_N_BWRAP_STEPS; i++) {
        assert_true(plan_bwrap_steps[i].why[0]);
        for (unsigned k = 0; k < i; k++) {
            assert_string_not_equal(plan_bwrap_steps[i].name, plan_bwrap_steps[k].name);
        }
    }
    assert_string_equal(plan_step_name(PLAN_BSTEP_FIRST), "check");
    assert_string_equal(plan_step_name(PLAN_BSTEP_program), "program");
    assert_string_equal(plan_step_name(PLAN_BSTEP_END), "?");
    assert_int_equal(plan_step_kind(PLAN_BSTEP_program), PLAN_KIND_PROGRAM);
    assert_int_equal(plan_step_kind(PLAN_BSTEP_chdir), PLAN_KIND_CHDIR);
    assert_int_equal(plan_step_kind(PLAN_BSTEP_verify), PLAN_KIND_SETUP);
    assert_int_equal(plan_step_kind(PLAN_STEP_end), PLAN_KIND_AFTER);
    assert_int_equal(plan_step_kind(PLAN_BSTEP_END), PLAN_KIND_AFTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documented_options_stand_in_their_order),
        cmocka_unit_test(what_makes_it_sound_is_there),
        cmocka_unit_test(sets_are_bound_and_the_others_are_folders),
        cmocka_unit_test(the_hosts_network_is_not_unshared),
        cmocka_unit_test(old_versions_are_not_asked_for_new_options),
        cmocka_unit_test(a_short_buffer_is_an_error),
        cmocka_unit_test(versions),
        cmocka_unit_test(messages_are_translated),
        cmocka_unit_test(reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
