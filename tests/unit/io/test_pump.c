// Standard input of a job: from files, pipes and nothing, into a pipe that may be slow or closed.
#include "base/fd.h"
#include "io/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

struct set {
    struct loop *loop;
    struct pump pump;
    int reader;
};

static void begin(struct set *s, int from)
{
    int ends[2];
    *s = (struct set){0};
    assert_int_equal(loop_new(&s->loop), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    s->reader = ends[0];
    assert_int_equal(pump_start(&s->pump, s->loop, from, ends[1]), 0);
}

static void end(struct set *s)
{
    pump_stop(&s->pump);
    loop_free(s->loop);
    close(s->reader);
}

// Reads to the end, a little at a time; checks the pattern. Bytes.
static size_t read_all(struct set *s)
{
    size_t have = 0;
    unsigned char got[3000];
    for (int idle = 0; idle < 1000;) {
        loop_step(s->loop, 1);
        ssize_t n = read(s->reader, got, sizeof got);
        if (n == 0) {
            return have;
        }
        if (n < 0) {
            assert_int_equal(errno, EAGAIN);
            idle++;
            continue;
        }
        for (ssize_t i = 0; i < n; i++) {
            assert_int_equal(got[i], (have + (size_t)i) % 251);
        }
        have += (size_t)n;
        idle = 0;
    }
    fail_msg("the end never came");
    return 0;
}

static int pattern_file(size_t len)
{
    int fd = memfd_create("pattern", MFD_CLOEXEC);
    assert_true(fd >= 0);
    unsigned char *data = malloc(len + 1);
    for (size_t i = 0; i < len; i++) {
        data[i] = (unsigned char)(i % 251);
    }
    assert_int_equal(fd_write_all(fd, data, len), 0);
    free(data);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void a_file_arrives_whole(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 65535, 65536, 65537, 1000000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct set s;
        begin(&s, pattern_file(sizes[i]));
        assert_int_equal(read_all(&s), sizes[i]);
        end(&s);
    }
}

static void a_device_without_events_is_like_a_file(void **state)
{
    (void)state;
    struct set s;
    begin(&s, open("/dev/null", O_RDONLY | O_CLOEXEC));
    assert_int_equal(read_all(&s), 0);
    end(&s);
}

static void a_pipe_arrives_as_it_is_written(void **state)
{
    (void)state;
    int ends[2];
    struct set s;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    begin(&s, ends[0]);
    loop_step(s.loop, 0);
    char got[8];
    assert_int_equal(read(s.reader, got, sizeof got), -1); // nothing yet, and no end
    assert_int_equal(write(ends[1], "\0\1\2", 3), 3);
    loop_step(s.loop, 1000);
    assert_int_equal(read(s.reader, got, sizeof got), 3);
    close(ends[1]);
    loop_step(s.loop, 1000);
    assert_int_equal(read(s.reader, got, sizeof got), 0);
    assert_null(s.pump.loop); // released by itself
    end(&s);
}

static void a_job_that_does_not_read_costs_one_buffer(void **state)
{
    (void)state;
    AUTO_CLOSE int file = pattern_file(10 << 20);
    struct set s;
    begin(&s, dup(file));
    for (int i = 0; i < 50; i++) {
        loop_step(s.loop, 0);
    }
    assert_true(lseek(file, 0, SEEK_CUR) <= 3 * 65536);
    end(&s);
}

static void a_job_that_closes_its_input_ends_the_copy(void **state)
{
    (void)state;
    struct set s;
    signal(SIGPIPE, SIG_IGN);
    begin(&s, pattern_file(10 << 20));
    loop_step(s.loop, 0);
    s.reader = fd_close(s.reader);
    for (int i = 0; i < 10 && s.pump.loop; i++) {
        loop_step(s.loop, 100);
    }
    assert_null(s.pump.loop);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_arrives_whole),
        cmocka_unit_test(a_device_without_events_is_like_a_file),
        cmocka_unit_test(a_pipe_arrives_as_it_is_written),
        cmocka_unit_test(a_job_that_does_not_read_costs_one_buffer),
        cmocka_unit_test(a_job_that_closes_its_input_ends_the_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
