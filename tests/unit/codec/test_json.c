// JSON: what is refused, numbers digit for digit, writing.
#include "base/fd.h"
#include "codec/json.h"
#include "codec/json_out.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int check(const char *text, size_t len)
{
    struct json_error e = {""};
    int rc = json_check(text, len, &e);
    assert_true(rc == 0 || e.text[0] != '\0');
    return rc;
}

static void refuses(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "nul",
        "NaN",
        "[Infinity]",
        "-",
        "01",
        "1.",
        ".5",
        "1e",
        "+1",
        "0x10",
        "'a'",
        "{a:1}",
        "[1,]",
        "{\"a\":1,}",
        "1 2",
        "{} {}",
        "\"\\ud83d\"",
        "\"\\ude00\"",
        "\"\t\"",
        "\"\xff\"",
        "\"\xed\xa0\xbd\"",
        "// c\n1",
        "\xef\xbb\xbf{}",
        "\"a",
        "[",
        "{\"a\":1,\"a\":2}",
        "[[{\"b\":{\"x\":1,\"\\u0078\":2}}]]",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(check(bad[i], strlen(bad[i])), -EBADMSG);
    }
    assert_int_equal(check("1\0", 2), -EBADMSG);
}

static void accepts(void **state)
{
    (void)state;
    static const char *const good[] = {
        "null",
        " true ",
        "0",
        "-0",
        "1e999999",
        "\"\\ud83d\\ude00\"",
        "{\"a\":{\"a\":[{\"a\":1}]}}",
        "[[],{},[{}]]",
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(check(good[i], strlen(good[i])), 0);
    }
}

static void names_the_duplicate(void **state)
{
    (void)state;
    struct json_error e;
    const char *text = "{\"a\": 1, \"bb\": 2, \"a\": 3}";
    assert_int_equal(json_check(text, strlen(text), &e), -EBADMSG);
    assert_string_equal(e.text, "duplicate key \"a\" at byte 19");
}

static void finds_duplicates_among_many(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = BUF_INIT(1 << 20);
    buf_putc(&text, '{');
    for (int i = 0; i < 20000; i++) {
        buf_printf(&text, "\"k%d\":%d,", i, i);
    }
    size_t len = text.len;
    buf_puts(&text, "\"last\":0}");
    assert_int_equal(check(text.data, text.len), 0);
    text.len = len;
    buf_puts(&text, "\"k777\":0}");
    assert_int_equal(check(text.data, text.len), -EBADMSG);
}

// Around the sizes at which the way of looking and the table change.
static void finds_each_duplicate(void **state)
{
    (void)state;
    static const char fill[] = "abcdefghijklmnopqrst";
    for (int n = 1; n <= 140; n++) {
        AUTO_BUF struct buf text = BUF_INIT(1 << 16);
        buf_putc(&text, '{');
        for (int i = 0; i < n; i++) {
            buf_printf(&text, "\"%.*s%d\":[],", i % 20, fill, i);
        }
        size_t len = text.len;
        for (int i = 0; i < n; i++) {
            struct json_error e;
            char place[40];
            text.len = len;
            buf_printf(&text, "\"%.*s%d\":1}", i % 20, fill, i);
            assert_int_equal(json_check(text.data, text.len, &e), -EBADMSG);
            snprintf(place, sizeof place, "at byte %zu", len + 1);
            assert_non_null(strstr(e.text, place));
        }
        text.len = len;
        buf_printf(&text, "\"%d\":1}", n * 1000 + 999); // its own
        assert_int_equal(check(text.data, text.len), 0);
    }
}

