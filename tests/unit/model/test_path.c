// Paths that a tenant names.
#include "base/buf.h"
#include "base/fd.h"
#include "model/job.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void accepts_and_normalises(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"a.csv", "a.csv"},
        {"input/a.csv", "input/a.csv"},
        {"/workspace/input/a.csv", "input/a.csv"},
        {"/workspace", "."},
        {"/workspace/", "."},
        {".", "."},
        {"./a//b/./c/", "a/b/c"},
        {"//workspace//x", "x"},
        {"...", "..."},
        {"..a/b..", "..a/b.."},
        {"workspace/x", "workspace/x"},
        {"/workspace/workspace", "workspace"},
        {"\xe4\xbd\xa0/\xe5\xa5\xbd.png", "\xe4\xbd\xa0/\xe5\xa5\xbd.png"},
        {"-rf", "-rf"},
        {"a\\b", "a\\b"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job_error e;
        AUTO_FREE char *out = NULL;
        assert_int_equal(job_path("f", cases[i].in, strlen(cases[i].in), &out, &e), 0);
        assert_string_equal(out, cases[i].out);
    }
}

static void refuse(const char *path, size_t len, const char *why)
{
    struct job_error e = {"", ""};
    char *out = NULL;
    assert_int_equal(job_path("artifacts[0].path", path, len, &out, &e), -EINVAL);
    assert_null(out);
    assert_string_equal(e.field, "artifacts[0].path");
    assert_non_null(strstr(e.text, why));
}

static void refuses(void **state)
{
    (void)state;
    refuse("", 0, "is empty");
    refuse("a\0b", 3, "NUL");
    static const char *const dots[] = {"..",
                                       "../x",
                                       "a/..",
                                       "a/../b",
                                       "/workspace/..",
                                       "/workspace/../etc/passwd",
                                       "/../workspace/x",
                                       "a/b/../../.."};
    for (size_t i = 0; i < ARRAY_LEN(dots); i++) {
        refuse(dots[i], strlen(dots[i]), "..");
    }
    static const char *const outside[] = {"/",         "/etc/passwd", "/workspacex",
                                          "/workspac", "/tmp/x",      "/proc/self/root/workspace"};
    for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
        refuse(outside[i], strlen(outside[i]), "is outside /workspace");
    }
}

static void bounds_lengths(void **state)
{
    (void)state;
    AUTO_BUF struct buf name = BUF_INIT(10000);
    for (int i = 0; i < 255; i++) {
        buf_putc(&name, 'n');
    }
    struct job_error e;
    AUTO_FREE char *out = NULL;
    assert_int_equal(job_path("f", name.data, name.len, &out, &e), 0);
    buf_putc(&name, 'n');
    refuse(name.data, name.len, "component over 255");
    buf_clear(&name);
    for (int i = 0; i < JOB_MAX_COMPONENTS; i++) {
        buf_printf(&name, "%0*d/", JOB_MAX_PATH / JOB_MAX_COMPONENTS - 1, i);
    }
    AUTO_FREE char *longest = NULL;
    assert_int_equal(job_path("f", name.data, name.len, &longest, &e), 0);
    buf_putc(&name, 'a');
    refuse(name.data, name.len, "over the maximum of 4096");
}

static void bounds_components(void **state)
{
    (void)state;
    AUTO_BUF struct buf name = BUF_INIT(10000);
    for (int i = 0; i < JOB_MAX_COMPONENTS; i++) {
        buf_puts(&name, "./a//");
    }
    struct job_error e;
    AUTO_FREE char *most = NULL;
    assert_int_equal(job_path("f", name.data, name.len, &most, &e), 0);
    buf_putc(&name, 'a');
    refuse(name.data, name.len, "a path of 65 components is over the maximum of 64");
}

// A message goes to terminals and logs.
static void messages_are_printable(void **state)
{
    (void)state;
    struct job_error e;
    char *out = NULL;
    const char *path = "/\x1b[31m\x07/\xff";
    assert_int_equal(job_path("f", path, strlen(path), &out, &e), -EINVAL);
    for (const char *p = e.text; *p; p++) {
        assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_and_normalises), cmocka_unit_test(refuses),
        cmocka_unit_test(bounds_lengths),         cmocka_unit_test(bounds_components),
        cmocka_unit_test(messages_are_printable),
    };
    return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
