// Rows of `isle doctor` on made-up hosts, and what a service tells of its self-test.
#include "../start/fixture.h"
#include "doctor/doctor.h"
#include "plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct conf conf;
static struct doctor d;

// A host on which nothing was tried to be missing: a test takes away what it is about.
static void make_host(void)
{
    struct conf_error e;
    char *nothing[] = {NULL};
    assert_int_equal(conf_load(&(struct conf_sources){.environment = nothing}, &conf, &e), 0);
    fixture_put("proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
    fixture_put("proc/sys/kernel/arch", "x86_64\n");
    fixture_put("proc/self/status",
                "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nNoNewPrivs:\t0\n");
    fixture_put("proc/self/uid_map", "0 0 4294967295\n");
    fixture_put("proc/self/ns/user", "");
    fixture_put("proc/self/mountinfo", "1 0 0:1 / / rw - ext4 a rw\n"
                                       "2 1 0:2 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    fixture_put("sys/fs/cgroup/cgroup.controllers", "cpu io memory pids\n");
    fixture_put("proc/sys/user/max_user_namespaces", "15000\n");
    memset(&d, 0, sizeof d); // too large for a stack
    d.root = fixture_root;
    d.conf = &conf;
    d.libexec_dir = "/nowhere";
    d.tried = true;
    d.tries = (struct tries){
        .own = {TRIES_DONE, 0}, .plain = {TRIES_DONE, 0}, .landlock = 7, .seccomp = true};
    d.mode.user = START_ROOT;
}

static const struct doctor_row *row(const char *group, const char *name)
{
    doctor_examine(&d);
    for (size_t i = 0; i < d.n; i++) {
        if (strcmp(d.rows[i].group, group) == 0 && strcmp(d.rows[i].name, name) == 0) {
            return &d.rows[i];
        }
    }
    fail_msg("no row %s, %s", group, name);
    return &d.rows[0];
}

static void is(const char *group, const char *name, enum doctor_state state)
{
    const struct doctor_row *r = row(group, name);
    if (r->state != state) {
        fail_msg("%s is %s: %s", name, doctor_state_names[r->state], r->found);
    }
    bool lacking = state >= DOCTOR_ADVICE;
    assert_int_equal(r->cost[0] != '\0', lacking);
    assert_int_equal(r->fix[0] != '\0', lacking);
    assert_true(r->found[0] != '\0');
}

static void test_whole(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"system", "kernel"},
        {"system", "architecture"},
        {"rights", "rights"},
        {"rights", "user ids"},
        {"rights", "newuidmap"},
        {"namespaces", "user namespaces"},
        {"namespaces", "for everybody"},
        {"namespaces", "/proc"},
        {"namespaces", "loopback"},
        {"control groups", "hierarchies"},
        {"control groups", "memory"},
        {"control groups", "pids"},
        {"control groups", "cpu"},
        {"control groups", "CPU time"},
        {"locks", "Landlock"},
        {"locks", "seccomp"},
    };
    make_host();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        is(rows[i][0], rows[i][1], DOCTOR_FINE);
    }
    is("system", "place", DOCTOR_FACT);
    is("room", "disk limits", DOCTOR_FACT);
    is("control groups", "io", DOCTOR_FACT);
    assert_int_equal(doctor_worst(&d), DOCTOR_FAILED); // no launcher in /nowhere
    is("programs", "isle-launcher", DOCTOR_FAILED);
}

static void test_system(void **state)
{
    (void)state;
    make_host();
    fixture_put("proc/sys/kernel/osrelease", "4.18.0-553.el8_10.x86_64\n");
    fixture_put("proc/sys/kernel/arch", "aarch64\n");
    is("system", "kernel", DOCTOR_FAILED);
    is("system", "architecture", DOCTOR_ADVICE);
    fixture_put("proc/sys/kernel/arch", "riscv64\n");
    is("system", "architecture", DOCTOR_FAILED);
}

