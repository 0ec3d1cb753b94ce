// Sessions, keys, and the sweep of old results.
#include "harness.h"

#include "base/fd.h"
#include "store/sweep.h"

#include <errno.h>
#include <stdio.h>

static struct store_outcome create(struct harness *h, const char *id, const char *team,
                                   const char *conversation, const char *user)
{
    struct store_write w = {.kind = STORE_SESSION_CREATE};
    w.session = (struct store_session){.id = text(id),
                                       .team = text(team),
                                       .conversation = text(conversation),
                                       .user = text(user),
                                       .created_ms = h->now_ms,
                                       .accessed_ms = h->now_ms,
                                       .expires_ms = h->now_ms + 1000,
                                       .uid = 20480};
    return harness_write(h, &w);
}

static int change(struct harness *h, enum store_write_kind kind, struct store_session s)
{
    return harness_write(h, &(struct store_write){.kind = kind, .session = s}).error;
}

static void the_same_names_give_the_same_session(void **state)
{
    struct harness *h = *state;
    assert_int_equal(create(h, "s1", "red", "talk", "ann").error, 0);
    struct store_outcome o = create(h, "s2", "red", "talk", "ann");
    assert_int_equal(o.error, STORE_SAME);
    assert_int_equal(o.id_len, 2);
    assert_memory_equal(o.id, "s1", 2);
    assert_int_equal(create(h, "s3", "red", "talk", NULL).error, 0); // no user: another one
    assert_int_equal(create(h, "s4", "red", "talk", NULL).error, STORE_SAME);
    assert_int_equal(create(h, "s5", "blue", "talk", "ann").error, 0);
    assert_int_equal(create(h, "s6", "red", NULL, "ann").error, 0); // no conversation: always new
    assert_int_equal(create(h, "s7", "red", NULL, "ann").error, 0);
    assert_int_equal(create(h, "s7", "red", NULL, "ann").error, -EEXIST);
    const struct store_record *r = harness_one(h, STORE_GET_SESSION, "s1", "red");
    SAME(r->session.conversation, "talk");
    SAME(r->session.user, "ann");
    assert_null(r->session.agent.data);
    assert_int_equal(r->session.uid, 20480);
    assert_null(harness_one(h, STORE_GET_SESSION, "s1", "blue"));
    h->now_ms += 1000; // the moment it ends
    assert_int_equal(create(h, "s8", "red", "talk", "ann").error, 0);
    h->now_ms += 1;
    o = create(h, "s9", "red", "talk", "ann");
    assert_int_equal(o.error, STORE_SAME);
    assert_memory_equal(o.id, "s8", 2);
}

static void a_session_lives_and_is_remembered(void **state)
{
    struct harness *h = *state;
    create(h, "s", "t", "talk", NULL);
    struct store_session s = {
        .id = text("s"), .expires_ms = h->now_ms + 5000, .accessed_ms = h->now_ms + 999};
    assert_int_equal(change(h, STORE_SESSION_EXTEND, s), 0);
    s.accessed_ms = h->now_ms + 5000;
    assert_int_equal(change(h, STORE_SESSION_EXTEND, s), STORE_MISSING); // too late
    s.disk_bytes = 77;
    assert_int_equal(change(h, STORE_SESSION_TOUCH, s), 0);
    harness_reopen(h);
    const struct store_record *r = harness_one(h, STORE_GET_SESSION, "s", "t");
    assert_int_equal(r->session.expires_ms, h->now_ms + 5000);
    assert_int_equal(r->session.accessed_ms, h->now_ms + 5000);
    assert_int_equal(r->session.disk_bytes, 77);

    s.state = STORE_SESSION_REMOVING;
    assert_int_equal(change(h, STORE_SESSION_STATE, s), 0);
    assert_int_equal(create(h, "s2", "t", "talk", NULL).error, 0); // not the one that goes
    s.state = STORE_SESSION_GONE;
    assert_int_equal(change(h, STORE_SESSION_STATE, s), 0);
    s.state = STORE_SESSION_ACTIVE;
    assert_int_equal(change(h, STORE_SESSION_STATE, s), STORE_MISSING);
    assert_int_equal(harness_one(h, STORE_GET_SESSION, "s", "t")->session.state,
                     STORE_SESSION_GONE);
    struct store_query q = {.kind = STORE_LIST_KEPT, .limit = 10};
    assert_int_equal(harness_read(h, &q)->n, 1);
    q = (struct store_query){.kind = STORE_LIST_GONE, .limit = 10, .before_ms = h->now_ms + 5001};
    assert_int_equal(harness_read(h, &q)->n, 1);
    assert_int_equal(change(h, STORE_SESSION_DELETE, s), 0);
    assert_int_equal(change(h, STORE_SESSION_DELETE, s), STORE_MISSING);
    assert_null(harness_one(h, STORE_GET_SESSION, "s", "t"));
}