static void bounds_depth(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = BUF_INIT(1 << 22);
    for (int i = 0; i < JSON_MAX_DEPTH; i++) {
        buf_puts(&text, i % 2 ? "{\"a\":" : "[");
    }
    buf_putc(&text, '1');
    for (int i = JSON_MAX_DEPTH - 1; i >= 0; i--) {
        buf_putc(&text, i % 2 ? '}' : ']');
    }
    assert_int_equal(check(text.data, text.len), 0);
    AUTO_BUF struct buf deeper = BUF_INIT(1 << 22);
    buf_printf(&deeper, "[%s]", buf_text(&text));
    assert_int_equal(check(deeper.data, deeper.len), -EBADMSG);
    struct json_error e;
    yyjson_doc *doc = json_parse_envelope(deeper.data, deeper.len, &e);
    assert_non_null(doc);
    AUTO_BUF struct buf again = BUF_INIT(1 << 20);
    assert_int_equal(json_write(&again, doc->root), 0);
    assert_string_equal(again.data, deeper.data);
    yyjson_doc_free(doc);

    buf_clear(&text); // as deep as a job could write it, without a stack for it
    for (int i = 0; i < 1000000; i++) {
        buf_putc(&text, '[');
    }
    for (int i = 0; i < 1000000; i++) {
        buf_putc(&text, ']');
    }
    assert_int_equal(check(text.data, text.len), -EBADMSG);
}

static const struct {
    const char *text;
    int error; // of json_int
    int64_t value;
    int error3; // of json_decimal with three digits
    int64_t value3;
} numbers[] = {
    {"0", 0, 0, 0, 0},
    {"-0", 0, 0, 0, 0},
    {"30", 0, 30, 0, 30000},
    {"2.5", -EINVAL, 0, 0, 2500},
    {"2.50000", -EINVAL, 0, 0, 2500},
    {"2.0", 0, 2, 0, 2000},
    {"1e3", 0, 1000, 0, 1000000},
    {"1.5E+1", 0, 15, 0, 15000},
    {"25e-1", -EINVAL, 0, 0, 2500},
    {"250e-1", 0, 25, 0, 25000},
    {"0.0001", -EINVAL, 0, 0, 1},
    {"1.0001", -EINVAL, 0, 0, 1001},
    {"-1.0001", -EINVAL, 0, 0, -1000},
    {"1e-400", -EINVAL, 0, 0, 1},
    {"0e999999999999999999999", 0, 0, 0, 0},
    {"1e308", -ERANGE, 0, -ERANGE, 0},
    {"1e99999999999999999999", -ERANGE, 0, -ERANGE, 0},
    {"9223372036854775807", 0, INT64_MAX, -ERANGE, 0},
    {"9223372036854775808", -ERANGE, 0, -ERANGE, 0},
    {"-9223372036854775808", 0, INT64_MIN, -ERANGE, 0},
    {"18446744073709551616", -ERANGE, 0, -ERANGE, 0},
    {"true", -EINVAL, 0, -EINVAL, 0},
    {"\"5\"", -EINVAL, 0, -EINVAL, 0},
    {"null", -EINVAL, 0, -EINVAL, 0},
    {"[1]", -EINVAL, 0, -EINVAL, 0},
};

static void reads_numbers_exactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        struct json_error e;
        yyjson_doc *doc = json_parse(numbers[i].text, strlen(numbers[i].text), &e);
        assert_non_null(doc);
        int64_t got = 77;
        assert_int_equal(json_int(doc->root, &got), numbers[i].error);
        assert_int_equal(got, numbers[i].error ? 77 : numbers[i].value);
        got = 77;
        assert_int_equal(json_decimal(doc->root, 3, &got), numbers[i].error3);
        assert_int_equal(got, numbers[i].error3 ? 77 : numbers[i].value3);
        yyjson_doc_free(doc);
    }
}

static void rounds_down_for_lower_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t down;
    } cases[] = {{"0.9999", 999}, {"1", 1000}, {"1.0009", 1000}, {"-0.0001", -1}, {"-1", -1000}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct json_error e;
        yyjson_doc *doc = json_parse(cases[i].text, strlen(cases[i].text), &e);
        assert_non_null(doc);
        int64_t got;
        assert_int_equal(json_decimal_down(doc->root, 3, &got), 0);
        assert_int_equal(got, cases[i].down);
        yyjson_doc_free(doc);
    }
}