// KER-01: the row, its fix for now and for good, and the profile.
static void test_user_namespaces(void **state)
{
    (void)state;
    make_host();
    fixture_put("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
    d.tries.plain = (struct tries_userns){TRIES_MOUNT, EACCES};
    is("namespaces", "user namespaces", DOCTOR_FINE);
    is("namespaces", "for everybody", DOCTOR_ADVICE); // root runs isle
    const struct doctor_row *r = row("namespaces", "for everybody");
    assert_string_equal(r->found, "refused: kernel.apparmor_restrict_unprivileged_userns is 1");
    assert_non_null(strstr(r->fix, "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"));
    assert_non_null(strstr(r->fix, "/etc/sysctl.d/60-isle.conf"));
    assert_non_null(strstr(r->fix, "deploy/apparmor/isle"));
    fixture_put("proc/self/status", "Uid:\t1000\t1000\t0\t0\nCapEff:\t0000000000000000\n");
    d.tries.own = d.tries.plain;
    d.mode.user = START_RANGE;
    is("namespaces", "user namespaces", DOCTOR_FAILED);
    is("namespaces", "for everybody", DOCTOR_FAILED);
}

static void test_pod(void **state)
{
    (void)state;
    make_host();
    fixture_folder("run/secrets/kubernetes.io");
    fixture_put("proc/sys/user/max_user_namespaces", "0\n");
    d.tries.own = d.tries.plain = (struct tries_userns){TRIES_UNSHARE, ENOSPC};
    is("namespaces", "user namespaces", DOCTOR_FAILED);
    assert_non_null(strstr(row("namespaces", "user namespaces")->fix,
                           "on the node, whose setting it is: sysctl -w user.max_user_namespaces"));
    assert_non_null(strstr(row("system", "place")->found, "a pod"));
}

// KER-04, KER-03
static void test_proc_and_loopback(void **state)
{
    (void)state;
    make_host();
    d.tries.proc = EPERM;
    d.tries.loopback = EPERM;
    is("namespaces", "/proc", DOCTOR_FAILED);
    is("namespaces", "loopback", DOCTOR_DEGRADED);
    assert_non_null(strstr(row("namespaces", "loopback")->cost, "no_loopback"));
}

// KER-05, KER-06
static void test_groups(void **state)
{
    (void)state;
    make_host();
    fixture_put("proc/self/mountinfo", "1 0 0:1 / / rw - ext4 a rw\n"
                                       "2 1 0:2 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
    d.mode.downgrades = PLAN_NO_CGROUP_MEMORY | PLAN_NO_CGROUP_PIDS;
    is("control groups", "hierarchies", DOCTOR_DEGRADED);
    is("control groups", "memory", DOCTOR_DEGRADED);
    is("control groups", "pids", DOCTOR_DEGRADED);
    is("control groups", "cpu", DOCTOR_FINE);
    fixture_put("proc/self/mountinfo", "1 0 0:1 / / rw - ext4 a rw\n");
    is("control groups", "hierarchies", DOCTOR_DEGRADED);
    // what a start got outweighs what the files promised
    static struct trial trial = {.started = true};
    trial.seat.downgrades = PLAN_NO_CGROUP_CPU;
    selftest_items_init(trial.items);
    d.trial = &trial;
    is("control groups", "memory", DOCTOR_FINE);
    is("control groups", "cpu", DOCTOR_DEGRADED);
    is("downgrades", "no_cgroup_cpu", DOCTOR_DEGRADED);
    d.tries.proc = EPERM;
    is("namespaces", "/proc", DOCTOR_ADVICE);
}

static void test_rights(void **state)
{
    (void)state;
    make_host();
    fixture_put("proc/self/uid_map", "0 100000 65536\n"); // a remapped container
    is("rights", "user ids", DOCTOR_FAILED);
    fixture_put("proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\n");
    is("rights", "rights", DOCTOR_DEGRADED);
    assert_non_null(strstr(row("rights", "rights")->found, "without SYS_ADMIN"));
    d.mode.user = START_SINGLE;
    strcpy(d.mode.why, "no range");
    is("rights", "user ids", DOCTOR_DEGRADED);
    is("rights", "newuidmap", DOCTOR_DEGRADED);
    static const char *const programs[] = {"usr/bin/newuidmap", "usr/bin/newgidmap"};
    for (size_t i = 0; i < 2; i++) {
        fixture_put(programs[i], "");
        assert_int_equal(fchmodat(fixture_root, programs[i], 0755, 0), 0);
    }
    is("rights", "newuidmap", DOCTOR_DEGRADED); // an image's copies, without power
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(fchmodat(fixture_root, programs[i], 04755, 0), 0);
    }
    is("rights", "newuidmap", DOCTOR_FINE);
}

// Whoever may change what runs as this user's launcher, or what all jobs run, is told of.
static void test_owners(void **state)
{
    enum { SOMEBODY = 12345 };
    char path[64];
    (void)state;
    make_host();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fixture_root);
    d.libexec_dir = path;
    conf.text[SETTING_RUNTIME_ROOT] = path;
    fixture_put("isle-launcher", "");
    assert_int_equal(fchmodat(fixture_root, "isle-launcher", 0755, 0), 0);
    for (unsigned i = 0; i < 3; i++) {
        static const char *const there[] = {"usr/bin/python3.13", "usr/bin/node", "usr/bin/bash"};
        fixture_put(there[i], "");
        assert_int_equal(fchmodat(fixture_root, there[i], 0755, 0), 0);
    }
    assert_int_equal(fchmod(fixture_root, 0755), 0);
    is("programs", "isle-launcher", DOCTOR_FINE);
    is("programs", "runtime root", DOCTOR_FINE);
    assert_int_equal(fchownat(fixture_root, "isle-launcher", SOMEBODY, SOMEBODY, 0), 0);
    assert_int_equal(fchmodat(fixture_root, "usr", 0775, 0), 0);
    is("programs", "isle-launcher", DOCTOR_ADVICE);
    is("programs", "runtime root", DOCTOR_ADVICE);
}

