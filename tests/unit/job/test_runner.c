// The launcher's socket on the loop: who gets which record, and its death.
#include "fake.h"

enum { AHEAD_TAG = 1000 };

struct listener {
    struct runner_call call;
    int heard, fds;
    struct plan_record last;
};

static void hear(struct runner_call *c, const struct plan_record *r, int fd)
{
    struct listener *l = c->ctx;
    l->heard++;
    l->fds += fd >= 0;
    l->last = *r;
    fd_close(fd);
}

static void send_op(struct fake *f, struct listener *l, uint32_t op)
{
    struct plan_request q = {.op = op};
    l->call = RUNNER_CALL_INIT(hear, l);
    assert_int_equal(runner_send(f->runner, &q, NULL, 0, &l->call), 0);
    assert_int_equal(fake_hear(f, NULL).tag, l->call.tag);
}

static void answers_find_who_asked(void **state)
{
    (void)state;
    struct fake f;
    struct listener a = {0}, b = {0};
    fake_begin(&f);
    send_op(&f, &a, PLAN_TMPFS);
    send_op(&f, &b, PLAN_PREPARE);
    assert_int_not_equal(a.call.tag, b.call.tag);
    uint32_t tag_a = a.call.tag, tag_b = b.call.tag;
    fake_say(&f, (struct plan_record){.op = PLAN_PREPARE, .tag = tag_b, .id = 7}, -1);
    fake_say(&f, (struct plan_record){.op = PLAN_TMPFS, .tag = tag_a, .id = 3}, f.theirs);
    fake_say(&f, (struct plan_record){.op = PLAN_PARKED, .tag = tag_b, .id = 7}, -1);
    assert_int_equal(a.heard, 1);
    assert_int_equal(a.fds, 1);
    assert_int_equal(a.last.id, 3);
    assert_int_equal(a.call.tag, 0); // its only answer
    assert_int_equal(b.heard, 2);
    assert_int_equal(b.call.tag, tag_b); // END is still to come
    fake_say(&f, (struct plan_record){.op = PLAN_END, .tag = tag_b, .id = 7}, -1);
    assert_int_equal(b.heard, 3);
    assert_int_equal(b.call.tag, 0);
    fake_say(&f, (struct plan_record){.op = PLAN_END, .tag = tag_b, .id = 7}, -1); // again: dropped
    assert_int_equal(b.heard, 3);
    fake_end(&f);
}

static void what_nobody_waits_for_is_dropped_with_its_descriptor(void **state)
{
    (void)state;
    struct fake f;
    struct listener a = {0};
    fake_begin(&f);
    send_op(&f, &a, PLAN_TMPFS);
    uint32_t tag = a.call.tag;
    runner_forget(f.runner, &a.call);
    int probe = dup(f.theirs);
    close(probe);
    fake_say(&f, (struct plan_record){.op = PLAN_TMPFS, .tag = tag}, f.theirs);
    fake_say(&f, (struct plan_record){.op = PLAN_KILL, .tag = 0}, f.theirs);
    assert_int_equal(a.heard, 0);
    int after = dup(f.theirs); // the lowest free number again: nothing leaked
    assert_int_equal(after, probe);
    close(after);
    fake_end(&f);
}

static void its_death_ends_every_call_after_its_last_words(void **state)
{
    (void)state;
    struct fake f;
    struct listener a = {0}, b = {0};
    fake_begin(&f);
    send_op(&f, &a, PLAN_START);
    send_op(&f, &b, PLAN_START);
    struct plan_record end = {.op = PLAN_END, .tag = a.call.tag, .status = 0x300};
    assert_int_equal(msg_send(f.theirs, &end, sizeof end, NULL, 0, 0), 0);
    fake_die(&f);
    while (!f.lost) {
        loop_step(f.loop, 100);
    }
    assert_int_equal(a.heard, 1);
    assert_int_equal(a.last.error, 0);
    assert_int_equal(a.last.status, 0x300);
    assert_int_equal(b.heard, 1);
    assert_int_equal(b.last.op, PLAN_END);
    assert_int_equal(b.last.error, EPIPE);
    assert_int_equal(b.last.status, -1);
    assert_true(b.last.cpu_ns == PLAN_UNKNOWN);
    assert_int_equal(f.lost, 1);
    struct plan_request q = {.op = PLAN_SAMPLE};
    assert_int_equal(runner_send(f.runner, &q, NULL, 0, &a.call), -EPIPE);
    assert_int_equal(a.call.tag, 0);
    fake_end(&f);
}

