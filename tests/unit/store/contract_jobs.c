// Jobs: what a caller was promised, and who may see it.
#include "harness.h"

#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void a_job_comes_back_as_it_was_given(void **state)
{
    struct harness *h = *state;
    struct store_write w = {.kind = STORE_JOB_SUBMIT};
    w.job = (struct store_job){.id = text("j1"),
                               .team = text("red"),
                               .session = text("s1"),
                               .request = text("{\"code\":1}"),
                               .submitted_ms = 5};
    assert_int_equal(harness_write(h, &w).error, 0);
    const struct store_record *r = harness_one(h, STORE_GET_JOB, "j1", "red");
    assert_non_null(r);
    SAME(r->job.id, "j1");
    SAME(r->job.team, "red");
    SAME(r->job.session, "s1");
    SAME(r->job.request, "{\"code\":1}");
    assert_null(r->job.result.data);
    assert_null(r->job.reason.data);
    assert_int_equal(r->job.status, STATUS_QUEUED);
    assert_int_equal(r->job.submitted_ms, 5);
    assert_int_equal(r->job.ended_ms, 0);
    assert_int_equal(harness_write(h, &w).error, -EEXIST);
}

static void a_foreign_job_is_one_that_does_not_exist(void **state)
{
    struct harness *h = *state;
    harness_submit(h, "j1", "red", "{}");
    assert_null(harness_one(h, STORE_GET_JOB, "j1", "blue"));
    assert_null(harness_one(h, STORE_GET_JOB, "j2", "red"));
    assert_non_null(harness_one(h, STORE_GET_JOB, "j1", NULL));
}

static void a_job_goes_forward_only_and_ends_once(void **state)
{
    struct harness *h = *state;
    harness_submit(h, "j", "t", "{}");
    assert_int_equal(harness_status(h, "j", STATUS_PREPARING), 0);
    assert_int_equal(harness_status(h, "j", STATUS_RUNNING), 0);
    assert_int_equal(harness_status(h, "j", STATUS_PREPARING), STORE_MISSING);
    assert_int_equal(harness_status(h, "j", STATUS_QUEUED), -EINVAL);
    assert_int_equal(harness_finish(h, "j", STATUS_RUNNING, "x"), -EINVAL);
    h->now_ms += 7;
    assert_int_equal(harness_finish(h, "j", STATUS_COMPLETED, "first"), 0);
    assert_int_equal(harness_finish(h, "j", STATUS_CANCELLED, "second"), STORE_MISSING);
    assert_int_equal(harness_status(h, "j", STATUS_COLLECTING), STORE_MISSING);
    assert_int_equal(harness_finish(h, "none", STATUS_FAILED, "x"), STORE_MISSING);
    const struct store_record *r = harness_one(h, STORE_GET_JOB, "j", "t");
    assert_int_equal(r->job.status, STATUS_COMPLETED);
    assert_int_equal(r->job.started_ms, h->now_ms - 7);
    assert_int_equal(r->job.ended_ms, h->now_ms);
    SAME(r->job.result, "first");
    SAME(r->job.reason, "ok");
}

static char *held;

static void hold_result(void *ctx, const struct store_record *r)
{
    (void)ctx;
    assert_true(r->shared);
    held = store_take_text(r, &r->job.result);
}

static void hold_end(void *ctx, int error) { *(int *)ctx = error; }

static void queued_jobs_survive_in_their_order(void **state)
{
    struct harness *h = *state;
    char id[16];
    for (int i = 0; i < 7; i++) { // ids in another order than the calls, all in one ms
        snprintf(id, sizeof id, "j%d", (i * 3) % 7);
        assert_int_equal(harness_submit(h, id, i % 2 ? "a" : "b", id).error, 0);
    }
    harness_finish(h, "j3", STATUS_CANCELLED, NULL);
    harness_reopen(h);
    struct store_stats st;
    store_stats(h->store, &st);
    assert_int_equal(st.queued, 6);
    assert_int_equal(st.lost, 0);
    struct store_query q = {.kind = STORE_LIST_QUEUED, .limit = 4};
    const struct rows *r = harness_read(h, &q);
    assert_int_equal(r->n, 4);
    const char *const first[] = {"j0", "j6", "j2", "j5"};
    for (size_t i = 0; i < 4; i++) {
        SAME(r->at[i].job.id, first[i]);
        assert_null(r->at[i].job.request.data);
    }
    q.cursor = text("j5");
    r = harness_read(h, &q);
    assert_int_equal(r->n, 2);
    SAME(r->at[0].job.id, "j1");
    SAME(r->at[1].job.id, "j4");
}

