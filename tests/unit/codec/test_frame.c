// Frames: both ends, in any pieces, and everything a hostile guest may send.
#include "base/fd.h"
#include "codec/frame.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add(struct buf *out, uint32_t type, uint32_t seq, const char *text)
{
    assert_int_equal(frame_encode(out, FRAME_FROM_GUEST, type, 1, seq, text, strlen(text)), 0);
}

static void header_is_as_documented(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT(100);
    assert_int_equal(frame_encode(&out, FRAME_TO_GUEST, FRAME_CODE, 2, 3, "x", 1), 0);
    const char expected[] = "1ISL\1\0\0\0\2\0\0\0\3\0\0\0\1\0\0\0x";
    assert_int_equal(out.len, FRAME_HEADER_BYTES + 1);
    assert_memory_equal(out.data, expected, out.len);
}

static void any_pieces_give_the_same_frames(void **state)
{
    (void)state;
    AUTO_BUF struct buf wire = BUF_INIT(1000);
    add(&wire, FRAME_DISPLAY, 1, "");
    add(&wire, FRAME_DISPLAY, 2, "{\"a\":1}");
    add(&wire, FRAME_RESULT, 3, "42");
    for (size_t piece = 1; piece <= wire.len; piece++) {
        struct frame_decoder d;
        struct frame f;
        frame_decoder_init(&d, FRAME_FROM_GUEST);
        int n = 0, rc;
        for (size_t at = 0; at < wire.len; at += piece) {
            size_t len = wire.len - at < piece ? wire.len - at : piece;
            assert_int_equal(frame_feed(&d, wire.data + at, len), 0);
            while ((rc = frame_next(&d, &f)) > 0) {
                n++;
                assert_int_equal(f.seq, n);
                assert_int_equal(f.exec, 1);
            }
            assert_int_equal(rc, 0);
        }
        assert_int_equal(n, 3);
        assert_int_equal(f.type, FRAME_RESULT);
        assert_int_equal(f.length, 2);
        assert_memory_equal(f.payload, "42", 2);
        frame_decoder_done(&d);
    }
}

// One header with each field wrong in turn.
static void refuses_for_good(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        char value;
        int error;
    } wrong[] = {
        {0, 'X', -EBADMSG},          // magic
        {4, FRAME_CODE, -EBADMSG},   // the other direction's type
        {4, FRAME_STDOUT, -EBADMSG}, // the front's
        {4, 0, -EBADMSG},            // none at all
        {7, 1, -EBADMSG},            // type beyond 8 bits
        {8, 0, -EBADMSG},            // execution 0
        {12, 2, -EBADMSG},           // sequence ahead
        {12, 0, -EBADMSG},           // behind
        {19, 1, -EMSGSIZE},          // 16 MB
        {19, (char)0xff, -EMSGSIZE}, // 4 GB
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        AUTO_BUF struct buf wire = BUF_INIT(1000);
        add(&wire, FRAME_RESULT, 1, "1");
        wire.data[wrong[i].at] = wrong[i].value;
        struct frame_decoder d;
        struct frame f = {.type = 99};
        frame_decoder_init(&d, FRAME_FROM_GUEST);
        assert_int_equal(frame_feed(&d, wire.data, wire.len), 0);
        assert_int_equal(frame_next(&d, &f), wrong[i].error);
        assert_int_equal(f.type, wrong[i].error == -EMSGSIZE ? FRAME_RESULT : 99);
        assert_int_equal(frame_feed(&d, wire.data, wire.len), wrong[i].error);
        assert_int_equal(frame_next(&d, &f), wrong[i].error);
        assert_null(d.in.data);
        frame_decoder_done(&d);
    }
}

static void sequence_goes_on(void **state)
{
    (void)state;
    AUTO_BUF struct buf wire = BUF_INIT(1000);
    add(&wire, FRAME_DISPLAY, 1, "1");
    add(&wire, FRAME_DISPLAY, 1, "1"); // replayed
    struct frame_decoder d;
    struct frame f;
    frame_decoder_init(&d, FRAME_FROM_GUEST);
    assert_int_equal(frame_feed(&d, wire.data, wire.len), 0);
    assert_int_equal(frame_next(&d, &f), 1);
    assert_int_equal(frame_next(&d, &f), -EBADMSG);
    frame_decoder_done(&d);
}

static void bounds_hold_at_both_ends(void **state)
{
    (void)state;
    size_t max = frame_bound(FRAME_FROM_GUEST, FRAME_RESULT);
    assert_int_equal(max, 8 << 20);
    AUTO_FREE char *big = calloc(1, max + 1);
    AUTO_BUF struct buf wire = BUF_INIT(64 << 20);
    assert_int_equal(frame_encode(&wire, FRAME_FROM_GUEST, FRAME_RESULT, 1, 1, big, max + 1),
                     -EMSGSIZE);
    assert_int_equal(wire.len, 0);
    assert_int_equal(frame_encode(&wire, FRAME_FROM_GUEST, FRAME_RESULT, 1, 1, big, max), 0);
    struct frame_decoder d;
    struct frame f;
    frame_decoder_init(&d, FRAME_FROM_GUEST);
    size_t at = 0;
    int rc = 0;
    while (at < wire.len && rc == 0) {
        size_t n = wire.len - at < 65536 ? wire.len - at : 65536;
        assert_int_equal(frame_feed(&d, wire.data + at, n), 0);
        at += n;
        rc = frame_next(&d, &f);
    }
    assert_int_equal(rc, 1);
    assert_int_equal(at, wire.len);
    assert_int_equal(f.length, max);
    frame_decoder_done(&d);
}

static void encoder_refuses_what_does_not_go_this_way(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT(100);
    assert_int_equal(frame_encode(&out, FRAME_TO_GUEST, FRAME_RESULT, 1, 1, "", 0), -EINVAL);
    assert_int_equal(frame_encode(&out, FRAME_TO_GUEST, FRAME_CODE, 0, 1, "", 0), -EINVAL);
    assert_int_equal(frame_encode(&out, FRAME_TO_GUEST, FRAME_CODE, 1, 0, "", 0), -EINVAL);
    assert_int_equal(frame_encode(&out, FRAME_FROM_FRONT, FRAME_CANCEL, 1, 1, "x", 1), -EMSGSIZE);
    assert_int_equal(frame_encode(&out, FRAME_FROM_FRONT, FRAME_CANCEL, 1, 1, NULL, 0), 0);
    assert_true(frame_allowed(FRAME_FROM_FRONT, FRAME_CANCEL));
    assert_false(frame_allowed(FRAME_TO_FRONT, FRAME_CANCEL));
}

// A reader that never takes its frames cannot be made to keep them all.
static void feeding_is_bounded(void **state)
{
    (void)state;
    struct frame_decoder d;
    frame_decoder_init(&d, FRAME_FROM_GUEST);
    AUTO_FREE char *junk = calloc(1, 1 << 20);
    int e = 0;
    for (int i = 0; i < 20 && e == 0; i++) {
        e = frame_feed(&d, junk, 1 << 20);
    }
    assert_int_equal(e, -EMSGSIZE);
    frame_decoder_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_is_as_documented),
        cmocka_unit_test(any_pieces_give_the_same_frames),
        cmocka_unit_test(refuses_for_good),
        cmocka_unit_test(sequence_goes_on),
        cmocka_unit_test(bounds_hold_at_both_ends),
        cmocka_unit_test(encoder_refuses_what_does_not_go_this_way),
        cmocka_unit_test(feeding_is_bounded),
    };
    return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
