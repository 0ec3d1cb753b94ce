// The server on a Unix socket and on loopback, its client in the same thread: what goes out for
// what comes in, in any pieces, and what waits, what is refused and what ends when.
#include "base/clock.h"
#include "base/fd.h"
#include "routes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

static struct loop *loop;
static struct routes routes;
static struct http_server *server;
static struct sockaddr_in address;

#define H "Host: a\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" H "\r\n"

static void start(void)
{
    socklen_t len = sizeof address;
    address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    routes.config.listeners[0] = (struct http_listener){.fd = fd, .connections = 8, .per_peer = 6};
    routes.config.n_listeners = 1;
    assert_int_equal(http_server_new(loop, &routes.config, &server), 0);
}

static int set_up(void **state)
{
    (void)state;
    if (loop_new(&loop)) {
        return -1;
    }
    routes_init(&routes, loop);
    routes.file = fd_sealed("file", "0123456789", 10);
    return routes.file < 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_server_free(server);
    server = NULL;
    loop_free(loop);
    close(routes.file);
    return 0;
}

static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

// Turns are counted beside the time: on a busy machine time passes without any.
static void turn(int ms)
{
    uint64_t until = clock_now_ns() + (uint64_t)ms * NS_PER_MS;
    for (int turns = 0; turns <= ms || clock_now_ns() < until; turns++) {
        assert_int_equal(loop_step(loop, 1), 0);
    }
}

struct got {
    char text[4096];
    size_t len;
    bool closed;
};

// What comes until `quiet_ms` pass without anything, or the end.
static struct got hear(int fd, int quiet_ms)
{
    struct got g = {0};
    uint64_t last = clock_now_ns();
    for (int turns = 0;
         !g.closed && (turns <= quiet_ms || clock_now_ns() < last + (uint64_t)quiet_ms * NS_PER_MS);
         turns++) {
        assert_int_equal(loop_step(loop, 1), 0);
        ssize_t n = recv(fd, g.text + g.len, sizeof g.text - 1 - g.len, MSG_DONTWAIT);
        if (n > 0) {
            g.len += (size_t)n;
            last = clock_now_ns();
            turns = 0;
        }
        g.closed = n == 0 || (n < 0 && errno != EAGAIN);
    }
    return g;
}

static void say(int fd, const char *text, size_t piece)
{
    size_t len = strlen(text);
    for (size_t at = 0; at < len; at += piece) {
        size_t n = len - at < piece ? len - at : piece;
        if (send(fd, text + at, n, MSG_NOSIGNAL) < 0) {
            return; // refused already
        }
        if (piece < len) {
            assert_int_equal(loop_step(loop, 0), 0);
            assert_int_equal(loop_step(loop, 0), 0);
        }
    }
}

// The reply without its Date, which is checked and cut out.
static void no_date(char *text)
{
    char *date;
    while ((date = strstr(text, "Date: "))) {
        char *end = strstr(date, "GMT\r\n");
        assert_non_null(end);
        assert_int_equal(end - date, 32);
        memmove(date, end + 5, strlen(end + 5) + 1);
    }
}

static struct got ask(const char *text, size_t piece)
{
    int fd = dial();
    say(fd, text, piece);
    struct got g = hear(fd, 40);
    close(fd);
    turn(2);
    no_date(g.text);
    return g;
}

#define PLAIN(status, rest) "HTTP/1.1 " status "\r\nContent-Type: text/plain\r\n" rest

