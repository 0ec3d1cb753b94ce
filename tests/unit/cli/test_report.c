// What people and programs see at the end, and the exit status.
#include "base/fd.h"
#include "cli/report.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct shown {
    int status;
    char *out, *err;
};

static struct shown show(struct report r, const char *json)
{
    struct shown s = {};
    size_t n;
    r.out = open_memstream(&s.out, &n);
    r.err = open_memstream(&s.err, &n);
    AUTO_BUF struct buf final = BUF_INIT(1 << 20);
    buf_puts(&final, json);
    s.status = report_print(&r, &final);
    fclose(r.out);
    fclose(r.err);
    return s;
}

static void forget(struct shown *s)
{
    free(s->out);
    free(s->err);
}

#define USAGE                                                                                      \
    "\"usage\":{\"wall_ms\":1500,\"cpu_ms\":20,\"memory_peak_bytes\":1048576,\"stdout_bytes\":"    \
    "300000}"
static const char ok[] =
    "{\"reason\":\"ok\",\"result\":{\"a\":[1.10,\"\xe6\x9d\xb1\"]},\"error\":null,"
    "\"exit_code\":0,\"signal\":null," USAGE "}";

static void a_snippets_result_is_a_line(void **state)
{
    (void)state;
    struct shown s = show((struct report){.snippet = true}, ok);
    assert_int_equal(s.status, 0);
    assert_string_equal(s.out, "{\"a\":[1.10,\"\xe6\x9d\xb1\"]}\n");
    assert_string_equal(s.err, "");
    forget(&s);
    s = show((struct report){.snippet = true, .line_open = true}, ok);
    assert_string_equal(s.out, "\n{\"a\":[1.10,\"\xe6\x9d\xb1\"]}\n");
    forget(&s);
    s = show((struct report){.snippet = false}, ok);
    assert_string_equal(s.out, "");
    forget(&s);
    s = show((struct report){.snippet = true}, "{\"reason\":\"ok\",\"result\":null}");
    assert_string_equal(s.out, "");
    forget(&s);
}

static void json_is_the_line_itself(void **state)
{
    (void)state;
    struct shown s = show((struct report){.json = true, .snippet = true, .terminal = true}, ok);
    assert_memory_equal(s.out, ok, sizeof ok - 1);
    assert_string_equal(s.out + sizeof ok - 1, "\n");
    assert_string_equal(s.err, "");
    forget(&s);
}

static void failures_are_told_once(void **state)
{
    (void)state;
    static const struct {
        const char *json, *err;
        int status;
    } cases[] = {
        {"{\"reason\":\"error\",\"error\":\"Exit code 3\",\"exit_code\":3,\"stderr\":\"\"}", "", 3},
        {"{\"reason\":\"error\",\"error\":\"Ended by signal 9 (SIGKILL)\",\"signal\":9}", "", 137},
        {"{\"reason\":\"error\",\"error\":\"boom\",\"exit_code\":1,\"stderr\":\"ValueError: "
         "boom\"}",
         "", 1},
        {"{\"reason\":\"error\",\"error\":\"x: not found\",\"exit_code\":127,\"stderr\":\"\"}",
         "isle: error: x: not found\n", 127},
        {"{\"reason\":\"timeout\",\"error\":\"Execution timeout (2.0s)\",\"signal\":15}",
         "isle: timeout: Execution timeout (2.0s) (--timeout)\n", 124},
        {"{\"reason\":\"memory_limit\",\"error\":\"a\\u001b[31m\\nb\"}",
         "isle: memory_limit: a?[31m?b (--memory)\n", 137},
        {"{\"reason\":\"internal\",\"error\":null}", "isle: internal\n", 125},
        {"{\"reason\":\"artifact\",\"error\":\"output/x: missing\",\"exit_code\":0}",
         "isle: artifact: output/x: missing\n", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct shown s = show((struct report){.snippet = true}, cases[i].json);
        assert_int_equal(s.status, cases[i].status);
        assert_string_equal(s.err, cases[i].err);
        assert_string_equal(s.out, "");
        forget(&s);
    }
}

static void a_terminal_gets_a_summary(void **state)
{
    (void)state;
    struct shown s = show((struct report){.terminal = true}, ok);
    assert_string_equal(s.err, "isle: ok (1.500 s, CPU 0.020 s, memory 1.0 MB)\n");
    forget(&s);
    s = show((struct report){.terminal = true}, "{\"reason\":\"cancelled\",\"error\":\"x\"}");
    assert_string_equal(s.err, "isle: cancelled: x\n");
    assert_int_equal(s.status, 130);
    forget(&s);
}

static void truncation_is_told(void **state)
{
    (void)state;
    struct shown s =
        show((struct report){},
             "{\"reason\":\"ok\",\"truncated\":{\"stdout\":true,\"stderr\":false}," USAGE "}");
    assert_string_equal(
        s.err, "isle: standard output was cut: the job wrote 300000 bytes (--max-stdout-kb)\n");
    forget(&s);
}

static void what_is_no_result_prints_nothing(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "{\"reason\":5}",
                                      "{\"reason\":\"none such\"}",
                                      "{\"reason\":\"ok\"} x",
                                      "{\"reason\":\"ok\",\"reason\":\"ok\"}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct shown s = show((struct report){.json = true}, bad[i]);
        assert_int_equal(s.status, -EBADMSG);
        assert_string_equal(s.out, "");
        forget(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snippets_result_is_a_line),
        cmocka_unit_test(json_is_the_line_itself),
        cmocka_unit_test(failures_are_told_once),
        cmocka_unit_test(a_terminal_gets_a_summary),
        cmocka_unit_test(truncation_is_told),
        cmocka_unit_test(what_is_no_result_prints_nothing),
    };
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
