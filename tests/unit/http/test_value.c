// What fields say, and what hostile ones do not.
#include "http/value.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof *(a))

static void ranges(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        uint64_t size;
        int rc;
        uint64_t first, len;
    } cases[] = {
        {"bytes=0-0", 10, 1, 0, 1},
        {"bytes=2-", 10, 1, 2, 8},
        {"bytes=2-4", 10, 1, 2, 3},
        {"bytes=2-99", 10, 1, 2, 8},
        {"bytes=-3", 10, 1, 7, 3},
        {"bytes=-99", 10, 1, 0, 10},
        {"bytes=9-9", 10, 1, 9, 1},
        {"bytes=10-", 10, -ERANGE, 0, 0},
        {"bytes=-0", 10, -ERANGE, 0, 0},
        {"bytes=0-", 0, -ERANGE, 0, 0},
        {"bytes=-1", 0, -ERANGE, 0, 0},
        {"bytes=99999999999999999999999-", 10, -ERANGE, 0, 0},
        {"bytes=0-99999999999999999999999", 10, 1, 0, 10},
        {"bytes=4-2", 10, 0, 0, 0},
        {"bytes=-", 10, 0, 0, 0},
        {"bytes=", 10, 0, 0, 0},
        {"bytes=0-1,3-4", 10, 0, 0, 0},
        {"bytes=0-1 ", 10, 0, 0, 0},
        {"bytes=--1", 10, 0, 0, 0},
        {"bytes=+1-2", 10, 0, 0, 0},
        {"lines=0-1", 10, 0, 0, 0},
        {"", 10, 0, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t first = 77, len = 77;
        int rc = http_range(cases[i].value, cases[i].size, &first, &len);
        if (rc != cases[i].rc || (rc == 1 && (first != cases[i].first || len != cases[i].len)) ||
            (rc != 1 && (first != 77 || len != 77))) {
            fail_msg("%s: %d %ld %ld", cases[i].value, rc, (long)first, (long)len);
        }
    }
}

static void entity_tags(void **state)
{
    (void)state;
    static const struct {
        const char *list, *etag;
        bool strong, weak;
    } cases[] = {
        {"\"a\"", "\"a\"", true, true},         {"*", "\"a\"", true, true},
        {"\"b\", \"a\"", "\"a\"", true, true},  {" ,,\"b\"\t,\"a\"", "\"a\"", true, true},
        {"W/\"a\"", "\"a\"", false, true},      {"\"a\"", "W/\"a\"", false, true},
        {"W/\"a\"", "W/\"a\"", false, true},    {"\"b\"", "\"a\"", false, false},
        {"\"a", "\"a\"", false, false},         {"a", "\"a\"", false, false},
        {"\"a,b\"", "\"a,b\"", true, true},     {"\"\"", "\"a\"", false, false},
        {"\"b\"x\"a\"", "\"a\"", false, false}, {"", "\"a\"", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(http_etag_listed(cases[i].list, cases[i].etag, false), cases[i].strong);
        assert_int_equal(http_etag_listed(cases[i].list, cases[i].etag, true), cases[i].weak);
    }
}

static void attachments(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"plot.png", "attachment; filename=\"plot.png\""},
        {"out/plot 1.png", "attachment; filename=\"plot 1.png\""},
        {"a\"b\\c", "attachment; filename=\"a_b_c\"; filename*=UTF-8''a%22b%5Cc"},
        {"50%.txt", "attachment; filename=\"50_.txt\"; filename*=UTF-8''50%25.txt"},
        {"x\r\nSet-Cookie: a", "attachment; filename=\"x__Set-Cookie: a\"; "
                               "filename*=UTF-8''x%0D%0ASet-Cookie%3A%20a"},
        {"\xe5\x9b\xbe.png", "attachment; filename=\"_.png\"; filename*=UTF-8''%E5%9B%BE.png"},
        {"\xff", "attachment; filename=\"_\"; filename*=UTF-8''%EF%BF%BD"},
        {"", "attachment; filename=\"\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf out = BUF_INIT(4096);
        assert_int_equal(http_attachment(&out, cases[i][0]), 0);
        assert_string_equal(buf_text(&out), cases[i][1]);
        assert_true(http_is_value(out.data, out.len));
    }
    AUTO_BUF struct buf small = BUF_INIT(10);
    assert_int_equal(http_attachment(&small, "name"), -EMSGSIZE);
}

static void hosts_and_origins(void **state)
{
    (void)state;
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]", "isle.example:8443"};
    static const char *const good[] = {"localhost", "LOCALHOST:1", "127.0.0.1:4753", "[::1]:80",
                                       "isle.example:8443"};
    static const char *const bad[] = {"",          "evil.example",      "localhost.evil.example",
                                      "localhos",  "isle.example",      "isle.example:80",
                                      "127.0.0.2", "isle.example:84430"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_true(http_host_allowed(good[i], names, ARRAY_LEN(names)));
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(http_host_allowed(bad[i], names, ARRAY_LEN(names)));
    }
    static const char *const origins[] = {"https://console.example"};
    assert_true(http_origin_allowed(NULL, "a", origins, 1));
    assert_true(http_origin_allowed("http://a:1", "a:1", origins, 1));
    assert_true(http_origin_allowed("https://console.example", "a", origins, 1));
    assert_false(http_origin_allowed("http://console.example", "a", origins, 1));
    assert_false(http_origin_allowed("https://console.example.evil", "a", origins, 1));
    assert_false(http_origin_allowed("http://a:2", "a:1", origins, 1));
    assert_false(http_origin_allowed("null", "null", origins, 1));
    assert_false(http_origin_allowed("http://", "", origins, 1));
    assert_false(http_origin_allowed("", "", origins, 1));
}

