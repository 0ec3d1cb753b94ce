// The talk with the guest: what it may say, and what becomes of what it may not.
#include "base/fd.h"
#include "io/loop.h"
#include "job/guest.h"
#include "job/stream.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#define TEXT(s) ((char *)(uintptr_t)(s))

struct talk {
    struct loop *loop;
    struct guest guest;
    int theirs;
};

static void begin_with(struct talk *t, const char *code, size_t len, const char *params)
{
    struct job j = {.code = TEXT(code),
                    .code_len = len,
                    .code_name = TEXT("a \"b\".py"),
                    .params = TEXT(params),
                    .params_len = strlen(params)};
    assert_int_equal(loop_new(&t->loop), 0);
    assert_int_equal(guest_open(&t->guest, t->loop, &j, &t->theirs), 0);
}

static void begin(struct talk *t) { begin_with(t, "code", 4, "{\"a\":1}"); }

static void end(struct talk *t)
{
    guest_done(&t->guest);
    loop_free(t->loop);
    fd_close(t->theirs);
}

static void say(struct buf *wire, uint32_t type, uint32_t seq, const char *text)
{
    assert_int_equal(frame_encode(wire, FRAME_FROM_GUEST, type, 1, seq, text, strlen(text)), 0);
}

// The guest says all of wire and goes; the verdict is that of the end of a job.
static enum guest_verdict answer(struct talk *t, const struct buf *wire)
{
    size_t at = 0;
    for (int i = 0; i < 10000 && at < wire->len; i++) {
        ssize_t n = send(t->theirs, wire->data + at, wire->len - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            at += (size_t)n;
        } else if (errno == EPIPE) {
            break; // it was refused and hung up on
        }
        loop_step(t->loop, 0);
    }
    t->theirs = fd_close(t->theirs);
    guest_drain(&t->guest);
    return t->guest.verdict;
}

static void the_guest_is_told_everything_as_it_reads(void **state)
{
    (void)state;
    const size_t len = 1 << 20;
    char *code = malloc(len);
    memset(code, 'c', len);
    struct talk t;
    begin_with(&t, code, len, "{\"x\":[1,2]}");
    struct frame_decoder d;
    struct frame f;
    frame_decoder_init(&d, FRAME_TO_GUEST);
    unsigned n = 0;
    size_t lens[3] = {0};
    for (int i = 0; i < 10000 && n < 3; i++) {
        char chunk[3000]; // a slow reader
        ssize_t got = recv(t.theirs, chunk, sizeof chunk, MSG_DONTWAIT);
        if (got > 0) {
            assert_int_equal(frame_feed(&d, chunk, (size_t)got), 0);
        }
        int e;
        while ((e = frame_next(&d, &f)) == 1) {
            assert_int_equal(f.type, FRAME_CODE + n);
            lens[n++] = f.length;
            if (f.type == FRAME_RUN) {
                assert_memory_equal(f.payload, "{\"name\":\"a \\\"b\\\".py\",\"mode\":\"snippet\"}",
                                    f.length);
            }
        }
        assert_int_equal(e, 0);
        loop_step(t.loop, 0);
    }
    assert_int_equal(n, 3);
    assert_int_equal(lens[0], len);
    assert_int_equal(lens[1], 11);
    assert_int_equal(outbox_left(&t.guest.out), 0);
    frame_decoder_done(&d);
    free(code);
    end(&t);
}

static void a_result_is_taken_digit_for_digit(void **state)
{
    (void)state;
    struct talk t;
    begin(&t);
    AUTO_BUF struct buf wire = BUF_INIT(1000);
    say(&wire, FRAME_RESULT, 1, "{\"big\":123456789012345678901234567890,\"f\":1.10}");
    assert_int_equal(answer(&t, &wire), GUEST_RESULT);
    assert_string_equal(t.guest.value, "{\"big\":123456789012345678901234567890,\"f\":1.10}");
    end(&t);
}

