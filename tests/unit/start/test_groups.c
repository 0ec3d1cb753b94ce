// Which control groups are of use, on made-up hosts: folders with the files that a kernel would
// show. What a kernel makes by itself when a folder is made is put there before.
#include "base/fd.h"
#include "fixture.h"
#include "start/groups.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ALL = 1 << SEAT_MEMORY | 1 << SEAT_PIDS | 1 << SEAT_CPU | 1 << SEAT_CPUACCT };

#define HEAD "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
#define V1(name, flags)                                                                            \
    "35 31 0:31 / /sys/fs/cgroup/" name " " flags ",relatime - cgroup cgroup " flags "," name "\n"

static const char v1_all[] = HEAD V1("memory", "rw") V1(
    "pids", "rw") "33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup "
                  "rw,cpu,cpuacct\n"
                  "34 31 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n";
static const char v2_only[] =
    HEAD "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - cgroup2 cgroup2 rw\n";

static struct groups_made make(uint64_t memory, uint64_t pids)
{
    struct groups g;
    struct groups_made made;
    struct groups_limits limits = {memory, pids, geteuid()};
    groups_detect(fixture_root, &g);
    assert_int_equal(groups_claim(&g, 3, &made), 0);
    assert_int_equal(groups_make(&g, 3, &limits, &made), 0);
    return made;
}

static void assert_text(const char *path, const char *text)
{
    char got[256];
    assert_true(fd_read_at(fixture_root, path, got, sizeof got) >= 0);
    assert_string_equal(got, text);
}

static void put_v1(void)
{
    fixture_put("sys/fs/cgroup/memory/isle/3/memory.limit_in_bytes", "");
    fixture_put("sys/fs/cgroup/pids/isle/3/pids.max", "");
    fixture_put("sys/fs/cgroup/cpu,cpuacct/isle/3/cpu.cfs_quota_us", "");
    fixture_put("sys/fs/cgroup/cpu,cpuacct/isle/3/cpuacct.usage", "");
}

static void put_v2(const char *folder, const char *have)
{
    static const char *const below[] = {"", "/isle", "/isle/3"};
    char path[256];
    for (size_t i = 0; i < ARRAY_LEN(below); i++) {
        snprintf(path, sizeof path, "%s%s/cgroup.controllers", folder, below[i]);
        fixture_put(path, have);
        snprintf(path, sizeof path, "%s%s/cgroup.subtree_control", folder, below[i]);
        fixture_put(path, i == 2 ? have : "");
    }
    snprintf(path, sizeof path, "%s/isle/3/cgroup.procs", folder);
    fixture_put(path, "");
    snprintf(path, sizeof path, "%s/isle/3/cpu.stat", folder);
    fixture_put(path, "usage_usec 0\nuser_usec 0\n");
}

static void test_v1_full(void **state)
{
    (void)state;
    fixture_put("proc/self/mountinfo", v1_all);
    put_v1();
    struct groups_made made = make(1 << 30, 500);
    assert_int_equal(made.v1_controllers, ALL);
    assert_int_equal(made.v2_controllers, 0);
    assert_int_equal(made.fd[GROUPS_V2], -1);
    assert_text("sys/fs/cgroup/memory/isle/3/memory.limit_in_bytes", "1073741824");
    assert_text("sys/fs/cgroup/pids/isle/3/pids.max", "500");
    struct stat cpu, cpuacct; // mounted together: one folder, opened twice
    assert_int_equal(fstat(made.fd[SEAT_CPU], &cpu), 0);
    assert_int_equal(fstat(made.fd[SEAT_CPUACCT], &cpuacct), 0);
    assert_int_equal(cpu.st_ino, cpuacct.st_ino);
    assert_int_equal(faccessat(made.fd[SEAT_PIDS], "service", F_OK, 0), 0);
    assert_int_equal(faccessat(made.fd[SEAT_CPU], "service", F_OK, 0), -1);
    groups_close(&made);
}

