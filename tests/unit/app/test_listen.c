// The sockets of a service: addresses, what is refused and why, the Unix socket's place.
#include "app/listen.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

static void close_all(struct listen_tcp *l, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        close(l[i].fd);
    }
}

static void test_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *word, *begin;
        bool any;
    } rows[] = {{"127.0.0.1:0", "127.0.0.1:", false},
                {"localhost:0", "127.0.0.1:", false},
                {"127.1.2.3:0", "127.1.2.3:", false},
                {"*:0", "0.0.0.0:", true},
                {"0.0.0.0:0", "0.0.0.0:", true}}; // what is not any is loopback
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct listen_tcp l[LISTEN_MAX_TCP];
        struct listen_error why;
        size_t n = 0;
        assert_int_equal(listen_open(rows[i].word, l, &n, &why), 0);
        assert_int_equal(n, 1);
        assert_memory_equal(l[0].text, rows[i].begin, strlen(rows[i].begin));
        assert_true(strtol(strrchr(l[0].text, ':') + 1, NULL, 10) > 0);
        assert_int_equal(l[0].any, rows[i].any);
        assert_int_equal(l[0].loopback, !rows[i].any);
        close_all(l, n);
    }
}

static void test_loopback(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool loopback;
    } rows[] = {
        {"127.0.0.1", true},
        {"127.255.255.255", true},
        {"126.255.255.255", false},
        {"128.0.0.1", false},
        {"0.0.0.0", false},
        {"::1", true},
        {"::2", false},
        {"::", false},
        {"fe80::1", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sockaddr_in v4 = {.sin_family = AF_INET};
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
        const bool is_v4 = inet_pton(AF_INET, rows[i].text, &v4.sin_addr) == 1;
        assert_true(is_v4 || inet_pton(AF_INET6, rows[i].text, &v6.sin6_addr) == 1);
        const void *address = is_v4 ? (const void *)&v4 : &v6;
        assert_int_equal(listen_is_loopback(address), rows[i].loopback);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const words[] = {
        "4753",         "127.0.0.1",  "127.0.0.1:",      ":4753",         "host.example:80",
        "127.0.0.1:x",  "::1:80",     "[::1]",           "[::1:80",       "::1]:80",
        "127.0.0.1:+1", "[]:80",      "127.0.0.1:65536", "127.1:80",      "[127.0.0.1]:80",
        "127.0.0.1:-1", "[::1%lo]:1", "127.0.0.1: 80",   "127.0.0.1:80x",
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        struct listen_tcp l[LISTEN_MAX_TCP];
        struct listen_error why = {""};
        size_t n = 77;
        assert_int_equal(listen_open(words[i], l, &n, &why), -EINVAL);
        assert_int_equal(n, 77);
        assert_non_null(strstr(why.text, "HOST:PORT"));
    }
}

// The second cannot be had: the first is closed again.
static void test_in_use(void **state)
{
    (void)state;
    struct listen_tcp one[LISTEN_MAX_TCP], more[LISTEN_MAX_TCP];
    struct listen_error why;
    size_t n = 0, m = 0;
    char list[160];
    assert_int_equal(listen_open("127.0.0.1:0", one, &n, &why), 0);
    snprintf(list, sizeof list, "127.0.0.1:0,%s", one[0].text);
    int before = dup(0);
    close(before);
    assert_int_equal(listen_open(list, more, &m, &why), -EADDRINUSE);
    assert_non_null(strstr(why.text, one[0].text));
    int after = dup(0);
    close(after);
    assert_int_equal(after, before);
    close_all(one, n);
    assert_int_equal(listen_open("127.0.0.1:0,127.0.0.1:0,127.0.0.1:0,127.0.0.1:0,127.0.0.1:0,"
                                 "127.0.0.1:0,127.0.0.1:0",
                                 more, &m, &why),
                     -E2BIG);
    assert_int_equal(listen_open("192.0.2.1:80", more, &m, &why), -EADDRNOTAVAIL);
}

// ---- the Unix socket ----------------------------------------------------------------------------

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/isle-listen-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/s", folder);
    unlink(path);
    return rmdir(folder);
}

static void test_unix(void **state)
{
    (void)state;
    char path[128];
    struct stat st;
    struct listen_error why;
    snprintf(path, sizeof path, "%s/s", folder);
    AUTO_CLOSE int fd = listen_open_unix(path, &why);
    assert_true(fd >= 0);
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0600);
    // one that lives is not taken
    assert_int_equal(listen_open_unix(path, &why), -EADDRINUSE);
    assert_non_null(strstr(why.text, "--socket"));
    // one that was left is
    fd = fd_close(fd);
    fd = listen_open_unix(path, &why);
    assert_true(fd >= 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    AUTO_CLOSE int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(a.sun_path, path, strlen(path));
    assert_int_equal(connect(caller, (const struct sockaddr *)&a, sizeof a), 0);
}

static void test_unix_refused(void **state)
{
    (void)state;
    char path[128];
    struct listen_error why;
    snprintf(path, sizeof path, "%s/s", folder);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(listen_open_unix(path, &why), -EADDRINUSE);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(listen_open_unix(path, &why), -EPERM);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(listen_open_unix("/tmp/isle-no-such/s", &why), -ENOENT);
    assert_int_equal(listen_open_unix("relative", &why), -EINVAL);
    assert_int_equal(listen_open_unix("/tmp/", &why), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_loopback),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_in_use),
        cmocka_unit_test_setup_teardown(test_unix, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_unix_refused, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