static void an_error_becomes_one_line(void **state)
{
    (void)state;
    const struct {
        const char *json, *line;
    } rows[] = {
        {"{\"type\":\"ValueError\",\"message\":\"a\\nb\"}", "ValueError: a b"},
        {"{\"type\":\"E\",\"message\":\"m\",\"path\":\"result.a[1]\"}", "E: m (at result.a[1])"},
        {"{\"message\":\"only\"}", "only"},
        {"{\"type\":7,\"message\":null}", NULL},
        {"{\"type\":\"\\u001b[2J\"}", " [2J"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct talk t;
        begin(&t);
        AUTO_BUF struct buf wire = BUF_INIT(1000);
        say(&wire, FRAME_ERROR, 1, rows[i].json);
        assert_int_equal(answer(&t, &wire), GUEST_ERROR);
        if (rows[i].line) {
            assert_string_equal(t.guest.error, rows[i].line);
        } else {
            assert_null(t.guest.error);
        }
        end(&t);
    }
}

static void hostile_answers_are_malformed(void **state)
{
    (void)state;
    char deep[200];
    memset(deep, '[', 70);
    memset(deep + 70, ']', 70);
    deep[140] = '\0';
    const struct {
        const char *name;
        uint32_t type[2];
        uint32_t seq[2];
        const char *text[2];
        const char *word;
    } rows[] = {
        {"two results", {FRAME_RESULT, FRAME_RESULT}, {1, 2}, {"1", "2"}, "more than one"},
        {"result after error", {FRAME_ERROR, FRAME_RESULT}, {1, 2}, {"{}", "2"}, "more than one"},
        {"no JSON", {FRAME_RESULT}, {1}, {"nope"}, "malformed result"},
        {"nothing", {FRAME_RESULT}, {1}, {""}, "malformed result"},
        {"NaN", {FRAME_RESULT}, {1}, {"NaN"}, "malformed result"},
        {"two values", {FRAME_RESULT}, {1}, {"1 2"}, "malformed result"},
        {"a key twice", {FRAME_RESULT}, {1}, {"{\"a\":1,\"a\":2}"}, "malformed result"},
        {"too deep", {FRAME_RESULT}, {1}, {deep}, "malformed result"},
        {"wrong sequence", {FRAME_RESULT}, {2}, {"1"}, "not a frame"},
        {"unexpected", {FRAME_CALL}, {1}, {"{}"}, "not expected"},
        {"error is no object", {FRAME_ERROR}, {1}, {"[]"}, "not a JSON object"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct talk t;
        begin(&t);
        AUTO_BUF struct buf wire = BUF_INIT(10000);
        for (int k = 0; k < 2 && rows[i].type[k]; k++) {
            say(&wire, rows[i].type[k], rows[i].seq[k], rows[i].text[k]);
        }
        if (answer(&t, &wire) != GUEST_MALFORMED || !strstr(t.guest.error, rows[i].word)) {
            fail_msg("%s: %s", rows[i].name, t.guest.error ? t.guest.error : "(no error)");
        }
        assert_null(t.guest.value);
        end(&t);
    }
}

static void garbage_and_a_cut_frame(void **state)
{
    (void)state;
    struct talk t;
    begin(&t);
    AUTO_BUF struct buf wire = BUF_INIT(10000);
    buf_puts(&wire, "this is not a frame, but printed text on the wrong descriptor");
    assert_int_equal(answer(&t, &wire), GUEST_MALFORMED);
    end(&t);

    begin(&t);
    AUTO_BUF struct buf cut = BUF_INIT(10000);
    say(&cut, FRAME_RESULT, 1, "[1,2,3]");
    cut.len -= 2; // it was killed in the middle: no result, and nobody's fault
    assert_int_equal(answer(&t, &cut), GUEST_SILENT);
    end(&t);

    begin(&t);
    AUTO_BUF struct buf nothing = BUF_INIT(10);
    assert_int_equal(answer(&t, &nothing), GUEST_SILENT);
    end(&t);
}

static void a_result_above_the_bound_is_refused_by_its_header(void **state)
{
    (void)state;
    const uint32_t sizes[] = {(8 << 20) + 1, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct talk t;
        begin(&t);
        AUTO_BUF struct buf wire = BUF_INIT(1000);
        say(&wire, FRAME_RESULT, 1, "1");
        memcpy(wire.data + 16, &sizes[i], 4); // the header's length
        assert_int_equal(answer(&t, &wire), GUEST_TOO_LARGE);
        assert_int_equal(t.guest.announced, sizes[i]);
        assert_null(t.guest.in.in.data);
        end(&t);
    }
}

static void the_largest_result_arrives(void **state)
{
    (void)state;
    const size_t len = 8 << 20;
    char *text = malloc(len + 1);
    memset(text, 'x', len);
    text[0] = text[len - 1] = '"';
    text[len] = '\0';
    struct talk t;
    begin(&t);
    AUTO_BUF struct buf wire = BUF_INIT(len + 100);
    say(&wire, FRAME_RESULT, 1, text);
    assert_int_equal(answer(&t, &wire), GUEST_RESULT);
    assert_int_equal(t.guest.value_len, len);
    free(text);
    end(&t);
}

// Codec and model know nothing of each other, so their bounds are two lists: whatever the model
// lets in has to fit into its frame.
static void bounds_of_model_and_frames_agree(void **state)
{
    (void)state;
    assert_true(frame_bound(FRAME_TO_GUEST, FRAME_CODE) >= JOB_MAX_CODE_BYTES);
    assert_true(frame_bound(FRAME_TO_GUEST, FRAME_PARAMS) >= JOB_MAX_PARAMS_BYTES);
    assert_true(frame_bound(FRAME_TO_GUEST, FRAME_RUN) >= GUEST_RUN_BYTES);
    assert_true(frame_bound(FRAME_FROM_FRONT, FRAME_JOB) >= JOB_MAX_JSON_BYTES);
    // a byte that is no UTF-8 becomes three
    assert_true(frame_bound(FRAME_TO_FRONT, FRAME_STDOUT) >= 3 * STREAM_CHUNK_BYTES);
    assert_true(frame_bound(FRAME_TO_FRONT, FRAME_ARTIFACT_DATA) >= STREAM_CHUNK_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_guest_is_told_everything_as_it_reads),
        cmocka_unit_test(a_result_is_taken_digit_for_digit),
        cmocka_unit_test(an_error_becomes_one_line),
        cmocka_unit_test(hostile_answers_are_malformed),
        cmocka_unit_test(garbage_and_a_cut_frame),
        cmocka_unit_test(a_result_above_the_bound_is_refused_by_its_header),
        cmocka_unit_test(the_largest_result_arrives),
        cmocka_unit_test(bounds_of_model_and_frames_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
