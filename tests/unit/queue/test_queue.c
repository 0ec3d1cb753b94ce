// The queue's rules, one by one. test_queue_model.c mixes them.
#include "base/clock.h"
#include "queue/queue.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct queue *queue_of(uint32_t slots)
{
    struct queue *q;
    struct queue_limits limits = {.slots = slots, .waiting = 1000};
    assert_int_equal(queue_new(&limits, &q), 0);
    return q;
}

static struct queue_entry job(const char *team, const char *session)
{
    return (struct queue_entry){.team = team, .session = session};
}

static void add(struct queue *q, struct queue_entry *e, uint64_t now_ns)
{
    assert_int_equal(queue_add(q, e, now_ns, NULL), 0);
    assert_int_equal(e->state, QUEUE_WAITING);
}

static void expect(struct queue *q, const struct queue_entry *e)
{
    assert_ptr_equal(queue_next(q, 1), e);
    if (e) {
        assert_int_equal(e->state, QUEUE_RUNNING);
    }
}

static void one_team_is_served_in_order(void **state)
{
    (void)state;
    struct queue *q = queue_of(2);
    struct queue_entry a = job("t", NULL), b = job("t", NULL), c = job("t", NULL);
    add(q, &a, 1);
    add(q, &b, 1);
    add(q, &c, 1);
    expect(q, &a);
    expect(q, &b);
    expect(q, NULL);
    queue_finish(q, &b, 2);
    assert_int_equal(b.state, QUEUE_OUT);
    expect(q, &c);
    queue_free(q);
}

static void teams_take_turns(void **state)
{
    (void)state;
    struct queue *q = queue_of(1);
    struct queue_entry many[4] = {job("a", NULL), job("a", NULL), job("a", NULL), job("a", NULL)};
    struct queue_entry b = job("b", NULL), c = job("c", NULL);
    for (int i = 0; i < 4; i++) {
        add(q, &many[i], 1);
    }
    add(q, &b, 1);
    add(q, &c, 1);
    struct queue_entry *order[] = {&many[0], &b, &c, &many[1], &many[2], &many[3]};
    for (size_t i = 0; i < 6; i++) {
        expect(q, order[i]);
        queue_finish(q, order[i], 2);
    }
    queue_free(q);
}

static void a_team_that_holds_slots_waits_for_one_that_holds_none(void **state)
{
    (void)state;
    struct queue *q = queue_of(3);
    struct queue_entry a1 = job("a", NULL), a2 = job("a", NULL), a3 = job("a", NULL),
                       a4 = job("a", NULL), b1 = job("b", NULL), b2 = job("b", NULL);
    add(q, &a1, 1);
    add(q, &a2, 1);
    add(q, &a3, 1);
    add(q, &a4, 1);
    expect(q, &a1);
    expect(q, &a2);
    expect(q, &a3);
    add(q, &b1, 1);
    add(q, &b2, 1);
    queue_finish(q, &a1, 2); // a still holds two
    expect(q, &b1);
    queue_finish(q, &a2, 2); // one each, but a's turn is longer ago than b's
    expect(q, &a4);
    queue_finish(q, &a3, 2);
    expect(q, &b2);
    queue_free(q);
}

static void a_team_with_one_job_at_a_time_does_not_starve_the_others(void **state)
{
    (void)state;
    struct queue *q = queue_of(1);
    struct queue_entry backlog[5], single = job("quick", NULL);
    for (int i = 0; i < 5; i++) {
        backlog[i] = job("slow", NULL);
        add(q, &backlog[i], 1);
    }
    int served = 0;
    add(q, &single, 1);
    for (int round = 0; round < 10; round++) {
        struct queue_entry *e = queue_next(q, 2);
        assert_non_null(e);
        queue_finish(q, e, 3);
        if (e == &single) {
            add(q, &single, 3);
        } else {
            served++;
        }
    }
    assert_int_equal(served, 5);
    queue_free(q);
}

static void a_team_has_its_bound_of_running_jobs(void **state)
{
    (void)state;
    struct queue *q;
    struct queue_limits limits = {.slots = 4, .team_running = 2, .waiting = 10};
    struct queue_entry e[3] = {job("a", NULL), job("a", NULL), job("a", NULL)}, b = job("b", NULL);
    assert_int_equal(queue_new(&limits, &q), 0);
    for (int i = 0; i < 3; i++) {
        add(q, &e[i], 1);
    }
    add(q, &b, 1);
    expect(q, &e[0]);
    expect(q, &b);
    expect(q, &e[1]);
    expect(q, NULL);
    queue_finish(q, &e[0], 2);
    expect(q, &e[2]);
    queue_free(q);
}

