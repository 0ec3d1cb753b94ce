// The job parser: what it takes, and every refusal by name of the field.
#include "base/fd.h"
#include "model/job.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { FDS = 3 };

#define PY "\"language\":\"python\",\"code\":\"1\""

static void takes_a_whole_job(void **state)
{
    (void)state;
    const char *json =
        "{\"language\":\"javascript\",\"code\":\"return 1\\n\",\"code_name\":\"a.js\","
        "\"params\":{\"n\":12345678901234567890.10,\"s\":\"\\u6771\"},\"command\":[],"
        "\"env\":{\"A\":\"1\",\"_b2\":\"x=y\"},\"cwd\":\"output\","
        "\"limits\":{\"timeout_seconds\":2.5,\"memory_mb\":256,\"cpu_seconds\":null},"
        "\"input_files\":[{\"target_path\":\"/workspace/input/a\",\"fd\":2,\"mode\":\"0755\"},"
        "{\"target_path\":\"b\",\"fd\":0}],\"stdin_fd\":1,"
        "\"artifacts\":[\"output/x.png\",{\"path\":\"y\",\"optional\":true}]}";
    struct job j;
    struct job_error e;
    assert_int_equal(job_parse(json, strlen(json), FDS, &j, &e), 0);
    assert_int_equal(strlen(j.id), 36);
    assert_int_equal(j.kind, JOB_SNIPPET);
    assert_int_equal(j.language, LANGUAGE_JAVASCRIPT);
    assert_string_equal(j.code, "return 1\n");
    assert_int_equal(j.code_len, 9);
    assert_string_equal(j.code_name, "a.js");
    assert_string_equal(j.params, "{\"n\":12345678901234567890.10,\"s\":\"\xe6\x9d\xb1\"}");
    assert_null(j.argv);
    assert_string_equal(j.env[0], "A=1");
    assert_string_equal(j.env[1], "_b2=x=y");
    assert_null(j.env[2]);
    assert_string_equal(j.cwd, "/workspace/output");
    assert_int_equal(j.limits.value[LIMIT_TIMEOUT], 2500);
    assert_int_equal(j.limits.source[LIMIT_TIMEOUT], LIMIT_FROM_JOB);
    assert_int_equal(j.limits.source[LIMIT_PIDS], LIMIT_FROM_DEFAULT);
    assert_int_equal(j.limits.value[LIMIT_CPU], 0);
    assert_int_equal(j.n_files, 2);
    assert_string_equal(j.files[0].target, "input/a");
    assert_int_equal(j.files[0].mode, 0755);
    assert_int_equal(j.n_artifacts, 2);
    assert_false(j.artifacts[0].optional);
    assert_true(j.artifacts[1].optional);
    int fds[FDS];
    for (int i = 0; i < FDS; i++) {
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    int kept[FDS];
    memcpy(kept, fds, sizeof kept);
    job_bind(&j, fds, FDS);
    assert_int_equal(j.files[0].fd, kept[2]);
    assert_int_equal(j.files[1].fd, kept[0]);
    assert_int_equal(j.stdin_fd, kept[1]);
    for (int i = 0; i < FDS; i++) {
        assert_int_equal(fds[i], -1);
    }
    job_done(&j);
    for (int i = 0; i < FDS; i++) {
        assert_int_equal(fcntl(kept[i], F_GETFD), -1);
    }
}

static void defaults(void **state)
{
    (void)state;
    static const struct {
        const char *json, *name;
        enum job_kind kind;
    } cases[] = {
        {"{" PY "}", "snippet.py", JOB_SNIPPET},
        {"{\"language\":\"javascript\",\"code\":\"\"}", "snippet.js", JOB_SNIPPET},
        {"{\"language\":\"bash\",\"code\":\"x\",\"params\":{}}", "script.sh", JOB_SCRIPT},
        {"{\"language\":null,\"code\":null,\"command\":[\"ls\"],\"stdin_fd\":null}", NULL,
         JOB_COMMAND},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job j;
        struct job_error e;
        assert_int_equal(job_parse(cases[i].json, strlen(cases[i].json), 0, &j, &e), 0);
        assert_int_equal(j.kind, cases[i].kind);
        assert_string_equal(j.cwd, "/workspace");
        assert_string_equal(j.params, "{}");
        assert_int_equal(j.params_len, 2);
        assert_null(j.env[0]);
        assert_int_equal(j.stdin_fd, -1);
        if (cases[i].name) {
            assert_string_equal(j.code_name, cases[i].name);
        } else {
            assert_null(j.code_name);
        }
        job_done(&j);
    }
}

static const struct {
    const char *json, *text; // the whole message
} refused[] = {
    {"", "job: not valid JSON: empty text at byte 0"},
    {"[]", "job: must be an object, not []"},
    {"{\"colour\":1," PY "}", "colour: unknown field (value 1)"},
    {"{\"Code\":1," PY "}", "Code: unknown field (value 1); is code meant?"},
    {"{\"artefacts\":1," PY "}", "artefacts: unknown field (value 1); is artifacts meant?"},
    {"{}", "code: is missing: a job needs code or command"},
    {"{\"code\":\"1\"}", "language: is missing: python, javascript or bash"},
    {"{\"language\":\"ruby\",\"code\":\"1\"}",
     "language: unknown language \"ruby\"; python, javascript or bash"},
    {"{\"language\":\"none\",\"code\":\"1\"}",
     "language: unknown language \"none\"; python, javascript or bash"},
    {"{\"language\":1,\"code\":\"1\"}", "language: unknown language 1; python, javascript or bash"},
    {"{" PY ",\"command\":[\"ls\"]}", "command: may not be given together with code"},
    {"{\"language\":\"python\",\"command\":[\"ls\"]}", "language: may not be given with command"},
    {"{\"language\":\"python\",\"code\":[1]}", "code: must be a string, not [1]"},
    {"{" PY ",\"code_name\":\"a/b\"}", "code_name: must be the name of a file, not \"a/b\""},
    {"{" PY ",\"code_name\":\"..\"}", "code_name: must be the name of a file, not \"..\""},
    {"{" PY ",\"code_name\":\"a\\u0000b\"}", "code_name: contains a NUL"},
    {"{" PY ",\"params\":[1]}", "params: must be an object, not [1]"},
    {"{\"command\":[\"ls\"],\"params\":{\"a\":1}}",
     "params: only a python or javascript snippet takes them"},
    {"{\"command\":\"ls\"}", "command: must be an array of strings, not \"ls\""},
    {"{\"command\":[\"\"]}", "command[0]: is empty: the first word is the program"},
    {"{\"command\":[\"a\",\"b\\u0000\"]}", "command[1]: contains a NUL"},
    {"{\"command\":[\"a\",1]}", "command[1]: must be a string, not 1"},
    {"{" PY ",\"env\":{\"1A\":\"\"}}",
     "env: \"1A\" is not a name: letters, digits and _ (at most 255)"},
    {"{" PY ",\"env\":{\"A=B\":\"\"}}",
     "env: \"A=B\" is not a name: letters, digits and _ (at most 255)"},
    {"{" PY ",\"env\":{\"\":\"\"}}",
     "env: \"\" is not a name: letters, digits and _ (at most 255)"},
    {"{" PY ",\"env\":{\"A\":1}}", "env.A: must be a string, not 1"},
    {"{" PY ",\"env\":{\"A\":\"\\u0000\"}}", "env.A: contains a NUL"},
    {"{" PY ",\"env\":[]}", "env: must be an object of strings, not []"},
    {"{" PY ",\"cwd\":\"/etc\"}", "cwd: \"/etc\" is outside /workspace"},
    {"{" PY ",\"cwd\":\"a/../..\"}", "cwd: \"a/../..\" may not contain \"..\""},
    {"{" PY ",\"cwd\":5}", "cwd: must be a string, not 5"},
    {"{" PY ",\"limits\":5}", "limits: must be an object, not 5"},
    {"{" PY ",\"limits\":{\"timeout\":5}}",
     "limits.timeout: unknown limit; is timeout_seconds meant?"},
    {"{" PY ",\"limits\":{\"memory_bm\":5}}",
     "limits.memory_bm: unknown limit; is memory_mb meant?"},
    {"{" PY ",\"limits\":{\"wishes\":3}}", "limits.wishes: unknown limit"},
    {"{" PY ",\"stdin_fd\":3}", "stdin_fd: 3 is not one of the 3 descriptors that came along"},
    {"{" PY ",\"stdin_fd\":-1}", "stdin_fd: -1 is not one of the 3 descriptors that came along"},
    {"{" PY ",\"stdin_fd\":1e99}",
     "stdin_fd: 1e99 is not one of the 3 descriptors that came along"},
    {"{" PY ",\"package_sets\":\"a\"}", "package_sets: must be an array of strings, not \"a\""},
    {"{" PY ",\"package_sets\":[\"a\",1]}", "package_sets[1]: must be a string, not 1"},
    {"{" PY ",\"package_sets\":[\"a\",\"a\"]}", "package_sets[1]: \"a\" is given twice"},
    {"{" PY ",\"package_sets\":[\"..\"]}",
     "package_sets[0]: \"..\" is not a name: letters, digits and . _ - inside (at most 64)"},
    {"{" PY ",\"package_sets\":[\"a/b\"]}",
     "package_sets[0]: \"a/b\" is not a name: letters, digits and . _ - inside (at most 64)"},
    {"{" PY ",\"package_sets\":[\"a\\u0000b\"]}",
     "package_sets[0]: \"a\\u0000b\" is not a name: letters, digits and . _ - inside (at most 64)"},
    {"{" PY ",\"package_sets\":[\"\"]}",
     "package_sets[0]: \"\" is not a name: letters, digits and . _ - inside (at most 64)"},
    {"{" PY ",\"package_sets\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]}",
     "package_sets: 9 are above the maximum of 8"},
    {"{" PY ",\"input_files\":{}}", "input_files: must be an array, not {}"},
    {"{" PY ",\"input_files\":[1]}", "input_files[0]: must be an object, not 1"},
    {"{" PY ",\"input_files\":[{\"fd\":0}]}",
     "input_files[0].target_path: must be given, a string"},
    {"{" PY ",\"input_files\":[{\"target_path\":\"a\"}]}", "input_files[0].fd: is missing"},
    {"{" PY ",\"input_files\":[{\"target_path\":\".\",\"fd\":0}]}",
     "input_files[0].target_path: must name a file below /workspace"},
    {"{" PY ",\"input_files\":[{\"target_path\":\"a\",\"fd\":0,\"x\":1}]}",
     "input_files[0].x: unknown field (value 1)"},
    {"{" PY ",\"input_files\":[{\"target_path\":\"a\",\"fd\":0,\"mode\":511}]}",
     "input_files[0].mode: must be \"0644\" or \"0755\", not 511"},
    {"{" PY ",\"input_files\":[{\"target_path\":\"a\",\"fd\":0},{\"target_path\":\"b\",\"fd\":0}]}",
     "input_files[1].fd: descriptor 0 is named twice"},
    {"{" PY
     ",\"input_files\":[{\"target_path\":\"a\",\"fd\":0},{\"target_path\":\"./a\",\"fd\":1}]}",
     "input_files[1].target_path: \"a\" is in the way of input_files[0]"},
    {"{" PY
     ",\"input_files\":[{\"target_path\":\"a/b\",\"fd\":0},{\"target_path\":\"a\",\"fd\":1}]}",
     "input_files[1].target_path: \"a\" is in the way of input_files[0]"},
    {"{" PY ",\"artifacts\":[5]}", "artifacts[0]: must be a path"},
    {"{" PY ",\"artifacts\":[\"/tmp/x\"]}", "artifacts[0]: \"/tmp/x\" is outside /workspace"},
    {"{" PY ",\"artifacts\":[{\"path\":\"a\\u0000b\"}]}",
     "artifacts[0].path: \"a\\u0000b\" contains a NUL"},
    {"{" PY ",\"artifacts\":[{\"path\":\"a\",\"optional\":1}]}",
     "artifacts[0].optional: must be true or false, not 1"},
    {"{" PY ",\"artifacts\":[\"/workspace\"]}", "artifacts[0]: must name a file below /workspace"},
    {"{\"cwd\":\"a\",\"cwd\":\"b\"}", "job: not valid JSON: duplicate key \"cwd\" at byte 12"},
};

static void refuses_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct job j;
        struct job_error e = {"", ""};
        assert_int_equal(job_parse(refused[i].json, strlen(refused[i].json), FDS, &j, &e), -EINVAL);
        assert_string_equal(e.text, refused[i].text);
        assert_memory_equal(e.text, e.field, strlen(e.field));
        job_done(&j);
    }
}

