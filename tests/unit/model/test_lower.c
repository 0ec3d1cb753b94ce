// From limits to the numbers of a plan.
#include "base/fd.h"
#include "model/lower.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MB (UINT64_C(1) << 20)

static const struct lower_host host = {
    .cpus_percent = 200, .max_disk_mb = 8192, .tmpfs_max_mb = 64};
static const struct lower_staged nothing = {0, 4};

static struct job parse(const char *json)
{
    struct job j;
    struct job_error e;
    assert_int_equal(job_parse(json, strlen(json), 0, &j, &e), 0);
    return j;
}

static struct lowered lower(const char *json, const struct lower_staged *staged)
{
    struct job j = parse(json);
    struct lowered l;
    lower_job(&j, &host, staged, &l);
    job_done(&j);
    return l;
}

static void small_disk_is_a_tmpfs(void **state)
{
    (void)state;
    struct lowered l =
        lower("{\"command\":[\"x\"],\"limits\":{\"disk_mb\":64,\"memory_mb\":256}}", &nothing);
    assert_int_equal(l.start.op, PLAN_START);
    assert_int_equal(l.start.workspace_kind, PLAN_WORKSPACE_TMPFS);
    assert_int_equal(l.start.filter, PLAN_FILTER_TMPFS);
    assert_int_equal(l.workspace_bytes, 64 * MB);
    assert_int_equal(l.workspace_inodes, 4096);
    assert_int_equal(l.start.limits.memory_bytes, (256 + 64) * MB);
    assert_int_equal(l.start.limits.tmp_bytes, 64 * MB);
    assert_int_equal(l.start.limits.tmp_inodes, 4096);
    assert_int_equal(l.start.limits.file_bytes, 64 * MB);
}

static void large_disk_is_a_folder(void **state)
{
    (void)state;
    struct lowered l = lower(
        "{\"language\":\"python\",\"code\":\"\",\"limits\":{\"disk_mb\":1000,\"memory_mb\":100}}",
        &nothing);
    assert_int_equal(l.start.workspace_kind, PLAN_WORKSPACE_FOLDER);
    assert_int_equal(l.start.filter, PLAN_FILTER_FOLDER);
    assert_int_equal(l.start.limits.memory_bytes, 100 * MB);
    assert_int_equal(l.start.limits.tmp_bytes, 50 * MB);
    assert_int_equal(l.start.limits.file_bytes, 1000 * MB);
    assert_int_equal(l.workspace_inodes, 64000);
}

// 0 means unlimited to the kernel, so it is never passed.
static void no_disk_still_has_sizes(void **state)
{
    (void)state;
    struct lowered l = lower("{\"command\":[\"x\"],\"limits\":{\"disk_mb\":0}}", &nothing);
    assert_int_equal(l.workspace_bytes, 4096);
    assert_int_equal(l.workspace_inodes, 5);
    assert_int_equal(l.start.limits.tmp_bytes, 4096);
    assert_int_equal(l.start.limits.tmp_inodes, 1);
    assert_true(l.start.limits.file_bytes > 0);
    struct lower_staged some = {lower_pages(1) + lower_pages(4096) + lower_pages(4097), 7};
    l = lower("{\"command\":[\"x\"],\"limits\":{\"disk_mb\":0}}", &some);
    assert_int_equal(l.workspace_bytes, 4 * 4096);
    assert_int_equal(l.workspace_inodes, 8);
}

static void scales(void **state)
{
    (void)state;
    struct lowered l = lower("{\"command\":[\"x\"],\"limits\":{\"cpus\":1.5,\"cpu_seconds\":2.5,"
                             "\"pids\":8,\"nofile\":64}}",
                             &nothing);
    assert_int_equal(l.start.limits.cpu_percent, 150);
    assert_int_equal(l.start.limits.cpu_ns, UINT64_C(2500000000));
    assert_int_equal(l.start.limits.pids, 8);
    assert_int_equal(l.start.limits.nofile, 64);
}