static void its_end_of_file_is_its_death(void **state)
{
    (void)state;
    struct fake f;
    struct listener a = {0};
    fake_begin(&f);
    send_op(&f, &a, PLAN_START);
    f.theirs = fd_close(f.theirs);
    loop_step(f.loop, 1000);
    assert_int_equal(a.last.error, EPIPE);
    assert_int_equal(f.lost, 1);
    fake_end(&f);
}

static void a_short_record_is_its_death_too(void **state)
{
    (void)state;
    struct fake f;
    struct listener a = {0};
    fake_begin(&f);
    send_op(&f, &a, PLAN_START);
    assert_int_equal(msg_send(f.theirs, "x", 1, NULL, 0, 0), 0);
    loop_step(f.loop, 1000);
    assert_int_equal(a.last.error, EPIPE);
    fake_end(&f);
}

static void requests_wait_in_order_for_a_slow_launcher(void **state)
{
    (void)state;
    struct fake f;
    fake_begin(&f);
    int sent = 0;
    while (sent < 1000) { // more than the socket holds
        assert_int_equal(runner_kill(f.runner, (uint32_t)++sent), 0);
    }
    struct plan_request start = {.op = PLAN_START};
    int fd = f.ours;
    assert_int_equal(runner_send(f.runner, &start, &fd, 1, NULL), -EAGAIN);
    for (int i = 1; i <= sent; i++) {
        assert_int_equal(fake_hear(&f, NULL).id, i);
    }
    loop_step(f.loop, 0);
    assert_true(fake_hears_nothing(&f));
    assert_int_equal(runner_send(f.runner, &start, &fd, 1, NULL), 0);
    fake_end(&f);
}

static void count(void *ctx) { ++*(int *)ctx; }

static void one_waits_for_the_sandbox_ahead_and_the_others_do_without(void **state)
{
    (void)state;
    struct fake f;
    int first = 0, second = 0;
    uint32_t id = 99;
    fake_begin(&f);
    runner_expect_parked(f.runner, AHEAD_TAG);
    assert_int_equal(runner_take_parked(f.runner, &id, count, &first), -EAGAIN);
    assert_int_equal(id, 99);
    assert_int_equal(runner_take_parked(f.runner, &id, count, &second), 0);
    assert_int_equal(id, 0);
    fake_say(&f, (struct plan_record){.op = PLAN_PARKED, .tag = AHEAD_TAG, .id = 7}, -1);
    assert_int_equal(first, 1);
    assert_int_equal(second, 0);
    assert_int_equal(runner_take_parked(f.runner, &id, count, &first), 0);
    assert_int_equal(id, 7);
    fake_end(&f);
}

// ---- the sandbox that waits ---------------------------------------------------------------------

// A job's program begins, and nothing more is said of it.
static void begin_program(struct fake *f, struct listener *l)
{
    send_op(f, l, PLAN_START);
    fake_say(f, (struct plan_record){.op = PLAN_EXECUTED, .tag = l->call.tag, .id = 1}, -1);
    assert_int_equal(l->last.op, PLAN_EXECUTED);
    runner_forget(f->runner, &l->call);
}

