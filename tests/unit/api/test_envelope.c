// The envelope: one shape, and codes that stand for statuses.
#include "api/envelope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void has_one_shape(void **state)
{
    (void)state;
    struct buf out = BUF_INIT(4096), data = BUF_INIT(64);
    buf_puts(&data, "{\"a\":1}");
    api_envelope_write(&out, API_OK, &data, "success");
    assert_string_equal(buf_text(&out), "{\"code\":0,\"data\":{\"a\":1},\"msg\":\"success\"}");
    buf_clear(&out);
    api_envelope_write(&out, API_VALIDATION, NULL, "x: \"\n\x1b[31m\xff");
    assert_string_equal(
        buf_text(&out),
        "{\"code\":1001,\"data\":null,\"msg\":\"x: \\\"\\n\\u001b[31m\xef\xbf\xbd\"}");
    buf_clear(&out);
    api_envelope_write(&out, API_UNAVAILABLE, NULL, "later"); // one code for 429 and 503
    assert_string_equal(buf_text(&out), "{\"code\":5400,\"data\":null,\"msg\":\"later\"}");
    buf_free(&out);
    buf_free(&data);
}

static void codes_and_statuses_agree(void **state)
{
    (void)state;
    assert_int_equal(api_code_status(API_GONE), 410);
    assert_int_equal(api_code_status((enum api_code)7), 500);
    assert_int_equal(api_code_of_status(413), API_TOO_LARGE);
    assert_int_equal(api_code_of_status(500), API_INTERNAL);
    assert_int_equal(api_code_of_status(431), API_BAD_REQUEST);
    assert_int_equal(api_code_of_status(505), API_BAD_REQUEST);
    assert_int_equal(api_code_of_status(501), API_METHOD);
    for (const struct api_code_spec *s = api_codes; s->name; s++) {
        assert_int_equal(api_code_status(s->code), s->status);
        if (s->code != API_UNKNOWN) {
            assert_int_equal(api_code_of_status(s->status), s->code);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_one_shape),
        cmocka_unit_test(codes_and_statuses_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
