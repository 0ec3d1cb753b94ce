// Work on threads: its end is told on the loop, background work leaves a thread to who waits, and a
// pool that is stopped gives everything back.
#include "base/clock.h"
#include "base/fd.h"
#include "io/work.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

struct piece {
    struct work work;
    struct set *set;
    unsigned input, output; // output is the thread's until `done`
    unsigned again;         // times to be queued again by `done`
    int gate;               // read before it ends; -1: none
    pthread_t ran_on;
};

struct set {
    struct loop *loop;
    struct work_pool *pool;
    atomic_uint begun;
    atomic_uint first[64]; // inputs in the order of their begin
    unsigned done;
    unsigned order[64]; // in the order of `done`
};

static void run(struct work *w)
{
    struct piece *p = w->ctx;
    atomic_store(&p->set->first[atomic_fetch_add(&p->set->begun, 1) % 64], p->input);
    if (p->gate >= 0) {
        char c;
        assert_int_equal(read(p->gate, &c, 1), 1);
    }
    p->ran_on = pthread_self();
    p->output += p->input * 2;
}

static void done(struct work *w)
{
    struct piece *p = w->ctx;
    assert_false(w->queued);
    p->set->order[p->set->done++ % 64] = p->input;
    if (p->again) {
        p->again--;
        assert_int_equal(work_queue(p->set->pool, w), 0);
    }
}

static void begin(struct set *s, unsigned threads)
{
    *s = (struct set){0};
    assert_int_equal(loop_new(&s->loop), 0);
    assert_int_equal(work_pool_new(s->loop, threads, &s->pool), 0);
}

static void end(struct set *s)
{
    work_pool_free(s->pool);
    loop_free(s->loop);
}

static struct piece piece(struct set *s, unsigned input)
{
    return (struct piece){.set = s, .input = input, .gate = -1};
}

static void queue_for(struct piece *p, bool background, uint64_t owner)
{
    p->work =
        (struct work){.run = run, .done = done, .ctx = p, .background = background, .owner = owner};
    assert_int_equal(work_queue(p->set->pool, &p->work), 0);
    assert_true(p->work.queued);
}

static void queue(struct piece *p, bool background) { queue_for(p, background, 0); }

static void step_until(struct set *s, unsigned n)
{
    for (int i = 0; s->done < n; i++) {
        assert_true(i < 30000);
        assert_int_equal(loop_step(s->loop, 1), 0);
    }
}

static void wait_begun(struct set *s, unsigned n)
{
    for (int i = 0; atomic_load(&s->begun) < n; i++) {
        assert_true(i < 30000);
        clock_pause_ns(NS_PER_MS);
    }
}

static void test_result_comes_on_the_loop(void **state)
{
    (void)state;
    struct set s;
    begin(&s, 2);
    enum { N = 50 };
    struct piece p[N];
    for (unsigned i = 0; i < N; i++) {
        p[i] = piece(&s, i);
        queue(&p[i], i % 3 == 0);
    }
    assert_int_equal(work_waiting(s.pool), N);
    step_until(&s, N);
    assert_int_equal(work_waiting(s.pool), 0);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(p[i].output, i * 2);
        assert_false(pthread_equal(p[i].ran_on, pthread_self()));
    }
    end(&s);
}

static void test_done_queues_again(void **state)
{
    (void)state;
    struct set s;
    begin(&s, 1);
    struct piece p = piece(&s, 3);
    p.again = 9;
    queue(&p, true);
    step_until(&s, 10);
    assert_int_equal(p.output, 60);
    end(&s);
}

static void test_who_queues_much_keeps_nobody_waiting(void **state)
{
    (void)state;
    struct set s;
    begin(&s, 2);
    int gate[2];
    assert_int_equal(pipe(gate), 0);
    enum { N = 20 };
    struct piece p[N];
    for (unsigned i = 0; i < N; i++) { // the last but one is of another owner, and so is the last
        p[i] = piece(&s, i);
        p[i].gate = gate[0];
        queue_for(&p[i], false, i < N - 2 ? 7 : i);
    }
    wait_begun(&s, 2);
    for (unsigned i = 1; i <= 3; i++) { // each end lets one begin
        assert_int_equal(write(gate[1], "x", 1), 1);
        step_until(&s, i);
        wait_begun(&s, 2 + i);
    }
    for (unsigned i = 3; i < N; i++) {
        assert_int_equal(write(gate[1], "x", 1), 1);
    }
    step_until(&s, N);
    unsigned at = 0;
    for (unsigned i = 0; i < N; i++) {
        at = atomic_load(&s.first[i]) >= N - 2 ? i : at;
    }
    assert_true(at < 6); // both were begun among the first
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(p[i].output, i * 2);
    }
    close(gate[0]);
    close(gate[1]);
    end(&s);
}

