// The queue against a model that keeps one flat table and looks at all of it for every answer:
// random calls, and after each the same jobs must wait and run, and each choice must be one that
// the rules of queue.h allow.
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

enum { JOBS = 48, TEAMS = 4, SESSIONS = 5, SEEDS = 60, STEPS = 3000 };

struct model {
    struct queue *q;
    struct queue_limits limits;
    uint32_t may_come;
    struct queue_entry jobs[JOBS];
    enum queue_state state[JOBS];
    uint64_t order[JOBS]; // of arrival
    uint64_t passed[JOBS];
    uint64_t capacity[QUEUE_RESOURCES];
    uint64_t arrivals, now_ns;
    uint64_t random;
};

static const char *const team_names[TEAMS] = {"a", "b", "c", "d"};
static const char *const session_names[SESSIONS] = {"s0", "s1", "s2", "s3", "s4"};

static uint32_t roll(struct model *m, uint32_t below) // splitmix64
{
    uint64_t z = m->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ (z >> 31)) % below);
}

static uint32_t count(const struct model *m, enum queue_state state, const char *team)
{
    uint32_t n = 0;
    for (int i = 0; i < JOBS; i++) {
        n += m->state[i] == state && (!team || m->jobs[i].team == team);
    }
    return n;
}

static uint64_t used(const struct model *m, int r)
{
    uint64_t sum = 0;
    for (int i = 0; i < JOBS; i++) {
        sum += m->state[i] == QUEUE_RUNNING ? m->jobs[i].needs[r] : 0;
    }
    return sum;
}

static bool session_is_before(const struct model *m, int i)
{
    for (int k = 0; m->jobs[i].session && k < JOBS; k++) {
        if (k != i && m->jobs[k].session == m->jobs[i].session &&
            (m->state[k] == QUEUE_RUNNING ||
             (m->state[k] == QUEUE_WAITING && m->order[k] < m->order[i]))) {
            return true;
        }
    }
    return false;
}

static bool fits(const struct model *m, int i)
{
    for (int r = 0; r < QUEUE_RESOURCES; r++) {
        uint64_t need = m->jobs[i].needs[r];
        if (need > 0 && used(m, r) + need > m->capacity[r]) {
            return false;
        }
    }
    return true;
}

static uint32_t teams(const struct model *m, bool running)
{
    uint32_t n = 0;
    for (int i = 0; i < TEAMS; i++) {
        n += count(m, QUEUE_RUNNING, team_names[i]) > 0 ||
             (!running && count(m, QUEUE_WAITING, team_names[i]) > 0);
    }
    return n;
}

static bool team_may_start(const struct model *m, const char *team)
{
    uint32_t own = count(m, QUEUE_RUNNING, team), slots = m->limits.slots;
    if (m->limits.team_running) {
        return own < m->limits.team_running;
    }
    uint32_t known = teams(m, false);
    uint32_t idle = (m->may_come > known ? m->may_come : known) - teams(m, true);
    uint32_t most = slots >= 4 ? slots / 4 : slots > 1;
    return own == 0 || count(m, QUEUE_RUNNING, NULL) + (idle < most ? idle : most) < slots;
}

// Could it start if nothing were kept for another one?
static bool startable(const struct model *m, int i)
{
    return m->state[i] == QUEUE_WAITING && !session_is_before(m, i) && fits(m, i) &&
           count(m, QUEUE_RUNNING, NULL) < m->limits.slots && team_may_start(m, m->jobs[i].team);
}

// Is there one that has been passed so often that things may be kept for it?
static bool someone_is_due(const struct model *m)
{
    for (int i = 0; i < JOBS; i++) {
        if (m->state[i] == QUEUE_WAITING && m->jobs[i].passed == QUEUE_PASSES) {
            return true;
        }
    }
    return false;
}

static void check_choice(struct model *m, int chosen)
{
    bool kept = someone_is_due(m);
    if (chosen < 0) {
        for (int i = 0; !kept && i < JOBS; i++) {
            assert_false(startable(m, i)); // no slot idles while a job could have it
        }
        return;
    }
    assert_true(startable(m, chosen));
    if (kept) {
        return;
    }
    for (int i = 0; i < JOBS; i++) {
        if (i == chosen || !startable(m, i)) {
            continue;
        }
        if (m->jobs[i].team == m->jobs[chosen].team) {
            assert_true(m->order[i] > m->order[chosen]);
        } else {
            assert_true(count(m, QUEUE_RUNNING, m->jobs[i].team) >=
                        count(m, QUEUE_RUNNING, m->jobs[chosen].team));
        }
    }
}