static void sessions_are_listed_by_team(void **state)
{
    struct harness *h = *state;
    char id[16];
    for (int i = 0; i < 9; i++) {
        snprintf(id, sizeof id, "s%d", i);
        create(h, id, i == 4 ? "blue" : "red", NULL, NULL);
    }
    struct store_query q = {.kind = STORE_LIST_SESSIONS, .team = text("red"), .limit = 5};
    const struct rows *r = harness_read(h, &q);
    assert_int_equal(r->n, 5);
    SAME(r->at[0].session.id, "s8");
    SAME(r->at[4].session.id, "s3");
    q.cursor = text("s3");
    r = harness_read(h, &q);
    assert_int_equal(r->n, 3);
    SAME(r->at[0].session.id, "s2");
    q = (struct store_query){.kind = STORE_LIST_KEPT, .limit = 100, .cursor = text("s2")};
    r = harness_read(h, &q);
    assert_int_equal(r->n, 6); // of all teams, oldest first
    SAME(r->at[0].session.id, "s3");
}

static void keys_are_found_and_revoked(void **state)
{
    struct harness *h = *state;
    static const char hash[32] = {0, 1, 2, (char)0xff};
    struct store_write w = {.kind = STORE_KEY_CREATE};
    w.key = (struct store_key){.id = text("k1"),
                               .team = text("red"),
                               .name = text("build"),
                               .salt = text("salt"),
                               .hash = {hash, sizeof hash},
                               .admin = 1,
                               .created_ms = h->now_ms};
    assert_int_equal(harness_write(h, &w).error, 0);
    assert_int_equal(harness_write(h, &w).error, -EEXIST);
    w.key.id = text("k2");
    w.key.team = text("blue");
    w.key.admin = 0;
    assert_int_equal(harness_write(h, &w).error, 0);
    const struct store_record *r = harness_one(h, STORE_GET_KEY, "k1", NULL);
    assert_int_equal(r->key.hash.len, sizeof hash);
    assert_memory_equal(r->key.hash.data, hash, sizeof hash);
    SAME(r->key.name, "build");
    assert_int_equal(r->key.admin, 1);
    assert_int_equal(r->key.revoked_ms, 0);
    w = (struct store_write){.kind = STORE_KEY_TOUCH};
    w.key = (struct store_key){.id = text("k1"), .used_ms = 50};
    assert_int_equal(harness_write(h, &w).error, 0);
    w.key.used_ms = 40; // a lazy one that came late
    assert_int_equal(harness_write(h, &w).error, 0);
    w = (struct store_write){.kind = STORE_KEY_REVOKE};
    w.key = (struct store_key){.id = text("k1"), .revoked_ms = 60};
    assert_int_equal(harness_write(h, &w).error, 0);
    w.key.revoked_ms = 70;
    assert_int_equal(harness_write(h, &w).error, 0);
    w.key.id = text("none");
    assert_int_equal(harness_write(h, &w).error, STORE_MISSING);
    r = harness_one(h, STORE_GET_KEY, "k1", NULL);
    assert_int_equal(r->key.used_ms, 50);
    assert_int_equal(r->key.revoked_ms, 60);
    struct store_query q = {.kind = STORE_LIST_KEYS, .limit = 10};
    assert_int_equal(harness_read(h, &q)->n, 2);
    q.cursor = text("k1");
    const struct rows *rows = harness_read(h, &q);
    assert_int_equal(rows->n, 1);
    SAME(rows->at[0].key.id, "k2");
    q.cursor = text("none");
    assert_int_equal(harness_read(h, &q)->end, STORE_MISSING);
    q.cursor = text(NULL);
    q.team = text("blue");
    rows = harness_read(h, &q);
    assert_int_equal(rows->n, 1);
    SAME(rows->at[0].key.id, "k2");
    assert_null(harness_one(h, STORE_FIND_KEY, NULL, "red")); // its only one is revoked
    SAME(harness_one(h, STORE_FIND_KEY, NULL, "blue")->key.id, "k2");
    assert_null(harness_one(h, STORE_FIND_KEY, NULL, "green"));
    q = (struct store_query){.kind = STORE_LIST_KEY_TEAMS, .limit = 10};
    rows = harness_read(h, &q);
    assert_int_equal(rows->n, 1);
    SAME(rows->at[0].key.team, "blue");
    q.team = text("blue");
    assert_int_equal(harness_read(h, &q)->n, 0);
    SAME(harness_one(h, STORE_FIND_KEY, NULL, NULL)->key.id, "k2");
    w.key.id = text("k2");
    assert_int_equal(harness_write(h, &w).error, 0);
    assert_null(harness_one(h, STORE_FIND_KEY, NULL, NULL));
}

