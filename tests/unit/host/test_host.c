// What a host is, on made-up ones.
#include "../start/fixture.h"
#include "host/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct host seen(void)
{
    struct host h;
    host_read(fixture_root, &h);
    return h;
}

static void test_nothing(void **state)
{
    (void)state;
    struct host h = seen();
    assert_false(h.has_proc || h.has_user_namespaces || h.chrooted || h.cgroups_writable);
    assert_int_equal(h.userns_max, HOST_NO_VALUE);
    assert_int_equal(h.cgroups, HOST_CGROUPS_NONE);
    assert_int_equal(h.place, HOST_MACHINE);
    assert_string_equal(h.container, "");
}

static void test_system(void **state)
{
    (void)state;
    fixture_put("proc/sys/kernel/osrelease", "4.18.0-553.el8_10.x86_64\n");
    fixture_put("proc/sys/kernel/arch", "x86_64\n");
    fixture_put("etc/os-release", "ID=x\nPRETTY_NAME=\"Red Hat Enterprise Linux 8.10 (Ootpa)\"\n");
    struct host h = seen();
    assert_int_equal(h.version, host_version(4, 18));
    assert_true(h.version < host_version(5, 14));
    assert_string_equal(h.machine, "x86_64");
    assert_string_equal(h.distribution, "Red Hat Enterprise Linux 8.10 (Ootpa)");
    assert_false(h.wsl);
    fixture_put("proc/sys/kernel/osrelease", "6.6.87.2-microsoft-standard-WSL2\n");
    h = seen();
    assert_true(h.wsl && h.version > host_version(6, 1));
}

static void test_process(void **state)
{
    (void)state;
    fixture_put("proc/self/status", "Name:\tx\nUid:\t1000\t0\t0\t0\nCapEff:\t00000000a80425fb\n"
                                    "NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n");
    fixture_put("proc/self/uid_map", "         0     100000      65536\n");
    struct host h = seen();
    assert_true(h.has_proc && h.no_new_privs && h.filtered);
    assert_int_equal(h.uid, 0);
    assert_false(host_can(&h, 21)); // SYS_ADMIN is not in Docker's default set
    assert_true(host_can(&h, 0));
    assert_int_equal(h.mapped_ids, 65536);
    assert_false(h.initial_ids);
    fixture_put("proc/self/uid_map", "         0          0 4294967295\n");
    assert_true(seen().initial_ids);
}

static void test_places(void **state)
{
    (void)state;
    fixture_put(".dockerenv", "");
    struct host h = seen();
    assert_int_equal(h.place, HOST_CONTAINER);
    assert_string_equal(h.container, "docker");
    fixture_put("proc/1/environ", "HOME=/");
    fixture_folder("run/secrets/kubernetes.io");
    assert_int_equal(seen().place, HOST_POD);
    // a machine that was made from an image: its namespaces are the kernel's first
    fixture_folder("proc/self/ns");
    assert_int_equal(symlinkat("pid:[4026531836]", fixture_root, "proc/self/ns/pid"), 0);
    assert_int_equal(symlinkat("uts:[4026531838]", fixture_root, "proc/self/ns/uts"), 0);
    h = seen();
    assert_int_equal(h.place, HOST_MACHINE);
    assert_string_equal(h.container, "");
}

static void test_podman_and_escapes(void **state)
{
    (void)state;
    fixture_put("run/.containerenv", "");
    assert_string_equal(seen().container, "podman");
    fixture_put("run/systemd/container", "ev\033il\n");
    assert_string_equal(seen().container, "ev?il");
}

// KER-05, KER-06: what control groups there are is told by their mounts, not by names of files.
static void test_cgroups(void **state)
{
    (void)state;
    static const struct {
        const char *mounts, *v2; // v2: content of cgroup.controllers
        enum host_cgroups kind;
        bool writable;
        const char *controllers;
    } cases[] = {
        {"1 0 0:1 / / rw - ext4 /dev/sda rw\n", NULL, HOST_CGROUPS_NONE, false, ""},
        // Debian 12, Ubuntu 24.04, Fedora: v2 alone
        {"2 1 0:2 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
         "cpuset cpu io memory hugetlb pids\n", HOST_CGROUPS_V2, true,
         "cpu,io,memory,pids,cpuacct"},
        // an ordinary container: the same, read-only
        {"2 1 0:2 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw\n", "memory pids\n",
         HOST_CGROUPS_V2, false, "memory,pids,cpuacct"},
        // v2 without memory and pids
        {"2 1 0:2 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "cpuset cpu\n", HOST_CGROUPS_V2,
         true, "cpu,cpuacct"},
        // RHEL 8: v1, where a named hierarchy is none
        {"2 1 0:2 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
         "3 1 0:3 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
         "4 1 0:4 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n",
         NULL, HOST_CGROUPS_V1, true, "memory,cpu,cpuacct"},
        // hybrid: controllers in v1, an empty v2 tree beside
        {"2 1 0:2 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
         "3 1 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
         "\n", HOST_CGROUPS_HYBRID, true, "pids,cpuacct"},
        // a named hierarchy alone has no controller
        {"4 1 0:4 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n", NULL,
         HOST_CGROUPS_NONE, true, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture_put("proc/self/mountinfo", cases[i].mounts);
        fixture_put("sys/fs/cgroup/cgroup.controllers", cases[i].v2 ? cases[i].v2 : "");
        struct host h = seen();
        assert_int_equal(h.cgroups, cases[i].kind);
        assert_int_equal(h.cgroups_writable, cases[i].writable);
        assert_string_equal(h.controllers, cases[i].controllers);
    }
}

// KER-04
static void test_proc(void **state)
{
    (void)state;
    static const struct {
        const char *mounts;
        bool masked, read_only, chrooted;
    } cases[] = {
        {"1 0 0:1 / / rw - ext4 a rw\n2 1 0:2 / /proc rw - proc proc rw\n"
         "3 2 0:3 / /proc/sys/fs/binfmt_misc rw - binfmt_misc b rw\n",
         false, false, false},
        {"1 0 0:1 / / rw - overlay a rw\n2 1 0:2 / /proc rw - proc proc rw\n"
         "3 2 0:2 /sys /proc/sys ro - proc proc rw\n4 2 0:4 / /proc/kcore rw - tmpfs t rw\n",
         true, true, false},
        {"2 1 0:2 / /proc ro - proc proc rw\n", false, true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture_put("proc/self/mountinfo", cases[i].mounts);
        struct host h = seen();
        assert_int_equal(h.proc_masked, cases[i].masked);
        assert_int_equal(h.proc_sys_read_only, cases[i].read_only);
        assert_int_equal(h.chrooted, cases[i].chrooted);
    }
}

static void test_lists(void **state)
{
    (void)state;
    assert_true(host_lists("memory,pids", "pids") && host_lists("memory", "memory"));
    assert_false(host_lists("cpuacct,x", "cpu") || host_lists("", "cpu") || host_lists("a", ""));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_nothing),
        TEST(test_system),
        TEST(test_process),
        TEST(test_places),
        TEST(test_podman_and_escapes),
        TEST(test_cgroups),
        TEST(test_proc),
        TEST(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
