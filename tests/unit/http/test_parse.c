// What is a request and what is refused, whole and byte by byte: the catalogue of requests that two
// readers take for two things.
#include "http/parse.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof *(a))

static struct http_config bounds;

struct outcome {
    int status;     // of a refusal
    bool head, end; // reached
    size_t used;
    char body[64];
    size_t n_body;
};

static struct outcome run(struct http_parser *p, const char *data, size_t len, size_t piece)
{
    struct outcome o = {0};
    http_parser_init(p, &bounds);
    enum http_parsed event = HTTP_PARSED_MORE;
    for (size_t from = 0; from < len && !o.end && event != HTTP_PARSED_BAD;) {
        size_t n = len - from < piece ? len - from : piece;
        size_t at = 0;
        do {
            size_t used = 0;
            event = http_parse(p, data + from + at, n - at, &used);
            assert_true(used <= n - at);
            at += used;
            o.head = o.head || event == HTTP_PARSED_HEAD;
            o.end = event == HTTP_PARSED_END;
            if (event == HTTP_PARSED_BODY) {
                assert_true(o.n_body + p->body_len < sizeof o.body);
                memcpy(o.body + o.n_body, p->body, p->body_len);
                o.n_body += p->body_len;
            }
        } while (event == HTTP_PARSED_HEAD || event == HTTP_PARSED_BODY);
        from += at;
        o.used = from;
    }
    o.status = event == HTTP_PARSED_BAD ? p->status : 0;
    if (event == HTTP_PARSED_BAD) {
        assert_non_null(p->why);
        size_t used = 7;
        assert_int_equal(http_parse(p, "GET", 3, &used), HTTP_PARSED_BAD); // for good
        assert_int_equal(used, 0);
    }
    return o;
}

#define H "Host: a\r\n"
#define GET "GET / HTTP/1.1\r\n" H