// A pipe in a file's place, and files without an end, keep nobody waiting.
static void test_files_that_are_none(void **state)
{
    (void)state;
    make_host();
    fixture_folder("etc");
    assert_int_equal(mkfifoat(fixture_root, "etc/os-release", 0644), 0);
    fixture_folder("run/systemd");
    assert_int_equal(mkfifoat(fixture_root, "run/systemd/container", 0644), 0);
    assert_int_equal(symlinkat("/dev/zero", fixture_root, "proc/meminfo"), 0);
    is("system", "kernel", DOCTOR_FINE);
    is("room", "memory", DOCTOR_FACT);
}

static void test_settings(void **state)
{
    (void)state;
    make_host();
    fixture_put("proc/sys/kernel/kptr_restrict", "0\n");
    fixture_put("proc/sys/kernel/dmesg_restrict", "1\n");
    fixture_put("proc/sys/fs/suid_dumpable", "2\n");
    fixture_put("proc/sys/kernel/core_pattern", "|/usr/lib/systemd/systemd-coredump %P\033\n");
    is("settings", "kernel.kptr_restrict", DOCTOR_ADVICE);
    is("settings", "kernel.dmesg_restrict", DOCTOR_FINE);
    is("settings", "fs.suid_dumpable", DOCTOR_ADVICE);
    assert_null(strchr(row("settings", "kernel.core_pattern")->found, '\033'));
}

static void test_outcomes(void **state)
{
    (void)state;
    static struct trial trial = {.started = true};
    make_host();
    selftest_items_init(trial.items);
    for (size_t i = 0; i < SELFTEST_N; i++) {
        trial.items[i].verdict = SELFTEST_HELD;
        strcpy(trial.items[i].detail, "1.2");
    }
    d.trial = &trial;
    is("self-test", "files", DOCTOR_FINE);
    is("self-test", "javascript", DOCTOR_FINE);
    trial.items[1].verdict = SELFTEST_BROKEN;
    is("self-test", "javascript", DOCTOR_DEGRADED);
    trial.items[3].verdict = SELFTEST_ESCAPED;
    is("self-test", "files", DOCTOR_FAILED);
    trial.items[3].verdict = SELFTEST_BROKEN; // nothing is known: as bad
    is("self-test", "files", DOCTOR_FAILED);
    trial.items[SELFTEST_N - 1].verdict = SELFTEST_UNENFORCED;
    is("self-test", "memory", DOCTOR_DEGRADED);
    trial = (struct trial){.why = {"maps", "no"}};
    is("self-test", "start", DOCTOR_FAILED);
}

static void test_report(void **state)
{
    (void)state;
    struct selftest_item items[SELFTEST_N], back[SELFTEST_N];
    AUTO_BUF struct buf b = BUF_INIT(1 << 16);
    selftest_items_init(items);
    items[4].verdict = SELFTEST_ESCAPED;
    strcpy(items[4].detail, "[\"made /usr/x\"]");
    assert_int_equal(selftest_write(&b, items), 0);
    assert_int_equal(selftest_read(b.data, b.len, back), 0);
    for (size_t i = 0; i < SELFTEST_N; i++) {
        assert_string_equal(back[i].name, items[i].name);
        assert_int_equal(back[i].verdict, items[i].verdict);
        assert_string_equal(back[i].detail, items[i].detail);
    }
    static const char *const bad[] = {"", "[]", "{}", "null", "[1,2,3,4,5,6,7,8,9,10,11,12,13]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(selftest_read(bad[i], strlen(bad[i]), back), -EBADMSG);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_whole),
        TEST(test_system),
        TEST(test_user_namespaces),
        TEST(test_pod),
        TEST(test_proc_and_loopback),
        TEST(test_groups),
        TEST(test_rights),
        TEST(test_owners),
        TEST(test_files_that_are_none),
        TEST(test_settings),
        TEST(test_outcomes),
        TEST(test_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
