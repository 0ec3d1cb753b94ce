// SandboxResult: order of keys, nulls, exit statuses.
#include "base/fd.h"
#include "codec/json.h"
#include "model/media.h"
#include "model/result.h"
#include "plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ID "0193f1c2-0000-7000-8000-000000000000"

static char *write_out(const struct result *r)
{
    struct buf out = BUF_INIT(1 << 20);
    struct json_error e;
    assert_int_equal(result_write(&out, r), 0);
    assert_int_equal(json_check(out.data, out.len, &e), 0);
    return buf_take(&out);
}

static void a_timeout_reads_as_documented(void **state)
{
    (void)state;
    struct result r;
    result_init(&r, ID, 1000, 1000);
    result_fail(&r, REASON_TIMEOUT, STAGE_EXECUTION, "Execution timeout (%.1fs)", 2.0);
    result_fail(&r, REASON_ERROR, STAGE_EXECUTION, "later verdicts do not count");
    r.signal = 15;
    buf_puts(&r.out, "before\n");
    r.usage.wall_ms = 2013;
    r.usage.cpu_ms = 41;
    r.usage.memory_peak_bytes = 9437184;
    r.usage.pids_peak = 2;
    r.usage.stdout_bytes = 7;
    r.isolation.isolated = true;
    r.isolation.launcher = "native";
    r.isolation.start = "cold";
    r.isolation.network = "none";
    r.queued_at = r.started_at = r.prepare_started_at = 1795952179000;
    r.prepare_completed_at = r.execute_started_at = 1795952179005;
    r.execute_completed_at = 1795952181018;
    r.completed_at = 1795952181030;
    AUTO_FREE char *text = write_out(&r);
    assert_string_equal(
        text,
        "{\"job_id\":\"" ID "\",\"success\":false,\"status\":\"failed\",\"reason\":\"timeout\","
        "\"result\":null,\"error\":\"Execution timeout (2.0s)\",\"exit_code\":null,\"signal\":15,"
        "\"stdout\":\"before\\n\",\"stderr\":\"\","
        "\"truncated\":{\"stdout\":false,\"stderr\":false,\"artifacts\":false},\"artifacts\":[],"
        "\"usage\":{\"wall_ms\":2013,\"cpu_ms\":41,\"memory_peak_bytes\":9437184,\"disk_bytes\":"
        "null,"
        "\"pids_peak\":2,\"stdout_bytes\":7,\"stderr_bytes\":0},"
        "\"isolation\":{\"level\":\"full\",\"launcher\":\"native\",\"start\":\"cold\","
        "\"network\":\"none\",\"downgrades\":[],\"fallback\":null},\"packages\":null,"
        "\"metadata\":{\"status\":\"failed\",\"stage\":\"execution\","
        "\"queued_at\":\"2026-11-29T11:36:19Z\",\"started_at\":\"2026-11-29T11:36:19Z\","
        "\"prepare_started_at\":\"2026-11-29T11:36:19Z\","
        "\"prepare_completed_at\":\"2026-11-29T11:36:19.005000Z\","
        "\"install_started_at\":null,\"install_completed_at\":null,"
        "\"execute_started_at\":\"2026-11-29T11:36:19.005000Z\","
        "\"execute_completed_at\":\"2026-11-29T11:36:21.018000Z\","
        "\"collect_started_at\":null,\"collect_completed_at\":null,"
        "\"completed_at\":\"2026-11-29T11:36:21.030000Z\","
        "\"duration_ms\":2030,\"queue_wait_ms\":0,\"prepare_ms\":5,\"install_duration_ms\":0,"
        "\"install_ms\":0,\"execute_ms\":2013,\"collect_ms\":0,\"total_ms\":2030,"
        "\"cache_hit_python\":false,\"cache_hit_node\":false,\"exit_code\":1,\"worker_id\":null}}");
    result_done(&r);
}

static void success_and_artifacts(void **state)
{
    (void)state;
    struct result r;
    result_init(&r, ID, 1000, 1000);
    r.exit_code = 0;
    r.value = strdup("{\"n\":12345678901234567890}");
    r.value_len = strlen(r.value);
    buf_add(&r.err, "\xff\0", 2);
    r.n_artifacts = 1;
    r.artifacts = calloc(1, sizeof *r.artifacts);
    r.artifacts[0] = (struct result_artifact){
        .path = strdup("output/\"x\".png"), .filename = strdup("\"x\".png"), .size_bytes = 5};
    r.isolation.isolated = true;
    r.isolation.downgrades = 1 << 1 | 1 << 6;
    AUTO_FREE char *text = write_out(&r);
    assert_non_null(strstr(text, "\"success\":true,\"status\":\"completed\",\"reason\":\"ok\","
                                 "\"result\":{\"n\":12345678901234567890},\"error\":null,"
                                 "\"exit_code\":0,\"signal\":null"));
    assert_non_null(strstr(text, "\"stderr\":\"\xef\xbf\xbd\\u0000\""));
    assert_non_null(strstr(text, "{\"path\":\"/workspace/output/\\\"x\\\".png\",\"optional\":false,"
                                 "\"description\":null,\"file_type\":\"file\",\"size\":5,"
                                 "\"checksum\":null"));
    assert_non_null(strstr(text, "\"level\":\"degraded\""));
    assert_non_null(strstr(text, "\"downgrades\":[\"no_landlock\",\"single_uid\"]"));
    assert_non_null(strstr(text, "\"stage\":null"));
    result_done(&r);
}