// Every value that could become "no limit" on its way through float, ms or ns arithmetic.
static void judges_every_timeout(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        int64_t ms; // 0: refused
        const char *why;
    } cases[] = {
        {"1", 1000, ""},
        {"600", 600000, ""},
        {"600.000", 600000, ""},
        {"6e2", 600000, ""},
        {"2.00001", 2001, ""},
        {"0", 0, "0 is below the minimum of 1 s"},
        {"-1", 0, "-1 is below the minimum of 1 s"},
        {"-0", 0, "-0 is below the minimum of 1 s"},
        {"0.9999", 0, "0.9999 is below the minimum of 1 s"},
        {"600.0001", 0, "600.001 is above the maximum of 600 s"},
        {"601", 0, "601 is above the maximum of 600 s"},
        {"1e308", 0, "1e308 is above the maximum of 600 s"},
        {"-1e308", 0, "-1e308 is below the minimum of 1 s"},
        {"1e-320", 0, "1e-320 is below the minimum of 1 s"},
        {"0.0000001", 0, "0.0000001 is below the minimum of 1 s"},
        {"9223372036854775807", 0, "9223372036854775807 is above the maximum of 600 s"},
        {"18446744073709551617", 0, "18446744073709551617 is above the maximum of 600 s"},
        {"9223372036854775.808", 0, "9223372036854775.808 is above the maximum of 600 s"},
        {"5e9", 0, "5000000000 is above the maximum of 600 s"},
        {"\"5\"", 0, "must be a number, not \"5\""},
        {"true", 0, "must be a number, not true"},
        {"null", 0, "must be a number, not null"},
        {"[5]", 0, "must be a number, not [5]"},
        {"{\"a\":5}", 0, "must be a number, not {\"a\":5}"},
        {"NaN", 0, "not valid JSON"},
        {"Infinity", 0, "not valid JSON"},
        {"-Infinity", 0, "not valid JSON"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char json[200];
        struct job j;
        struct job_error e = {"", ""};
        snprintf(json, sizeof json, "{" PY ",\"limits\":{\"timeout_seconds\":%s}}", cases[i].value);
        int rc = job_parse(json, strlen(json), 0, &j, &e);
        assert_int_equal(rc, cases[i].ms ? 0 : -EINVAL);
        assert_int_equal(j.limits.value[LIMIT_TIMEOUT], cases[i].ms ? cases[i].ms : 30000);
        assert_non_null(strstr(e.text, cases[i].why));
        job_done(&j);
    }
}