// The file is gone from kernels that know nothing but hierarchies (all that isle runs on), or is
// there for old programs: no difference.
static void test_v1_memory_without_use_hierarchy(void **state)
{
    (void)state;
    fixture_put("proc/self/mountinfo", v1_all);
    put_v1();
    struct groups_made made = make(0, 0);
    assert_int_equal(made.v1_controllers, ALL);
    groups_close(&made);
    fixture_put("sys/fs/cgroup/memory/isle/3/memory.use_hierarchy", "0");
    made = make(0, 0);
    assert_int_equal(made.v1_controllers, ALL);
    assert_text("sys/fs/cgroup/memory/isle/3/memory.limit_in_bytes", "");
    // nothing is limited as a whole: nothing to put the service under
    assert_int_equal(faccessat(made.fd[SEAT_MEMORY], "service", F_OK, 0), -1);
    groups_close(&made);
}

// A controller without its files is none, whatever the mount is called.
static void test_v1_without_bandwidth(void **state)
{
    (void)state;
    fixture_put("proc/self/mountinfo", v1_all);
    put_v1();
    assert_int_equal(unlinkat(fixture_root, "sys/fs/cgroup/cpu,cpuacct/isle/3/cpu.cfs_quota_us", 0),
                     0);
    struct groups_made made = make(0, 0);
    assert_int_equal(made.v1_controllers, ALL & ~(1 << SEAT_CPU));
    assert_int_equal(made.fd[SEAT_CPU], -1);
    groups_close(&made);
}

static void test_v2_with_controllers(void **state)
{
    (void)state;
    fixture_put("proc/self/mountinfo", v2_only);
    put_v2("sys/fs/cgroup", "cpuset cpu io memory hugetlb pids\n");
    fixture_put("sys/fs/cgroup/isle/3/memory.max", "");
    fixture_put("sys/fs/cgroup/isle/3/pids.max", "");
    struct groups_made made = make(4096, 9);
    assert_int_equal(made.v1_controllers, 0);
    assert_int_equal(made.v2_controllers, ALL);
    assert_true(made.fd[GROUPS_V2] >= 0);
    char passed[64];
    assert_true(fd_read_at(fixture_root, "sys/fs/cgroup/cgroup.subtree_control", passed,
                           sizeof passed) > 0);
    assert_int_equal(passed[0], '+');
    assert_true(fd_read_at(fixture_root, "sys/fs/cgroup/isle/cgroup.subtree_control", passed,
                           sizeof passed) > 0);
    assert_int_equal(passed[0], '+');
    assert_text("sys/fs/cgroup/isle/3/memory.max", "4096");
    assert_text("sys/fs/cgroup/isle/3/pids.max", "9");
    assert_int_equal(faccessat(made.fd[GROUPS_V2], "service", F_OK, 0), 0);
    groups_close(&made);
}

static void test_v2_limit_refused(void **state)
{
    (void)state;
    fixture_put("proc/self/mountinfo", v2_only);
    put_v2("sys/fs/cgroup", "memory\n"); // and no memory.max to write
    struct groups g;
    struct groups_made made;
    struct groups_limits limits = {4096, 0, geteuid()};
    groups_detect(fixture_root, &g);
    assert_int_equal(groups_claim(&g, 3, &made), 0);
    assert_int_equal(groups_make(&g, 3, &limits, &made), -ENOENT);
    assert_int_equal(made.fd[GROUPS_V2], -1);
    assert_false(groups_held(&g, 3));
}

// Two starts whose lock files lie in different folders: the second one writes nothing.
static void test_claimed_once(void **state)
{
    (void)state;
    struct groups g;
    struct groups_made first = GROUPS_NONE, second = GROUPS_NONE;
    static const char *const trees[] = {v1_all, v2_only};
    put_v1();
    put_v2("sys/fs/cgroup", "memory pids\n");
    for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
        fixture_put("proc/self/mountinfo", trees[i]);
        groups_detect(fixture_root, &g);
        assert_false(groups_held(&g, 3));
        assert_int_equal(groups_claim(&g, 3, &first), 0);
        assert_true(groups_held(&g, 3)); // before it is made
        assert_int_equal(groups_claim(&g, 3, &second), -EBUSY);
        assert_int_equal(groups_take(&g, 3, &second), -EBUSY); // so nothing of it is killed
        assert_int_equal(groups_remove(&g, 3), -EBUSY);
        assert_int_equal(groups_take(&g, 4, &second), -ENOENT);
        groups_close(&first);
        assert_int_equal(groups_claim(&g, 3, &second), 0);
        groups_close(&second);
    }
    assert_text("sys/fs/cgroup/memory/isle/3/memory.limit_in_bytes", "");
}

