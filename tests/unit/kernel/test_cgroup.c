// One table for every kind of host: fixture trees stand in for cgroupfs, with the control files
// that each kind has.
#include "base/fd.h"
#include "base/tree.h"
#include "kernel/cgroup.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

// name=content of the files that appear in a new group, in the folder whose name begins with
// `kind`.
static const struct {
    const char *kind, *file, *content;
} files[] = {
    {"memory", "tasks", ""},
    {"memory", "cgroup.procs", "12\n345\n"},
    {"memory", "memory.limit_in_bytes", "9223372036854771712\n"},
    {"memory", "memory.memsw.limit_in_bytes", "9223372036854771712\n"},
    {"memory", "memory.kmem.tcp.limit_in_bytes", "9223372036854771712\n"},
    {"memory", "memory.max_usage_in_bytes", "1048576\n"},
    {"memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"},
    {"memory", "cgroup.event_control", ""},
    {"memory", "memory.use_hierarchy", "0\n"},
    {"noswap", "tasks", ""},
    {"noswap", "memory.limit_in_bytes", "9223372036854771712\n"},
    {"noswap", "memory.max_usage_in_bytes", "1048576\n"},
    {"noswap", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n"},
    {"noswap", "cgroup.event_control", ""},
    {"pids", "tasks", ""},
    {"pids", "pids.max", "max\n"},
    {"pids", "pids.peak", "7\n"},
    {"cpu", "tasks", ""},
    {"cpu", "cpu.cfs_quota_us", "-1\n"},
    {"cpu", "cpuacct.usage", "123456789\n"},
    {"unified", "cgroup.procs", "1\n22\n333\n"},
    {"unified", "cgroup.kill", ""},
    {"unified", "cpu.stat", "usage_usec 5000\nuser_usec 1\nsystem_usec 2\n"},
    {"full", "cgroup.procs", ""},
    {"full", "cgroup.kill", ""},
    {"full", "memory.max", "max\n"},
    {"full", "memory.swap.max", "max\n"},
    {"full", "memory.oom.group", "0\n"},
    {"full", "memory.peak", "2097152\n"},
    {"full", "memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 9\n"},
    {"full", "pids.max", "max\n"},
    {"full", "pids.peak", "9\n"},
    {"full", "cpu.max", "max 100000\n"},
    {"full", "cpu.stat", "usage_usec 7\nnr_periods 0\n"},
};

struct fixture {
    char path[64];
    int dir;
    int folder[8];
    int n;
};

static const char *kind_of(int folder)
{
    static char link[256];
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", folder);
    ssize_t n = readlink(path, link, sizeof link - 1);
    link[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(link, '/');
    return slash ? slash + 1 : "";
}

static int fixture_make(int folder, const char *name)
{
    char kind[64];
    snprintf(kind, sizeof kind, "%s", kind_of(folder));
    if (mkdirat(folder, name, 0755)) {
        return -errno;
    }
    AUTO_CLOSE int group = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (!strncmp(kind, files[i].kind, strlen(files[i].kind))) {
            AUTO_CLOSE int fd = openat(group, files[i].file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
            fd_write_all(fd, files[i].content, strlen(files[i].content));
        }
    }
    return 0;
}

static int fixture_remove(int folder, const char *name)
{
    if (faccessat(folder, name, F_OK, 0)) {
        return -ENOENT;
    }
    char busy[64];
    snprintf(busy, sizeof busy, "%s/busy", name);
    return faccessat(folder, busy, F_OK, 0) ? tree_remove_at(folder, name) : -EBUSY;
}

static const struct cgroup_io fixture_io = {fixture_make, fixture_remove};

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.path = "/tmp/isle-cgroup-XXXXXX"};
    if (!mkdtemp(f.path)) {
        return -1;
    }
    f.dir = open(f.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < f->n; i++) {
        close(f->folder[i]);
    }
    tree_empty(f->dir);
    close(f->dir);
    return rmdir(f->path);
}

