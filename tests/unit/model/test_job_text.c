// Jobs that come whole as text: contents in base64, other callers' fields, packages.
#include "base/fd.h"
#include "model/job.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PY "\"language\":\"python\",\"code\":\"1\""
#define ABC_SHA256 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void takes_contents(void **state)
{
    (void)state;
    const char *json =
        "{" PY ",\"stdin_base64\":\"AAEC\",\"input_files\":[{\"target_path\":\"a\","
        "\"content_base64\":\"YWJj\",\"expected_size\":3,\"expected_checksum\":\"" ABC_SHA256
        "\",\"mode\":\"0755\"},{\"target_path\":\"b\",\"content_base64\":\"\","
        "\"expected_size\":null}],\"artifacts\":[{\"path\":\"x\",\"description\":\"d\"}],"
        "\"artifact_limits\":{\"max_size_mb\":0.5,\"max_total_size_mb\":2},"
        "\"session_id\":\"0193f0a1-0000-7000-8000-00000000000a\",\"timeout\":7}";
    struct job j;
    struct job_error e = {0};
    assert_int_equal(job_parse(json, strlen(json), 0, &j, &e), 0);
    assert_int_equal(j.stdin_len, 3);
    assert_memory_equal(j.stdin_data, "\0\1\2", 3);
    assert_int_equal(j.files[0].content_len, 3);
    assert_string_equal(j.files[0].content, "abc");
    assert_int_equal(j.files[0].mode, 0755);
    assert_int_equal(j.files[1].content_len, 0);
    assert_non_null(j.files[1].content);
    assert_string_equal(j.artifacts[0].description, "d");
    assert_int_equal(j.artifact_max_bytes, 512 << 10);
    assert_int_equal(j.artifacts_max_bytes, 2 << 20);
    assert_string_equal(j.session, "0193f0a1-0000-7000-8000-00000000000a");
    assert_int_equal(j.limits.value[LIMIT_TIMEOUT], 7000);
    job_done(&j);
}

static void takes_other_callers_jobs(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{" PY ",\"command\":[\"python\"],\"shell\":false,\"source\":\"tool\","
        "\"runtime_profile\":\"standard\",\"tenant_id\":null,\"python_packages\":[],"
        "\"js_packages\":[],\"python_package_index_url\":\"https://packages.example/simple\","
        "\"node_package_registry_url\":null,\"metadata\":{\"params\":{\"a\":2},\"other\":[]},"
        "\"limits\":{\"timeout_seconds\":30.0,\"disk_mb\":512},\"env\":{},\"session_id\":null}",
        "{\"language\":\"javascript\",\"code\":\"1\",\"command\":[\"nodejs\"],"
        "\"metadata\":{\"params\":{\"a\":2}}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job j;
        struct job_error e = {0};
        assert_int_equal(job_parse(rows[i], strlen(rows[i]), 0, &j, &e), 0);
        assert_int_equal(j.kind, JOB_SNIPPET);
        assert_null(j.argv);
        assert_string_equal(j.params, "{\"a\":2}");
        job_done(&j);
    }
    // What stands at the top is meant.
    const char *both = "{" PY ",\"params\":{\"a\":1},\"metadata\":{\"params\":{\"a\":2}}}";
    struct job j;
    struct job_error e;
    assert_int_equal(job_parse(both, strlen(both), 0, &j, &e), 0);
    assert_string_equal(j.params, "{\"a\":1}");
    job_done(&j);
    // A saved limit has the last word over a call's `timeout`.
    const char *limit = "{" PY ",\"timeout\":7,\"limits\":{\"timeout_seconds\":3}}";
    assert_int_equal(job_parse(limit, strlen(limit), 0, &j, &e), 0);
    assert_int_equal(j.limits.value[LIMIT_TIMEOUT], 3000);
    job_done(&j);
}

#define FILE_OF(more) "{" PY ",\"input_files\":[{\"target_path\":\"a\"," more "}]}"

