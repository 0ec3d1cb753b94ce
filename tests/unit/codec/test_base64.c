// base64: the vectors of RFC 4648, and everything that is not quite it.
#include "codec/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void decodes(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", ""},
        {"Zg==", "f"},
        {"Zm8=", "fo"},
        {"Zm9v", "foo"},
        {"Zm9vYg==", "foob"},
        {"Zm9vYmE=", "fooba"},
        {"Zm9vYmFy", "foobar"},
        {"+/+/", "\xfb\xff\xbf"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t out[16] = {0};
        size_t n = 99;
        assert_true(base64_measure(rows[i][0], strlen(rows[i][0]), &n));
        assert_int_equal(n, strlen(rows[i][1]));
        base64_decode(rows[i][0], strlen(rows[i][0]), out);
        assert_memory_equal(out, rows[i][1], n);
        assert_int_equal(out[n], 0);
        char again[16];
        base64_encode(rows[i][1], n, again);
        assert_string_equal(again, rows[i][0]);
    }
}

static void refuses(void **state)
{
    (void)state;
    static const char *const rows[] = {"Z",    "Zg",   "Zg=",  "Zg===",    "====",
                                       "=",    "Zh==", "Zm9=", "Zg==Zg==", "Zm\n9v",
                                       "Zm-_", "Z===", " Zg=", "Zm9v\n"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n;
        assert_false(base64_measure(rows[i], strlen(rows[i]), &n));
    }
    size_t n;
    assert_false(base64_measure("Zm\0v", 4, &n));
}

static void takes_every_byte(void **state)
{
    (void)state;
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[5];
        uint8_t out = 0;
        size_t n;
        snprintf(text, sizeof text, "%c%c==", digits[byte >> 2], digits[(byte & 3) << 4]);
        assert_true(base64_measure(text, 4, &n));
        assert_int_equal(n, 1);
        base64_decode(text, 4, &out);
        assert_int_equal(out, byte);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes),
        cmocka_unit_test(refuses),
        cmocka_unit_test(takes_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
