// An account's start, on made-up hosts: which groups were delegated to it, which ids it has, where
// its folders are. Fixtures for v2 hosts and containers too, whose hierarchies none of this
// machine's has.
#include "base/fd.h"
#include "fixture.h"
#include "plan/plan.h"
#include "start/groups.h"
#include "start/mode.h"
#include "start/range.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define V1_LINE(from, name)                                                                        \
    "35 31 0:31 " from " /sys/fs/cgroup/" name " rw,relatime - cgroup cgroup rw," name "\n"
#define V2_LINE(from) "30 23 0:26 " from " /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"

enum { SOMEBODY = 12345 };

static struct groups detect_own(void)
{
    struct groups g;
    groups_detect_own(fixture_root, &g);
    return g;
}

static void test_v1_is_where_the_caller_is(void **state)
{
    (void)state;
    fixture_put("proc/self/mountinfo", V1_LINE("/", "memory") V1_LINE("/", "pids"));
    fixture_put("proc/self/cgroup", "5:memory:/user/a\n4:pids:/\n1:name=systemd:/x\n0::/\n");
    fixture_folder("sys/fs/cgroup/memory/user/a");
    struct groups g = detect_own();
    assert_string_equal(g.path[SEAT_MEMORY], "sys/fs/cgroup/memory/user/a");
    assert_string_equal(g.path[SEAT_CPU], "");
    assert_int_equal(groups_lacking(&g),
                     PLAN_NO_CGROUP_PIDS | PLAN_NO_CGROUP_CPU | PLAN_NO_CPU_TIME);
}

// A container's view: only its own part of the hierarchy is mounted.
static void test_part_of_a_hierarchy(void **state)
{
    (void)state;
    static const struct {
        const char *own, *path;
    } cases[] = {
        {"/engine/c1/a", "sys/fs/cgroup/memory/a"},
        {"/engine/c1", "sys/fs/cgroup/memory"},
        {"/engine/c12", ""},  // another's
        {"/elsewhere", ""},   //
        {"/../outside", ""},  // a cgroup namespace's way to say so
        {"/engine/c1/b", ""}, // there is none
    };
    fixture_put("proc/self/mountinfo", V1_LINE("/engine/c1", "memory"));
    fixture_folder("sys/fs/cgroup/memory/a");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[128];
        snprintf(text, sizeof text, "5:memory:%s\n", cases[i].own);
        fixture_put("proc/self/cgroup", text);
        struct groups g = detect_own();
        assert_string_equal(g.path[SEAT_MEMORY], cases[i].path);
    }
}

static void test_not_delegated(void **state)
{
    (void)state;
    fixture_put("proc/self/mountinfo", V1_LINE("/", "memory") V2_LINE("/"));
    fixture_put("proc/self/cgroup", "5:memory:/a\n0::/a\n");
    fixture_folder("sys/fs/cgroup/memory/a");
    fixture_put("sys/fs/cgroup/a/cgroup.procs", "1\n");
    assert_int_equal(fchmod(fixture_root, 0755), 0);
    assert_int_equal(seteuid(SOMEBODY), 0);
    struct groups g = detect_own();
    assert_int_equal(seteuid(0), 0);
    for (int i = 0; i < GROUPS_N; i++) {
        assert_string_equal(g.path[i], "");
    }
}

// v2 passes controllers on only where no process is.
static void test_v2_alone_or_above(void **state)
{
    (void)state;
    char text[64];
    fixture_put("proc/self/mountinfo", V2_LINE("/"));
    fixture_put("proc/self/cgroup", "0::/user/scope\n");
    fixture_put("sys/fs/cgroup/user/cgroup.procs", "");
    fixture_put("sys/fs/cgroup/user/cgroup.controllers", "cpu memory pids\n");
    fixture_put("sys/fs/cgroup/user/scope/cgroup.controllers", "memory pids\n");
    snprintf(text, sizeof text, "%d\n", getpid());
    fixture_put("sys/fs/cgroup/user/scope/cgroup.procs", text);
    struct groups g = detect_own();
    assert_string_equal(g.path[GROUPS_V2], "sys/fs/cgroup/user/scope");
    assert_int_equal(groups_lacking(&g), PLAN_NO_CGROUP_CPU);
    snprintf(text, sizeof text, "%d\n99999\n", getpid()); // a shell beside it
    fixture_put("sys/fs/cgroup/user/scope/cgroup.procs", text);
    g = detect_own();
    assert_string_equal(g.path[GROUPS_V2], "sys/fs/cgroup/user");
    assert_int_equal(groups_lacking(&g), 0);
}