static void whole_replies(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reply;
        bool closed;
    } cases[] = {
        {GET("/hello"), PLAIN("200 OK", "Content-Length: 6\r\n\r\nhello\n"), false},
        {"HEAD /hello HTTP/1.1\r\n" H "\r\n", PLAIN("200 OK", "Content-Length: 6\r\n\r\n"), false},
        {"GET /hello HTTP/1.1\r\n" H "Connection: close\r\n\r\n",
         PLAIN("200 OK", "Content-Length: 6\r\nConnection: close\r\n\r\nhello\n"), true},
        {"GET /hello HTTP/1.0\r\n\r\n",
         PLAIN("200 OK", "Content-Length: 6\r\nConnection: close\r\n\r\nhello\n"), true},
        {"GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
         PLAIN("200 OK", "Content-Length: 6\r\nConnection: keep-alive\r\n\r\nhello\n"), false},
        {"POST /echo HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc",
         "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: "
         "3\r\n\r\nabc",
         false},
        {"POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
         "1;x=y\r\na\r\n2\r\nbc\r\n0\r\nT: u\r\n\r\n",
         "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: "
         "3\r\n\r\nabc",
         false},
        {"POST /echo HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n",
         "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 0\r\n\r\n",
         false},
        {"POST /later HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc",
         "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: "
         "3\r\n\r\nabc",
         false},
        {"PUT /count HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc",
         PLAIN("200 OK", "Content-Length: 2\r\n\r\n3\n"), false},
        {GET("/fields"), "HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n", false},
        {GET("/split"), "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", false},
        {GET("/own"), "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", false},
        {"POST /early HTTP/1.1\r\n" H "Content-Length: 9999\r\n\r\nabc",
         PLAIN("401 Unauthorized", "Content-Length: 3\r\nConnection: close\r\n\r\nno\n"), true},
        {GET("/sized?n=3"),
         "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: "
         "3\r\n\r\n\0\0\0",
         false},
        {"HEAD /stream HTTP/1.1\r\n" H "\r\n",
         "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
         "Transfer-Encoding: chunked\r\n\r\n",
         false},
        {GET("/sse?end=1"),
         "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
         "X-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n"
         "35\r\nid: 1\nevent: stdout\ndata: a\ndata: b\ndata: c\ndata: d\n\n\r\n"
         "8\r\ndata: \n\n\r\n0\r\n\r\n",
         false},
    };
    start();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t piece = 1; piece < 9999; piece = piece == 1 ? 17 : 9999) {
            struct got g = ask(cases[i].text, piece);
            if (strcmp(g.text, cases[i].reply) != 0) {
                fail_msg("%s\nin pieces of %zu gave\n%s\nnot\n%s", cases[i].text, piece, g.text,
                         cases[i].reply);
            }
            // A client that speaks only when all was said finds the connection open, or closed.
            assert_int_equal(g.closed, cases[i].closed);
        }
    }
    assert_int_equal(routes.begun, routes.ends[HTTP_END_SENT]);
    assert_int_equal(routes.refused, 0);
}

