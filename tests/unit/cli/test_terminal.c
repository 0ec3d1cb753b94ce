// What a terminal gets of a job's output.
#include "cli/terminal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void only_text_is_left(void **state)
{
    (void)state;
    const struct {
        const char *from, *to;
        size_t len; // 0: of the string
    } table[] = {
        {"plain\ttext\r\n\b", "plain\ttext\r\n\b", 0},
        {"\033[31mred\033[0m", "?[31mred?[0m", 0},
        {"\033]52;c;eA==\007", "?]52;c;eA==?", 0},
        {"a\0b\177", "a?b?", 4},
        {"\302\233"
         "2J",
         "??2J", 0},
        {"\233"
         "2J",
         "\357\277\275"
         "2J",
         0},
        {"gr\303\274\303\237e \302\240 \342\202\254", "gr\303\274\303\237e \302\240 \342\202\254",
         0},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        size_t len = table[i].len ? table[i].len : strlen(table[i].from);
        AUTO_BUF struct buf out = BUF_INIT(terminal_room(len));
        assert_int_equal(terminal_clean(&out, table[i].from, len), 0);
        assert_string_equal(buf_text(&out), table[i].to);
    }
}

static void there_is_room_for_the_worst(void **state)
{
    (void)state;
    char bad[1000];
    memset(bad, 0xff, sizeof bad);
    AUTO_BUF struct buf out = BUF_INIT(terminal_room(sizeof bad));
    assert_int_equal(terminal_clean(&out, bad, sizeof bad), 0);
    assert_int_equal(out.len, 3 * sizeof bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_text_is_left),
        cmocka_unit_test(there_is_room_for_the_worst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