static void test_one_thread_takes_the_waited_for_first(void **state)
{
    (void)state;
    struct set s;
    begin(&s, 1);
    int gate[2];
    assert_int_equal(pipe(gate), 0);
    struct piece first = piece(&s, 1), background = piece(&s, 2), waited_for = piece(&s, 3);
    first.gate = gate[0];
    queue(&first, false);
    wait_begun(&s, 1);
    queue(&background, true);
    queue(&waited_for, false);
    assert_int_equal(write(gate[1], "x", 1), 1);
    step_until(&s, 3);
    assert_int_equal(s.order[0], 1);
    assert_int_equal(s.order[1], 3);
    assert_int_equal(s.order[2], 2);
    end(&s);
    close(gate[0]);
    close(gate[1]);
}

static void test_background_leaves_a_thread(void **state)
{
    (void)state;
    struct set s;
    begin(&s, 3);
    int gate[2];
    assert_int_equal(pipe(gate), 0);
    struct piece slow[4], quick = piece(&s, 9);
    for (unsigned i = 0; i < ARRAY_LEN(slow); i++) {
        slow[i] = piece(&s, i);
        slow[i].gate = gate[0];
        queue(&slow[i], true);
    }
    wait_begun(&s, 2);
    queue(&quick, false);
    step_until(&s, 1);
    assert_int_equal(s.order[0], 9);
    assert_int_equal(atomic_load(&s.begun), 3); // two slow ones, and the quick one
    assert_int_equal(write(gate[1], "xxxx", 4), 4);
    step_until(&s, 5);
    end(&s);
    close(gate[0]);
    close(gate[1]);
}

// What cannot be cut into pieces (the end of a file in a hundred thousand parts) may take minutes.
static void test_who_fills_the_background_keeps_nobody_waiting(void **state)
{
    (void)state;
    struct set s;
    begin(&s, 4);
    int gate[2];
    assert_int_equal(pipe(gate), 0);
    struct piece slow[5], quick = piece(&s, 9);
    for (unsigned i = 0; i < ARRAY_LEN(slow); i++) {
        slow[i] = piece(&s, i);
        slow[i].gate = gate[0];
        queue_for(&slow[i], i < 3, 7);
    }
    wait_begun(&s, 3);
    queue_for(&quick, false, 8);
    step_until(&s, 1);
    assert_int_equal(s.order[0], 9);
    assert_int_equal(atomic_load(&s.begun), 4); // three slow ones, and the quick one
    assert_int_equal(write(gate[1], "xxxxx", 5), 5);
    step_until(&s, 6);
    end(&s);
    close(gate[0]);
    close(gate[1]);
}

// Others' sessions are removed, too, and whoever has deleted one waits for that.
static void test_who_fills_the_background_leaves_some_of_it(void **state)
{
    (void)state;
    struct set s;
    begin(&s, 4);
    int gate[2];
    assert_int_equal(pipe(gate), 0);
    struct piece slow[3], others[2] = {piece(&s, 8), piece(&s, 9)};
    for (unsigned i = 0; i < ARRAY_LEN(slow); i++) {
        slow[i] = piece(&s, i);
        slow[i].gate = gate[0];
        queue_for(&slow[i], true, 7);
    }
    wait_begun(&s, 2);
    for (unsigned i = 0; i < ARRAY_LEN(others); i++) {
        queue_for(&others[i], true, 8 + i);
        step_until(&s, 1 + i);
        assert_int_equal(s.order[i], 8 + i);
    }
    assert_int_equal(atomic_load(&s.begun), 4); // two slow ones, and the others'
    assert_int_equal(write(gate[1], "xxx", 3), 3);
    step_until(&s, 5);
    end(&s);
    close(gate[0]);
    close(gate[1]);
}

static void *open_gate(void *arg)
{
    clock_pause_ns(20 * NS_PER_MS);
    assert_int_equal(write(*(int *)arg, "x", 1), 1);
    return NULL;
}