static void test_v2_without_controllers(void **state)
{
    (void)state;
    fixture_put("proc/self/mountinfo", v2_only);
    put_v2("sys/fs/cgroup", "hugetlb\n");
    struct groups_made made = make(4096, 9); // nobody to enforce them: a downgrade, not an error
    assert_int_equal(made.v2_controllers, 1 << SEAT_CPUACCT);
    assert_true(made.fd[GROUPS_V2] >= 0);
    groups_close(&made);
}

static void test_hybrid(void **state)
{
    (void)state;
    char text[2048];
    snprintf(text, sizeof text, "%s%s", v1_all,
             "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
    fixture_put("proc/self/mountinfo", text);
    put_v1();
    put_v2("sys/fs/cgroup/unified", "\n");
    struct groups_made made = make(0, 0);
    // every v2 group counts CPU time: v1's cpuacct would be one group more for each job
    assert_int_equal(made.v1_controllers, ALL & ~(1 << SEAT_CPUACCT));
    assert_int_equal(made.v2_controllers, 1 << SEAT_CPUACCT);
    assert_true(made.fd[GROUPS_V2] >= 0);
    groups_close(&made);
}

// Memory in v2, the rest in v1: each where it is.
static void test_split(void **state)
{
    (void)state;
    fixture_put(
        "proc/self/mountinfo",
        HEAD V1("pids",
                "rw") "41 31 0:38 / /mnt/a\\040b rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n");
    put_v1();
    put_v2("mnt/a b", "memory\n");
    struct groups_made made = make(0, 0);
    assert_int_equal(made.v1_controllers, 1 << SEAT_PIDS);
    assert_int_equal(made.v2_controllers, 1 << SEAT_MEMORY | 1 << SEAT_CPUACCT);
    groups_close(&made);
}

static void test_none(void **state)
{
    (void)state;
    struct groups_made made = make(4096, 9); // not even a mountinfo
    assert_int_equal(made.v1_controllers | made.v2_controllers, 0);
    groups_close(&made);
    fixture_put("proc/self/mountinfo", HEAD);
    made = make(4096, 9);
    assert_int_equal(made.v1_controllers | made.v2_controllers, 0);
    for (int i = 0; i < GROUPS_N; i++) {
        assert_int_equal(made.fd[i], -1);
    }
    groups_close(&made);
}

static void test_read_only(void **state)
{
    (void)state;
    fixture_put("proc/self/mountinfo",
                HEAD V1("memory",
                        "ro") "36 31 0:32 / /sys/fs/cgroup/pids ro,nosuid - cgroup cgroup rw,pids\n"
                              "30 23 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw\n");
    put_v1();
    put_v2("sys/fs/cgroup", "memory pids cpu\n");
    struct groups_made made = make(4096, 9);
    assert_int_equal(made.v1_controllers | made.v2_controllers, 0);
    assert_int_equal(made.fd[GROUPS_V2], -1);
    groups_close(&made);
}

// The same hierarchy is often mounted twice in a container, first read-only.
static void test_writable_mount_is_found(void **state)
{
    (void)state;
    fixture_put(
        "proc/self/mountinfo",
        HEAD V1("memory", "ro") "36 31 0:32 / /mnt/memory rw,nosuid - cgroup cgroup rw,memory\n");
    fixture_put("mnt/memory/isle/3/memory.limit_in_bytes", "");
    struct groups_made made = make(4096, 9);
    assert_int_equal(made.v1_controllers, 1 << SEAT_MEMORY);
    assert_text("mnt/memory/isle/3/memory.limit_in_bytes", "4096");
    groups_close(&made);
}

static void test_malformed_mountinfo(void **state)
{
    (void)state;
    char text[4096];
    memset(text, 'x', sizeof text);
    memcpy(text, "1 2 3 / /", 9);
    snprintf(text + 3000, sizeof text - 3000,
             " rw - cgroup cgroup rw,memory\n"
             "- cgroup\n - cgroup2 \n1 2 3 4 5 6 - cgroup2 cgroup2 rw\n");
    fixture_put("proc/self/mountinfo", text);
    struct groups_made made = make(4096, 9);
    assert_int_equal(made.v1_controllers | made.v2_controllers, 0);
    groups_close(&made);
}

#define PROCS "sys/fs/cgroup/isle/3/cgroup.procs"

// What the folder lists when it is read first: one number. The next reader sees another list.
static pid_t begin_first_list(const char *text)
{
    assert_int_equal(unlinkat(fixture_root, PROCS, 0), 0);
    assert_int_equal(mkfifoat(fixture_root, PROCS, 0600), 0);
    pid_t writer = fork();
    if (writer == 0) {
        int fd = openat(fixture_root, PROCS, O_WRONLY | O_CLOEXEC); // there is a reader
        bool good = fd >= 0 && renameat(fixture_root, "next", fixture_root, PROCS) == 0 &&
                    fd_write_all(fd, text, strlen(text)) == 0;
        _exit(good ? 0 : 1);
    }
    assert_true(writer > 0);
    return writer;
}

static pid_t begin_sleeper(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            pause();
        }
    }
    assert_true(pid > 0);
    return pid;
}

