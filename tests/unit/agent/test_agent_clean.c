// What is noise, what stays, and what is told.
#include "agent/clean.h"
#include "effort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void cleans(const char *text, const char *want)
{
    for (int failed = 0; failed < 2; failed++) { // short output is the same on failure
        AUTO_BUF struct buf out = BUF_INIT(1 << 20);
        struct clean_told told;
        assert_int_equal(clean_output(text, strlen(text), failed, &out, &told), 0);
        assert_string_equal(buf_text(&out), want);
        assert_int_equal(told.bytes, strlen(text));
        assert_int_equal(told.bytes_kept, strlen(want));
    }
}

static void noise_goes(void **state)
{
    (void)state;
    cleans("", "");
    cleans("a\nb", "a\nb");
    cleans("\x1b[31mred\x1b[0m \x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b(B\n", "red xlink\n");
    cleans("\x1b[2K\x1b[1Ga\x1b[", "a");
    cleans("a\x1b]never ends\nb\n", "anever ends\nb\n");
    cleans("10%\r50%\r100%\ndone\r\n", "100%\ndone\n");
    cleans("50%\r\x1b[K", "50%");
    cleans("c\bca\bab\n", "cab\n");
    cleans("\xc3\xa9\bx\b\b\by\n", "y\n");
    cleans("a\x07\x7f\x01\tb\xc2\x9b\n", "a\tb\n");
    cleans("\xff\n", "\xef\xbf\xbd\n");
}

static void runs_become_one(void **state)
{
    (void)state;
    cleans("a\n\n\nb\n", "a\n\n\nb\n");
    cleans("a\n\n \n\n\nb\n", "a\n\n[3 more blank lines]\nb\n");
    cleans("x\nx\nx\n", "x\nx\nx\n");
    cleans("x\nx\nx\nx\ny\n", "x\n[the same line 3 more times]\ny\n");
    cleans("x\nx\nx\nx", "x\n[the same line 3 more times]\n");
}

static void json_stays(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "[\n0,\n0,\n0,\n0,\n0\n]\n",
        "{\"a\": [\n0,\n0,\n0,\n0\n]}",
        "result:\n  [\n0,\n0,\n0,\n0\n]\nend\n",
        "{\n\n\n\n\"a\": \"}\\\"{\"\n}\n",
        "[\n0,\n0,\n0,\n0,\n0,\n", // cut off
        "{\"a\":1}\n{\"a\":1}\n{\"a\":1}\n{\"a\":1}\n{\"a\":1}\n",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleans(cases[i], cases[i]);
    }
    cleans("[INFO] x\n[INFO] x\n[INFO] x\n[INFO] x\n", "[INFO] x\n[the same line 3 more times]\n");
    cleans("{no\n0,\n0,\n0,\n0,\n}\n", "{no\n0,\n[the same line 3 more times]\n}\n");
    cleans("\x1b[1m[\n0,\n0,\n0,\n0\n]\x1b[0m\n", "[\n0,\n0,\n0,\n0\n]\n");
}

static void failure_keeps_both_ends(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20), all = BUF_INIT(1 << 20);
    for (int i = 1; i <= 100; i++) {
        buf_printf(&text, "line %d\n", i);
    }
    struct clean_told told;
    assert_int_equal(clean_output(text.data, text.len, true, &out, &told), 0);
    assert_non_null(strstr(buf_text(&out), "line 20\n[40 lines, 320 bytes, are left out here; the "
                                           "output had 100 lines, 792 bytes]\nline 61\n"));
    assert_int_equal(told.lines, 100);
    assert_int_equal(told.lines_kept, 61);
    assert_int_equal(clean_output(text.data, text.len, false, &all, &told), 0);
    assert_string_equal(buf_text(&all), buf_text(&text));

    buf_clear(&text);
    buf_clear(&out);
    for (int i = 0; i < 10000; i++) {
        buf_puts(&text, "\xc3\xa9");
    }
    assert_int_equal(clean_output(text.data, text.len, true, &out, &told), 0);
    assert_non_null(strstr(buf_text(&out), " [17000 bytes of this line are left out] "));
    assert_true(out.len < 3100);
}

// The least effort of some tries for so many bytes of one kind.
static uint64_t effort_ns(const char *kind, size_t bytes)
{
    uint64_t least = UINT64_MAX;
    AUTO_BUF struct buf text = BUF_INIT(bytes + 16);
    while (text.len < bytes) {
        buf_puts(&text, kind);
    }
    for (int i = 0; i < 3; i++) {
        AUTO_BUF struct buf out = BUF_INIT(32 * bytes);
        struct clean_told told;
        uint64_t before = effort_now_ns();
        assert_int_equal(clean_output(text.data, text.len, true, &out, &told), 0);
        uint64_t took = effort_now_ns() - before;
        least = took < least ? took : least;
    }
    return least;
}

// What looks like JSON again and again, and is none, costs no more than its length.
static void time_is_linear(void **state)
{
    (void)state;
    static const char *const kinds[] = {"[\n",   "{}[\n", "[\n]x\n",   "\x1b]",
                                        "\x1b[", "{\"\n", "\n\n\na\n", "[ ]\n"};
    enum { SMALL = 40000, TIMES = 16 };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint64_t small = 0, large = UINT64_MAX;
        for (int i = 0; i < 3 && large > 4 * TIMES * small;
             i++) { // a square would be 16 times TIMES
            small = effort_ns(kinds[k], SMALL);
            large = effort_ns(kinds[k], (size_t)SMALL * TIMES);
        }
        if (large > 4 * TIMES * small) {
            fail_msg("kind %zu: %d times the bytes took %.0f times the time", k, TIMES,
                     (double)large / (double)small);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_goes),     cmocka_unit_test(runs_become_one),
        cmocka_unit_test(json_stays),     cmocka_unit_test(failure_keeps_both_ends),
        cmocka_unit_test(time_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