static const struct {
    const char *what, *text;
    int status; // 0: a whole request
} cases[] = {
    {"the plainest", GET "\r\n", 0},
    {"one empty line before", "\r\n" GET "\r\n", 0},
    {"two empty lines before", "\r\n\r\n" GET "\r\n", 400},
    {"a bare LF before", "\n" GET "\r\n", 400},
    {"a bare CR before", "\rX" GET "\r\n", 400},
    {"HTTP/1.0 without Host", "GET / HTTP/1.0\r\n\r\n", 0},
    {"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
    {"two Hosts", GET "Host: b\r\n\r\n", 400},
    {"two equal Hosts", GET H "\r\n", 400},
    {"two Hosts in 1.0", "GET / HTTP/1.0\r\n" H H "\r\n", 400},
    {"empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
    {"Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
    {"Host with a user", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400},
    {"Host list", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400},
    {"Host with port", "GET / HTTP/1.1\r\nHost: a.example:80\r\n\r\n", 0},
    {"Host with a wrong port", "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", 400},
    {"Host IPv6", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 0},
    {"absolute form", "GET http://a/x HTTP/1.1\r\n" H "\r\n", 0},
    {"absolute form, query only", "GET http://a?x=1 HTTP/1.1\r\n" H "\r\n", 0},
    {"absolute form, other host", "GET http://b/x HTTP/1.1\r\n" H "\r\n", 400},
    {"absolute form, user", "GET http://u@a/x HTTP/1.1\r\n" H "\r\n", 400},
    {"other scheme", "GET ftp://a/x HTTP/1.1\r\n" H "\r\n", 400},
    {"asterisk", "OPTIONS * HTTP/1.1\r\n" H "\r\n", 0},
    {"asterisk for GET", "GET * HTTP/1.1\r\n" H "\r\n", 400},
    {"no slash", "GET x HTTP/1.1\r\n" H "\r\n", 400},
    {"fragment", "GET /#x HTTP/1.1\r\n" H "\r\n", 400},
    {"not ASCII in the target", "GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n", 400},
    {"space in the target", "GET /a b HTTP/1.1\r\n" H "\r\n", 400},
    {"backslash", "GET /a\\b HTTP/1.1\r\n" H "\r\n", 400},
    {"NUL escaped", "GET /%00 HTTP/1.1\r\n" H "\r\n", 400},
    {"slash escaped", "GET /a%2Fb HTTP/1.1\r\n" H "\r\n", 400},
    {"dots", "GET /a/../b HTTP/1.1\r\n" H "\r\n", 400},
    {"dots escaped", "GET /a/%2e%2E/b HTTP/1.1\r\n" H "\r\n", 400},
    {"a dot", "GET /a/. HTTP/1.1\r\n" H "\r\n", 400},
    {"three dots are a name", "GET /a/... HTTP/1.1\r\n" H "\r\n", 0},
    {"half an escape", "GET /a% HTTP/1.1\r\n" H "\r\n", 400},
    {"half an escape, one digit", "GET /a%4 HTTP/1.1\r\n" H "\r\n", 400},
    {"an escape at the end", "GET /a%41 HTTP/1.1\r\n" H "\r\n", 0},
    {"no hex", "GET /a%4g HTTP/1.1\r\n" H "\r\n", 400},
    {"overlong UTF-8", "GET /%c0%af HTTP/1.1\r\n" H "\r\n", 400},
    {"surrogate", "GET /%ed%a0%80 HTTP/1.1\r\n" H "\r\n", 400},
    {"line feed escaped in the path", "GET /%0a HTTP/1.1\r\n" H "\r\n", 400},
    {"query with NUL", "GET /?a=%00 HTTP/1.1\r\n" H "\r\n", 400},
    {"query with a broken escape", "GET /?a=%zz HTTP/1.1\r\n" H "\r\n", 400},
    {"query not UTF-8", "GET /?a=%ff HTTP/1.1\r\n" H "\r\n", 400},

    {"not a method", "FOO / HTTP/1.1\r\n" H "\r\n", 501},
    {"CONNECT", "CONNECT a:80 HTTP/1.1\r\n" H "\r\n", 501},
    {"TRACE", "TRACE / HTTP/1.1\r\n" H "\r\n", 501},
    {"lower case", "get / HTTP/1.1\r\n" H "\r\n", 400},
    {"TLS", "\x16\x03\x01\x02\x00\x01", 400},
    {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
    {"HTTP/2.0 of a GET", "GET / HTTP/2.0\r\n" H "\r\n", 505},
    {"HTTP/0.9", "GET /\r\n\r\n", 505},
    {"HTTP/0.9 by name", "GET / HTTP/0.9\r\n" H "\r\n", 505},
    {"HTTP/3.7", "GET / HTTP/3.7\r\n" H "\r\n", 505},
    {"another protocol", "GET / FTP/1.1\r\n" H "\r\n", 400},
    {"an Upgrade is an offer", GET "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 0},

    {"bare LF at the end of a line", "GET / HTTP/1.1\nHost: a\n\n", 400},
    {"bare LF after a field", "GET / HTTP/1.1\r\nHost: a\n\r\n", 400},
    {"bare CR in a value", GET "X: a\rb\r\n\r\n", 400},
    {"bare CR ends a field", GET "X: a\rY: b\r\n\r\n", 400},
    {"folded", GET "X: a\r\n b\r\n\r\n", 400},
    {"folded by a tab", GET "X: a\r\n\tb\r\n\r\n", 400},
    {"white space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
    {"white space before the colon", GET "X : a\r\n\r\n", 400},
    {"no name", GET ": a\r\n\r\n", 400},
    {"no colon", GET "X\r\n\r\n", 400},
    {"brackets in a name", GET "X(y): a\r\n\r\n", 400},
    {"a control character in a value", GET "X: a\x01z\r\n\r\n", 400},
    {"DEL in a value", GET "X: a\x7f\r\n\r\n", 400},
    {"empty value", GET "X:\r\n\r\n", 0},
    {"Latin-1 in a value", GET "X: \xe9\r\n\r\n", 0},

    {"two lengths", GET "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
    {"two equal lengths", GET "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400},
    {"a list of lengths", GET "Content-Length: 1, 1\r\n\r\na", 400},
    {"length with a sign", GET "Content-Length: +1\r\n\r\na", 400},
    {"negative length", GET "Content-Length: -1\r\n\r\na", 400},
    {"hexadecimal length", GET "Content-Length: 0x1\r\n\r\na", 400},
    {"length with a space", GET "Content-Length: 1 1\r\n\r\na", 400},
    {"empty length", GET "Content-Length:\r\n\r\n", 400},
    {"length of 2^64+1", GET "Content-Length: 18446744073709551617\r\n\r\na", 400},
    {"length and chunked", GET "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     400},
    {"chunked and length", GET "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
     400},
    {"chunked in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"chunked twice", GET "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400},
    {"two codings", GET "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
    {"two coding fields",
     GET "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 400},
    {"gzip", GET "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n", -1}, // refused one way or the other
    {"xchunked", GET "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", -1},
    {"chunked in quotes", GET "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", -1},
    {"chunked behind a vertical tab", GET "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n", 400},
    {"chunked behind a comma", GET "Transfer-Encoding: , chunked\r\n\r\n0\r\n\r\n", -1},
    {"space before the coding's colon", GET "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
    {"CHUNKED", GET "Transfer-Encoding: CHUNKED\r\n\r\n1\r\na\r\n0\r\n\r\n", 0},
    {"chunk of sign", GET "Transfer-Encoding: chunked\r\n\r\n+1\r\na\r\n0\r\n\r\n", 400},
    {"chunk of 0x", GET "Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n", 400},
    {"chunk without size", GET "Transfer-Encoding: chunked\r\n\r\n\r\na\r\n0\r\n\r\n", 400},
    {"chunk size of 2^64", GET "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n", 400},
    {"space after the size", GET "Transfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n", 400},
    {"LF after the size", GET "Transfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n", 400},
    {"CR alone after the size", GET "Transfer-Encoding: chunked\r\n\r\n1\rXa\r\n0\r\n\r\n", 400},
    {"chunk longer than it says", GET "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
     400},
    {"LF after the chunk", GET "Transfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n", 400},
    {"an extension", GET "Transfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n0\r\n\r\n", 0},
    {"LF in an extension", GET "Transfer-Encoding: chunked\r\n\r\n1;x\ny\r\na\r\n0\r\n\r\n", 400},
    {"a trailer", GET "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nHost: b\r\n\r\n", 0},

    {"a trailer with a length",
     GET "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nContent-Length: 9\r\n\r\n", 400},

    {"Expect", GET "Expect: 100-continue\r\n\r\n", 0},
    {"another Expect", GET "Expect: 200-ok\r\n\r\n", 417},
};

static void each_case_is_decided_alike_however_it_is_cut(void **state)
{
    (void)state;
    struct http_parser *p = malloc(sizeof *p);
    assert_non_null(p);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t len = strlen(cases[i].text);
        for (size_t piece = 1; piece <= len; piece = piece < 4 ? piece + 1 : len) {
            struct outcome o = run(p, cases[i].text, len, piece);
            http_parser_done(p);
            int want = cases[i].status;
            if (want == 0 ? !o.end || o.status : want < 0 ? !o.status : o.status != want) {
                fail_msg("%s (pieces of %zu): status %d, end %d, %s", cases[i].what, piece,
                         o.status, o.end, o.status ? p->why : "");
            }
            if (o.status) {
                assert_int_equal(o.n_body > 1, 0);
            }
            if (piece == len) {
                break;
            }
        }
    }
    free(p);
}

static void nul_bytes_are_refused_everywhere(void **state)
{
    (void)state;
    static const char good[] = GET "X: abc\r\n\r\n";
    struct http_parser *p = malloc(sizeof *p);
    assert_non_null(p);
    for (size_t i = 0; i < sizeof good - 1; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        text[i] = '\0';
        struct outcome o = run(p, text, sizeof good - 1, 1 + i % 3);
        assert_false(o.end);
        assert_true(o.status >= 400);
        http_parser_done(p);
    }
    free(p);
}

static void a_head_is_read_into_its_parts(void **state)
{
    (void)state;
    static const char text[] = "PUT http://A.example:8/a%20b//%C3%A9?q=1+2&q=%2F&&e&=x HTTP/1.1\r\n"
                               "HOST: a.EXAMPLE:8\r\nX-One: \t v 1 \t \r\nx-two:\r\nX-ONE: w\r\n"
                               "Content-Length: 5\r\n\r\nhelloGET";
    struct http_parser *p = malloc(sizeof *p);
    assert_non_null(p);
    for (size_t piece = 1; piece < sizeof text; piece++) {
        struct outcome o = run(p, text, sizeof text - 1, piece);
        assert_true(o.end && !o.status);
        assert_int_equal(o.used, sizeof text - 1 - 3); // what follows is another request's
        assert_memory_equal(o.body, "hello", 5);
        assert_int_equal(p->method, HTTP_M_PUT);
        assert_int_equal(p->length, 5);
        assert_true(p->keep_alive);
        assert_string_equal(http_parser_path(p), "/a b//\xc3\xa9");
        assert_string_equal(http_parser_host(p), "a.EXAMPLE:8");
        const char *name, *value;
        static const char *const pairs[][2] = {{"q", "1 2"}, {"q", "/"}, {"e", ""}, {"", "x"}};
        for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
            assert_true(http_parser_pair(p, i, &name, &value));
            assert_string_equal(name, pairs[i][0]);
            assert_string_equal(value, pairs[i][1]);
        }
        assert_false(http_parser_pair(p, ARRAY_LEN(pairs), &name, &value));
        assert_true(http_parser_field(p, 1, &name, &value));
        assert_string_equal(name, "x-one");
        assert_string_equal(value, "v 1");
        assert_int_equal(http_parser_field_value(p, "x-two", &value), 1);
        assert_string_equal(value, "");
        assert_int_equal(http_parser_field_value(p, "x-one", &value), -EEXIST);
        assert_int_equal(http_parser_field_value(p, "x-three", &value), 0);
        http_parser_done(p);
    }
    free(p);
}

// `unit` again and again behind `start`, up to `len` bytes.
static struct outcome bomb(struct http_parser *p, const char *start, const char *unit, size_t len,
                           size_t piece)
{
    AUTO_BUF struct buf text = BUF_INIT(len + 4096);
    buf_puts(&text, start);
    while (text.len < len) {
        buf_puts(&text, unit);
    }
    assert_int_equal(text.error, 0);
    struct outcome o = run(p, text.data, text.len, piece);
    http_parser_done(p);
    return o;
}

static void what_never_ends_is_refused_in_time(void **state)
{
    (void)state;
    static const struct {
        const char *start, *unit;
        int status;
        size_t used; // at most
    } bombs[] = {
        {"GET /", "a", 414, 9 << 10},
        {"GET ", "/", 414, 9 << 10},
        {"GE", " ", 501, 100},
        {GET, "x: y\r\n", 431, 33 << 10},
        {GET "a", "b", 431, 33 << 10},
        {GET "a:", "b", 431, 33 << 10},
        {GET "a:", " ", 431, 33 << 10},
        {"GET /      ", " ", 0, 33 << 10},
        {GET "Transfer-Encoding: chunked\r\n\r\n0\r\n", "x: y\r\n", 431, 33 << 10},
        {GET "Transfer-Encoding: chunked\r\n\r\n", "0", 400, 80 << 10},
        {GET "Transfer-Encoding: chunked\r\n\r\n1;", "x", 400, 80 << 10},
        {GET "Transfer-Encoding: chunked\r\n\r\n1;x=", "y", 400, 80 << 10},
    };
    struct http_parser *p = malloc(sizeof *p);
    assert_non_null(p);
    for (size_t i = 0; i < ARRAY_LEN(bombs); i++) {
        static const size_t pieces[] = {1, 1000, 16 << 10};
        for (size_t k = 0; k < ARRAY_LEN(pieces); k++) {
            struct outcome o = bomb(p, bombs[i].start, bombs[i].unit, 256 << 10, pieces[k]);
            if ((bombs[i].status ? o.status != bombs[i].status : !o.status) || o.end ||
                o.used > bombs[i].used + pieces[k]) {
                fail_msg("bomb %zu in pieces of %zu: status %d after %zu", i, pieces[k], o.status,
                         o.used);
            }
        }
    }
    free(p);
}

static void bounds_are_exact(void **state)
{
    (void)state;
    struct http_parser *p = malloc(sizeof *p);
    assert_non_null(p);
    for (int over = 0; over < 2; over++) {
        AUTO_BUF struct buf fields = BUF_INIT(64 << 10), target = BUF_INIT(64 << 10);
        buf_puts(&fields, GET);
        for (size_t i = 1; i < bounds.fields + (size_t)over; i++) {
            buf_puts(&fields, "x: y\r\n");
        }
        buf_puts(&fields, "\r\n");
        assert_int_equal(run(p, fields.data, fields.len, 7).status, over ? 431 : 0);
        http_parser_done(p);

        buf_puts(&target, "GET /");
        for (size_t i = 1; i < bounds.target_bytes + (size_t)over; i++) {
            buf_puts(&target, "a");
        }
        buf_puts(&target, " HTTP/1.1\r\n" H "\r\n");
        assert_int_equal(run(p, target.data, target.len, 7).status, over ? 414 : 0);
        http_parser_done(p);

        buf_clear(&fields);
        buf_puts(&fields, GET "X: ");
        while (fields.len < bounds.head_bytes - 4 + (size_t)over) {
            buf_puts(&fields, "z");
        }
        buf_puts(&fields, "\r\n\r\n");
        assert_int_equal(run(p, fields.data, fields.len, fields.len).status, over ? 431 : 0);
        http_parser_done(p);
    }
    free(p);
}

// Each parameter that is asked for is held against all pairs.
static void a_query_has_so_many_pairs(void **state)
{
    (void)state;
    struct http_parser *p = malloc(sizeof *p);
    assert_non_null(p);
    for (int over = 0; over < 2; over++) {
        AUTO_BUF struct buf text = BUF_INIT(64 << 10);
        const char *name, *value;
        buf_puts(&text, "GET /?");
        for (int i = 0; i < HTTP_PAIRS_MAX + over; i++) {
            buf_printf(&text, "&&k%d=%d", i, i);
        }
        buf_puts(&text, "& HTTP/1.1\r\n" H "\r\n");
        assert_int_equal(run(p, text.data, text.len, 7).status, over ? 414 : 0);
        if (!over) {
            assert_true(http_parser_pair(p, HTTP_PAIRS_MAX - 1, &name, &value));
            assert_string_equal(name, "k99");
            assert_string_equal(value, "99");
            assert_false(http_parser_pair(p, HTTP_PAIRS_MAX, &name, &value));
            assert_int_equal(http_parser_pair_value(p, "k98", &value), 1);
            assert_string_equal(value, "98");
        }
        http_parser_done(p);
    }
    free(p);
}

int main(void)
{
    http_config_init(&bounds);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case_is_decided_alike_however_it_is_cut),
        cmocka_unit_test(nul_bytes_are_refused_everywhere),
        cmocka_unit_test(a_head_is_read_into_its_parts),
        cmocka_unit_test(what_never_ends_is_refused_in_time),
        cmocka_unit_test(bounds_are_exact),
        cmocka_unit_test(a_query_has_so_many_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
