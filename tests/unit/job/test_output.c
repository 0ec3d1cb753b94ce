// Output of a job: whatever pieces it comes in, whole characters go out and the head is kept.
#include "codec/utf8.h"
#include "job/output.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct taken {
    struct buf live;
    bool always_whole; // every piece was valid by itself
};

static void take(struct taken *t, const char *data, size_t len)
{
    t->always_whole &= utf8_valid(data, len);
    assert_int_equal(buf_add(&t->live, data, len), 0);
}

static void feed(struct output *o, struct taken *t, const char *data, size_t len, size_t piece)
{
    for (size_t at = 0; at < len; at += piece) {
        const char *live;
        size_t n;
        assert_int_equal(output_add(o, data + at, len - at < piece ? len - at : piece, &live, &n),
                         0);
        take(t, live, n);
    }
    const char *live;
    size_t n;
    output_end(o, &live, &n);
    take(t, live, n);
}

// "x" * before + "€" + "𝄞" + "é", cut everywhere
static void characters_are_never_cut_in_the_live_pieces(void **state)
{
    (void)state;
    const char text[] = "ab\xe2\x82\xac"
                        "cd\xf0\x9d\x84\x9e\xc3\xa9!";
    for (size_t piece = 1; piece < sizeof text; piece++) {
        AUTO_BUF struct buf kept = BUF_INIT(100);
        struct taken t = {BUF_INIT(200), true};
        struct output o;
        output_init(&o, &kept);
        feed(&o, &t, text, sizeof text - 1, piece);
        assert_true(t.always_whole);
        assert_int_equal(t.live.len, sizeof text - 1);
        assert_memory_equal(t.live.data, text, sizeof text - 1);
        assert_int_equal(kept.len, sizeof text - 1);
        assert_false(output_truncated(&o));
        buf_free(&t.live);
    }
}

static void the_limit_never_cuts_a_character(void **state)
{
    (void)state;
    const char text[] = "ab\xe2\x82\xac"
                        "cd\xf0\x9d\x84\x9e\xc3\xa9!";
    const size_t total = sizeof text - 1;
    for (size_t limit = 0; limit <= total; limit++) {
        for (size_t piece = 1; piece <= total; piece++) {
            AUTO_BUF struct buf kept = BUF_INIT(limit);
            struct taken t = {BUF_INIT(200), true};
            struct output o;
            output_init(&o, &kept);
            feed(&o, &t, text, total, piece);
            size_t expected = limit == total ? total : utf8_cut(text, limit);
            assert_true(t.always_whole);
            assert_int_equal(kept.len, expected);
            assert_int_equal(t.live.len, expected);
            assert_memory_equal(kept.len ? kept.data : "", text, expected);
            assert_int_equal(o.total, total);
            assert_int_equal(output_truncated(&o), limit < total);
            buf_free(&t.live);
        }
    }
}

static void broken_bytes_and_nul_pass(void **state)
{
    (void)state;
    const char text[] = "a\0b\xff\xfe\xe2\x82z\xf0\x9d";
    for (size_t piece = 1; piece < sizeof text; piece++) {
        AUTO_BUF struct buf kept = BUF_INIT(100);
        struct taken t = {BUF_INIT(200), true};
        struct output o;
        output_init(&o, &kept);
        feed(&o, &t, text, sizeof text - 1, piece);
        assert_int_equal(t.live.len, sizeof text - 1); // the open end too, when the job is over
        assert_memory_equal(t.live.data, text, sizeof text - 1);
        buf_free(&t.live);
    }
}

static void a_flood_is_counted(void **state)
{
    (void)state;
    static char block[65536];
    AUTO_BUF struct buf kept = BUF_INIT(1000);
    struct output o;
    output_init(&o, &kept);
    for (int i = 0; i < 1000; i++) {
        const char *live;
        size_t n;
        assert_int_equal(output_add(&o, block, sizeof block, &live, &n), 0);
        assert_int_equal(n, i == 0 ? 1000 : 0);
    }
    assert_int_equal(o.total, UINT64_C(65536000));
    assert_int_equal(kept.len, 1000);
    assert_true(kept.cap < 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_never_cut_in_the_live_pieces),
        cmocka_unit_test(the_limit_never_cuts_a_character),
        cmocka_unit_test(broken_bytes_and_nul_pass),
        cmocka_unit_test(a_flood_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
