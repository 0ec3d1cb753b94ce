// The event loop: what handlers may do to each other, and when timers come.
#include "base/clock.h"
#include "base/fd.h"
#include "io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct probe {
    struct loop *loop;
    struct loop_watch watch;
    struct probe *other; // removed when this one is ready
    int ends[2];
    int count;
};

static void probe_ready(struct loop_watch *w, uint32_t events)
{
    struct probe *p = w->ctx;
    (void)events;
    p->count++;
    if (p->other) {
        loop_remove(p->loop, &p->other->watch);
    }
}

static void probe_open(struct probe *p, struct loop *loop)
{
    *p = (struct probe){.loop = loop};
    p->watch = LOOP_WATCH_INIT(probe_ready, p);
    assert_int_equal(pipe2(p->ends, O_CLOEXEC), 0);
    assert_int_equal(loop_add(loop, &p->watch, p->ends[0], EPOLLIN), 0);
}

static void probe_close(struct probe *p)
{
    loop_remove(p->loop, &p->watch);
    close(p->ends[0]);
    close(p->ends[1]);
}

static void a_removed_watch_hears_nothing_of_the_same_round(void **state)
{
    (void)state;
    struct loop *l;
    struct probe a, b;
    assert_int_equal(loop_new(&l), 0);
    probe_open(&a, l);
    probe_open(&b, l);
    a.other = &b;
    b.other = &a;
    assert_int_equal(write(a.ends[1], "x", 1), 1);
    assert_int_equal(write(b.ends[1], "x", 1), 1);
    assert_int_equal(loop_step(l, 1000), 0); // both are ready: one of them ends the other
    assert_int_equal(a.count + b.count, 1);
    probe_close(&a);
    probe_close(&b);
    loop_free(l);
}

static void a_handler_may_remove_itself(void **state)
{
    (void)state;
    struct loop *l;
    struct probe a;
    assert_int_equal(loop_new(&l), 0);
    probe_open(&a, l);
    a.other = &a;
    assert_int_equal(write(a.ends[1], "x", 1), 1);
    loop_step(l, 1000);
    loop_step(l, 0);
    assert_int_equal(a.count, 1);
    assert_int_equal(a.watch.fd, -1);
    probe_close(&a);
    loop_free(l);
}

static void a_regular_file_cannot_be_watched(void **state)
{
    (void)state;
    struct loop *l;
    struct loop_watch w = LOOP_WATCH_INIT(probe_ready, NULL);
    AUTO_CLOSE int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(loop_new(&l), 0);
    assert_int_equal(loop_add(l, &w, fd, EPOLLIN), -EPERM);
    assert_int_equal(w.fd, -1);
    loop_remove(l, &w);
    loop_free(l);
}

struct alarm {
    struct loop *loop;
    struct loop_timer timer;
    struct alarm *clears;
    char **log;
    char name;
    uint64_t rung_at_ns;
};

static void ring(struct loop_timer *t)
{
    struct alarm *a = t->ctx;
    a->rung_at_ns = clock_now_ns();
    *(*a->log)++ = a->name;
    if (a->clears) {
        loop_timer_clear(a->loop, &a->clears->timer);
    }
    if (a->name == 'z') {
        loop_stop(a->loop);
    }
}

static void timers_come_in_order_and_not_early(void **state)
{
    (void)state;
    struct loop *l;
    char log[16] = "", *end = log;
    struct alarm alarms[5];
    const struct {
        char name;
        unsigned ms;
    } plan[5] = {{'b', 400}, {'a', 200}, {'z', 600}, {'c', 450}, {'x', 500}};
    assert_int_equal(loop_new(&l), 0);
    uint64_t begin = clock_now_ns();
    for (int i = 0; i < 5; i++) {
        alarms[i] = (struct alarm){.loop = l, .log = &end, .name = plan[i].name};
        alarms[i].timer = LOOP_TIMER_INIT(ring, &alarms[i]);
        loop_timer_set(l, &alarms[i].timer, plan[i].ms * NS_PER_MS);
    }
    alarms[0].clears = &alarms[3];                      // b ends c
    loop_timer_set(l, &alarms[4].timer, 1 * NS_PER_MS); // x moves to the front
    assert_int_equal(loop_run(l), 0);
    assert_string_equal(log, "xabz");
    assert_true(alarms[1].rung_at_ns - begin >= 200 * NS_PER_MS);
    assert_true(alarms[2].rung_at_ns - begin >= 600 * NS_PER_MS);
    assert_int_equal(alarms[2].timer.due_ns, 0);
    loop_free(l);
}

static void waiting_costs_no_processor_time(void **state)
{
    (void)state;
    struct loop *l;
    char log[4] = "", *end = log;
    assert_int_equal(loop_new(&l), 0);
    struct alarm a = {.loop = l, .log = &end, .name = 'z'};
    a.timer = LOOP_TIMER_INIT(ring, &a);
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    loop_timer_set(l, &a.timer, 200 * NS_PER_MS);
    assert_int_equal(loop_run(l), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    int64_t used_ns = (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
    assert_true(used_ns < 20 * 1000000);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_removed_watch_hears_nothing_of_the_same_round),
        cmocka_unit_test(a_handler_may_remove_itself),
        cmocka_unit_test(a_regular_file_cannot_be_watched),
        cmocka_unit_test(timers_come_in_order_and_not_early),
        cmocka_unit_test(waiting_costs_no_processor_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