static void times_are_in_order_when_the_clock_is_set_back(void **state)
{
    (void)state;
    struct result r;
    result_init(&r, ID, 0, 0);
    r.queued_at = 1795952179000;
    r.started_at = r.queued_at - 86400000;
    r.execute_started_at = r.started_at + 5;
    r.completed_at = r.queued_at + 1000;
    AUTO_FREE char *text = write_out(&r);
    assert_non_null(strstr(text, "\"started_at\":\"2026-11-29T11:36:19Z\","
                                 "\"prepare_started_at\":null"));
    assert_non_null(strstr(text, "\"execute_started_at\":\"2026-11-29T11:36:19Z\""));
    assert_non_null(strstr(text, "\"completed_at\":\"2026-11-29T11:36:20Z\""));
    assert_non_null(strstr(text, "\"queue_wait_ms\":0,"));
    result_done(&r);
}

static void nothing_ran_is_level_none(void **state)
{
    (void)state;
    struct result r;
    result_init(&r, ID, 0, 0);
    result_fail(&r, REASON_INTERNAL, STAGE_PREPARATION, "x");
    AUTO_FREE char *text = write_out(&r);
    assert_non_null(strstr(text, "\"isolation\":{\"level\":\"none\",\"launcher\":null"));
    result_done(&r);
}

// What ran without a sandbox was isolated by nothing, whatever else is listed; and says why.
static void without_a_sandbox_is_level_none(void **state)
{
    (void)state;
    struct result r;
    result_init(&r, ID, 0, 0);
    r.isolation.isolated = true;
    r.isolation.launcher = "none";
    r.isolation.network = "none";
    r.isolation.downgrades = PLAN_NO_ISOLATION | PLAN_HOST_NETWORK;
    r.isolation.fallback = strdup("step clone: x");
    AUTO_FREE char *text = write_out(&r);
    assert_non_null(strstr(text, "\"isolation\":{\"level\":\"none\",\"launcher\":\"none\""));
    assert_non_null(strstr(text, "\"network\":\"host\",\"downgrades\":[\"network_host\","
                                 "\"no_isolation\"],\"fallback\":\"step clone: x\"}"));
    result_done(&r);
}

static void exit_statuses(void **state)
{
    (void)state;
    static const struct {
        enum reason reason;
        int exit_code, signal, status;
    } cases[] = {
        {REASON_OK, 0, 0, 0},
        {REASON_ERROR, 3, 0, 3},
        {REASON_ERROR, 255, 0, 255},
        {REASON_ERROR, 0, 0, 1}, // exited 0 without success
        {REASON_ERROR, -1, 11, 139},
        {REASON_ERROR, -1, 9, 137},
        {REASON_ERROR, 137, 0, 137},
        {REASON_ERROR, -1, 0, 1},
        {REASON_TIMEOUT, 0, 0, 124},
        {REASON_TIMEOUT, -1, 9, 124},
        {REASON_CPU_LIMIT, -1, 9, 124},
        {REASON_MEMORY_LIMIT, -1, 9, 137},
        {REASON_DISK_LIMIT, -1, 9, 125},
        {REASON_RESULT_TOO_LARGE, 0, 0, 1},
        {REASON_ARTIFACT, 0, 0, 1},
        {REASON_CANCELLED, -1, 15, 130},
        {REASON_ISOLATION_UNAVAILABLE, -1, 0, 125},
        {REASON_INTERNAL, -1, 0, 125},
        {REASON_POLICY, -1, 0, 125},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct result r = {
            .reason = cases[i].reason, .exit_code = cases[i].exit_code, .signal = cases[i].signal};
        assert_int_equal(result_exit_status(&r), cases[i].status);
    }
}

static void every_name_exists(void **state)
{
    (void)state;
    for (int i = 0; i < REASON_COUNT; i++) {
        assert_non_null(reason_names[i]);
    }
    for (size_t i = 0; i < n_downgrades; i++) {
        assert_true(downgrades[i].name[0] && downgrades[i].lost[0] && downgrades[i].fix[0]);
    }
}

static void artifacts_have_addresses_where_there_is_a_service(void **state)
{
    (void)state;
    struct result r;
    result_init(&r, ID, 100, 100);
    r.n_artifacts = 1;
    r.artifacts = calloc(1, sizeof *r.artifacts);
    r.artifacts[0] = (struct result_artifact){.path = strdup("d"),
                                              .filename = strdup("ü \"100%.ZIP"),
                                              .size_bytes = 3,
                                              .folder = true,
                                              .sha256 = "abc"};
    r.artifact_urls = "/api/jobs/";
    AUTO_FREE char *text = write_out(&r);
    assert_non_null(strstr(text, "\"url\":\"/api/jobs/" ID "/artifacts/%C3%BC%20%22100%25.ZIP\""));
    assert_non_null(strstr(text, "\"file_type\":\"directory\""));
    assert_non_null(strstr(text, "\"checksum\":\"abc\",\"content_type\":\"application/zip\""));
    result_done(&r);
}

static void types_go_by_the_name(void **state)
{
    (void)state;
    assert_string_equal(media_type("a/b.CSV"), "text/csv");
    assert_string_equal(media_type("b.svg"), "image/svg+xml");
    assert_string_equal(media_type_inert("b.svg"), "application/octet-stream");
    assert_string_equal(media_type_inert("b.png"), "image/png");
    assert_string_equal(media_type("png"), "application/octet-stream");
    assert_string_equal(media_type("a.png.exe"), "application/octet-stream");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timeout_reads_as_documented),
        cmocka_unit_test(success_and_artifacts),
        cmocka_unit_test(artifacts_have_addresses_where_there_is_a_service),
        cmocka_unit_test(types_go_by_the_name),
        cmocka_unit_test(times_are_in_order_when_the_clock_is_set_back),
        cmocka_unit_test(nothing_ran_is_level_none),
        cmocka_unit_test(without_a_sandbox_is_level_none),
        cmocka_unit_test(exit_statuses),
        cmocka_unit_test(every_name_exists),
    };
    return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