// A long record comes later than a short one, and may be held when it is over.
static void a_long_result_may_be_held(void **state)
{
    struct harness *h = *state;
    const size_t len = 3 << 20;
    AUTO_FREE char *body = malloc(len + 1);
    assert_non_null(body);
    memset(body, 'x', len);
    body[len] = '\0';
    harness_submit(h, "j", "t", "{}");
    struct store_write w = {.kind = STORE_JOB_END, .lent = true};
    w.job.id = text("j");
    w.job.status = STATUS_COMPLETED;
    w.job.reason = text("ok");
    w.job.ended_ms = h->now_ms;
    w.job.result = (struct store_text){body, len};
    assert_int_equal(harness_write(h, &w).error, 0);
    held = NULL;
    const struct store_query foreign = {.kind = STORE_GET_JOB, .id = text("j"), .team = text("u")};
    assert_int_equal(harness_read(h, &foreign)->end, STORE_MISSING);
    const struct store_query q = {.kind = STORE_GET_JOB, .id = text("j"), .team = text("t")};
    int end = 1000;
    store_read(h->store, &q, &(struct store_reader){hold_result, hold_end, &end});
    while (end == 1000) {
        assert_int_equal(loop_step(h->loop, 1000), 0);
    }
    assert_int_equal(end, 0);
    assert_non_null(held);
    assert_memory_equal(held, body, len + 1);
    shared_release(held);
}

static void what_ran_is_lost_once(void **state)
{
    struct harness *h = *state;
    struct store_stats st;
    static const enum job_status states[] = {STATUS_PREPARING, STATUS_RUNNING, STATUS_COLLECTING};
    char id[16];
    for (size_t i = 0; i < 3; i++) {
        snprintf(id, sizeof id, "j%zu", i);
        harness_submit(h, id, "t", "{}");
        assert_int_equal(harness_status(h, id, states[i]), 0);
    }
    harness_submit(h, "done", "t", "{}");
    harness_finish(h, "done", STATUS_COMPLETED, "fine");
    store_stats(h->store, &st);
    int64_t epoch = st.epoch;
    h->now_ms += 1000;
    harness_reopen(h);
    store_stats(h->store, &st);
    assert_int_equal(st.lost, 3);
    assert_int_equal(st.epoch, epoch + 1);
    for (size_t i = 0; i < 3; i++) {
        snprintf(id, sizeof id, "j%zu", i);
        const struct store_record *r = harness_one(h, STORE_GET_JOB, id, "t");
        assert_int_equal(r->job.status, STATUS_FAILED);
        SAME(r->job.reason, "worker_lost");
        assert_int_equal(r->job.ended_ms, h->now_ms);
        assert_int_equal(r->job.epoch, epoch);
        assert_int_equal(harness_finish(h, id, STATUS_COMPLETED, "late"), STORE_MISSING);
    }
    SAME(harness_one(h, STORE_GET_JOB, "done", "t")->job.result, "fine");
    h->now_ms += 1000;
    harness_reopen(h);
    store_stats(h->store, &st);
    assert_int_equal(st.lost, 0);
    assert_int_equal(harness_one(h, STORE_GET_JOB, "j1", "t")->job.ended_ms, h->now_ms - 1000);
}

static struct store_outcome submit_with_key(struct harness *h, const char *id, const char *team,
                                            const char *key, const char *hash)
{
    struct store_write w = {.kind = STORE_JOB_SUBMIT};
    w.job.id = text(id);
    w.job.team = text(team);
    w.job.caller_key = text(key);
    w.job.request_hash = text(hash);
    return harness_write(h, &w);
}

static int put_back(struct harness *h, const char *id)
{
    struct store_write w = {.kind = STORE_JOB_BACK};
    w.job.id = text(id);
    return harness_write(h, &w).error;
}