static void slots_are_kept_for_teams_that_run_nothing(void **state)
{
    (void)state;
    static const struct {
        uint32_t slots, teams, most; // of one team
    } cases[] = {{1, 2, 1}, {2, 1, 2}, {2, 2, 1}, {2, 9, 1}, {4, 9, 3}, {8, 2, 7}, {8, 9, 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct queue *q = queue_of(cases[i].slots);
        struct queue_entry a[8], b = job("b", NULL), c = job("c", NULL);
        queue_set_teams(q, cases[i].teams);
        for (uint32_t n = 0; n < cases[i].slots; n++) {
            a[n] = job("a", NULL);
            add(q, &a[n], 1);
        }
        for (uint32_t n = 0; n < cases[i].most; n++) {
            expect(q, &a[n]);
        }
        expect(q, NULL);
        for (uint32_t kept = cases[i].slots - cases[i].most; kept > 0; kept--) {
            struct queue_entry *next = kept == 2 ? &c : &b;
            add(q, next, 2);
            expect(q, next); // at once
        }
        queue_free(q);
    }
}

static void what_was_kept_is_used_when_all_have_work(void **state)
{
    (void)state;
    struct queue *q = queue_of(4);
    struct queue_entry a[4], b = job("b", NULL);
    queue_set_teams(q, 2);
    for (int i = 0; i < 4; i++) {
        a[i] = job("a", NULL);
        add(q, &a[i], 1);
    }
    add(q, &b, 1);
    struct queue_entry *order[] = {&a[0], &b, &a[1], &a[2]};
    for (int i = 0; i < 4; i++) {
        expect(q, order[i]);
    }
    queue_finish(q, &b, 2);
    expect(q, NULL); // its slot is kept for its next job
    assert_int_equal(queue_why(q, &a[3]), QUEUE_FOR_SHARE);
    queue_finish(q, &a[0], 2);
    expect(q, &a[3]);
    queue_set_teams(q, 1); // its key was revoked
    add(q, &a[0], 3);
    expect(q, &a[0]);
    queue_free(q);
}

static void a_session_runs_one_at_a_time_and_others_pass(void **state)
{
    (void)state;
    struct queue *q = queue_of(4);
    struct queue_entry s1 = job("t", "s"), s2 = job("t", "s"), s3 = job("t", "s"),
                       o1 = job("t", "o"), free1 = job("t", NULL), o2 = job("t", "o");
    struct queue_entry *all[] = {&s1, &s2, &s3, &o1, &free1, &o2};
    for (size_t i = 0; i < 6; i++) {
        add(q, all[i], 1);
    }
    expect(q, &s1);
    expect(q, &o1);
    expect(q, &free1);
    expect(q, NULL); // a slot is free, but both sessions are busy
    queue_finish(q, &o1, 2);
    expect(q, &o2);
    queue_finish(q, &s1, 2);
    expect(q, &s2); // the older one
    queue_finish(q, &s2, 2);
    expect(q, &s3);
    queue_free(q);
}

static void a_cancelled_job_of_a_session_lets_the_next_one_forward(void **state)
{
    (void)state;
    struct queue *q = queue_of(2);
    struct queue_entry a = job("t", "s"), b = job("t", "s"), c = job("t", "s");
    add(q, &a, 1);
    add(q, &b, 1);
    add(q, &c, 1);
    queue_remove(q, &b); // one behind the first
    queue_remove(q, &a); // the first
    queue_remove(q, &a); // harmless
    assert_int_equal(a.state, QUEUE_OUT);
    expect(q, &c);
    queue_finish(q, &c, 2);
    struct queue_stats st;
    queue_stats(q, &st);
    assert_int_equal(st.waiting + st.running + st.teams, 0);
    queue_free(q);
}

static void refusals_carry_length_and_an_estimate(void **state)
{
    (void)state;
    struct queue *q;
    struct queue_limits limits = {.slots = 1, .waiting = 3, .team_waiting = 2};
    struct queue_entry e[6] = {job("a", NULL), job("a", NULL), job("a", NULL),
                               job("b", NULL), job("b", "s"),  job("a", NULL)};
    struct queue_refusal refusal;
    assert_int_equal(queue_new(&limits, &q), 0);
    add(q, &e[0], 0);
    expect(q, &e[0]);
    queue_finish(q, &e[0], 800 * NS_PER_S); // the mean is about 100 s now
    add(q, &e[0], 0);
    add(q, &e[1], 0);
    assert_int_equal(queue_add(q, &e[2], 0, &refusal), QUEUE_TEAM_FULL);
    assert_int_equal(e[2].state, QUEUE_OUT);
    assert_int_equal(refusal.length, 2);
    assert_int_equal(refusal.bound, 2);
    assert_in_range(refusal.retry_after_s, 90, 110);
    add(q, &e[3], 0);
    assert_int_equal(queue_add(q, &e[4], 0, &refusal), QUEUE_FULL);
    assert_int_equal(refusal.length, 3);
    assert_int_equal(refusal.bound, 3);
    e[5].accepted = true; // from before a restart: no bound applies
    add(q, &e[5], 0);
    for (int i = 0; i < 20; i++) { // the estimate has a bound itself
        struct queue_entry *next = queue_next(q, 0);
        if (!next) {
            break;
        }
        queue_finish(q, next, UINT64_MAX / 2);
    }
    add(q, &e[0], 0);
    add(q, &e[1], 0);
    assert_int_equal(queue_add(q, &e[2], 0, &refusal), QUEUE_TEAM_FULL);
    assert_int_equal(refusal.retry_after_s, QUEUE_RETRY_MAX_S);
    queue_free(q);
}

static void who_fills_the_queue_keeps_nobody_out(void **state)
{
    (void)state;
    struct queue *q;
    struct queue_limits limits = {.slots = 1, .waiting = 16};
    struct queue_entry a[17], b[3], c[2], d[2], e[2], f = job("f", NULL);
    assert_int_equal(queue_new(&limits, &q), 0);
    for (int i = 0; i < 17; i++) {
        a[i] = job("a", NULL);
        assert_int_equal(queue_add(q, &a[i], 0, NULL), i < 16 ? 0 : QUEUE_FULL);
    }
    for (int i = 0; i < 3; i++) {
        b[i] = job("b", NULL);
        assert_int_equal(queue_add(q, &b[i], 0, NULL), i < 2 ? 0 : QUEUE_FULL);
    }
    for (int i = 0; i < 2; i++) {
        c[i] = job("c", NULL);
        d[i] = job("d", NULL);
        e[i] = job("e", NULL);
        add(q, &c[i], 0);
        add(q, &d[i], 0);
        add(q, &e[i], 0);
    }
    assert_int_equal(queue_add(q, &f, 0, NULL), QUEUE_FULL); // 24: that is the end
    queue_free(q);
}

static void names_are_bounded(void **state)
{
    (void)state;
    struct queue *q = queue_of(1);
    char name[QUEUE_NAME_MAX + 2];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    struct queue_entry e = job(name, NULL);
    assert_int_equal(queue_add(q, &e, 0, NULL), -EINVAL);
    e = job("", NULL);
    assert_int_equal(queue_add(q, &e, 0, NULL), -EINVAL);
    e = job("t", name);
    assert_int_equal(queue_add(q, &e, 0, NULL), -EINVAL);
    name[QUEUE_NAME_MAX] = 0;
    add(q, &e, 0);
    queue_free(q);
    struct queue_limits none = {.slots = 0, .waiting = 1};
    assert_int_equal(queue_new(&none, &q), -EINVAL);
}

static void deadlines_come_in_order(void **state)
{
    (void)state;
    struct queue *q = queue_of(1);
    struct queue_entry runs = job("t", NULL), late = job("t", NULL), soon = job("t", NULL);
    assert_int_equal(queue_deadline_ns(q), 0);
    runs.wait_deadline_ns = 50; // met: it starts
    late.wait_deadline_ns = 200;
    soon.wait_deadline_ns = 100;
    add(q, &runs, 1);
    assert_int_equal(queue_deadline_ns(q), 50);
    expect(q, &runs);
    assert_int_equal(queue_deadline_ns(q), 0);
    add(q, &late, 1);
    add(q, &soon, 1);
    assert_int_equal(queue_deadline_ns(q), 100);
    enum queue_wait why;
    assert_null(queue_expired(q, 99, &why));
    assert_ptr_equal(queue_expired(q, 1000, &why), &soon);
    assert_int_equal(why, QUEUE_FOR_SLOT);
    assert_int_equal(soon.state, QUEUE_OUT);
    assert_ptr_equal(queue_expired(q, 1000, &why), &late);
    assert_null(queue_expired(q, 1000, &why));
    assert_int_equal(queue_deadline_ns(q), 0);
    assert_int_equal(runs.state, QUEUE_RUNNING);
    queue_finish(q, &runs, 2);
    queue_free(q);
}

static void what_does_not_fit_waits_and_others_pass(void **state)
{
    (void)state;
    struct queue *q = queue_of(4);
    struct queue_entry big = job("t", NULL), small = job("t", NULL), other = job("u", NULL);
    queue_set_capacity(q, QUEUE_MEMORY_BYTES, 100);
    small.needs[QUEUE_MEMORY_BYTES] = other.needs[QUEUE_MEMORY_BYTES] = 40;
    big.needs[QUEUE_MEMORY_BYTES] = 90;
    struct queue_entry first = small;
    add(q, &first, 1);
    expect(q, &first);
    add(q, &big, 1);
    add(q, &small, 1);
    add(q, &other, 1);
    expect(q, &other); // its team runs less
    expect(q, NULL);
    queue_finish(q, &first, 2);
    expect(q, &small);
    queue_finish(q, &small, 2);
    expect(q, NULL);
    queue_finish(q, &other, 2);
    expect(q, &big);
    queue_free(q);
}

static void what_does_not_fit_is_not_passed_for_ever(void **state)
{
    (void)state;
    struct queue *q = queue_of(4);
    struct queue_entry big = job("t", NULL), small[2], light = job("t", NULL);
    queue_set_capacity(q, QUEUE_MEMORY_BYTES, 100);
    big.needs[QUEUE_MEMORY_BYTES] = 100;
    for (int i = 0; i < 2; i++) {
        small[i] = job("u", NULL);
        small[i].needs[QUEUE_MEMORY_BYTES] = 10;
    }
    add(q, &small[0], 1);
    expect(q, &small[0]);
    add(q, &big, 1);
    int passes = 0;
    for (int i = 1;; i = !i) { // there is always a small one that runs
        add(q, &small[i], 1);
        struct queue_entry *e = queue_next(q, 1);
        if (!e) {
            queue_finish(q, &small[!i], 2);
            break;
        }
        assert_ptr_equal(e, &small[i]);
        passes++;
        assert_true(passes <= QUEUE_PASSES);
        queue_finish(q, &small[!i], 2);
    }
    assert_int_equal(passes, QUEUE_PASSES);
    add(q, &light, 1); // needs nothing of what is kept
    expect(q, &big);
    expect(q, &light);
    queue_finish(q, &big, 3);
    assert_non_null(queue_next(q, 3));
    queue_free(q);
}

static void what_can_never_fit_holds_nobody_up(void **state)
{
    (void)state;
    struct queue *q = queue_of(1);
    struct queue_entry huge = job("t", NULL), small = job("t", NULL);
    queue_set_capacity(q, QUEUE_DISK_BYTES, 10);
    huge.needs[QUEUE_DISK_BYTES] = 11;
    small.needs[QUEUE_DISK_BYTES] = 10;
    add(q, &huge, 1);
    for (int i = 0; i < 3 * QUEUE_PASSES; i++) {
        add(q, &small, 1);
        expect(q, &small);
        queue_finish(q, &small, 2);
    }
    queue_set_capacity(q, QUEUE_DISK_BYTES, 20); // the disk has grown
    expect(q, &huge);
    queue_free(q);
}

static void why_one_waits(void **state)
{
    (void)state;
    struct queue *q;
    const struct queue_limits limits = {.slots = 3, .team_running = 2, .waiting = 10};
    struct queue_entry a = job("t", "s"), behind = job("t", "s"), big = job("u", NULL),
                       held = job("u", NULL), b = job("t", NULL), c = job("t", NULL),
                       last = job("v", NULL), huge = job("v", NULL);
    enum queue_resource r;
    assert_int_equal(queue_new(&limits, &q), 0);
    queue_set_capacity(q, QUEUE_MEMORY_BYTES, 10);
    a.needs[QUEUE_MEMORY_BYTES] = big.needs[QUEUE_MEMORY_BYTES] = 6;
    huge.needs[QUEUE_DISK_BYTES] = 1;
    held.held = true;
    add(q, &a, 1);
    add(q, &behind, 1);
    add(q, &big, 1);
    add(q, &held, 1);
    expect(q, &a);
    expect(q, NULL);
    assert_int_equal(queue_why(q, &behind), QUEUE_FOR_SESSION);
    assert_int_equal(queue_why(q, &big), QUEUE_FOR_RESOURCE + (int)QUEUE_MEMORY_BYTES);
    assert_int_equal(queue_why(q, &held), QUEUE_FOR_RELEASE);
    assert_false(queue_is_short(q, &r)); // what runs has it, and gives it back
    add(q, &b, 1);
    expect(q, &b);
    add(q, &c, 1);
    expect(q, NULL);
    assert_int_equal(queue_why(q, &c), QUEUE_FOR_TEAM);
    add(q, &last, 1);
    expect(q, &last); // the last slot
    assert_int_equal(queue_why(q, &big), QUEUE_FOR_SLOT);
    assert_int_equal(queue_why(q, &behind), QUEUE_FOR_SESSION);
    queue_set_capacity(q, QUEUE_DISK_BYTES, 0);
    add(q, &huge, 1); // a slot would not help it
    assert_int_equal(queue_why(q, &huge), QUEUE_FOR_RESOURCE + (int)QUEUE_DISK_BYTES);
    assert_true(queue_is_short(q, &r));
    assert_int_equal(r, QUEUE_DISK_BYTES);
    queue_set_capacity(q, QUEUE_DISK_BYTES, 1); // and what it waits for may change
    assert_int_equal(queue_why(q, &huge), QUEUE_FOR_SLOT);
    assert_false(queue_is_short(q, &r));
    queue_finish(q, &last, 2);
    queue_finish(q, &a, 2);
    expect(q, &big);
    expect(q, &huge);
    assert_int_equal(queue_why(q, &behind), QUEUE_FOR_SLOT);
    queue_free(q);
}

static void what_is_kept_for_another_is_waited_for(void **state)
{
    (void)state;
    struct queue *q = queue_of(4);
    struct queue_entry first = job("t", NULL), big = job("t", NULL), small[QUEUE_PASSES + 1];
    queue_set_capacity(q, QUEUE_UIDS, 10);
    first.needs[QUEUE_UIDS] = 3;
    big.needs[QUEUE_UIDS] = 10;
    add(q, &first, 1);
    expect(q, &first);
    add(q, &big, 1);
    for (int i = 0; i <= QUEUE_PASSES; i++) {
        small[i] = job("t", NULL);
        small[i].needs[QUEUE_UIDS] = 1;
        add(q, &small[i], 1);
        expect(q, i < QUEUE_PASSES ? &small[i] : NULL);
        if (i < QUEUE_PASSES) {
            queue_finish(q, &small[i], 2);
        }
    }
    assert_int_equal(queue_why(q, &big), QUEUE_FOR_RESOURCE + (int)QUEUE_UIDS);
    assert_int_equal(queue_why(q, &small[QUEUE_PASSES]), QUEUE_FOR_RESOURCE + (int)QUEUE_UIDS);
    queue_free(q);
}

static void a_job_that_is_put_back_has_its_old_place(void **state)
{
    (void)state;
    struct queue *q = queue_of(2);
    struct queue_entry a = job("t", "s"), b = job("t", "s"), c = job("t", NULL);
    a.needs[QUEUE_UIDS] = 1;
    a.wait_deadline_ns = 77;
    add(q, &a, 1);
    add(q, &b, 1);
    add(q, &c, 1);
    expect(q, &a);
    queue_set_capacity(q, QUEUE_UIDS, 0);
    queue_put_back(q, &a);
    assert_int_equal(a.state, QUEUE_WAITING);
    assert_int_equal(queue_deadline_ns(q), 77);
    expect(q, &c); // and not b, which is behind a
    expect(q, NULL);
    queue_set_capacity(q, QUEUE_UIDS, 1);
    expect(q, &a);
    queue_free(q);
}

static void it_drains(void **state)
{
    (void)state;
    struct queue *q = queue_of(1);
    struct queue_entry a = job("t", NULL), b = job("t", NULL), c = job("t", NULL);
    struct queue_stats st;
    add(q, &a, 1);
    add(q, &b, 5);
    queue_set_mode(q, QUEUE_CLOSED);
    assert_int_equal(queue_add(q, &c, 1, NULL), QUEUE_NOT_OPEN);
    expect(q, &a);
    queue_stats(q, &st);
    assert_int_equal(st.waiting, 1);
    assert_int_equal(st.running, 1);
    assert_int_equal(st.oldest_since_ns, 5);
    queue_set_mode(q, QUEUE_STOPPED);
    queue_finish(q, &a, 2);
    expect(q, NULL);
    queue_set_mode(q, QUEUE_OPEN);
    expect(q, &b);
    queue_free(q);
}

static void a_held_job_keeps_its_place_and_others_start(void **state)
{
    (void)state;
    struct queue *q = queue_of(1);
    struct queue_entry a = job("t", NULL), b = job("t", NULL), c = job("t", NULL);
    struct queue_stats st;
    a.held = c.held = true;
    add(q, &a, 1);
    add(q, &b, 1);
    add(q, &c, 1);
    queue_stats(q, &st);
    assert_int_equal(st.waiting, 3);
    expect(q, &b);
    queue_release(&a);
    queue_release(&a); // harmless
    queue_finish(q, &b, 2);
    expect(q, &a);
    queue_finish(q, &a, 3);
    queue_remove(q, &c); // as it is
    expect(q, NULL);
    queue_free(q);
}

static void a_held_job_of_a_session_holds_up_those_behind_it(void **state)
{
    (void)state;
    struct queue *q = queue_of(4);
    struct queue_entry a = job("t", "s"), b = job("t", "s"), c = job("t", "s"), d = job("t", NULL);
    a.held = c.held = true;
    add(q, &a, 1);
    add(q, &b, 1);
    add(q, &c, 1);
    add(q, &d, 1);
    expect(q, &d);
    expect(q, NULL);
    queue_release(&c); // not in front yet
    expect(q, NULL);
    queue_remove(q, &a);
    expect(q, &b);
    queue_finish(q, &b, 2);
    expect(q, &c);
    queue_free(q);
}

static void bounds_may_change(void **state)
{
    (void)state;
    struct queue *q = queue_of(1);
    struct queue_limits wider = {.slots = 2, .waiting = 1}, none = {.waiting = 1};
    struct queue_entry a = job("t", NULL), b = job("t", NULL), c = job("t", NULL);
    add(q, &a, 1);
    add(q, &b, 1);
    expect(q, &a);
    expect(q, NULL);
    assert_int_equal(queue_set_limits(q, &none), -EINVAL);
    assert_int_equal(queue_set_limits(q, &wider), 0);
    assert_int_equal(queue_add(q, &c, 1, NULL), QUEUE_FULL);
    expect(q, &b);
    queue_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_team_is_served_in_order),
        cmocka_unit_test(teams_take_turns),
        cmocka_unit_test(a_team_that_holds_slots_waits_for_one_that_holds_none),
        cmocka_unit_test(a_team_with_one_job_at_a_time_does_not_starve_the_others),
        cmocka_unit_test(a_team_has_its_bound_of_running_jobs),
        cmocka_unit_test(slots_are_kept_for_teams_that_run_nothing),
        cmocka_unit_test(what_was_kept_is_used_when_all_have_work),
        cmocka_unit_test(a_session_runs_one_at_a_time_and_others_pass),
        cmocka_unit_test(a_cancelled_job_of_a_session_lets_the_next_one_forward),
        cmocka_unit_test(refusals_carry_length_and_an_estimate),
        cmocka_unit_test(who_fills_the_queue_keeps_nobody_out),
        cmocka_unit_test(names_are_bounded),
        cmocka_unit_test(deadlines_come_in_order),
        cmocka_unit_test(what_does_not_fit_waits_and_others_pass),
        cmocka_unit_test(what_does_not_fit_is_not_passed_for_ever),
        cmocka_unit_test(what_can_never_fit_holds_nobody_up),
        cmocka_unit_test(why_one_waits),
        cmocka_unit_test(what_is_kept_for_another_is_waited_for),
        cmocka_unit_test(a_job_that_is_put_back_has_its_old_place),
        cmocka_unit_test(it_drains),
        cmocka_unit_test(a_held_job_keeps_its_place_and_others_start),
        cmocka_unit_test(a_held_job_of_a_session_holds_up_those_behind_it),
        cmocka_unit_test(bounds_may_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
