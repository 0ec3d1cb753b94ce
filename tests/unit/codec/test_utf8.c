// UTF-8: cutting on character borders, replacement of invalid parts, JSON strings.
#include "base/fd.h"
#include "codec/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define REPLACED "\xef\xbf\xbd"

static const struct {
    const char *in;
    size_t len;
    const char *out; // cleaned
} vectors[] = {
    {"plain", 5, "plain"},
    {"\xe4\xbd\xa0\xf0\x9f\x98\x80\xc3\xa4", 9, "\xe4\xbd\xa0\xf0\x9f\x98\x80\xc3\xa4"},
    {"\xff", 1, REPLACED},
    {"a\xc0\xaf"
     "b",
     4, "a" REPLACED REPLACED "b"},                               // overlong '/'
    {"\xe0\x80\xaf", 3, REPLACED REPLACED REPLACED},              // overlong, three bytes
    {"\xf0\x8f\xbf\xbf", 4, REPLACED REPLACED REPLACED REPLACED}, // overlong, four bytes
    {"\xed\xa0\x80", 3, REPLACED REPLACED REPLACED},              // a surrogate
    {"\xf4\x90\x80\x80", 4, REPLACED REPLACED REPLACED REPLACED}, // above U+10FFFF
    {"\xf8\x88\x80\x80\x80", 5, REPLACED REPLACED REPLACED REPLACED REPLACED},
    {"\xe2\x82"
     "x",
     3, REPLACED "x"}, // one maximal part
    {"\xf0\x9f\x98"
     "x",
     4, REPLACED "x"},
    {"\xf0\x9f\x98", 3, REPLACED},      // cut at the end
    {"\x80\xbf", 2, REPLACED REPLACED}, // lone continuations
    {"\xe2\xe2\x82\xac", 4, REPLACED "\xe2\x82\xac"},
    {"12345678\xff"
     "12345678",
     17, "12345678" REPLACED "12345678"}, // around the fast path
    {"1234567\xe2\x82\xac", 10, "1234567\xe2\x82\xac"},
};

static void cleans(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        AUTO_BUF struct buf out = BUF_INIT(1000);
        assert_int_equal(utf8_clean(&out, vectors[i].in, vectors[i].len), 0);
        assert_string_equal(buf_text(&out), vectors[i].out);
        bool same = strlen(vectors[i].out) == vectors[i].len &&
                    memcmp(vectors[i].in, vectors[i].out, vectors[i].len) == 0;
        assert_int_equal(utf8_valid(vectors[i].in, vectors[i].len), same);
        assert_true(utf8_valid(buf_text(&out), out.len));
    }
}

static void keeps_nul(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT(1000);
    assert_int_equal(utf8_clean(&out, "a\0b", 3), 0);
    assert_int_equal(out.len, 3);
    assert_memory_equal(out.data, "a\0b", 3);
}

static void cuts_on_borders(void **state)
{
    (void)state;
    const char *text = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
    const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
    for (size_t len = 0; len < ARRAY_LEN(expected); len++) {
        assert_int_equal(utf8_cut(text, len), expected[len]);
    }
    assert_int_equal(utf8_cut("ab\xff", 3), 3); // invalid is not cut off
    assert_int_equal(utf8_cut("ab\x80\x80\x80\x80", 6), 6);
    assert_int_equal(utf8_cut("\xe0\x80", 2), 2); // cannot become a character
    assert_int_equal(utf8_cut("\xed\xa0", 2), 2);
    assert_int_equal(utf8_cut("\xed\x9f", 2), 0);
    assert_int_equal(utf8_cut("\xc3\xa4\x80", 3), 3);
}