static void what_has_not_begun_after_all_waits_again(void **state)
{
    struct harness *h = *state;
    struct store_stats st;
    harness_submit(h, "j", "t", "{}");
    assert_int_equal(put_back(h, "j"), STORE_MISSING);
    assert_int_equal(harness_status(h, "j", STATUS_PREPARING), 0);
    assert_int_equal(put_back(h, "j"), 0);
    assert_int_equal(harness_one(h, STORE_GET_JOB, "j", "t")->job.started_ms, 0);
    harness_reopen(h);
    store_stats(h->store, &st);
    assert_int_equal(st.lost, 0);
    assert_int_equal(st.queued, 1);
    assert_int_equal(harness_status(h, "j", STATUS_PREPARING), 0);
    assert_int_equal(harness_status(h, "j", STATUS_RUNNING), 0);
    assert_int_equal(put_back(h, "j"), STORE_MISSING); // it has begun
    harness_reopen(h);
    store_stats(h->store, &st);
    assert_int_equal(st.lost, 1);
    assert_int_equal(put_back(h, "j"), STORE_MISSING);
    assert_int_equal(put_back(h, "none"), STORE_MISSING);
}

static void nothing_ends_before_it_begins(void **state)
{
    struct harness *h = *state;
    harness_submit(h, "j", "t", "{}");
    h->now_ms += 500;
    assert_int_equal(harness_status(h, "j", STATUS_PREPARING), 0);
    int64_t began_ms = h->now_ms;
    h->now_ms -= 24 * 3600 * 1000; // the clock is set back
    harness_reopen(h);
    assert_int_equal(harness_one(h, STORE_GET_JOB, "j", "t")->job.ended_ms, began_ms);
}

static void the_same_caller_key_gives_the_same_job(void **state)
{
    struct harness *h = *state;
    assert_int_equal(submit_with_key(h, "j1", "red", "key", "hash").error, 0);
    struct store_outcome o = submit_with_key(h, "j2", "red", "key", "hash");
    assert_int_equal(o.error, STORE_SAME);
    assert_int_equal(o.id_len, 2);
    assert_memory_equal(o.id, "j1", 2);
    o = submit_with_key(h, "j3", "red", "key", "other");
    assert_int_equal(o.error, STORE_CONFLICT);
    assert_memory_equal(o.id, "j1", 2);
    assert_int_equal(submit_with_key(h, "j4", "blue", "key", "other").error, 0); // a key per team
    harness_reopen(h);
    assert_int_equal(submit_with_key(h, "j5", "red", "key", "hash").error, STORE_SAME);
    assert_null(harness_one(h, STORE_GET_JOB, "j2", "red"));
    // A taken id leaves no key behind.
    assert_int_equal(submit_with_key(h, "j1", "red", "new", "hash").error, -EEXIST);
    assert_int_equal(submit_with_key(h, "j6", "red", "new", "hash").error, 0);
    // The key goes with its job.
    struct store_write w = {.kind = STORE_JOB_DELETE};
    w.job.id = text("j1");
    assert_int_equal(harness_write(h, &w).error, 0);
    assert_int_equal(harness_write(h, &w).error, STORE_MISSING);
    assert_int_equal(submit_with_key(h, "j7", "red", "key", "another").error, 0);
}

static void lists_are_newest_first_and_of_one_team(void **state)
{
    struct harness *h = *state;
    char id[16];
    for (int i = 0; i < 25; i++) {
        snprintf(id, sizeof id, "j%02d", i);
        h->now_ms += i % 2; // pairs of one ms
        harness_submit(h, id, "red", "{}");
        if (i % 3 == 0) {
            harness_finish(h, id, STATUS_COMPLETED, "r");
        }
    }
    harness_submit(h, "foreign", "blue", "{}");
    struct store_query q = {
        .kind = STORE_LIST_JOBS, .team = text("red"), .status = -1, .limit = 10};
    int expected = 24;
    char cursor[16];
    do {
        const struct rows *r = harness_read(h, &q);
        assert_int_equal(r->end, 0);
        if (r->n == 0) {
            break;
        }
        for (size_t i = 0; i < r->n; i++) {
            snprintf(id, sizeof id, "j%02d", expected--);
            SAME(r->at[i].job.id, id);
            assert_null(r->at[i].job.request.data);
        }
        snprintf(cursor, sizeof cursor, "%s", id);
        q.cursor = text(cursor);
    } while (expected > -20);
    assert_int_equal(expected, -1);

    q = (struct store_query){
        .kind = STORE_LIST_JOBS, .team = text("red"), .status = STATUS_COMPLETED, .limit = 100};
    const struct rows *r = harness_read(h, &q);
    assert_int_equal(r->n, 9);
    SAME(r->at[0].job.id, "j24");
    q.cursor = text("j12");
    r = harness_read(h, &q);
    assert_int_equal(r->n, 4);
    SAME(r->at[0].job.id, "j09");

    q.cursor = text("foreign"); // not this team's
    assert_int_equal(harness_read(h, &q)->end, STORE_MISSING);
    q.cursor = text("none");
    assert_int_equal(harness_read(h, &q)->end, STORE_MISSING);
    q.limit = 0;
    assert_int_equal(harness_read(h, &q)->end, -EINVAL);
    q.limit = STORE_LIST_MAX + 1;
    assert_int_equal(harness_read(h, &q)->end, -EINVAL);
}

