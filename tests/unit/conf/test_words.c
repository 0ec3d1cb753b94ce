// Words of lists: what the settings take is what the HTTP side takes, word for word.
#include "base/fd.h"
#include "conf/words.h"
#include "http/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    enum setting_word kind;
    const char *word;
    bool taken;
} rows[] = {
    {SETTING_W_LISTEN, "127.0.0.1:4753", true},
    {SETTING_W_LISTEN, "127.0.0.1:0", true},
    {SETTING_W_LISTEN, "[::1]:4753", true},
    {SETTING_W_LISTEN, "[::]:65535", true},
    {SETTING_W_LISTEN, "localhost:1", true},
    {SETTING_W_LISTEN, "*:80", true},
    {SETTING_W_LISTEN, "127.0.0.1", false},
    {SETTING_W_LISTEN, "127.0.0.1:", false},
    {SETTING_W_LISTEN, ":80", false},
    {SETTING_W_LISTEN, "::1:80", false},
    {SETTING_W_LISTEN, "127.0.0.1:65536", false},
    {SETTING_W_LISTEN, "127.0.0.1:8o", false},
    {SETTING_W_LISTEN, "127.0.0.1:-1", false},
    {SETTING_W_LISTEN, "example.com:80", false},
    {SETTING_W_LISTEN, "[127.0.0.1]:80", false},
    {SETTING_W_LISTEN, "[]:80", false},
    {SETTING_W_LISTEN, "300.0.0.1:80", false},
    {SETTING_W_HOST, "isle.example", true},
    {SETTING_W_HOST, "a_b-c.d:8080", true},
    {SETTING_W_HOST, "[::1]", true},
    {SETTING_W_HOST, "[::1]:80", true},
    {SETTING_W_HOST, "[]", false},
    {SETTING_W_HOST, "[::1", false},
    {SETTING_W_HOST, "a:0", false},
    {SETTING_W_HOST, "a:65536", false},
    {SETTING_W_HOST, "a:b", false},
    {SETTING_W_HOST, "http://a", false},
    {SETTING_W_HOST, "a/b", false},
    {SETTING_W_HOST, "a b", false},
    {SETTING_W_HOST, "\xc3\xa4", false},
    {SETTING_W_ORIGIN, "https://console.example", true},
    {SETTING_W_ORIGIN, "http://localhost:3000", true},
    {SETTING_W_ORIGIN, "https://a/", false},
    {SETTING_W_ORIGIN, "console.example", false},
    {SETTING_W_ORIGIN, "null", false},
    {SETTING_W_ORIGIN, "*", false},
    {SETTING_W_ORIGIN, "ftp://a", false},
    {SETTING_W_ORIGIN, "https://", false},
    {SETTING_W_URL, "https://isle.example", true},
    {SETTING_W_URL, "http://127.0.0.1:4753", true},
    {SETTING_W_URL, "https://isle.example/", true},
    {SETTING_W_URL, "https://[::1]:80/a/b-c_d.e~f", true},
    {SETTING_W_URL, "https://isle.example//", false},
    {SETTING_W_URL, "https://isle.example/../x", false},
    {SETTING_W_URL, "https://isle.example/a b", false},
    {SETTING_W_URL, "https://isle.example/a)", false},
    {SETTING_W_URL, "https://isle.example/%2e", false},
    {SETTING_W_URL, "https://isle.example?q", false},
    {SETTING_W_URL, "https://isle.example/#f", false},
    {SETTING_W_URL, "https://u:p@isle.example", false},
    {SETTING_W_URL, "isle.example/x", false},
    {SETTING_W_URL, "javascript://isle.example", false},
    {SETTING_W_URL, "/api", false},
    {SETTING_W_NETWORK, "10.0.0.0/8", true},
    {SETTING_W_NETWORK, "192.0.2.7", true},
    {SETTING_W_NETWORK, "192.0.2.7/32", true},
    {SETTING_W_NETWORK, "0.0.0.0/0", true},
    {SETTING_W_NETWORK, "::1", true},
    {SETTING_W_NETWORK, "fd00::/8", true},
    {SETTING_W_NETWORK, "::/0", true},
    {SETTING_W_NETWORK, "10.0.0.1/8", false},
    {SETTING_W_NETWORK, "fd00::1/8", false},
    {SETTING_W_NETWORK, "10.0.0.0/33", false},
    {SETTING_W_NETWORK, "::/129", false},
    {SETTING_W_NETWORK, "10.0.0.0/", false},
    {SETTING_W_NETWORK, "10.0.0.0/+8", false},
    {SETTING_W_NETWORK, "10.0.0/8", false},
    {SETTING_W_NETWORK, "/8", false},
    {SETTING_W_NETWORK, "proxy", false},
    {SETTING_W_PROGRAM, "python3.13", true},
    {SETTING_W_PROGRAM, "/usr/local/bin/python3", true},
    {SETTING_W_PROGRAM, "/app/.venv/bin/python", true},
    {SETTING_W_PROGRAM, "bin/python3", false},
    {SETTING_W_PROGRAM, "../python3", false},
    {SETTING_W_PROGRAM, "..", false},
    {SETTING_W_PROGRAM, "/usr/../python3", false},
    {SETTING_W_PROGRAM, "/usr/bin/", false},
    {SETTING_W_PROGRAM, "/", false},
    {SETTING_W_PROGRAM, "//python3", false},
    {SETTING_W_PROGRAM, "python3 -u", false},
    {SETTING_W_PROGRAM, "", false},
};

static void rows_hold(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (words_check(rows[i].kind, rows[i].word) != rows[i].taken) {
            fail_msg("%s: not as the table says", rows[i].word);
        }
    }
}

static void http_agrees(void **state)
{
    (void)state;
    struct http_net net;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *word = rows[i].word;
        bool taken = rows[i].kind == SETTING_W_HOST      ? http_is_host(word)
                     : rows[i].kind == SETTING_W_NETWORK ? http_net_parse(word, &net) == 0
                                                         : rows[i].taken;
        if (taken != rows[i].taken) {
            fail_msg("%s: HTTP has another opinion", word);
        }
        if (rows[i].kind == SETTING_W_ORIGIN && rows[i].taken) {
            assert_true(http_origin_allowed(word, "", &word, 1));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_hold), cmocka_unit_test(http_agrees)};
    return cmocka_run_group_tests_name("conf-words", tests, NULL, NULL);
}