static void files_ranges_and_conditions(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        int status;
        const char *has, *body;
    } cases[] = {
        {"", 200, "Content-Length: 10\r\n", "0123456789"},
        {"Range: bytes=2-4\r\n", 206, "Content-Range: bytes 2-4/10\r\n", "234"},
        {"Range: bytes=-1\r\n", 206, "Content-Range: bytes 9-9/10\r\n", "9"},
        {"Range: bytes=10-\r\n", 416, "Content-Range: bytes */10\r\n", ""},
        {"Range: bytes=0-1,3-4\r\n", 200, "Accept-Ranges: bytes\r\n", "0123456789"},
        {"Range: bytes=2-4\r\nIf-Range: \"v1\"\r\n", 206, "ETag: \"v1\"\r\n", "234"},
        {"Range: bytes=2-4\r\nIf-Range: \"v0\"\r\n", 200, "ETag: \"v1\"\r\n", "0123456789"},
        {"If-None-Match: \"v1\"\r\n", 304, "ETag: \"v1\"\r\n", ""},
        {"If-None-Match: \"v0\"\r\nIf-None-Match: W/\"v1\"\r\n", 304, "ETag: \"v1\"\r\n", ""},
        {"If-None-Match: \"v0\"\r\n", 200, "ETag: \"v1\"\r\n", "0123456789"},
        {"If-Match: \"v0\"\r\n", 412, "ETag: \"v1\"\r\n", ""},
        {"If-Match: \"v1\"\r\n", 200, "ETag: \"v1\"\r\n", "0123456789"},
    };
    start();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[300];
        snprintf(text, sizeof text, "GET /file HTTP/1.1\r\n" H "%s\r\n", cases[i].fields);
        struct got g = ask(text, 9999);
        const char *body = strstr(g.text, "\r\n\r\n");
        if (strtol(g.text + 9, NULL, 10) != cases[i].status || !strstr(g.text, cases[i].has) ||
            !body || strcmp(body + 4, cases[i].body) != 0) {
            fail_msg("%s gave\n%s", cases[i].fields, g.text);
        }
    }
    struct got g = ask("HEAD /file HTTP/1.1\r\n" H "Range: bytes=2-4\r\n\r\n", 9999);
    assert_non_null(strstr(g.text, "HTTP/1.1 200 OK"));
    assert_non_null(strstr(g.text, "Content-Length: 10\r\n"));
    assert_string_equal(strstr(g.text, "\r\n\r\n"), "\r\n\r\n");
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"FOO / HTTP/1.1\r\n" H "\r\n", 501},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        {"POST /echo HTTP/1.1\r\n" H "Content-Length: 65537\r\n\r\n", 413},
        {"POST /echo HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         400},
        {"POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1\r\nabc", 400},
        {"POST /hold HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nxyz", 400},
        {"GET / HTTP/1.1\r\n" H "Expect: x\r\n\r\n", 417},
    };
    start();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        unsigned before = routes.refused;
        struct got g = ask(cases[i].text, i % 2 ? 9999 : 1);
        if (strtol(g.text + 9, NULL, 10) != cases[i].status || !g.closed ||
            !strstr(g.text, "Connection: close\r\n")) {
            fail_msg("%s gave\n%s", cases[i].text, g.text);
        }
        assert_int_equal(routes.refused, before + 1);
        assert_int_equal(routes.refused_status, cases[i].status);
    }
    unsigned ended = 0;
    for (size_t i = 0; i < ARRAY_LEN(routes.ends); i++) {
        ended += routes.ends[i];
    }
    assert_int_equal(routes.begun, ended);
}

static void a_chunked_body_over_its_bound_is_refused_in_the_middle(void **state)
{
    (void)state;
    start();
    int fd = dial();
    say(fd, "POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n", 9999);
    char chunk[1024 + 8] = "400\r\n";
    memset(chunk + 5, 'x', 1024);
    memcpy(chunk + 5 + 1024, "\r\n", 3);
    for (int i = 0; i < 65; i++) {
        say(fd, chunk, 9999);
        turn(0);
    }
    struct got g = hear(fd, 50);
    assert_memory_equal(g.text, "HTTP/1.1 413 ", 13);
    assert_int_equal(routes.ends[HTTP_END_REFUSED], 1);
    close(fd);
}

// Sends up to `len` bytes while the server runs, and hears nothing before: how many went.
static size_t send_all(int fd, size_t len, int pause_ms)
{
    static const char piece[64 << 10];
    size_t sent = 0;
    while (sent < len) {
        size_t want = len - sent < sizeof piece ? len - sent : sizeof piece;
        ssize_t n = send(fd, piece, want, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) {
            break;
        }
        sent += n > 0 ? (size_t)n : 0;
        turn(pause_ms);
    }
    return sent;
}

