// The bounded buffer; text for people.
#include "base/buf.h"
#include "base/text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void grows_to_its_bound(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(1000);
    assert_string_equal(buf_text(&b), "");
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(buf_putc(&b, 'x'), 0);
    }
    assert_int_equal(strlen(buf_text(&b)), 1000);
    assert_int_equal(buf_putc(&b, 'x'), -EMSGSIZE);
    assert_int_equal(b.len, 1000);
}

static void the_first_error_stays(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(4);
    assert_int_equal(buf_puts(&b, "12345"), -EMSGSIZE);
    assert_int_equal(buf_putc(&b, '1'), -EMSGSIZE); // it would fit, but something is missing now
    assert_string_equal(buf_text(&b), "");
    buf_clear(&b);
    assert_int_equal(buf_puts(&b, "1234"), 0);
    assert_string_equal(buf_text(&b), "1234");
}

static void sizes_do_not_wrap(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(SIZE_MAX - 1);
    assert_int_equal(buf_putc(&b, 'x'), 0);
    b.max = 100;
    assert_int_equal(buf_reserve(&b, SIZE_MAX), -EMSGSIZE);
    b.error = 0;
    assert_int_equal(buf_reserve(&b, SIZE_MAX - 1), -EMSGSIZE);
}

static void prints(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(600);
    assert_int_equal(buf_printf(&b, "%d-%s|", 7, "a"), 0);
    assert_int_equal(buf_printf(&b, "%500d", 1), 0);
    assert_int_equal(b.len, 504);
    assert_memory_equal(b.data, "7-a|  ", 6);
    assert_int_equal(buf_printf(&b, "%500d", 1), -EMSGSIZE);
    assert_int_equal(b.len, 504);
}

static void gives_away_its_text(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(10);
    char *empty = buf_take(&b);
    assert_string_equal(empty, "");
    free(empty);
    buf_puts(&b, "abc");
    char *text = buf_take(&b);
    assert_string_equal(text, "abc");
    free(text);
    assert_int_equal(b.len, 0);
    assert_int_equal(b.max, 10);
    buf_free(&b);
}

static void keeps_nul_bytes(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(10);
    assert_int_equal(buf_add(&b, "a\0b", 3), 0);
    assert_int_equal(buf_add(&b, NULL, 0), 0);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "a\0b\0", 4);
}

static void no_controls_are_left(void **state)
{
    (void)state;
    char text[] = "a\x1b[1m\n\x7f\xc2\x9b\xc2\xa0\xe4\xbd\xa0\xc2";
    text_no_controls(text);
    assert_string_equal(text, "a?[1m????\xc2\xa0\xe4\xbd\xa0\xc2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_to_its_bound),   cmocka_unit_test(the_first_error_stays),
        cmocka_unit_test(sizes_do_not_wrap),    cmocka_unit_test(prints),
        cmocka_unit_test(gives_away_its_text),  cmocka_unit_test(keeps_nul_bytes),
        cmocka_unit_test(no_controls_are_left),
    };
    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
