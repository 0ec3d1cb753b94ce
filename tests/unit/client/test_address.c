// Where a service is: what is taken, what is refused, how names become paths.
#include "base/fd.h"
#include "client/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void what_is_taken(void **state)
{
    (void)state;
    static const struct {
        const char *url, *base, *socket;
        bool loopback, overt;
    } rows[] = {
        {"http://127.0.0.1:4753", "http://127.0.0.1:4753", "", true, false},
        {"http://localhost:4753/", "http://localhost:4753", "", true, false},
        {"http://[::1]:4753/", "http://[::1]:4753", "", true, false},
        {"https://isle.example/sandbox/", "https://isle.example/sandbox", "", false, false},
        {"http://isle.example", "http://isle.example", "", false, true},
        {"http://127.0.0.1.example", "http://127.0.0.1.example", "", false, true},
        {"unix:/run/isle/isle.sock", "http://localhost", "/run/isle/isle.sock", true, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct address a;
        struct address_error e;
        assert_int_equal(address_parse(rows[i].url, &a, &e), 0);
        assert_string_equal(a.base, rows[i].base);
        assert_string_equal(a.socket, rows[i].socket);
        assert_int_equal(a.loopback, rows[i].loopback);
        assert_int_equal(a.overt, rows[i].overt);
    }
}

static void what_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *url, *says;
    } rows[] = {
        {"", "is no address"},
        {"isle.example", "is no address"},
        {"ftp://isle.example", "must begin it"},
        {"file:///etc/passwd", "is no address"},
        {"unix:relative", "an absolute path"},
        {"unix:", "an absolute path"},
        {"http://me:secret@isle.example", "no user"},
        {"http://me:secret@isle.example:99999", "is no address"},
        {"http://isle.example/?a=1", "query"},
        {"http://isle.example/#a", "fragment"},
        {"http://isle.example:99999", "is no address"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct address a = {.base = "untouched"};
        struct address_error e = {""};
        assert_int_equal(address_parse(rows[i].url, &a, &e), -EINVAL);
        assert_non_null(strstr(e.text, rows[i].says));
        assert_null(strstr(e.text, "secret"));
        assert_string_equal(a.base, "untouched");
    }
    char longer[200] = "unix:/";
    memset(longer + 6, 'a', 150);
    struct address a;
    struct address_error e;
    assert_int_equal(address_parse(longer, &a, &e), -EINVAL);
}

static void names_become_paths(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT(1000);
    assert_int_equal(address_escape(&out, "a b/\xc3\xa9?#%..~", true), 0);
    assert_string_equal(buf_text(&out), "a%20b/%C3%A9%3F%23%25..~");
    buf_clear(&out);
    assert_int_equal(address_escape(&out, "a/b\r\n", false), 0);
    assert_string_equal(buf_text(&out), "a%2Fb%0D%0A");
    AUTO_BUF struct buf small = BUF_INIT(2);
    assert_int_equal(address_escape(&small, "  ", false), -EMSGSIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(names_become_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