static void start_all(struct model *m)
{
    for (;;) {
        struct queue_entry before[JOBS];
        memcpy(before, m->jobs, sizeof before);
        struct queue_entry *e = queue_next(m->q, m->now_ns);
        struct queue_entry after[JOBS];
        memcpy(after, m->jobs, sizeof after);
        memcpy(m->jobs, before, sizeof before); // as it was when the choice was made
        check_choice(m, e ? (int)(e - m->jobs) : -1);
        memcpy(m->jobs, after, sizeof after);
        if (!e) {
            return;
        }
        m->state[e - m->jobs] = QUEUE_RUNNING;
    }
}

static bool full_for(struct model *m, const char *team)
{
    unsigned all = (unsigned)count(m, QUEUE_WAITING, NULL), bound = m->limits.waiting;
    return all >= bound + bound / 2 ||
           (all >= bound && (unsigned)count(m, QUEUE_WAITING, team) >= bound / QUEUE_SPARED_PART);
}

static void add_one(struct model *m, int i)
{
    struct queue_entry *e = &m->jobs[i];
    *e = (struct queue_entry){.team = team_names[roll(m, TEAMS)]};
    e->session = roll(m, 2) ? session_names[roll(m, SESSIONS)] : NULL;
    e->wait_deadline_ns = roll(m, 3) ? m->now_ns + 1 + roll(m, 500) : 0;
    e->accepted = roll(m, 10) == 0;
    for (int r = 0; r < QUEUE_RESOURCES; r++) {
        e->needs[r] = roll(m, 2) ? roll(m, 8) : 0;
    }
    int expected = 0;
    if (!e->accepted && count(m, QUEUE_WAITING, e->team) >= m->limits.team_waiting) {
        expected = QUEUE_TEAM_FULL;
    } else if (!e->accepted && full_for(m, e->team)) {
        expected = QUEUE_FULL;
    }
    struct queue_refusal refusal;
    assert_int_equal(queue_add(m->q, e, m->now_ns, &refusal), expected);
    if (expected == 0) {
        m->state[i] = QUEUE_WAITING;
        m->order[i] = ++m->arrivals;
    } else {
        assert_true(refusal.length >= refusal.bound);
        assert_in_range(refusal.retry_after_s, QUEUE_RETRY_MIN_S, QUEUE_RETRY_MAX_S);
    }
}

static void touch_one(struct model *m, int i)
{
    struct queue_entry *e = &m->jobs[i];
    if (m->state[i] == QUEUE_OUT) {
        add_one(m, i);
    } else if (m->state[i] == QUEUE_WAITING) {
        if (roll(m, 4) == 0) {
            queue_remove(m->q, e);
            m->state[i] = QUEUE_OUT;
        }
    } else if (roll(m, 8) == 0) {
        queue_put_back(m->q, e);
        m->state[i] = QUEUE_WAITING;
    } else {
        queue_finish(m->q, e, m->now_ns);
        m->state[i] = QUEUE_OUT;
    }
}

// Of which resource it needs more than that; QUEUE_RESOURCES: of none.
static int needs_more_than(const struct model *m, int i, bool left)
{
    int r = 0;
    while (r < QUEUE_RESOURCES &&
           (m->jobs[i].needs[r] == 0 ||
            m->jobs[i].needs[r] + (left ? used(m, r) : 0) <= m->capacity[r])) {
        r++;
    }
    return r;
}