static void count_outcomes(void *ctx, const struct store_outcome *o)
{
    *(int *)ctx += o->error == 0;
}

static void lazy_records_come_later_and_in_order(void **state)
{
    struct harness *h = *state;
    int done = 0;
    char id[16];
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof id, "l%03d", i);
        struct store_write w = {.kind = STORE_JOB_RECORD, .lazy = true};
        w.job = (struct store_job){.id = text(id),
                                   .team = text("t"),
                                   .status = STATUS_COMPLETED,
                                   .reason = text("ok"),
                                   .request = text("in"),
                                   .result = text("out"),
                                   .submitted_ms = 1,
                                   .started_ms = 2,
                                   .ended_ms = 3};
        assert_int_equal(store_write(h->store, &w, count_outcomes, &done), 0);
    }
    assert_int_equal(done, 0);
    // One that cannot wait takes them along, as they were before it.
    assert_int_equal(harness_submit(h, "now", "t", "{}").error, 0);
    assert_int_equal(done, 100);
    struct store_stats st;
    store_stats(h->store, &st);
    assert_int_equal(st.waiting, 0);
    assert_int_equal(st.waiting_bytes, 0);
    assert_true(st.commits <= 2);
    const struct store_record *r = harness_one(h, STORE_GET_JOB, "l042", "t");
    SAME(r->job.request, "in");
    SAME(r->job.result, "out");
    assert_int_equal(r->job.ended_ms, 3);
}

static void closing_writes_what_waits(void **state)
{
    struct harness *h = *state;
    int done = 0;
    char id[16];
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof id, "c%d", i);
        struct store_write w = {.kind = STORE_JOB_RECORD, .lazy = i % 2 == 0};
        w.job = (struct store_job){.id = text(id), .team = text("t"), .status = STATUS_FAILED};
        assert_int_equal(store_write(h->store, &w, count_outcomes, &done), 0);
    }
    harness_reopen(h);
    assert_int_equal(done, 50);
    assert_non_null(harness_one(h, STORE_GET_JOB, "c49", "t"));
    assert_non_null(harness_one(h, STORE_GET_JOB, "c0", "t"));
}

static void old_results_are_found_and_removed(void **state)
{
    struct harness *h = *state;
    char id[16];
    for (int i = 0; i < 30; i++) {
        snprintf(id, sizeof id, "j%02d", i);
        harness_submit(h, id, "t", "{}");
        h->now_ms += 10;
        if (i != 5) {
            harness_finish(h, id, STATUS_COMPLETED, "r");
        }
    }
    struct store_query q = {.kind = STORE_LIST_ENDED, .before_ms = h->now_ms - 100, .limit = 8};
    size_t removed = 0;
    for (;;) {
        const struct rows *r = harness_read(h, &q);
        if (r->n == 0) {
            break;
        }
        char ids[8][16];
        size_t n = r->n;
        for (size_t i = 0; i < n; i++) {
            snprintf(ids[i], sizeof ids[i], "%.*s", (int)r->at[i].job.id.len, r->at[i].job.id.data);
        }
        for (size_t i = 0; i < n; i++) {
            struct store_write w = {.kind = STORE_JOB_DELETE};
            w.job.id = text(ids[i]);
            assert_int_equal(harness_write(h, &w).error, 0);
            removed++;
        }
    }
    assert_int_equal(removed, 18);
    assert_null(harness_one(h, STORE_GET_JOB, "j00", "t"));
    assert_non_null(harness_one(h, STORE_GET_JOB, "j05", "t")); // has not ended
    assert_non_null(harness_one(h, STORE_GET_JOB, "j19", "t"));
}