static const struct {
    const char *json, *text;
} refused[] = {
    {FILE_OF("\"content_base64\":\"YWJ\""),
     "input_files[0].content_base64: \"YWJ\" is not base64 with its padding"},
    {FILE_OF("\"content_base64\":7"), "input_files[0].content_base64: must be base64, not 7"},
    {FILE_OF("\"content_base64\":null"), "input_files[0].content_base64: must be base64, not null"},
    {FILE_OF("\"content_base64\":\"YWJj\",\"expected_size\":4"),
     "input_files[0].expected_size: the content has 3 bytes, not 4"},
    {FILE_OF("\"content_base64\":\"YWJj\",\"expected_checksum\":\"00\""),
     "input_files[0].expected_checksum: the content's SHA-256 is " ABC_SHA256},
    {FILE_OF("\"content_base64\":\"YWJj\",\"fd\":0"),
     "input_files[0]: has both fd and content_base64"},
    {"{" PY ",\"stdin_base64\":\"!\"}", "stdin_base64: \"!\" is not base64 with its padding"},
    {"{" PY ",\"stdin_fd\":0,\"stdin_base64\":\"\"}",
     "stdin_base64: may not be given together with stdin_fd"},
    {"{" PY ",\"session_id\":\"../x\"}", "session_id: \"../x\" is not an id"},
    {"{" PY ",\"session_id\":\"0193F0A1-0000-7000-8000-00000000000A\"}",
     "session_id: \"0193F0A1-0000-7000-8000-00000000000A\" is not an id"},
    {"{" PY ",\"timeout\":61}", "timeout: must be a whole number of seconds, 1 to 60, not 61"},
    {"{" PY ",\"timeout\":\"5\"}",
     "timeout: must be a whole number of seconds, 1 to 60, not \"5\""},
    {"{" PY ",\"artifact_limits\":{\"max_size_mb\":0}}",
     "artifact_limits.max_size_mb: must be a number above 0, at most 1024 MB, not 0"},
    {"{" PY ",\"artifact_limits\":{\"max_total_size_mb\":4097}}",
     "artifact_limits.max_total_size_mb: must be a number above 0, at most 4096 MB, not 4097"},
    {"{" PY ",\"artifact_limits\":{\"x\":1}}", "artifact_limits.x: unknown field (value 1)"},
    {"{" PY ",\"shell\":true}", "shell: needs a command"},
    {"{" PY ",\"shell\":\"yes\"}", "shell: must be true or false, not \"yes\""},
    {"{" PY ",\"command\":[\"python\",\"-c\",\"1\"]}",
     "command: may not be given together with code"},
    {"{" PY ",\"command\":[\"node\"]}", "command: may not be given together with code"},
    {"{" PY ",\"metadata\":[]}", "metadata: must be an object, not []"},
    {"{" PY ",\"metadata\":{\"params\":1}}", "params: must be an object, not 1"},
    {"{" PY ",\"network\":\"proxy\"}", "network: proxy is not available in this version"},
    {"{" PY ",\"network\":\"a\\nb\"}", "network: \"a\\nb\" is neither none nor host"},
    {"{" PY ",\"python_packages\":[\"requests==2.32.3\"]}",
     "python_packages: \"requests==2.32.3\": this version installs no packages; package_sets names "
     "what the operator has prepared"},
    {"{" PY ",\"js_packages\":[\"@a/b@1.0.0\"]}",
     "js_packages: \"@a/b@1.0.0\": this version installs no packages; package_sets names what the "
     "operator has prepared"},
    // One package twice, in whichever spelling and version.
    {"{" PY ",\"python_packages\":[\"a==1\",\"a==1\"]}",
     "python_packages[1]: \"a\" is there twice, as [0]"},
    {"{" PY ",\"python_packages\":[\"b==1\",\"a==1\",\"A[x]==2\"]}",
     "python_packages[2]: \"A\" is there twice, as [1]"},
    {"{" PY ",\"python_packages\":[\"my-pack==1\",\"My._Pack==1\"]}",
     "python_packages[1]: \"My._Pack\" is there twice, as [0]"},
    {"{" PY ",\"python_packages\":[\"a-b==1\",\"ab==1\",\"a-b-==1\",\"a==1\"]}",
     "python_packages: \"a-b==1\": this version installs no packages; package_sets names what the "
     "operator has prepared"},
    {"{" PY ",\"js_packages\":[\"@a/b@1.0.0\",\"@a/b@2.0.0\"]}",
     "js_packages[1]: \"@a/b\" is there twice, as [0]"},
    {"{" PY ",\"js_packages\":[\"b@1\",\"@a/b@1\",\"B@1\",\"b.@1\"]}",
     "js_packages: \"b@1\": this version installs no packages; package_sets names what the "
     "operator "
     "has prepared"},
    {"{" PY ",\"python_packages\":[\"requests\"]}",
     "python_packages[0]: must be NAME==VERSION, not \"requests\""},
    {"{" PY ",\"python_packages\":[\"a[b]==1\",\"--index-url==1\"]}",
     "python_packages[1]: must be NAME==VERSION, not \"--index-url==1\""},
    {"{" PY ",\"python_packages\":[\"a[==1\"]}",
     "python_packages[0]: must be NAME==VERSION, not \"a[==1\""},
    {"{" PY ",\"js_packages\":[\"../x@1\"]}",
     "js_packages[0]: must be NAME@VERSION, not \"../x@1\""},
    {"{" PY ",\"js_packages\":[\"a@latest\"]}",
     "js_packages[0]: must be NAME@VERSION, not \"a@latest\""},
    {"{" PY ",\"js_packages\":[\"\"]}", "js_packages[0]: must be NAME@VERSION, not \"\""},
    {"{" PY ",\"python_package_index_url\":\"https://u:p@h/\"}",
     "python_package_index_url: must be an http or https URL without name and password, not "
     "\"https://u:p@h/\""},
    {"{" PY ",\"node_package_registry_url\":\"file:///etc/passwd\"}",
     "node_package_registry_url: must be an http or https URL without name and password, not "
     "\"file:///etc/passwd\""},
};

static void refuses_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct job j;
        struct job_error e = {"", ""};
        assert_int_equal(job_parse(refused[i].json, strlen(refused[i].json), 1, &j, &e), -EINVAL);
        assert_string_equal(e.text, refused[i].text);
        job_done(&j);
    }
    const char *no_content = FILE_OF("\"mode\":\"0644\"");
    struct job j;
    struct job_error e;
    assert_int_equal(job_parse(no_content, strlen(no_content), 0, &j, &e), -EINVAL);
    assert_string_equal(e.text, "input_files[0].content_base64: is missing");
    job_done(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_contents),
        cmocka_unit_test(takes_other_callers_jobs),
        cmocka_unit_test(refuses_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