// The kernel has no cgroup.kill. Whoever has the number of a process that was listed, and is not
// listed itself, is somebody else.
static void test_only_who_is_listed_still_is_killed(void **state)
{
    (void)state;
    fixture_put("proc/self/mountinfo", v2_only);
    put_v2("sys/fs/cgroup", "memory");
    for (int still = 0; still < 2; still++) {
        struct groups g;
        char text[32];
        int status = 0;
        groups_detect(fixture_root, &g);
        pid_t sleeper = begin_sleeper();
        snprintf(text, sizeof text, "%d\n", sleeper);
        fixture_put("next", still ? text : "1\n");
        pid_t writer = begin_first_list(text);
        groups_kill(&g, 3, getuid(), NULL, NULL);
        assert_int_equal(waitpid(writer, &status, 0), writer);
        assert_int_equal(status, 0);
        if (!still) {
            siginfo_t ended = {0};
            assert_int_equal(waitid(P_PID, (id_t)sleeper, &ended, WEXITED | WNOHANG), 0);
            assert_int_equal(ended.si_pid, 0);
            assert_int_equal(kill(sleeper, SIGTERM), 0);
        }
        assert_int_equal(waitpid(sleeper, &status, 0), sleeper);
        assert_int_equal(WTERMSIG(status), still ? SIGKILL : SIGTERM);
    }
}

// More than are opened at a time.
static void test_all_that_are_listed_are_killed(void **state)
{
    (void)state;
    enum { MANY = 150 };
    pid_t pids[MANY];
    char text[MANY * 12] = "";
    struct groups g;
    fixture_put("proc/self/mountinfo", v2_only);
    put_v2("sys/fs/cgroup", "memory");
    groups_detect(fixture_root, &g);
    for (size_t i = 0; i < MANY; i++) {
        pids[i] = begin_sleeper();
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d\n", pids[i]);
    }
    fixture_put(PROCS, text);
    groups_kill(&g, 3, getuid(), NULL, NULL);
    for (size_t i = 0; i < MANY; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(WTERMSIG(status), SIGKILL);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_v1_full),
        TEST(test_v1_memory_without_use_hierarchy),
        TEST(test_v1_without_bandwidth),
        TEST(test_v2_with_controllers),
        TEST(test_v2_limit_refused),
        TEST(test_claimed_once),
        TEST(test_v2_without_controllers),
        TEST(test_hybrid),
        TEST(test_split),
        TEST(test_none),
        TEST(test_read_only),
        TEST(test_writable_mount_is_found),
        TEST(test_malformed_mountinfo),
        TEST(test_only_who_is_listed_still_is_killed),
        TEST(test_all_that_are_listed_are_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