struct swept {
    struct harness *h;
    int done, error;
    uint64_t removed, files;
};

static void on_removing(void *ctx, const struct store_job *job)
{
    struct swept *s = ctx;
    s->files += job->status >= STATUS_COMPLETED;
}

static void on_swept(void *ctx, int error, uint64_t removed)
{
    struct swept *s = ctx;
    s->done++;
    s->error = error;
    s->removed = removed;
}

static void a_sweep_goes_in_small_steps(void **state)
{
    struct harness *h = *state;
    static struct store_sweep sweep;
    struct swept s = {.h = h};
    char id[16];
    enum { OLD = 2 * SWEEP_BATCH + 7 };
    for (int i = 0; i < OLD + 5; i++) {
        snprintf(id, sizeof id, "j%d", i);
        struct store_write w = {.kind = STORE_JOB_RECORD, .lazy = i < OLD + 4};
        w.job = (struct store_job){.id = text(id),
                                   .team = text("t"),
                                   .status = STATUS_FAILED,
                                   .result = text("{}"),
                                   .ended_ms = i < OLD ? 10 + i : 5000};
        if (w.lazy) {
            assert_int_equal(store_write(h->store, &w, NULL, NULL), 0);
        } else {
            assert_int_equal(harness_write(h, &w).error, 0);
        }
    }
    sweep = (struct store_sweep){
        .store = h->store, .before_ms = 5000, .removing = on_removing, .done = on_swept, .ctx = &s};
    store_sweep_start(&sweep);
    while (!s.done) {
        assert_int_equal(loop_step(h->loop, 10000), 0);
    }
    assert_int_equal(s.error, 0);
    assert_int_equal(s.removed, OLD);
    assert_int_equal(s.files, OLD);
    struct store_query q = {.kind = STORE_LIST_ENDED, .before_ms = 9999, .limit = 100};
    assert_int_equal(harness_read(h, &q)->n, 5);
    store_sweep_start(&sweep); // nothing to do: at once
    assert_int_equal(s.done, 2);
    assert_int_equal(s.removed, 0);
    // Closed in the middle, it ends with an error and has lost nothing.
    sweep.before_ms = 9999;
    store_sweep_start(&sweep);
    assert_int_equal(s.done, 2);
    harness_reopen(h);
    assert_int_equal(s.done, 3);
}

static void no_row(void *ctx, const struct store_record *r)
{
    (void)ctx;
    (void)r;
    fail();
}

static void on_nested_end(void *ctx, int error) { *(int *)ctx = error; }

struct nested {
    struct harness *h;
    int error, end;
};

static void read_in_row(void *ctx, const struct store_record *r)
{
    struct nested *n = ctx;
    struct store_query q = {.kind = STORE_LIST_SESSIONS, .team = text("red"), .limit = 5};
    (void)r;
    store_read(n->h->store, &q, &(struct store_reader){no_row, on_nested_end, &n->error});
}

static void on_outer_end(void *ctx, int error) { ((struct nested *)ctx)->end = error; }

static void a_read_inside_a_row_is_refused(void **state)
{
    struct harness *h = *state;
    struct nested n = {.h = h, .end = 1000};
    create(h, "s", "red", NULL, NULL);
    struct store_query q = {.kind = STORE_LIST_SESSIONS, .team = text("red"), .limit = 5};
    store_read(h->store, &q, &(struct store_reader){read_in_row, on_outer_end, &n});
    while (n.end == 1000) {
        assert_int_equal(loop_step(h->loop, 1000), 0);
    }
    assert_int_equal(n.error, -EDEADLK);
    assert_int_equal(n.end, 0);
    assert_int_equal(harness_read(h, &q)->n, 1);
}

const struct CMUnitTest contract_rest[] = {
    cmocka_unit_test(the_same_names_give_the_same_session),
    cmocka_unit_test(a_session_lives_and_is_remembered),
    cmocka_unit_test(sessions_are_listed_by_team),
    cmocka_unit_test(keys_are_found_and_revoked),
    cmocka_unit_test(a_read_inside_a_row_is_refused),
    cmocka_unit_test(a_sweep_goes_in_small_steps),
};
const size_t n_contract_rest = ARRAY_LEN(contract_rest);