static void test_stop_gives_everything_back(void **state)
{
    (void)state;
    struct set s;
    begin(&s, 1);
    int gate[2];
    assert_int_equal(pipe(gate), 0);
    struct piece running = piece(&s, 1), queued = piece(&s, 2), late = piece(&s, 3);
    running.gate = gate[0];
    queue(&running, false);
    wait_begun(&s, 1);
    queue(&queued, true);
    pthread_t opener;
    assert_int_equal(pthread_create(&opener, NULL, open_gate, &gate[1]), 0);
    work_pool_stop(s.pool);
    pthread_join(opener, NULL);
    assert_int_equal(running.output, 2); // it was waited for
    assert_false(running.work.queued);
    assert_int_equal(queued.output, 0);
    assert_false(queued.work.queued);
    assert_int_equal(work_waiting(s.pool), 0);
    late.work = (struct work){.run = run, .done = done, .ctx = &late};
    assert_int_equal(work_queue(s.pool, &late.work), -ESHUTDOWN);
    loop_step(s.loop, 0);
    assert_int_equal(s.done, 0);
    work_pool_stop(s.pool);
    end(&s);
    close(gate[0]);
    close(gate[1]);
}

static void stop_in_done(struct work *w)
{
    struct piece *p = w->ctx;
    p->set->order[p->set->done++ % 64] = p->input;
    work_pool_stop(p->set->pool);
}

static void test_stop_in_done(void **state)
{
    (void)state;
    struct set s;
    begin(&s, 1);
    struct piece a = piece(&s, 1), b = piece(&s, 2);
    queue(&a, false);
    queue(&b, false);
    a.work.done = b.work.done = stop_in_done;
    wait_begun(&s, 2);
    step_until(&s, 1);
    assert_int_equal(s.done, 1);
    assert_false(a.work.queued || b.work.queued);
    end(&s);
}

static bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

static void test_large_files_are_closed_on_a_thread(void **state)
{
    (void)state;
    struct set s = {0};
    begin(&s, 1);
    int none = memfd_create("none", MFD_CLOEXEC), small[2], large[3];
    char path[] = "/tmp/isle-test-XXXXXX";
    for (size_t i = 0; i < ARRAY_LEN(small); i++) {
        small[i] = i ? memfd_create("small", MFD_CLOEXEC) : mkostemp(path, O_CLOEXEC);
        assert_int_equal(fallocate(small[i], 0, 0, 4096), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(large); i++) {
        large[i] = memfd_create("large", MFD_CLOEXEC);
        assert_int_equal(fallocate(large[i], 0, 0, WORK_CLOSE_BYTES + 4096), 0);
    }
    work_close(s.pool, -1, 0);
    work_close(s.pool, none, 0);
    assert_false(is_open(none));
    work_close(s.pool, small[0], 0); // it has a name
    assert_false(is_open(small[0]));
    unlink(path);
    work_close(s.pool, small[1], 0); // it has none: this is its end
    assert_int_equal(work_waiting(s.pool), 1);
    work_close(NULL, large[0], 0);
    assert_false(is_open(large[0]));
    work_close(s.pool, large[1], 0);
    assert_true(work_waiting(s.pool) > 0);
    for (int i = 0; work_waiting(s.pool) > 0; i++) {
        assert_true(i < 3000);
        loop_step(s.loop, 10);
    }
    assert_false(is_open(large[1]));
    work_close(s.pool, large[2], 0); // in the queue, or on the thread, when that ends
    end(&s);
    assert_false(is_open(large[2]));
}

static void test_bad_counts(void **state)
{
    (void)state;
    struct loop *loop;
    struct work_pool *pool;
    assert_int_equal(loop_new(&loop), 0);
    assert_int_equal(work_pool_new(loop, 0, &pool), -EINVAL);
    assert_int_equal(work_pool_new(loop, 17, &pool), -EINVAL);
    work_pool_free(NULL);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_result_comes_on_the_loop),
        cmocka_unit_test(test_done_queues_again),
        cmocka_unit_test(test_who_queues_much_keeps_nobody_waiting),
        cmocka_unit_test(test_one_thread_takes_the_waited_for_first),
        cmocka_unit_test(test_background_leaves_a_thread),
        cmocka_unit_test(test_who_fills_the_background_keeps_nobody_waiting),
        cmocka_unit_test(test_who_fills_the_background_leaves_some_of_it),
        cmocka_unit_test(test_stop_gives_everything_back),
        cmocka_unit_test(test_stop_in_done),
        cmocka_unit_test(test_large_files_are_closed_on_a_thread),
        cmocka_unit_test(test_bad_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