static void nets(void **state)
{
    (void)state;
    static const struct {
        const char *net, *in, *out;
    } cases[] = {
        {"10.0.0.0/8", "10.255.1.2", "11.0.0.0"},
        {"127.0.0.1", "127.0.0.1", "127.0.0.2"},
        {"0.0.0.0/0", "1.2.3.4", "::1"},
        {"fd00::/8", "fdff::1", "fc00::1"},
        {"::1", "::1", "::2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_net net, in, out;
        assert_int_equal(http_net_parse(cases[i].net, &net), 0);
        assert_int_equal(http_net_parse(cases[i].in, &in), 0);
        assert_int_equal(http_net_parse(cases[i].out, &out), 0);
        assert_true(http_net_has(&net, 1, &in.ip));
        assert_false(http_net_has(&net, 1, &out.ip));
    }
    static const char *const bad[] = {"",          "10.0.0.1/8",  "10.0.0.0/33", "::1/129",
                                      "10.0.0.0/", "x",           "10.0.0.0/-1", "10.0.0.0/0000",
                                      "1.2.3",     "10.0.0.0/8/8"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct http_net net;
        assert_int_equal(http_net_parse(bad[i], &net), -EINVAL);
    }
}

static void for_whom_a_proxy_speaks(void **state)
{
    (void)state;
    struct http_config config = {.n_trusted = 2};
    assert_int_equal(http_net_parse("10.0.0.0/8", &config.trusted[0]), 0);
    assert_int_equal(http_net_parse("::1", &config.trusted[1]), 0);
    static const struct {
        const char *peer, *value, *client; // NULL: refused
    } cases[] = {
        {"10.0.0.1", "192.0.2.7", "192.0.2.7"},
        {"10.0.0.1", "6.6.6.6, 192.0.2.7", "192.0.2.7"}, // what the stranger claims is not taken
        {"10.0.0.1", "6.6.6.6 , 192.0.2.7,10.9.9.9", "192.0.2.7"},
        {"10.0.0.1", "10.1.1.1", "10.1.1.1"},
        {"10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"},
        {"10.0.0.1", "2001:db8::1", "2001:db8::1"},
        {"10.0.0.1", "192.0.2.7:80", "192.0.2.7"},
        {"10.0.0.1", "unknown", NULL},
        {"10.0.0.1", "192.0.2.7,", NULL},
        {"10.0.0.1", "192.0.2.7:x", NULL},
        {"10.0.0.1", "junk, 192.0.2.7", "192.0.2.7"},
        {"10.0.0.1", NULL, "10.0.0.1"},
        {"192.0.2.9", "6.6.6.6", "192.0.2.9"}, // no proxy of ours
        {"192.0.2.9", "junk", "192.0.2.9"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_net peer_net;
        struct http_client client;
        assert_int_equal(http_net_parse(cases[i].peer, &peer_net), 0);
        struct http_peer peer = {.ip = peer_net.ip};
        strcpy(peer.text, cases[i].peer);
        int e = http_client_of(&peer, &config, cases[i].value, "https", &client);
        assert_int_equal(e, cases[i].client ? 0 : -EINVAL);
        if (!e) {
            assert_string_equal(client.text, cases[i].client);
            assert_int_equal(client.https, cases[i].peer[0] == '1' && cases[i].peer[1] == '0');
        }
    }
    struct http_peer local = {.local = true, .text = "unix"};
    struct http_client client;
    assert_int_equal(http_client_of(&local, &config, "6.6.6.6", "https", &client), 0);
    assert_string_equal(client.text, "unix");
    assert_false(client.https);
}

static void tokens_and_values(void **state)
{
    (void)state;
    assert_true(http_is_token("X-a_1", 5));
    assert_false(http_is_token("", 0));
    assert_false(http_is_token("a b", 3));
    assert_false(http_is_token("a\0b", 3));
    assert_false(http_is_token("a:", 2));
    assert_true(http_is_value("a\tb \xc3\xa9", 6));
    assert_false(http_is_value("a\r", 2));
    assert_false(http_is_value("a\n", 2));
    assert_false(http_is_value("a\0", 2));
    assert_false(http_is_value("\xff", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges),
        cmocka_unit_test(entity_tags),
        cmocka_unit_test(attachments),
        cmocka_unit_test(hosts_and_origins),
        cmocka_unit_test(nets),
        cmocka_unit_test(for_whom_a_proxy_speaks),
        cmocka_unit_test(tokens_and_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