static void whole_numbers_stay_whole(void **state)
{
    (void)state;
    static const struct {
        const char *limits;
        const char *text; // NULL: accepted
    } cases[] = {
        {"{\"memory_mb\":32}", NULL},
        {"{\"memory_mb\":32.0}", NULL},
        {"{\"memory_mb\":31}", "limits.memory_mb: 31 is below the minimum of 32 MB"},
        {"{\"memory_mb\":64.5}", "limits.memory_mb: must be a whole number, not 64.5"},
        {"{\"memory_mb\":65537}", "limits.memory_mb: 65537 is above the maximum of 65536 MB"},
        {"{\"pids\":null}", "limits.pids: must be a whole number, not null"},
        {"{\"disk_mb\":0}", NULL},
        {"{\"disk_mb\":-1}", "limits.disk_mb: -1 is below the minimum of 0 MB"},
        {"{\"cpus\":0.1}", NULL},
        {"{\"cpus\":0.0999}", "limits.cpus: 0.0999 is below the minimum of 0.1 CPUs"},
        {"{\"cpu_seconds\":0}", "limits.cpu_seconds: 0 is below the minimum of 1 s"},
        {"{\"max_stdout_kb\":8193}", "limits.max_stdout_kb: 8193 is above the maximum of 8192 KiB"},
        {"{\"nofile\":63}", "limits.nofile: 63 is below the minimum of 64 descriptors"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char json[200];
        struct job j;
        struct job_error e = {"", ""};
        snprintf(json, sizeof json, "{" PY ",\"limits\":%s}", cases[i].limits);
        assert_int_equal(job_parse(json, strlen(json), 0, &j, &e), cases[i].text ? -EINVAL : 0);
        assert_string_equal(e.text, cases[i].text ? cases[i].text : "");
        job_done(&j);
    }
}

static void refuses_names_that_steer(void **state)
{
    (void)state;
    static const char *const names[] = {
        "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT",   "PYTHONSTARTUP",
        "PYTHONHOME", "PYTHONINSPECT",   "PYTHONPATH", "NODE_OPTIONS",
        "NODE_PATH",  "BASH_ENV",        "ENV",        "DYLD_INSERT_LIBRARIES",
        "RUBYOPT",    "PERL5LIB"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char json[200], start[64];
        struct job j;
        struct job_error e;
        snprintf(json, sizeof json, "{" PY ",\"env\":{\"OK\":\"1\",\"%s\":\"x\"}}", names[i]);
        snprintf(start, sizeof start, "env.%s: refused", names[i]);
        assert_int_equal(job_parse(json, strlen(json), 0, &j, &e), -EINVAL);
        assert_memory_equal(e.text, start, strlen(start));
        job_done(&j);
    }
    static const char *const fine[] = {"PATH",     "HOME", "ENVIRONMENT",     "LDFLAGS",
                                       "NODE_ENV", "TZ",   "PYTHONUNBUFFERED"};
    for (size_t i = 0; i < ARRAY_LEN(fine); i++) {
        assert_false(job_env_refused(fine[i]));
    }
}

// JSON with a field of n bytes (or elements) in it.
static int parse_sized(const char *before, const char *piece, size_t n, const char *after,
                       struct job_error *e)
{
    AUTO_BUF struct buf json = BUF_INIT(64 << 20);
    buf_puts(&json, before);
    for (size_t i = 0; i < n; i++) {
        buf_puts(&json, piece);
    }
    buf_puts(&json, after);
    struct job j;
    *e = (struct job_error){"", ""};
    int rc = job_parse(json.data, json.len, 0, &j, e);
    job_done(&j);
    return rc;
}

static void bounds_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *before, *piece, *after;
        size_t most;
        const char *text;
    } cases[] = {
        {"{\"language\":\"python\",\"code\":\"", "x", "\"}", 1 << 20,
         "code: 1048577 bytes are above the maximum of 1048576"},
        {"{" PY ",\"params\":{\"a\":\"", "x", "\"}}", (8 << 20) - 8,
         "params: above the maximum of 8388608 bytes"},
        {"{\"command\":[\"a\"", ",\"b\"", "]}", 4095,
         "command: 4097 words are above the maximum of 4096"},
        {"{\"command\":[\"", "x", "\"]}", (128 << 10) - 1,
         "command: all words together are above the maximum of 131072 bytes"},
        {"{" PY ",\"env\":{\"A\":\"", "x", "\"}}", (64 << 10) - 3,
         "env: all together above the maximum of 65536 bytes"},
        {"{" PY ",\"artifacts\":[\"a\"", ",\"b\"", "]}", 99,
         "artifacts: 101 are above the maximum of 100"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job_error e;
        assert_int_equal(
            parse_sized(cases[i].before, cases[i].piece, cases[i].most, cases[i].after, &e), 0);
        assert_int_equal(
            parse_sized(cases[i].before, cases[i].piece, cases[i].most + 1, cases[i].after, &e),
            -EINVAL);
        assert_string_equal(e.text, cases[i].text);
    }
}