// Whatever the chunks, the pieces joined are the whole.
static void pieces_join_to_the_whole(void **state)
{
    (void)state;
    char text[3000];
    for (size_t i = 0; i < sizeof text; i += 3) {
        memcpy(text + i, "\xe2\x82\xac", 3);
    }
    for (size_t chunk = 1; chunk < 20; chunk++) {
        AUTO_BUF struct buf joined = BUF_INIT(sizeof text);
        AUTO_BUF struct buf pending = BUF_INIT(64);
        for (size_t at = 0; at < sizeof text; at += chunk) {
            size_t n = sizeof text - at < chunk ? sizeof text - at : chunk;
            buf_add(&pending, text + at, n);
            size_t whole = utf8_cut(pending.data, pending.len);
            assert_true(utf8_valid(pending.data, whole));
            buf_add(&joined, pending.data, whole);
            memmove(pending.data, pending.data + whole, pending.len - whole);
            pending.len -= whole;
        }
        assert_int_equal(joined.len, sizeof text);
        assert_memory_equal(joined.data, text, sizeof text);
    }
}

static void writes_json_strings(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        size_t len;
        const char *out;
    } cases[] = {
        {"", 0, "\"\""},
        {"a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\""},
        {"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
        {"\0\x1f\x7f", 3, "\"\\u0000\\u001f\\u007f\""},
        {"\xe6\x95\xb0\xe6\x8d\xae\xe2\x86\x92", 9, "\"\xe6\x95\xb0\xe6\x8d\xae\xe2\x86\x92\""},
        {"x\xff"
         "y",
         3, "\"x" REPLACED "y\""},
        {"\xe2\x80\xa8", 3, "\"\xe2\x80\xa8\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf out = BUF_INIT(1000);
        assert_int_equal(utf8_json_string(&out, cases[i].in, cases[i].len), 0);
        assert_string_equal(buf_text(&out), cases[i].out);
    }
}

static void finds_where_a_text_is_from(void **state)
{
    (void)state;
    static const char data[] = "ab\xff\xe2\x82z\xc3\xa9\xf0\x9f\x98\x80\x80\xed\xa0";
    const size_t len = sizeof data - 1;
    const size_t borders[] = {0, 1, 2, 3, 5, 6, 8, 12, 13, 14, 15}; // of characters, invalid parts
    for (size_t i = 0; i < ARRAY_LEN(borders); i++) {
        AUTO_BUF struct buf out = BUF_INIT(100);
        assert_int_equal(utf8_clean(&out, data, borders[i]), 0);
        assert_int_equal(utf8_source_of(data, len, out.len), borders[i]);
    }
    assert_int_equal(utf8_source_of(data, len, UINT64_MAX), len);
    assert_int_equal(utf8_source_of("", 0, 1), 0);
}

static void knows_what_turns_text(void **state)
{
    (void)state;
    static const char *const turn[] = {"\u061c", "\u200e", "\u200f", "\u202a",
                                       "\u202e", "\u2066", "\u2069"};
    static const char *const others[] = {"",       "a",      "\u061b", "\u200d", "\u2010",
                                         "\u2029", "\u202f", "\u2065", "\u206a"};
    for (size_t i = 0; i < sizeof turn / sizeof *turn; i++) {
        size_t len = strlen(turn[i]);
        assert_int_equal(utf8_turns(turn[i], len), len);
        assert_int_equal(utf8_turns(turn[i], len - 1), 0);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(utf8_turns(others[i], strlen(others[i])), 0);
    }
}

static void reports_a_full_buffer(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT(4);
    assert_int_not_equal(utf8_clean(&out, "\xff\xff", 2), 0);
    AUTO_BUF struct buf text = BUF_INIT(4);
    assert_int_not_equal(utf8_json_string(&text, "abcd", 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cleans),
        cmocka_unit_test(keeps_nul),
        cmocka_unit_test(cuts_on_borders),
        cmocka_unit_test(pieces_join_to_the_whole),
        cmocka_unit_test(writes_json_strings),
        cmocka_unit_test(finds_where_a_text_is_from),
        cmocka_unit_test(knows_what_turns_text),
        cmocka_unit_test(reports_a_full_buffer),
    };
    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