static void bytes_are_kept_whatever_they_are(void **state)
{
    struct harness *h = *state;
    static const char odd[] = "\0\xff\xfe';DROP TABLE jobs;--\xc3\x28\n\0end";
    struct store_text o = {odd, sizeof odd - 1};
    struct store_write w = {.kind = STORE_JOB_SUBMIT};
    w.job = (struct store_job){.id = o, .team = o, .session = {"", 0}, .request = o};
    assert_int_equal(harness_write(h, &w).error, 0);
    struct store_text shorter = {odd, 1}; // the same up to the first NUL
    struct store_query q = {.kind = STORE_GET_JOB, .id = shorter};
    assert_int_equal(harness_read(h, &q)->end, STORE_MISSING);
    q.id = q.team = o;
    const struct rows *r = harness_read(h, &q);
    assert_int_equal(r->n, 1);
    assert_int_equal(r->at[0].job.request.len, o.len);
    assert_memory_equal(r->at[0].job.request.data, odd, o.len);
    assert_non_null(r->at[0].job.session.data); // empty is not absent
    assert_int_equal(r->at[0].job.session.len, 0);
}

static void sizes_are_bounded(void **state)
{
    struct harness *h = *state;
    char *big = malloc(STORE_BODY_MAX + 1);
    assert_non_null(big);
    memset(big, 'x', STORE_BODY_MAX + 1);
    struct store_write w = {.kind = STORE_JOB_SUBMIT};
    w.job = (struct store_job){.id = text("j"), .team = text("t")};
    w.job.request = (struct store_text){big, STORE_BODY_MAX + 1};
    assert_int_equal(harness_write(h, &w).error, -EMSGSIZE);
    w.job.request.len = STORE_BODY_MAX;
    assert_int_equal(harness_write(h, &w).error, 0);
    const struct store_record *r = harness_one(h, STORE_GET_JOB, "j", "t");
    assert_int_equal(r->job.request.len, STORE_BODY_MAX);
    w.job.request.len = 0;
    w.job.id = (struct store_text){big, STORE_ID_MAX + 1};
    assert_int_equal(harness_write(h, &w).error, -EMSGSIZE);
    w.job.id.len = 0;
    assert_int_equal(harness_write(h, &w).error, -EINVAL);
    w.job.id = text("k");
    w.job.team = text(NULL);
    assert_int_equal(harness_write(h, &w).error, -EINVAL);
    // Too much at a time is refused at once, and takes nothing down.
    w.job.team = text("t");
    w.job.request = (struct store_text){big, STORE_BODY_MAX};
    int refused = 0, done = 0, accepted = 0;
    char id[16];
    for (int i = 0; i < 6; i++) {
        snprintf(id, sizeof id, "m%d", i);
        w.job.id = text(id);
        int err = store_write(h->store, &w, count_outcomes, &done);
        assert_true(err == 0 || err == -EAGAIN);
        refused += err != 0;
        accepted += err == 0;
    }
    assert_true(refused >= 2);
    // Whatever large ones wait, there is room for short ones: jobs end.
    int more = 0;
    for (int err = 0; !err; more++, accepted += !err) {
        snprintf(id, sizeof id, "n%d", more);
        w.job.id = text(id);
        w.job.request.len = 1 << 20;
        err = store_write(h->store, &w, count_outcomes, &done);
        assert_true(more < 1000 && (err == 0 || err == -EAGAIN));
    }
    w.job.id = text("short");
    w.job.request.len = 1000;
    assert_int_equal(store_write(h->store, &w, count_outcomes, &done), 0);
    accepted++;
    harness_submit(h, "after", "t", "{}");
    assert_int_equal(done, accepted);
    free(big);
}

const struct CMUnitTest contract_jobs[] = {
    cmocka_unit_test(a_job_comes_back_as_it_was_given),
    cmocka_unit_test(a_foreign_job_is_one_that_does_not_exist),
    cmocka_unit_test(a_job_goes_forward_only_and_ends_once),
    cmocka_unit_test(queued_jobs_survive_in_their_order),
    cmocka_unit_test(a_long_result_may_be_held),
    cmocka_unit_test(what_ran_is_lost_once),
    cmocka_unit_test(what_has_not_begun_after_all_waits_again),
    cmocka_unit_test(nothing_ends_before_it_begins),
    cmocka_unit_test(the_same_caller_key_gives_the_same_job),
    cmocka_unit_test(lists_are_newest_first_and_of_one_team),
    cmocka_unit_test(lazy_records_come_later_and_in_order),
    cmocka_unit_test(closing_writes_what_waits),
    cmocka_unit_test(old_results_are_found_and_removed),
    cmocka_unit_test(bytes_are_kept_whatever_they_are),
    cmocka_unit_test(sizes_are_bounded),
};
const size_t n_contract_jobs = ARRAY_LEN(contract_jobs);