static void long_names_are_cut_in_messages(void **state)
{
    (void)state;
    struct job_error e;
    assert_int_equal(parse_sized("{\"", "\xe6\x9d\xb1", 500, "\":1}", &e), -EINVAL);
    assert_true(strlen(e.field) < sizeof e.field && strlen(e.text) < sizeof e.text);
    assert_int_equal(parse_sized("{" PY ",\"cwd\":\"/", "\x7f", 200, "\"}", &e), -EINVAL);
    assert_non_null(strstr(e.text, "outside /workspace"));
    assert_non_null(strstr(e.text, "..."));
}

static void ids_sort_by_time(void **state)
{
    (void)state;
    char a[37], b[37];
    job_new_id(a);
    struct timespec pause = {.tv_nsec = 2000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    job_new_id(b);
    assert_true(strcmp(a, b) < 0);
    assert_int_equal(a[14], '7');
    assert_non_null(strchr("89ab", a[19]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_a_whole_job),
        cmocka_unit_test(defaults),
        cmocka_unit_test(refuses_by_name),
        cmocka_unit_test(judges_every_timeout),
        cmocka_unit_test(whole_numbers_stay_whole),
        cmocka_unit_test(refuses_names_that_steer),
        cmocka_unit_test(bounds_sizes),
        cmocka_unit_test(long_names_are_cut_in_messages),
        cmocka_unit_test(ids_sort_by_time),
    };
    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
