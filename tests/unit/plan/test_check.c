// plan_check(): what a launcher may act on, field by field.
#include "plan/plan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct plan_request good_start(void)
{
    return (struct plan_request){
        .op = PLAN_START,
        .uid = PLAN_UID_WORKSPACE_0,
        .filter = PLAN_FILTER_FOLDER,
        .workspace_kind = PLAN_WORKSPACE_FOLDER,
        .limits = {.memory_bytes = 1,
                   .tmp_bytes = 1,
                   .tmp_inodes = 1,
                   .file_bytes = 1,
                   .cpu_percent = 1,
                   .pids = 1,
                   .nofile = 1},
        .workspace = "once/r1",
    };
}

static void expect(const struct plan_request *q, int n_fds, int error, const char *field)
{
    const char *got = NULL;
    assert_int_equal(plan_check(q, n_fds, &got), error);
    if (error) {
        assert_string_equal(got, field);
    } else {
        assert_null(got);
    }
}

static void test_good_requests(void **state)
{
    (void)state;
    const struct plan_request start = good_start();
    expect(&start, PLAN_N_START_FDS, 0, NULL);
    struct plan_request parked = start;
    parked.id = 7;
    expect(&parked, PLAN_N_START_FDS, 0, NULL);
    struct plan_request tmpfs = start;
    tmpfs.workspace_kind = PLAN_WORKSPACE_TMPFS;
    tmpfs.workspace_no = PLAN_MAX_TMPFS - 1;
    tmpfs.filter = PLAN_FILTER_TMPFS;
    memset(tmpfs.workspace, 'X', sizeof tmpfs.workspace); // not looked at
    expect(&tmpfs, PLAN_N_START_FDS, 0, NULL);
    struct plan_request session = start;
    session.tmp_folder = 1;
    session.limits.tmp_bytes = session.limits.tmp_inodes = 0;
    expect(&session, PLAN_N_START_FDS, 0, NULL);
    const struct plan_request others[] = {
        {.op = PLAN_PREPARE},
        {.op = PLAN_SIGNAL, .id = 1, .signal = 64},
        {.op = PLAN_KILL, .id = UINT32_MAX},
        {.op = PLAN_SAMPLE, .id = 1},
        {.op = PLAN_EXECUTION, .id = 1},
        {.op = PLAN_TMPFS, .uid = PLAN_UID_WORKSPACE_END - 1, .size_bytes = 1, .size_inodes = 1},
        {.op = PLAN_TMPFS_DROP, .workspace_no = PLAN_MAX_TMPFS - 1},
        {.op = PLAN_SET_DROP, .sets = {PLAN_MAX_SETS - 1}},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        expect(&others[i], 0, 0, NULL);
    }
    const struct plan_request add = {.op = PLAN_SET_ADD};
    expect(&add, 1, 0, NULL);
}

static void test_operations(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < 40; op++) {
        struct plan_request q = {.op = op, .id = 1};
        const char *field = NULL;
        int e = plan_check(&q, 0, &field);
        if (op == 0 || op < PLAN_PREPARE ||
            op >= PLAN_OP_END) { // the launcher's own are no requests
            assert_int_equal(e, -EINVAL);
            assert_string_equal(field, "op");
        }
    }
    struct plan_request q = {.op = UINT32_MAX};
    expect(&q, 0, -EINVAL, "op");
}

static void test_descriptors(void **state)
{
    (void)state;
    const struct plan_request start = good_start(), kill = {.op = PLAN_KILL, .id = 1},
                              add = {.op = PLAN_SET_ADD};
    expect(&start, PLAN_N_START_FDS - 1, -EINVAL, "descriptors");
    expect(&start, PLAN_N_START_FDS + 1, -EINVAL, "descriptors");
    expect(&start, 0, -EINVAL, "descriptors");
    expect(&kill, 1, -EINVAL, "descriptors");
    expect(&add, 0, -EINVAL, "descriptors");
}

static void test_uids(void **state)
{
    (void)state;
    static const uint32_t bad[] = {
        PLAN_UID_LAUNCHER,        PLAN_UID_SERVICE,       PLAN_UID_ZYGOTE_0, PLAN_UID_SLOT_0,
        PLAN_UID_WORKSPACE_0 - 1, PLAN_UID_WORKSPACE_END, UINT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct plan_request q = good_start();
        q.uid = bad[i];
        expect(&q, PLAN_N_START_FDS, -EPERM, "uid");
        struct plan_request t = {
            .op = PLAN_TMPFS, .uid = bad[i], .size_bytes = 1, .size_inodes = 1};
        expect(&t, 0, -EPERM, "uid");
    }
}