static void host_lowers_defaults_and_refuses_wishes(void **state)
{
    (void)state;
    struct lower_host small = {.cpus_percent = 50, .max_disk_mb = 100, .tmpfs_max_mb = 64};
    struct job_error e;
    struct job j = parse("{\"command\":[\"x\"]}");
    assert_int_equal(lower_check_host(&j, &small, &e), 0);
    assert_int_equal(j.limits.value[LIMIT_CPUS], 50);
    assert_int_equal(j.limits.source[LIMIT_CPUS], LIMIT_FROM_HOST);
    assert_int_equal(j.limits.value[LIMIT_DISK], 100);
    job_done(&j);
    j = parse("{\"command\":[\"x\"],\"limits\":{\"disk_mb\":101}}");
    assert_int_equal(lower_check_host(&j, &small, &e), -EINVAL);
    assert_string_equal(e.field, "limits.disk_mb");
    assert_string_equal(e.text,
                        "limits.disk_mb: 101 is above the maximum of 100 MB (SANDBOX_MAX_DISK_MB)");
    job_done(&j);
    j = parse("{\"command\":[\"x\"],\"limits\":{\"cpus\":0.51}}");
    assert_int_equal(lower_check_host(&j, &small, &e), -EINVAL);
    assert_string_equal(e.text,
                        "limits.cpus: 0.51 is above the maximum of 0.5 CPUs (of this host)");
    job_done(&j);
}

static void package_sets_need_a_root(void **state)
{
    (void)state;
    struct lower_host none = {.tmpfs_max_mb = 64, .max_disk_mb = 8192}, some = none;
    struct lower_staged staged = {0};
    struct lowered low;
    struct job_error e;
    some.has_packages = true;
    struct job j = parse("{\"command\":[\"x\"],\"package_sets\":[\"data-1.0\",\"B_2\"]}");
    assert_int_equal(lower_check_host(&j, &none, &e), -EINVAL);
    assert_string_equal(e.text,
                        "package_sets: there are none here: SANDBOX_PACKAGES_ROOT is not set");
    assert_int_equal(lower_check_host(&j, &some, &e), 0);
    lower_job(&j, &some, &staged, &low);
    assert_int_equal(low.start.n_sets, 2);
    assert_string_equal(j.package_sets[1], "B_2");
    job_done(&j);
}

static void host_network_needs_leave(void **state)
{
    (void)state;
    struct lower_host no = {.tmpfs_max_mb = 64, .max_disk_mb = 8192, .network = JOB_NETWORK_NONE};
    struct lower_host yes = no, as_default = no;
    struct lower_staged staged = {0};
    struct lowered low;
    struct job_error e;
    yes.host_network = as_default.host_network = true;
    as_default.network = JOB_NETWORK_HOST;
    const struct {
        const char *json;
        const struct lower_host *host;
        int error;
        uint32_t network;
    } cases[] = {
        {"{\"command\":[\"x\"]}", &no, 0, PLAN_NETWORK_NONE},
        {"{\"command\":[\"x\"]}", &yes, 0, PLAN_NETWORK_NONE},
        {"{\"command\":[\"x\"]}", &as_default, 0, PLAN_NETWORK_HOST},
        {"{\"command\":[\"x\"],\"network\":null}", &as_default, 0, PLAN_NETWORK_HOST},
        {"{\"command\":[\"x\"],\"network\":\"none\"}", &as_default, 0, PLAN_NETWORK_NONE},
        {"{\"command\":[\"x\"],\"network\":\"host\"}", &yes, 0, PLAN_NETWORK_HOST},
        {"{\"command\":[\"x\"],\"network\":\"host\"}", &no, -EINVAL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job j = parse(cases[i].json);
        assert_int_equal(lower_check_host(&j, cases[i].host, &e), cases[i].error);
        if (!cases[i].error) {
            lower_job(&j, cases[i].host, &staged, &low);
            assert_int_equal(low.start.network, cases[i].network);
        }
        job_done(&j);
    }
    assert_string_equal(e.text, "network: the host's network is not allowed: "
                                "SANDBOX_NETWORK_ALLOW_HOST is not set to true");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_disk_is_a_tmpfs),
        cmocka_unit_test(large_disk_is_a_folder),
        cmocka_unit_test(no_disk_still_has_sizes),
        cmocka_unit_test(scales),
        cmocka_unit_test(host_lowers_defaults_and_refuses_wishes),
        cmocka_unit_test(host_network_needs_leave),
        cmocka_unit_test(package_sets_need_a_root),
    };
    return cmocka_run_group_tests_name("lower", tests, NULL, NULL);
}