static int vacate(bool own, char leaf[64])
{
    struct groups g = {.root = fixture_root, .own = own};
    fixture_put("box/isle-main/cgroup.procs", "");
    AUTO_CLOSE int dir = openat(fixture_root, "box", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int e = groups_vacate(&g, dir);
    assert_true(fd_read_at(fixture_root, "box/isle-main/cgroup.procs", leaf, 64) >= 0);
    return e;
}

static void test_vacate(void **state)
{
    (void)state;
    char leaf[64], me[16];
    snprintf(me, sizeof me, "%d", getpid());
    fixture_put("box/cgroup.procs", "41\n42\n");
    assert_int_equal(vacate(false, leaf), -EBUSY); // the hierarchy's own root
    assert_string_equal(leaf, "");
    fixture_put("box/cgroup.events", "populated 1\n");
    assert_int_equal(vacate(false, leaf), 0); // a container: all that it sees
    assert_string_equal(leaf, "42");
    assert_int_equal(vacate(true, leaf), 0); // an account: nobody but the caller
    assert_string_equal(leaf, me);
    fixture_put("box/cgroup.procs", "0\n42\n"); // somebody from outside the container
    assert_int_equal(vacate(false, leaf), -EBUSY);
    assert_string_equal(leaf, "");
}

// ---- ids ----------------------------------------------------------------------------------------

static struct start_mode mode_as(uid_t uid)
{
    struct start_mode m;
    assert_int_equal(seteuid(uid), 0);
    start_mode_find(fixture_root, &m);
    assert_int_equal(seteuid(0), 0);
    return m;
}

static void put_program(const char *path, mode_t mode)
{
    fixture_put(path, "");
    assert_int_equal(fchmodat(fixture_root, path, mode, 0), 0);
}

static void test_modes(void **state)
{
    (void)state;
    assert_int_equal(fchmod(fixture_root, 0755), 0);
    struct start_mode m = mode_as(SOMEBODY);
    assert_int_equal(m.user, START_SINGLE);
    assert_true(m.downgrades & PLAN_SINGLE_UID && m.downgrades & PLAN_NO_CGROUP_MEMORY);
    assert_non_null(strstr(m.why, "/etc/subuid"));
    assert_non_null(strstr(m.groups, "Delegate=yes"));

    fixture_put("etc/subuid", "other:1:999999\n12345:200000:65536\n12345:300000:70000\n");
    fixture_put("etc/subgid", "12345:400000:65536\n");
    m = mode_as(SOMEBODY);
    assert_int_equal(m.user, START_SINGLE);
    assert_non_null(strstr(m.why, "newuidmap"));

    put_program("usr/bin/newuidmap", 04755);
    put_program("usr/bin/newgidmap", 0755); // as an image's copy may be
    m = mode_as(SOMEBODY);
    assert_int_equal(m.user, START_SINGLE);
    assert_non_null(strstr(m.why, "set-uid"));

    put_program("usr/bin/newgidmap", 04755);
    m = mode_as(SOMEBODY);
    assert_int_equal(m.user, START_RANGE);
    assert_int_equal(m.sub_uid, 300000); // the largest
    assert_int_equal(m.sub_gid, 400000);
    assert_int_equal(m.sub_count, 65536); // of both
    assert_string_equal(m.why, "");
    assert_false(m.downgrades & PLAN_SINGLE_UID);

    fixture_put("etc/subgid", "12345:400000:1000\n"); // too few to be of use
    assert_int_equal(mode_as(SOMEBODY).user, START_SINGLE);
    fixture_put("etc/subgid", "12345:4294900000:65536\n12345:x:y\n12345\n:::\n");
    assert_int_equal(mode_as(SOMEBODY).user, START_RANGE);
    fixture_put("etc/subgid", "12345:4294960000:65536\n"); // past the last id
    assert_int_equal(mode_as(SOMEBODY).user, START_SINGLE);
    assert_int_equal(mode_as(0).user, START_ROOT);
}

static void test_places(void **state)
{
    (void)state;
    struct start_places p;
    start_places_find(&p);
    assert_string_equal(p.data_dir, "/var/lib/isle/data");
    assert_string_equal(p.run_dir, "/run/isle");
    static const struct {
        const char *data, *home, *run, *want_data, *want_run;
    } cases[] = {
        {"/d", "/h", "/r", "/d/isle/data", "/r/isle"},
        {NULL, "/h", "/r", "/h/.local/share/isle/data", "/r/isle"},
        {"relative", "/h", "", "/h/.local/share/isle/data", "/tmp/isle-12345"},
        {NULL, NULL, NULL, "//.local/share/isle/data", "/tmp/isle-12345"},
    };
    static const char *const names[] = {"XDG_DATA_HOME", "HOME", "XDG_RUNTIME_DIR"};
    assert_int_equal(seteuid(SOMEBODY), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const values[] = {cases[i].data, cases[i].home, cases[i].run};
        for (size_t n = 0; n < ARRAY_LEN(names); n++) {
            assert_int_equal(values[n] ? setenv(names[n], values[n], 1) : unsetenv(names[n]), 0);
        }
        start_places_find(&p);
        assert_string_equal(p.data_dir, cases[i].want_data);
        assert_string_equal(p.run_dir, cases[i].want_run);
        // nobody made one there: the host's, whether it can be read or not
        assert_string_equal(p.runtime_root, "/var/lib/isle/runtime/current");
    }
    assert_int_equal(seteuid(0), 0);
}

int main(void)
{
    if (geteuid() != 0) {
        return 77; // becomes somebody
    }
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_v1_is_where_the_caller_is),
        TEST(test_part_of_a_hierarchy),
        TEST(test_not_delegated),
        TEST(test_v2_alone_or_above),
        TEST(test_vacate),
        TEST(test_modes),
        TEST(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