static void writes_what_it_read(void **state)
{
    (void)state;
    static const char *const same[] = {
        "null",
        "{\"b\":1,\"a\":[true,false,null,{}],\"c\":[]}",
        "[[],[[]],{\"x\":{\"y\":[1,2]}},3]",
        "[12345678901234567890123456789,1.10,1E+2,-0,0.1e-7]",
        "\"\xe6\x9d\xb1\xe4\xba\xac\\n\"",
    };
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        struct json_error e;
        yyjson_doc *doc = json_parse(same[i], strlen(same[i]), &e);
        assert_non_null(doc);
        AUTO_BUF struct buf out = BUF_INIT(1000);
        assert_int_equal(json_write(&out, doc->root), 0);
        assert_string_equal(buf_text(&out), same[i]);
        yyjson_doc_free(doc);
    }
}

static void writes_a_part(void **state)
{
    (void)state;
    struct json_error e;
    const char *text = "{ \"params\" : { \"k\" : [ 1 , \"\\u00e4\\u0000\" ] } , \"z\" : 1 }";
    yyjson_doc *doc = json_parse(text, strlen(text), &e);
    assert_non_null(doc);
    AUTO_BUF struct buf out = BUF_INIT(1000);
    assert_int_equal(json_write(&out, yyjson_obj_get(doc->root, "params")), 0);
    assert_string_equal(buf_text(&out), "{\"k\":[1,\"\xc3\xa4\\u0000\"]}");
    AUTO_BUF struct buf full = BUF_INIT(3);
    assert_int_equal(json_write(&full, doc->root), -EMSGSIZE);
    yyjson_doc_free(doc);
}

static void writes_piece_by_piece(void **state)
{
    (void)state;
    const char *const words[] = {"a", "{", NULL}, *const none[] = {NULL};
    AUTO_BUF struct buf out = BUF_INIT(1000);
    json_begin(&out, NULL, '{');
    json_begin(&out, "empty", '{');
    json_end(&out, '}');
    json_put_text(&out, "text", "x\"{");
    json_put_text(&out, "null", NULL);
    json_put_bytes(&out, "bytes", "a\0\xff", 3);
    json_put_int(&out, "int", INT64_MIN);
    json_put_number(&out, "number", 0.125, 2);
    json_put_bool(&out, "bool", false);
    json_put_json(&out, "json", "[1.50]");
    json_put_texts(&out, "words", words);
    json_put_texts(&out, "none", none);
    json_begin(&out, "list", '[');
    for (int i = 0; i < 2; i++) {
        json_begin(&out, NULL, '[');
        json_put_int(&out, NULL, i);
        json_end(&out, ']');
    }
    json_end(&out, ']');
    json_end(&out, '}');
    assert_string_equal(buf_text(&out),
                        "{\"empty\":{},\"text\":\"x\\\"{\",\"null\":null,"
                        "\"bytes\":\"a\\u0000\xef\xbf\xbd\",\"int\":-9223372036854775808,"
                        "\"number\":0.12,\"bool\":false,\"json\":[1.50],\"words\":[\"a\",\"{\"],"
                        "\"none\":[],\"list\":[[0],[1]]}");
    assert_int_equal(check(buf_text(&out), out.len), 0);
    AUTO_BUF struct buf full = BUF_INIT(3);
    json_put_text(&full, NULL, "too long");
    assert_int_equal(full.error, -EMSGSIZE);
}

static bool equal(const char *one, const char *other)
{
    struct json_error e;
    yyjson_doc *a = json_parse(one, strlen(one), &e), *b = json_parse(other, strlen(other), &e);
    assert_non_null(a);
    assert_non_null(b);
    bool there = json_equal(yyjson_doc_get_root(a), yyjson_doc_get_root(b));
    assert_int_equal(json_equal(yyjson_doc_get_root(b), yyjson_doc_get_root(a)), there);
    yyjson_doc_free(a);
    yyjson_doc_free(b);
    return there;
}

