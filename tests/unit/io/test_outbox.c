// What a slow reader gets is what was written, and the writer never waits.
#include "base/fd.h"
#include "io/outbox.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

static void a_slow_reader_gets_every_byte(void **state)
{
    (void)state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct outbox o = OUTBOX_INIT(8 << 20);
    unsigned char next_in = 0, next_out = 0;
    size_t read_bytes = 0;
    const size_t total = 3 << 20;
    for (size_t written = 0; read_bytes < total;) {
        if (written < total) { // faster than the reader
            unsigned char piece[4096];
            for (size_t i = 0; i < sizeof piece; i++) {
                piece[i] = next_in++;
            }
            assert_int_equal(buf_add(&o.data, piece, sizeof piece), 0);
            written += sizeof piece;
        }
        int e = outbox_flush(&o, pair[0]);
        assert_true(e == 0 || e == 1);
        assert_int_equal(e == 1, outbox_left(&o) == 0);
        unsigned char got[1500];
        ssize_t n = recv(pair[1], got, sizeof got, MSG_DONTWAIT);
        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++) {
            assert_int_equal(got[i], next_out++);
        }
        read_bytes += (size_t)n;
    }
    assert_int_equal(outbox_flush(&o, pair[0]), 1);
    outbox_free(&o);
    close(pair[0]);
    close(pair[1]);
}

static void a_reader_that_is_gone_is_an_error_and_no_signal(void **state)
{
    (void)state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct outbox o = OUTBOX_INIT(100);
    close(pair[1]);
    assert_int_equal(outbox_flush(&o, pair[0]), 1); // nothing to say, nothing to fail
    buf_puts(&o.data, "x");
    assert_int_equal(outbox_flush(&o, pair[0]), -EPIPE);
    outbox_free(&o);
    close(pair[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_reader_gets_every_byte),
        cmocka_unit_test(a_reader_that_is_gone_is_an_error_and_no_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
