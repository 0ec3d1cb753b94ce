// A job's words on one line of somebody's terminal.
#include "base/fd.h"
#include "codec/utf8.h"
#include "job/line.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void table(void **state)
{
    (void)state;
    const struct {
        const char *in;
        size_t len, max;
        const char *out;
    } rows[] = {
        {"plain", 5, 100, "plain"},
        {"a\nb\r\tc", 6, 100, "a b  c"},
        {"\x1b[31mred", 8, 100, " [31mred"},
        {"a\0b", 3, 100, "a b"},
        {"x\xc2\x9b"
         "31m",
         6, 100, "x 31m"},
        {"caf\xc3\xa9", 5, 100, "caf\xc3\xa9"},
        {"caf\xc3\xa9", 5, 4, "caf"},
        {"\xff", 1, 100, "\xef\xbf\xbd"},
        {"", 0, 100, ""},
        {"\x7f", 1, 100, " "},
        {"数据", 6, 5, "数"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf out = BUF_INIT(rows[i].max);
        line_add(&out, rows[i].in, rows[i].len);
        assert_string_equal(buf_text(&out), rows[i].out);
        assert_int_equal(out.error, 0);
    }
}

static void any_bytes_give_one_valid_line(void **state)
{
    (void)state;
    uint32_t x = 1;
    for (int round = 0; round < 2000; round++) {
        char in[64];
        for (size_t i = 0; i < sizeof in; i++) {
            x = x * 1664525 + 1013904223;
            in[i] = (char)(x >> 24);
        }
        AUTO_BUF struct buf out = BUF_INIT((size_t)(round % 80));
        line_add(&out, in, sizeof in);
        assert_true(utf8_valid(buf_text(&out), out.len));
        for (size_t i = 0; i < out.len; i++) {
            assert_true((unsigned char)out.data[i] >= ' ' && out.data[i] != 0x7f);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),
        cmocka_unit_test(any_bytes_give_one_valid_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