// Each limit at 0 and past its bound; 0 never means unlimited.
static void test_limits(void **state)
{
    (void)state;
    static const struct {
        size_t offset, size;
        const char *field;
        int zero_error;
    } limits[] = {
#define LIMIT(member, zero)                                                                        \
    {offsetof(struct plan_limits, member), sizeof(((struct plan_limits *)0)->member),              \
     "limits." #member, zero}
        LIMIT(memory_bytes, -ERANGE), LIMIT(cpu_ns, 0),           LIMIT(tmp_bytes, -ERANGE),
        LIMIT(file_bytes, -ERANGE),   LIMIT(tmp_inodes, -ERANGE), LIMIT(cpu_percent, -ERANGE),
        LIMIT(pids, -ERANGE),         LIMIT(nofile, -ERANGE),
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct plan_request q = good_start();
        memset((char *)&q.limits + limits[i].offset, 0, limits[i].size);
        expect(&q, PLAN_N_START_FDS, limits[i].zero_error, limits[i].field);
        memset((char *)&q.limits + limits[i].offset, 0xff, limits[i].size);
        expect(&q, PLAN_N_START_FDS, -ERANGE, limits[i].field);
    }
    struct plan_request t = {.op = PLAN_TMPFS, .uid = PLAN_UID_WORKSPACE_0, .size_inodes = 1};
    expect(&t, 0, -ERANGE, "size_bytes");
    t.size_bytes = 1;
    t.size_inodes = 0;
    expect(&t, 0, -ERANGE, "size_inodes");
}

static void test_fields(void **state)
{
    (void)state;
    const struct {
        size_t offset;
        uint32_t value;
        int error;
        const char *field;
    } bad[] = {
        {offsetof(struct plan_request, filter), PLAN_N_FILTERS, -EINVAL, "filter"},
        {offsetof(struct plan_request, filter), PLAN_FILTER_TMPFS, -EINVAL, "filter"},
        {offsetof(struct plan_request, network), PLAN_N_NETWORKS, -EINVAL, "network"},
        {offsetof(struct plan_request, rung), PLAN_RUNG_NONE + 1, -EINVAL, "rung"},
        {offsetof(struct plan_request, workspace_kind), 2, -EINVAL, "workspace_kind"},
        {offsetof(struct plan_request, tmp_folder), 2, -EINVAL, "tmp_folder"},
        {offsetof(struct plan_request, has_frames), UINT32_MAX, -EINVAL, "has_frames"},
        {offsetof(struct plan_request, plain), 2, -EINVAL, "plain"},
        {offsetof(struct plan_request, unused), 1, -EINVAL, "unused"},
        {offsetof(struct plan_request, n_sets), PLAN_SETS_PER_JOB + 1, -EINVAL, "n_sets"},
        {offsetof(struct plan_request, n_sets), UINT32_MAX, -EINVAL, "n_sets"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct plan_request q = good_start();
        memcpy((char *)&q + bad[i].offset, &bad[i].value, sizeof bad[i].value);
        expect(&q, PLAN_N_START_FDS, bad[i].error, bad[i].field);
    }
    struct plan_request q = good_start();
    q.n_sets = 2;
    q.sets[1] = PLAN_MAX_SETS;
    expect(&q, PLAN_N_START_FDS, -ERANGE, "sets");
    q = good_start();
    q.workspace_kind = PLAN_WORKSPACE_TMPFS;
    q.workspace_no = PLAN_MAX_TMPFS;
    expect(&q, PLAN_N_START_FDS, -ERANGE, "workspace_no");
    q.workspace_no = 0;
    q.tmp_folder = 1;
    expect(&q, PLAN_N_START_FDS, -EINVAL, "tmp_folder");
    struct plan_request s = {.op = PLAN_SIGNAL, .id = 1};
    expect(&s, 0, -EINVAL, "signal");
    s.signal = 65;
    expect(&s, 0, -EINVAL, "signal");
    struct plan_request k = {.op = PLAN_KILL};
    expect(&k, 0, -EINVAL, "id");
}

static void test_names(void **state)
{
    (void)state;
    static const char *const good[] = {"once/r1", "kept/a-b-c", "k/0", "0/z9"};
    static const char *const bad[] = {
        "",        "/",       "once",     "once/",    "/once/r1",      "once/r1/",   "once//r1",
        "once/..", "../once", "./r1",     "once/.",   "once/r1/w",     "once/-r",    "-o/r",
        "once/R1", "once/r_", "once/r 1", "once/r\n", "once/\xc3\xa9", "once/r1/..",
    };
    char name[PLAN_NAME_MAX];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(name, sizeof name, "%s", good[i]);
        assert_int_equal(plan_check_name(name), 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(name, sizeof name, "%s", bad[i]);
        assert_int_equal(plan_check_name(name), -EINVAL);
    }
    memset(name, 'a', sizeof name); // no end
    name[3] = '/';
    assert_int_equal(plan_check_name(name), -EINVAL);
    name[sizeof name - 1] = '\0';
    assert_int_equal(plan_check_name(name), 0);
    memset(name, 'a', sizeof name);
    name[2] = '\0'; // what follows the end does not count
    name[5] = '/';
    assert_int_equal(plan_check_name(name), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_requests), cmocka_unit_test(test_operations),
        cmocka_unit_test(test_descriptors),   cmocka_unit_test(test_uids),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