// A hierarchy of that kind.
static int host(struct fixture *f, const char *kind)
{
    assert_true(!mkdirat(f->dir, kind, 0755) || errno == EEXIST);
    int fd = openat(f->dir, kind, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return f->folder[f->n++] = fd;
}

static void expect_file(struct fixture *f, const char *path, const char *content)
{
    char text[256];
    assert_true(fd_read_at(f->dir, path, text, sizeof text) >= 0);
    // cgroupfs takes each write as a whole; an ordinary file keeps what was longer
    assert_memory_equal(text, content, strlen(content));
}

static const struct cgroup_limits limits = {
    .memory_bytes = 67108864, .pids = 33, .cpu_percent = 50};

static void test_v1(void **state)
{
    struct fixture *f = *state;
    struct cgroup_tree t;
    const int v1[SEAT_N_V1] = {host(f, "memory"), host(f, "pids"), host(f, "cpu,cpuacct"),
                               host(f, "cpu,cpuacct")};
    cgroup_tree_init(&t, -1, v1, 15, 0, &fixture_io);
    assert_int_equal(cgroup_downgrades(&t), 0);
    assert_int_equal(cgroup_make(&t, "j1"), 0); // the co-mounted one only once
    assert_int_equal(cgroup_limit(&t, "j1", &limits), 0);
    expect_file(f, "memory/j1/memory.limit_in_bytes", "67108864");
    expect_file(f, "memory/j1/memory.memsw.limit_in_bytes", "67108864");
    expect_file(f, "memory/j1/memory.kmem.tcp.limit_in_bytes", "8388608");
    expect_file(f, "pids/j1/pids.max", "33");
    expect_file(f, "cpu,cpuacct/j1/cpu.cfs_quota_us", "50000");
    assert_int_equal(cgroup_figure(&t, "j1", CGROUP_CPU_NS), 123456789);
    assert_int_equal(cgroup_figure(&t, "j1", CGROUP_MEMORY_PEAK), 1048576);
    assert_int_equal(cgroup_figure(&t, "j1", CGROUP_PIDS_PEAK), 7);
    assert_int_equal(cgroup_figure(&t, "j1", CGROUP_OOM_KILLS), 2);
    AUTO_CLOSE int oom = cgroup_watch_oom(&t, "j1");
    assert_true(oom >= 0);
    char line[32], want[16];
    fd_read_at(f->dir, "memory/j1/cgroup.event_control", line, sizeof line);
    snprintf(want, sizeof want, "%d ", oom);
    assert_memory_equal(line, want, strlen(want));
    pid_t pids[8];
    assert_int_equal(cgroup_members(&t, "j1", pids, 8), 2);
    assert_int_equal(pids[1], 345);
    assert_int_equal(cgroup_kill(&t, "j1"), -ENOENT);
    int tasks[SEAT_N_V1], v2;
    assert_int_equal(cgroup_open_entrance(&t, "j1", tasks, &v2), 0);
    assert_int_equal(v2, -1);
    assert_true(tasks[SEAT_MEMORY] >= 0 && tasks[SEAT_PIDS] >= 0 && tasks[SEAT_CPU] >= 0);
    assert_int_equal(tasks[SEAT_CPUACCT], -1);
    for (int i = 0; i < SEAT_CPUACCT; i++) {
        close(tasks[i]);
    }
    assert_int_equal(cgroup_remove(&t, "j1"), 0);
    assert_int_equal(cgroup_remove(&t, "j1"), 0); // gone already
}

// Without swap accounting, without the oom_kill counter (older kernels), without pids.
static void test_v1_poor(void **state)
{
    struct fixture *f = *state;
    struct cgroup_tree t;
    const int v1[SEAT_N_V1] = {host(f, "noswap"), -1, -1, -1};
    cgroup_tree_init(&t, -1, v1, 15, 0, &fixture_io);
    assert_int_equal(cgroup_downgrades(&t),
                     PLAN_NO_CGROUP_PIDS | PLAN_NO_CGROUP_CPU | PLAN_NO_CPU_TIME);
    assert_int_equal(cgroup_make(&t, "j1"), 0);
    assert_int_equal(cgroup_limit(&t, "j1", &limits), 0);
    assert_true(cgroup_figure(&t, "j1", CGROUP_OOM_KILLS) == PLAN_UNKNOWN);
    assert_true(cgroup_figure(&t, "j1", CGROUP_PIDS_PEAK) == PLAN_UNKNOWN);
    assert_true(cgroup_figure(&t, "j1", CGROUP_CPU_NS) == PLAN_UNKNOWN);
}

static void test_hybrid(void **state)
{
    struct fixture *f = *state;
    struct cgroup_tree t;
    const int v1[SEAT_N_V1] = {host(f, "memory"), host(f, "pids"), -1, -1};
    int v2 = host(f, "unified");
    cgroup_tree_init(&t, v2, v1, 1U << SEAT_MEMORY | 1U << SEAT_PIDS, 1U << SEAT_CPUACCT,
                     &fixture_io);
    assert_int_equal(cgroup_downgrades(&t), PLAN_NO_CGROUP_CPU);
    assert_int_equal(cgroup_make(&t, "j1"), 0);
    assert_int_equal(cgroup_limit(&t, "j1", &limits), 0);
    assert_int_equal(cgroup_figure(&t, "j1", CGROUP_CPU_NS),
                     5000000); // v2 counts without controllers
    pid_t pids[2];
    assert_int_equal(cgroup_members(&t, "j1", pids, 2), 2); // bounded
    assert_int_equal(cgroup_kill(&t, "j1"), 0);
    expect_file(f, "unified/j1/cgroup.kill", "1");
    fd_close(openat(f->dir, "unified/j1/busy", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    assert_int_equal(cgroup_remove(&t, "j1"), -EBUSY);
    assert_int_equal(unlinkat(f->dir, "unified/j1/busy", 0), 0);
    assert_int_equal(cgroup_remove(&t, "j1"), 0);
}

static void test_v2(void **state)
{
    struct fixture *f = *state;
    struct cgroup_tree t;
    const int none[SEAT_N_V1] = {-1, -1, -1, -1};
    cgroup_tree_init(&t, host(f, "full"), none, 0, 15, &fixture_io);
    assert_int_equal(cgroup_downgrades(&t), 0);
    assert_int_equal(cgroup_make(&t, "j1"), 0);
    assert_int_equal(cgroup_limit(&t, "j1", &limits), 0);
    expect_file(f, "full/j1/memory.max", "67108864");
    expect_file(f, "full/j1/memory.swap.max", "0");
    expect_file(f, "full/j1/memory.oom.group", "1");
    expect_file(f, "full/j1/pids.max", "33");
    expect_file(f, "full/j1/cpu.max", "50000 100000");
    assert_int_equal(cgroup_figure(&t, "j1", CGROUP_CPU_NS), 7000);
    assert_int_equal(cgroup_figure(&t, "j1", CGROUP_MEMORY_PEAK), 2097152);
    assert_int_equal(cgroup_figure(&t, "j1", CGROUP_PIDS_PEAK), 9);
    assert_int_equal(cgroup_figure(&t, "j1", CGROUP_OOM_KILLS), 1); // not oom_group_kill
    assert_int_equal(cgroup_watch_oom(&t, "j1"), -ENOENT);
    int tasks[SEAT_N_V1], v2;
    assert_int_equal(cgroup_open_entrance(&t, "j1", tasks, &v2), 0);
    assert_true(v2 >= 0);
    close(v2);
    assert_int_equal(tasks[0], -1);
}

static void test_v2_without_controllers(void **state)
{
    struct fixture *f = *state;
    struct cgroup_tree t;
    const int none[SEAT_N_V1] = {-1, -1, -1, -1};
    cgroup_tree_init(&t, host(f, "unified"), none, 0, 0, &fixture_io);
    assert_int_equal(cgroup_downgrades(&t),
                     PLAN_NO_CGROUP_MEMORY | PLAN_NO_CGROUP_PIDS | PLAN_NO_CGROUP_CPU);
    assert_int_equal(cgroup_make(&t, "j1"), 0);
    assert_int_equal(cgroup_limit(&t, "j1", &limits), 0);
    assert_int_equal(cgroup_figure(&t, "j1", CGROUP_CPU_NS), 5000000);
    assert_true(cgroup_figure(&t, "j1", CGROUP_MEMORY_PEAK) == PLAN_UNKNOWN);
}

static void test_none(void **state)
{
    (void)state;
    struct cgroup_tree t;
    const int none[SEAT_N_V1] = {-1, -1, -1, -1};
    pid_t pid;
    int tasks[SEAT_N_V1], v2;
    cgroup_tree_init(&t, -1, none, 15, 15, NULL);
    assert_int_equal(cgroup_downgrades(&t), PLAN_NO_CGROUP_MEMORY | PLAN_NO_CGROUP_PIDS |
                                                PLAN_NO_CGROUP_CPU | PLAN_NO_CPU_TIME);
    assert_int_equal(cgroup_make(&t, "j1"), 0);
    assert_int_equal(cgroup_limit(&t, "j1", &limits), 0);
    assert_int_equal(cgroup_open_entrance(&t, "j1", tasks, &v2), 0);
    assert_int_equal(cgroup_members(&t, "j1", &pid, 1), -ENOENT);
    for (int i = 0; i < CGROUP_N_FIGURES; i++) {
        assert_true(cgroup_figure(&t, "j1", (enum cgroup_figure)i) == PLAN_UNKNOWN);
    }
    assert_int_equal(cgroup_remove(&t, "j1"), 0);
}

// A missing mandatory file is an error; 0 is never a limit; half a group is no group.
static void test_failures(void **state)
{
    struct fixture *f = *state;
    struct cgroup_tree t;
    const int v1[SEAT_N_V1] = {host(f, "memory"), host(f, "pids"), -1, -1};
    cgroup_tree_init(&t, -1, v1, 3, 0, &fixture_io);
    assert_int_equal(cgroup_make(&t, "j1"), 0);
    for (int i = 0; i < 3; i++) {
        struct cgroup_limits zero = limits;
        i == 0 ? (zero.memory_bytes = 0) : i == 1 ? (zero.pids = 0) : (zero.cpu_percent = 0);
        assert_int_equal(cgroup_limit(&t, "j1", &zero), -EINVAL);
    }
    assert_int_equal(unlinkat(f->dir, "pids/j1/pids.max", 0), 0);
    assert_int_equal(cgroup_limit(&t, "j1", &limits), -ENOENT);
    assert_int_equal(mkdirat(f->dir, "pids/j2", 0755), 0); // in the way
    assert_int_equal(cgroup_make(&t, "j2"), -EEXIST);
    assert_int_equal(faccessat(f->dir, "memory/j2", F_OK, 0), -1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_v1),
        TEST(test_v1_poor),
        TEST(test_hybrid),
        TEST(test_v2),
        TEST(test_v2_without_controllers),
        TEST(test_none),
        TEST(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