static void check_why(const struct model *m, int i, enum queue_wait why)
{
    const uint32_t bound = m->limits.team_running;
    const bool team = team_may_start(m, m->jobs[i].team);
    const bool slot = count(m, QUEUE_RUNNING, NULL) < m->limits.slots;
    const int in_all = needs_more_than(m, i, false), left = needs_more_than(m, i, true);
    if (session_is_before(m, i)) {
        assert_int_equal(why, QUEUE_FOR_SESSION);
    } else if (!team && (bound ? bound < m->limits.slots : slot)) {
        assert_int_equal(why, bound ? QUEUE_FOR_TEAM : QUEUE_FOR_SHARE);
    } else if (in_all < QUEUE_RESOURCES) {
        assert_int_equal(why, QUEUE_FOR_RESOURCE + in_all);
    } else if (!slot || left == QUEUE_RESOURCES) { // or for what is kept for another one
        assert_true(why == QUEUE_FOR_SLOT ||
                    (slot && why >= QUEUE_FOR_RESOURCE && someone_is_due(m)));
    } else {
        assert_true(why == QUEUE_FOR_RESOURCE + (unsigned)left ||
                    (why >= QUEUE_FOR_RESOURCE && someone_is_due(m)));
    }
}

static void expire(struct model *m)
{
    struct queue_entry *e;
    uint64_t last_ns = 0;
    enum queue_wait why;
    while ((e = queue_expired(m->q, m->now_ns, &why))) {
        uint64_t due_ns = e->wait_deadline_ns;
        assert_true(due_ns != 0 && due_ns <= m->now_ns && due_ns >= last_ns);
        last_ns = due_ns;
        const int i = (int)(e - m->jobs);
        assert_int_equal(m->state[i], QUEUE_WAITING);
        check_why(m, i, why);
        m->state[i] = QUEUE_OUT;
    }
    for (int i = 0; i < JOBS; i++) { // nobody was forgotten
        if (m->state[i] == QUEUE_WAITING) {
            const struct queue_entry *w = &m->jobs[i];
            assert_true(!w->wait_deadline_ns || w->wait_deadline_ns > m->now_ns);
        }
    }
    assert_true(queue_deadline_ns(m->q) == 0 || queue_deadline_ns(m->q) > m->now_ns);
}

static void compare(const struct model *m)
{
    struct queue_stats st;
    queue_stats(m->q, &st);
    assert_int_equal(st.waiting, count(m, QUEUE_WAITING, NULL));
    assert_int_equal(st.running, count(m, QUEUE_RUNNING, NULL));
    for (int r = 0; r < QUEUE_RESOURCES; r++) {
        assert_int_equal(st.used[r], used(m, r));
    }
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(m->jobs[i].state, m->state[i]);
    }
}

static void run_seed(uint64_t seed)
{
    struct model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->random = seed;
    m->limits = (struct queue_limits){.slots = 1 + roll(m, 9),
                                      .team_running = roll(m, 4),
                                      .waiting = 10 + roll(m, 30),
                                      .team_waiting = 4 + roll(m, 12)};
    assert_int_equal(queue_new(&m->limits, &m->q), 0);
    for (int r = 0; r < QUEUE_RESOURCES; r++) {
        m->capacity[r] = 6 + roll(m, 12);
        queue_set_capacity(m->q, (enum queue_resource)r, m->capacity[r]);
    }
    for (int step = 0; step < STEPS; step++) {
        m->now_ns += roll(m, 20);
        uint32_t what = roll(m, 20);
        if (roll(m, 50) == 0) {
            m->may_come = roll(m, 2 * TEAMS);
            queue_set_teams(m->q, m->may_come);
        }
        if (what == 0) {
            int r = (int)roll(m, QUEUE_RESOURCES);
            m->capacity[r] = roll(m, 18);
            queue_set_capacity(m->q, (enum queue_resource)r, m->capacity[r]);
        } else {
            touch_one(m, (int)roll(m, JOBS));
        }
        expire(m);
        start_all(m);
        compare(m);
    }
    for (int i = 0; i < JOBS; i++) {
        if (m->state[i] == QUEUE_RUNNING) {
            queue_finish(m->q, &m->jobs[i], m->now_ns);
        }
        queue_remove(m->q, &m->jobs[i]);
        m->state[i] = QUEUE_OUT;
    }
    compare(m);
    struct queue_stats st;
    queue_stats(m->q, &st);
    assert_int_equal(st.teams, 0);
    queue_free(m->q);
    free(m);
}

static void random_calls_keep_the_rules(void **state)
{
    (void)state;
    const char *one = getenv("ISLE_TEST_SEED");
    uint64_t seeds = getenv("ISLE_LONG") ? 100 * SEEDS : SEEDS;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        if (!one || strtoull(one, NULL, 10) == seed) {
            print_message("seed %llu\n", (unsigned long long)seed);
            run_seed(seed);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_calls_keep_the_rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