static void the_next_sandbox_is_asked_for_when_a_program_has_begun(void **state)
{
    (void)state;
    struct fake f;
    struct listener a = {0}, b = {0};
    uint32_t id = 7;
    int ready = 0, other = 0;
    fake_begin(&f);
    begin_program(&f, &a);
    assert_true(fake_hears_nothing(&f)); // nobody asked for it to be so
    runner_keep_parked(f.runner, PLAN_NETWORK_HOST, 2);
    assert_int_equal(runner_take_parked(f.runner, &id, count, &ready), 0);
    assert_int_equal(id, 0);
    assert_true(fake_hears_nothing(&f));
    send_op(&f, &b, PLAN_START); // with two in flight nobody has time for it
    begin_program(&f, &a);
    assert_true(fake_hears_nothing(&f));
    runner_forget(f.runner, &b.call);
    begin_program(&f, &a);
    struct plan_request q = fake_hear(&f, NULL);
    assert_int_equal(q.op, PLAN_PREPARE);
    assert_int_equal(q.network, PLAN_NETWORK_HOST);

    // one waits for it, the next does not wait behind it
    assert_int_equal(runner_take_parked(f.runner, &id, count, &ready), -EAGAIN);
    id = 7;
    assert_int_equal(runner_take_parked(f.runner, &id, count, &other), 0);
    assert_int_equal(id, 0);
    begin_program(&f, &b); // one at a time
    assert_true(fake_hears_nothing(&f));
    fake_say(&f, (struct plan_record){.op = PLAN_PREPARE, .tag = q.tag, .id = 5}, -1);
    assert_int_equal(ready, 1);
    assert_int_equal(other, 0);
    begin_program(&f, &b); // there is one
    assert_true(fake_hears_nothing(&f));
    assert_int_equal(runner_take_parked(f.runner, &id, count, &ready), 0);
    assert_int_equal(id, 5);
    assert_int_equal(runner_take_parked(f.runner, &id, count, &ready), 0);
    assert_int_equal(id, 0);
    fake_end(&f);
}

static void a_sandbox_that_died_waiting_is_given_to_nobody(void **state)
{
    (void)state;
    struct fake f;
    struct listener a = {0};
    uint32_t id = 7;
    fake_begin(&f);
    runner_keep_parked(f.runner, PLAN_NETWORK_NONE, 2);
    begin_program(&f, &a);
    struct plan_request q = fake_hear(&f, NULL);
    fake_say(&f, (struct plan_record){.op = PLAN_PREPARE, .tag = q.tag, .id = 5}, -1);
    fake_say(&f, (struct plan_record){.op = PLAN_PARKED, .tag = q.tag, .id = 5}, -1);
    fake_say(&f, (struct plan_record){.op = PLAN_END, .tag = q.tag, .id = 5, .error = EIO}, -1);
    assert_int_equal(runner_take_parked(f.runner, &id, NULL, NULL), 0);
    assert_int_equal(id, 0);
    begin_program(&f, &a);
    assert_int_equal(fake_hear(&f, NULL).op, PLAN_PREPARE);
    fake_end(&f);
}

static void a_launcher_that_makes_none_ahead_is_asked_once(void **state)
{
    (void)state;
    struct fake f;
    struct listener a = {0};
    struct plan_record no = {.op = PLAN_PREPARE, .error = ENOMEM};
    fake_begin(&f);
    runner_keep_parked(f.runner, PLAN_NETWORK_NONE, 2);
    for (int i = 0; i < 2; i++) { // for want of memory: then with the next program
        begin_program(&f, &a);
        no.tag = fake_hear(&f, NULL).tag;
        no.error = i ? EOPNOTSUPP : ENOMEM;
        fake_say(&f, no, -1);
    }
    begin_program(&f, &a);
    assert_true(fake_hears_nothing(&f));
    fake_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_waits_for_the_sandbox_ahead_and_the_others_do_without),
        cmocka_unit_test(the_next_sandbox_is_asked_for_when_a_program_has_begun),
        cmocka_unit_test(a_sandbox_that_died_waiting_is_given_to_nobody),
        cmocka_unit_test(a_launcher_that_makes_none_ahead_is_asked_once),
        cmocka_unit_test(answers_find_who_asked),
        cmocka_unit_test(what_nobody_waits_for_is_dropped_with_its_descriptor),
        cmocka_unit_test(its_death_ends_every_call_after_its_last_words),
        cmocka_unit_test(its_end_of_file_is_its_death),
        cmocka_unit_test(a_short_record_is_its_death_too),
        cmocka_unit_test(requests_wait_in_order_for_a_slow_launcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