static void compares_values(void **state)
{
    (void)state;
    // Each row: equal ones; the rows differ from one another.
    static const char *const rows[][5] = {
        {"0", "-0", "0.000", "0e99999999"},
        {"1", "1.0", "10e-1", "0.1E+1", "1.00"},
        {"-1", "-1.0"},
        {"100", "1e2", "100.00", "0.001e5"},
        {"1.5", "15e-1", "1.50"},
        {"15", "1.5e1"},
        {"12345678901234567890123", "1.2345678901234567890123e22"},
        {"12345678901234567890124"},
        {"1e99999999", "1e99999999"},
        {"1e99999998"},
        {"true"},
        {"false"},
        {"null"},
        {"\"1\"", "\"\\u0031\""},
        {"\"a\\u0000b\""},
        {"\"a\\u0000c\""},
        {"[]"},
        {"{}"},
        {"[[]]"},
        {"[{}]"},
        {"[1,[2,3]]", "[1.0,[2e0,3]]"},
        {"[1,[3,2]]"},
        {"[[1,2],3]"},
        {"{\"a\":1,\"b\":[{\"c\":2}]}", "{\"b\":[{\"c\":2.0}],\"a\":1}"},
        {"{\"a\":1,\"b\":[{\"d\":2}]}"},
        {"{\"a\":1,\"c\":[{\"c\":2}]}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
            for (size_t n = 0; n < ARRAY_LEN(rows[k]) && rows[k][n]; n++) {
                if (equal(rows[i][0], rows[k][n]) != (i == k)) {
                    fail_msg("%s and %s", rows[i][0], rows[k][n]);
                }
            }
        }
    }
}

static void knows_integers(void **state)
{
    (void)state;
    static const char *const integers[] = {"0", "-0", "-17", "12345678901234567890123"};
    static const char *const others[] = {"1.0",   "1e3",  "1E3",  "-0.5",
                                         "\"1\"", "true", "null", "[1]"};
    struct json_error e;
    for (size_t i = 0; i < ARRAY_LEN(integers) + ARRAY_LEN(others); i++) {
        bool is = i < ARRAY_LEN(integers);
        const char *text = is ? integers[i] : others[i - ARRAY_LEN(integers)];
        yyjson_doc *doc = json_parse(text, strlen(text), &e);
        assert_non_null(doc);
        assert_int_equal(json_is_integer(yyjson_doc_get_root(doc)), is);
        yyjson_doc_free(doc);
    }
    assert_false(json_is_integer(NULL));
}

static void tells_numbers_that_fit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool fits;
    } rows[] = {{"0", true},       {"-1.5e308", true}, {"1e-999", true}, {"1e309", false},
                {"-2E308", false}, {"[1e400]", false}, {"\"1\"", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct json_error e;
        yyjson_doc *doc = json_parse(rows[i].text, strlen(rows[i].text), &e);
        assert_int_equal(json_number_fits(yyjson_doc_get_root(doc)), rows[i].fits);
        yyjson_doc_free(doc);
    }
    assert_false(json_number_fits(NULL));
}

static void tells_the_depth(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t depth;
    } rows[] = {{"1", 0}, {"[]", 1}, {"[[],[[]],1]", 3}, {"{\"a\":{\"b\":1},\"c\":[[[2]]]}", 4}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct json_error e;
        yyjson_doc *doc = json_parse(rows[i].text, strlen(rows[i].text), &e);
        assert_int_equal(json_depth(yyjson_doc_get_root(doc)), rows[i].depth);
        yyjson_doc_free(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_values),
        cmocka_unit_test(knows_integers),
        cmocka_unit_test(tells_numbers_that_fit),
        cmocka_unit_test(tells_the_depth),
        cmocka_unit_test(refuses),
        cmocka_unit_test(accepts),
        cmocka_unit_test(names_the_duplicate),
        cmocka_unit_test(finds_duplicates_among_many),
        cmocka_unit_test(finds_each_duplicate),
        cmocka_unit_test(bounds_depth),
        cmocka_unit_test(reads_numbers_exactly),
        cmocka_unit_test(rounds_down_for_lower_bounds),
        cmocka_unit_test(writes_what_it_read),
        cmocka_unit_test(writes_a_part),
        cmocka_unit_test(writes_piece_by_piece),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
