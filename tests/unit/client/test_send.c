// A job as it goes to a service: descriptors become base64, everything else stays digit for digit.
#include "base/fd.h"
#include "client/send.h"

#include <fcntl.h>
#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Options of `isle run` as the JSON that is sent.
static int sent(char **argv, const char *session, size_t max, struct buf *out, struct call_error *e)
{
    struct run_options o;
    struct option_error option;
    struct run_job job;
    struct run_error error;
    assert_int_equal(run_options_parse(argv, &o, &option), 0);
    assert_int_equal(run_job_build(&o, NULL, &job, &error), 0);
    *out = BUF_INIT(max);
    *e = (struct call_error){""};
    int rc = send_write(out, &job, session, e);
    run_job_done(&job);
    run_options_done(&o);
    return rc;
}
#define W(text) ((char *)(uintptr_t)(text))

static void all_of_a_job(void **state)
{
    (void)state;
    char path[] = "/tmp/isle-send-XXXXXX", file[64];
    AUTO_CLOSE int fd = mkstemp(path);
    assert_int_equal(write(fd, "a\0b", 3), 3);
    snprintf(file, sizeof file, "%s:in/x", path);
    char *argv[] = {W("run"),
                    W("-l"),
                    W("python"),
                    W("-c"),
                    W("return 1"),
                    W("--params"),
                    W("{\"n\": 12345678901234567890.10}"),
                    W("--file"),
                    file,
                    W("--stdin"),
                    path,
                    W("--env"),
                    W("A=1"),
                    W("--timeout"),
                    W("2.50"),
                    W("--artifact"),
                    W("o?"),
                    NULL};
    struct buf out;
    struct call_error e;
    assert_int_equal(sent(argv, "S", SEND_MAX_BYTES, &out, &e), 0);
    const char *parts[] = {
        "\"code\":\"return 1\"",
        "\"params\":{\"n\":12345678901234567890.10}",
        "\"stdin_base64\":\"YQBi\"",
        "{\"target_path\":\"in/x\",\"content_base64\":\"YQBi\",\"mode\":\"0644\"}",
        "\"env\":{\"A\":\"1\"}",
        "\"timeout_seconds\":2.50",
        "\"artifacts\":[{\"path\":\"o\",\"optional\":true}]",
        "\"session_id\":\"S\"}"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        assert_non_null(strstr(buf_text(&out), parts[i]));
    }
    assert_null(strstr(buf_text(&out), "_fd"));
    assert_null(strstr(buf_text(&out), "null"));
    buf_free(&out);
    assert_int_equal(sent(argv, NULL, 100, &out, &e), -EMSGSIZE);
    assert_non_null(strstr(e.text, "too large"));
    buf_free(&out);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