static void who_sends_too_much_reads_why_behind_it(void **state)
{
    (void)state;
    routes.config.linger_ms = routes.config.linger_max_ms = 600000; // we may be set aside meanwhile
    start();
    enum { LENGTH = 32 << 20 }; // above what both sides' kernels hold
    int fd = dial();
    say(fd, "POST /echo HTTP/1.1\r\n" H "Content-Length: 33554432\r\n\r\n", 9999);
    assert_int_equal(send_all(fd, LENGTH, 0), LENGTH);
    struct got g = hear(fd, 100);
    assert_memory_equal(g.text, "HTTP/1.1 413 ", 13);
    assert_true(g.closed);
    close(fd);
    // But not for ever, and not while the server stops.
    for (int stops = 0; stops < 2; stops++) {
        http_server_free(server);
        routes.config.linger_ms = 200;
        routes.config.linger_max_ms = stops ? 60000 : 300;
        start();
        fd = dial();
        uint64_t from = clock_now_ns();
        say(fd, "POST /echo HTTP/1.1\r\n" H "Content-Length: 33554432\r\n\r\n", 9999);
        turn(20);
        if (stops) {
            http_server_stop(server, NULL, NULL);
        }
        assert_true(send_all(fd, LENGTH, 10) < LENGTH);
        assert_in_range((clock_now_ns() - from) / NS_PER_MS, 100, 25000);
        close(fd);
    }
}

static void a_peer_that_asks_for_leave_gets_it(void **state)
{
    (void)state;
    start();
    int fd = dial();
    say(fd, "POST /echo HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n", 9999);
    struct got g = hear(fd, 30);
    assert_string_equal(g.text, "HTTP/1.1 100 Continue\r\n\r\n");
    say(fd, "a", 1);
    g = hear(fd, 30);
    assert_memory_equal(g.text, "HTTP/1.1 200 OK\r\n", 17);
    // Not where it would be refused.
    say(fd, "POST /early HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n", 9999);
    g = hear(fd, 30);
    assert_memory_equal(g.text, "HTTP/1.1 401 ", 13);
    close(fd);
}

static void pipelined_requests_are_served_in_order(void **state)
{
    (void)state;
    start();
    AUTO_BUF struct buf all = BUF_INIT(1 << 20);
    for (int i = 0; i < 100; i++) {
        buf_puts(&all, "POST /echo HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\n");
        buf_printf(&all, "%03d", i);
    }
    int fd = dial();
    say(fd, all.data, 997);
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    size_t len = 0;
    struct got g;
    do {
        g = hear(fd, 50);
        memcpy(text + len, g.text, g.len);
        len += g.len;
    } while (g.len > 0);
    const char *at = text;
    for (int i = 0; i < 100; i++) {
        char want[16];
        snprintf(want, sizeof want, "\r\n\r\n%03d", i);
        at = strstr(at, "\r\n\r\n");
        assert_non_null(at);
        assert_memory_equal(at, want, 7);
        at += 4;
    }
    free(text);
    close(fd);
}

