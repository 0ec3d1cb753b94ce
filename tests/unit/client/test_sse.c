// Server-sent events: cut anywhere they are the same, and none is larger than allowed.
#include "base/fd.h"
#include "client/sse.h"

#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct seen {
    struct buf text;
    int answer;
};

static int note(void *ctx, const struct sse_event *e)
{
    struct seen *s = ctx;
    buf_printf(&s->text, "%s/%s/%.*s|", e->name, e->id, (int)e->len, e->data);
    return s->answer;
}

// Fed in pieces of so many bytes.
static void feed(const char *text, size_t piece, const char *wanted)
{
    struct seen seen = {.text = BUF_INIT(10000)};
    struct sse s;
    sse_init(&s, 1000, note, &seen);
    for (size_t at = 0, len = strlen(text); at < len; at += piece) {
        assert_int_equal(sse_feed(&s, text + at, len - at < piece ? len - at : piece), 0);
    }
    assert_string_equal(buf_text(&seen.text), wanted);
    buf_free(&seen.text);
    sse_done(&s);
}

static void events(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted;
    } rows[] = {
        {"event: status\nid: 4\ndata: {}\n\n", "status/4/{}|"},
        {"data: a\ndata: b\n\n", "message//a\nb|"},
        {"event: x\r\ndata: a\r\n\r\ndata: b\r\r", "x//a|message//b|"},
        {": keep-alive\n\n: again\n\ndata:a\n\n", "message//a|"},
        {"id: 7\ndata: a\n\ndata: b\n\n", "message/7/a|message/7/b|"},
        {"data: never ended\n", ""},
        {"event: no data\n\ndata: a\n\n", "message//a|"},
        {"data\n\n", "message//|"},
        {"data:  two spaces\n\n", "message// two spaces|"},
        {"unknown: x\nretry: 3\ndata: a\n\n", "message//a|"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t piece = 1; piece < 8; piece++) {
            feed(rows[i].text, piece, rows[i].wanted);
        }
        feed(rows[i].text, 1000, rows[i].wanted);
    }
}

static void no_more_than_allowed(void **state)
{
    (void)state;
    struct seen seen = {.text = BUF_INIT(10000)};
    struct sse s;
    int e = 0;
    sse_init(&s, 100, note, &seen);
    for (int i = 0; i < 200 && !e; i++) { // a line that never ends
        e = sse_feed(&s, "x", 1);
    }
    assert_int_equal(e, -EMSGSIZE);
    sse_done(&s);
    sse_init(&s, 100, note, &seen);
    e = 0;
    for (int i = 0; i < 200 && !e; i++) { // an event that never ends
        e = sse_feed(&s, "data: 0123456789\n", 17);
    }
    assert_int_equal(e, -EMSGSIZE);
    sse_done(&s);
    buf_free(&seen.text);
}

static void an_error_of_the_reader_ends_it(void **state)
{
    (void)state;
    struct seen seen = {.text = BUF_INIT(10000), .answer = -EPROTO};
    struct sse s;
    sse_init(&s, 100, note, &seen);
    assert_int_equal(sse_feed(&s, "data: a\n\ndata: b\n\n", 18), -EPROTO);
    assert_string_equal(buf_text(&seen.text), "message//a|");
    sse_done(&s);
    buf_free(&seen.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events),
        cmocka_unit_test(no_more_than_allowed),
        cmocka_unit_test(an_error_of_the_reader_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