static void one_peer_with_many_requests_leaves_others_their_turn(void **state)
{
    (void)state;
    start();
    AUTO_BUF struct buf all = BUF_INIT(1 << 20);
    for (int i = 0; i < 2000; i++) {
        buf_puts(&all, GET("/hello"));
    }
    int fd = dial();
    turn(5);
    size_t sent = 0;
    for (unsigned before = 0; routes.begun < 2000; before = routes.begun) {
        ssize_t n = send(fd, all.data + sent, all.len - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        static char sink[1 << 20];
        n = recv(fd, sink, sizeof sink, MSG_DONTWAIT);
        assert_int_not_equal(n, 0);
        assert_int_equal(loop_step(loop, 10), 0);
        assert_true(routes.begun - before <= 100);
    }
    assert_int_equal(routes.refused, 0);
    close(fd);
}

static void a_peer_that_has_gone_is_told_at_once(void **state)
{
    (void)state;
    start();
    int fd = dial();
    say(fd, GET("/wait"), 9999);
    turn(20);
    assert_int_equal(routes.begun, 1);
    assert_int_equal(routes.gone, 0);
    shutdown(fd, SHUT_WR); // only half: the reply still comes
    turn(20);
    assert_int_equal(routes.gone, 1);
    assert_non_null(routes.kept);
    http_reply(routes.kept, 200, NULL, "x", 1);
    struct got g = hear(fd, 30);
    assert_memory_equal(g.text, "HTTP/1.1 200 OK", 15);
    assert_true(g.closed);
    assert_int_equal(routes.ends[HTTP_END_SENT], 1);
    close(fd);

    fd = dial();
    say(fd, GET("/wait"), 9999);
    turn(20);
    struct linger reset = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    turn(20);
    assert_int_equal(routes.ends[HTTP_END_GONE], 1);
    unsigned connections, requests;
    http_server_count(server, &connections, &requests);
    assert_int_equal(connections, 0);

    fd = dial();
    say(fd, GET("/abort"), 9999);
    g = hear(fd, 30);
    assert_true(g.closed && g.len == 0);
    close(fd);
    fd = dial();
    say(fd, GET("/short"), 9999);
    g = hear(fd, 30);
    assert_true(g.closed);
    assert_int_equal(routes.ends[HTTP_END_ABORTED], 2);
    close(fd);
}

static size_t memory(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void a_long_reply_takes_little_memory(void **state)
{
    (void)state;
    start();
    int fd = dial();
    say(fd, "GET /sized?n=50000000 HTTP/1.1\r\n" H "Connection: close\r\n\r\n", 9999);
    size_t before = memory(), most = 0, got = 0;
    static char sink[65536];
    for (int i = 0; i < 100000; i++) {
        loop_step(loop, 1);
        ssize_t n = recv(fd, sink, i % 7 ? sizeof sink : 100, MSG_DONTWAIT);
        if (n == 0) {
            break;
        }
        got += n > 0 ? (size_t)n : 0;
        most = memory() > most ? memory() : most;
    }
    assert_true(got > 50000000 && got < 50000500);
    assert_true(most < before + (2 << 20));
    close(fd);
}

static void a_held_body_stays_with_its_sender(void **state)
{
    (void)state;
    start();
    int fd = dial();
    say(fd, "PUT /hold HTTP/1.1\r\n" H "Content-Length: 30000000\r\n\r\n", 9999);
    size_t before = memory(), sent = 0;
    static const char zeros[65536];
    size_t last = 1;
    while (sent != last) { // until the kernel takes no more
        last = sent;
        for (int i = 0; i < 20; i++) {
            ssize_t n = send(fd, zeros, sizeof zeros, MSG_DONTWAIT | MSG_NOSIGNAL);
            sent += n > 0 ? (size_t)n : 0;
            turn(0);
        }
    }
    assert_true(sent < 20000000);
    assert_true(routes.streamed <= 16384);
    assert_true(memory() < before + (1 << 20));
    size_t had = routes.streamed;
    while (routes.streamed < 30000000) {
        size_t left = 30000000 - sent;
        ssize_t n = left == 0 ? 0
                              : send(fd, zeros, left < sizeof zeros ? left : sizeof zeros,
                                     MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        http_body_resume(routes.kept);
        loop_step(loop, 0);
        assert_true(routes.streamed - had <= 16384); // a piece, then it is held again
        had = routes.streamed;
    }
    http_body_resume(routes.kept);
    struct got g = hear(fd, 50);
    assert_non_null(strstr(g.text, "30000000\n"));
    close(fd);
}

// Below what any of these times is by default, and above what a busy host adds to one.
enum { LATE_MS = 9000 };

// The time until the server closes, in ms.
static unsigned until_closed(int fd, struct got *ret)
{
    uint64_t from = clock_now_ns();
    *ret = hear(fd, LATE_MS);
    assert_true(ret->closed);
    return (unsigned)((clock_now_ns() - from) / NS_PER_MS);
}

static void slow_peers_are_given_up(void **state)
{
    (void)state;
    routes.config.head_ms = 60;
    routes.config.idle_ms = 150;
    routes.config.window_ms = 80;
    routes.config.window_bytes = 100;
    start();
    struct got g;
    int fd = dial(); // says nothing
    assert_in_range(until_closed(fd, &g), 140, LATE_MS);
    assert_int_equal(g.len, 0);
    close(fd);

    fd = dial();
    say(fd, "GET / HT", 9999);
    assert_in_range(until_closed(fd, &g), 50, LATE_MS);
    assert_memory_equal(g.text, "HTTP/1.1 408 ", 13);
    close(fd);

    fd = dial(); // one byte now and then does not help
    say(fd, "POST /echo HTTP/1.1\r\n" H "Content-Length: 1000\r\n\r\n", 9999);
    uint64_t from = clock_now_ns();
    unsigned refused = routes.refused;
    while (routes.refused == refused && clock_now_ns() - from < LATE_MS * NS_PER_MS) {
        say(fd, "x", 1);
        turn(10);
    }
    assert_in_range((clock_now_ns() - from) / NS_PER_MS, 70, LATE_MS + 1000);
    assert_int_equal(routes.refused_status, 408);
    close(fd);

    fd = dial(); // asks for much and reads nothing
    say(fd, GET("/sized?n=50000000"), 9999);
    from = clock_now_ns();
    while (routes.ends[HTTP_END_GONE] == 0 && clock_now_ns() - from < LATE_MS * NS_PER_MS) {
        turn(10);
    }
    assert_int_equal(routes.ends[HTTP_END_GONE], 1);
    close(fd);

    fd = dial(); // who waits for us is not slow
    say(fd, GET("/wait"), 9999);
    turn(300);
    assert_non_null(routes.kept);
    http_reply(routes.kept, 200, NULL, "x", 1);
    g = hear(fd, 30);
    assert_memory_equal(g.text, "HTTP/1.1 200 OK", 15);
    close(fd);
}

static void connections_are_bounded(void **state)
{
    (void)state;
    start(); // 6 of one address
    int fds[8];
    for (int i = 0; i < 6; i++) {
        fds[i] = dial();
    }
    turn(20);
    int away = dial(), error = -1; // it has asked before it is turned away
    socklen_t len = sizeof error;
    say(away, GET("/hello"), 9999);
    struct got g = hear(away, 40);
    assert_memory_equal(g.text, "HTTP/1.1 503 ", 13);
    assert_true(g.closed);
    assert_int_equal(getsockopt(away, SOL_SOCKET, SO_ERROR, &error, &len), 0);
    assert_int_equal(error, 0); // no reset
    close(away);
    close(fds[0]);
    turn(20);
    g = ask(GET("/hello"), 9999);
    assert_memory_equal(g.text, "HTTP/1.1 200 ", 13);
    for (int i = 1; i < 6; i++) {
        close(fds[i]);
    }
    turn(20);
    // A trusted proxy has no bound of its own; idle connections make room.
    http_server_free(server);
    routes.config.trusted[0] = (struct http_net){
        .ip = {.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}}, .prefix = 128};
    routes.config.n_trusted = 1;
    start();
    for (int i = 0; i < 8; i++) {
        fds[i] = dial();
        turn(2);
    }
    g = ask(GET("/hello"), 9999);
    assert_memory_equal(g.text, "HTTP/1.1 200 ", 13);
    assert_true(hear(fds[0], 30).closed); // the one that was idle for longest
    for (int i = 1; i < 8; i++) {
        say(fds[i], GET("/wait"), 9999);
    }
    int last = dial();
    say(last, GET("/wait"), 9999);
    turn(20);
    g = ask(GET("/hello"), 9999);
    assert_memory_equal(g.text, "HTTP/1.1 503 ", 13);
    close(last);
    for (int i = 0; i < 8; i++) {
        close(fds[i]);
    }
}

// Sends the head and `now` of so many bytes of a body.
static void post(int fd, const char *owner, int length, int now)
{
    char text[1024];
    int n = snprintf(text, sizeof text,
                     "POST /echo HTTP/1.1\r\n" H "X-Owner: %s\r\nContent-Length: %d\r\n\r\n", owner,
                     length);
    assert_in_range(n + now, 1, (int)sizeof text - 1);
    memset(text + n, 'a', (size_t)now);
    text[n + now] = '\0';
    say(fd, text, 9999);
    turn(10);
}

static void bodies_are_bounded_together(void **state)
{
    (void)state;
    routes.config.bodies_bytes = 1000;
    start();
    int fds[] = {dial(), dial(), dial(), dial(), dial()};
    post(fds[0], "one", 800, 400);
    post(fds[1], "one", 101, 101); // no owner has more than is left for the others: 501 of 1000
    assert_memory_equal(hear(fds[1], 30).text, "HTTP/1.1 503 ", 13);
    post(fds[2], "two", 600, 300);
    post(fds[3], "three", 200, 150);
    post(fds[4], "four", 1, 1);
    assert_memory_equal(hear(fds[4], 30).text, "HTTP/1.1 200 ", 13);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        close(fds[i]);
    }
    turn(10);
    int fd = dial();
    post(fd, "one", 500, 500);
    assert_memory_equal(hear(fd, 30).text, "HTTP/1.1 200 ", 13);
    close(fd);
}

static void an_owner_leaves_connections_to_others(void **state)
{
    (void)state;
    routes.give_up = true; // of a request whose peer has closed
    start();
    int fds[6];
    for (int i = 0; i < 6; i++) {
        fds[i] = dial();
        say(fds[i],
            i < 5 ? "GET /wait HTTP/1.1\r\n" H "X-Owner: one\r\n\r\n"
                  : "GET /hello HTTP/1.1\r\n" H "X-Owner: two\r\n\r\n",
            9999);
        turn(10);
    }
    assert_memory_equal(hear(fds[4], 30).text, "HTTP/1.1 429 ", 13);
    assert_memory_equal(hear(fds[5], 30).text, "HTTP/1.1 200 ", 13);
    close(fds[0]);
    turn(10);
    say(fds[5], "GET /hello HTTP/1.1\r\n" H "X-Owner: one\r\n\r\n", 9999);
    assert_memory_equal(hear(fds[5], 30).text, "HTTP/1.1 200 ", 13);
    for (int i = 1; i < 6; i++) {
        close(fds[i]);
    }
}

// With many connections next to nothing may wait for a reader; a stream still goes on to its end.
static void streams_with_little_room_go_on(void **state)
{
    (void)state;
    routes.config.replies_bytes = 100;
    start();
    int fd = dial();
    size_t n = 0;
    static char data[65536];
    say(fd, "GET /sized?n=20000000 HTTP/1.1\r\n" H "Connection: close\r\n\r\n", 9999);
    for (int idle = 0; idle < 100;) {
        turn(1);
        ssize_t got = recv(fd, data, sizeof data, MSG_DONTWAIT);
        if (got == 0) {
            break;
        }
        n += got > 0 ? (size_t)got : 0;
        idle = got > 0 ? 0 : idle + 1;
    }
    assert_in_range(n, 20000000, 20001000);
    close(fd);
}

static void silent_event_streams_get_comments(void **state)
{
    (void)state;
    routes.config.sse_ms = 50;
    routes.config.idle_ms = 60;
    start();
    int fd = dial();
    const uint64_t from = clock_now_ns();
    say(fd, GET("/sse"), 9999);
    turn(180);
    struct got g = hear(fd, 20);
    assert_false(g.closed);
    int comments = 0;
    for (const char *at = g.text; (at = strstr(at, "3\r\n:\n\n\r\n")); at++) {
        comments++;
    }
    assert_in_range(comments, 1, (clock_now_ns() - from) / (50 * NS_PER_MS) + 1);
    assert_int_equal(http_sse_send(routes.kept, "a\nb", NULL, "x", 1), -EINVAL);
    assert_int_equal(http_sse_send(routes.kept, NULL, "a\rb", "x", 1), -EINVAL);
    assert_int_equal(http_sse_send(routes.kept, NULL, NULL, "\xff", 1), -EINVAL);
    assert_int_equal(http_sse_send(routes.kept, "2", NULL, "late", 4), 0);
    g = hear(fd, 20);
    assert_non_null(strstr(g.text, "id: 2\ndata: late\n\n"));
    close(fd);
    turn(20);
    assert_int_equal(routes.gone, 1);
}

static bool has_stopped;
static void stopped(void *ctx)
{
    (void)ctx;
    has_stopped = true;
}

static void a_graceful_stop_serves_what_runs(void **state)
{
    (void)state;
    start();
    int idle = dial(), runs = dial();
    say(runs, GET("/wait"), 9999);
    turn(20);
    has_stopped = false;
    http_server_stop(server, stopped, NULL);
    assert_true(hear(idle, 30).closed);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_not_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    assert_false(has_stopped);
    http_reply(routes.kept, 200, NULL, "x", 1);
    struct got g = hear(runs, 30);
    assert_non_null(strstr(g.text, "Connection: close\r\n"));
    assert_true(g.closed);
    close(runs);
    close(idle);
    turn(20);
    assert_true(has_stopped);
}

static void an_idle_server_has_nothing_to_wake_for(void **state)
{
    (void)state;
    start();
    struct got g = ask(GET("/hello"), 9999);
    assert_memory_equal(g.text, "HTTP/1.1 200 ", 13);
    turn(20);
    uint64_t from = clock_now_ns();
    loop_step(loop, 200); // the one timer that may be left is that of an idle connection, 75 s away
    assert_true(clock_now_ns() - from >= 199 * NS_PER_MS);
}

static void a_unix_peer_is_known_by_its_kernel(void **state)
{
    (void)state;
    char folder[] = "/tmp/isle-http-XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s/s", folder);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 4), 0);
    routes.config.listeners[0] = (struct http_listener){.fd = fd, .connections = 2, .per_peer = 1};
    routes.config.n_listeners = 1;
    assert_int_equal(http_server_new(loop, &routes.config, &server), 0);
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&a, sizeof a), 0);
    say(client, GET("/wait"), 9999);
    turn(20);
    assert_non_null(routes.kept);
    const struct http_peer *peer = http_peer(routes.kept);
    assert_true(peer->local);
    assert_int_equal(peer->pid, getpid());
    assert_int_equal(peer->uid, geteuid());
    assert_string_equal(peer->text, "unix");
    close(client);
    turn(20);
    assert_int_equal(routes.ends[HTTP_END_GONE], 1);
    unlink(a.sun_path);
    rmdir(folder);
}

#define SERVED(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(whole_replies),
        SERVED(files_ranges_and_conditions),
        SERVED(refusals),
        SERVED(a_chunked_body_over_its_bound_is_refused_in_the_middle),
        SERVED(who_sends_too_much_reads_why_behind_it),
        SERVED(a_peer_that_asks_for_leave_gets_it),
        SERVED(pipelined_requests_are_served_in_order),
        SERVED(one_peer_with_many_requests_leaves_others_their_turn),
        SERVED(a_peer_that_has_gone_is_told_at_once),
        SERVED(a_long_reply_takes_little_memory),
        SERVED(a_held_body_stays_with_its_sender),
        SERVED(slow_peers_are_given_up),
        SERVED(connections_are_bounded),
        SERVED(bodies_are_bounded_together),
        SERVED(streams_with_little_room_go_on),
        SERVED(an_owner_leaves_connections_to_others),
        SERVED(silent_event_streams_get_comments),
        SERVED(a_graceful_stop_serves_what_runs),
        SERVED(an_idle_server_has_nothing_to_wake_for),
        SERVED(a_unix_peer_is_known_by_its_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
