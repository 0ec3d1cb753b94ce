// Sessions over a real store: made once per conversation, found again after a start, ended by time
// or by hand, remembered; their files go, and their uid with them.
#include "place.h"

#include "base/clock.h"
#include "plan/plan.h"
#include "serve/sessions_inner.h"
#include "store/sqlite.h"
#include "workspace/uids.h"

#include <sys/resource.h>

struct set {
    struct place place;
    struct store *store;
    struct uids uids;
    struct shares *shares;
    uint64_t team_bytes;
    struct sessions *sessions;
    struct sessions_config config;
    // of the last answers
    unsigned answers, rows, ended_rows;
    int error;
    bool same;
    char id[37], ids[16][37];
    int64_t expires_ms;
};

static void open_all(struct set *s)
{
    struct store_error why;
    const struct store_sqlite place = {.dir = s->place.path, .now_ms = clock_wall_ms()};
    assert_int_equal(store_sqlite_open(s->place.loop, &place, &s->store, &why), 0);
    s->uids = (struct uids){0};
    const struct shares_config shares = {
        .store = s->store, .data_folder = s->place.root, .team_bytes = s->team_bytes};
    assert_int_equal(shares_new(&shares, &s->shares), 0);
    s->config = (struct sessions_config){.loop = s->place.loop,
                                         .shares = s->shares,
                                         .store = s->store,
                                         .pool = s->place.pool,
                                         .uids = &s->uids,
                                         .workspace_root = s->place.root,
                                         .ttl_hours = 24,
                                         .cleanup_batch = 2,
                                         .disk_bytes = 100000};
    assert_int_equal(sessions_new(&s->config, &s->sessions), 0);
}

static void close_all(struct set *s)
{
    work_pool_stop(s->place.pool);
    store_close(s->store);
    sessions_free(s->sessions);
    shares_free(s->shares);
}

static void restart(struct set *s)
{
    close_all(s);
    place_no_threads(&s->place);
    place_threads(&s->place);
    open_all(s);
}

static int make(void **state)
{
    struct set *s = calloc(1, sizeof *s);
    place_make(&s->place);
    open_all(s);
    *state = s;
    return 0;
}

static int drop(void **state)
{
    struct set *s = *state;
    close_all(s);
    place_drop(&s->place);
    free(s);
    return 0;
}

static void answer(void *ctx, const struct sessions_outcome *o)
{
    struct set *s = ctx;
    s->error = o->error;
    s->same = o->same;
    if (o->session) {
        snprintf(s->id, sizeof s->id, "%.*s", (int)o->session->id.len, o->session->id.data);
        memcpy(s->ids[s->answers % 16], s->id, sizeof s->id);
        s->expires_ms = o->session->expires_ms;
    }
    s->answers++;
}

static bool answered(void *ctx) { return ((struct set *)ctx)->answers > 0; }
static bool answered_10(void *ctx) { return ((struct set *)ctx)->answers == 10; }

static int wait_answer(struct set *s)
{
    place_run(&s->place, answered, s);
    return s->error;
}

static int create(struct set *s, const char *team, const char *conversation)
{
    s->answers = 0;
    sessions_create(s->sessions,
                    &(struct sessions_create){.team = team, .conversation = conversation}, answer,
                    s);
    return wait_answer(s);
}

static int get(struct set *s, const char *team, const char *id)
{
    s->answers = 0;
    sessions_get(s->sessions, team, id, answer, s);
    return wait_answer(s);
}

static int end_it(struct set *s, const char *team, const char *id)
{
    s->answers = 0;
    sessions_delete(s->sessions, team, id, answer, s);
    return wait_answer(s);
}

static int extend(struct set *s, const char *id, int64_t hours)
{
    s->answers = 0;
    sessions_extend(s->sessions, "a", id, hours, answer, s);
    return wait_answer(s);
}

static bool nothing_left(void *ctx)
{
    struct set *s = ctx;
    struct sessions_stats stats;
    sessions_stats(s->sessions, &stats);
    return stats.removing == 0 && place_count(&s->place, "trash") == 0;
}

static const char *path(const char *id, const char *rest)
{
    static char text[96];
    snprintf(text, sizeof text, "kept/%s%s", id, rest);
    return text;
}

static void test_made_and_found(void **state)
{
    struct set *s = *state;
    assert_int_equal(create(s, "a", NULL), 0);
    assert_false(s->same);
    char id[37];
    memcpy(id, s->id, sizeof id);
    int64_t hours = (s->expires_ms - clock_wall_ms() + 1000) / 3600000;
    assert_int_equal(hours, 24);
    struct stat st;
    assert_int_equal(fstatat(s->place.root, path(id, "/w/input"), &st, 0), 0);
    assert_int_equal(st.st_uid, PLAN_UID_WORKSPACE_0);
    assert_int_equal(fstatat(s->place.root, path(id, "/t"), &st, 0), 0);
    assert_int_equal(st.st_uid, PLAN_UID_WORKSPACE_0);
    assert_int_equal(st.st_mode & 07777, 01777);
    assert_int_equal(get(s, "a", id), 0);
    assert_int_equal(get(s, NULL, id), 0);
    assert_int_equal(get(s, "b", id), SESSIONS_MISSING);
    assert_int_equal(get(s, "a", "0190c3f0-0000-7000-8000-000000000001"), SESSIONS_MISSING);
    place_write(&s->place, path(id, "/w/f"), "x");
    restart(s);
    assert_int_equal(get(s, "a", id), 0);
    assert_true(place_has(&s->place, path(id, "/w/f")));
    assert_int_equal(create(s, "a", NULL), 0); // without a conversation: another, with another uid
    assert_string_not_equal(s->id, id);
    assert_int_equal(fstatat(s->place.root, path(s->id, "/w"), &st, 0), 0);
    assert_int_equal(st.st_uid, PLAN_UID_WORKSPACE_0 + 1);
}

static void test_one_per_conversation(void **state)
{
    struct set *s = *state;
    s->answers = 0;
    for (int i = 0; i < 10; i++) { // at once
        sessions_create(s->sessions, &(struct sessions_create){.team = "a", .conversation = "c"},
                        answer, s);
    }
    place_run(&s->place, answered_10, s);
    for (int i = 1; i < 10; i++) {
        assert_string_equal(s->ids[i], s->ids[0]);
    }
    assert_int_equal(place_count(&s->place, "kept"), 1);
    char id[37];
    memcpy(id, s->id, sizeof id);
    assert_int_equal(create(s, "b", "c"), 0);
    assert_string_not_equal(s->id, id);
    assert_int_equal(end_it(s, "a", id), 0);
    assert_int_equal(create(s, "a", "c"), 0);
    assert_string_not_equal(s->id, id);
    assert_false(s->same);
    place_run(&s->place, nothing_left, s);
    uint32_t next = uids_take(&s->uids); // the uids of those that were not made are free again
    assert_true(next && next < PLAN_UID_WORKSPACE_0 + 20);
}

static void test_deleted(void **state)
{
    struct set *s = *state;
    char id[37];
    struct session_lease lease;
    assert_int_equal(create(s, "a", "c"), 0);
    memcpy(id, s->id, sizeof id);
    place_folder(&s->place, path(id, "/w/closed"));
    place_write(&s->place, path(id, "/w/closed/f"), "x");
    assert_int_equal(fchmodat(s->place.root, path(id, "/w/closed"), 0, 0), 0);
    assert_int_equal(end_it(s, "b", id), SESSIONS_MISSING);
    assert_int_equal(sessions_lease(s->sessions, "a", id, &lease), 0);
    assert_int_equal(end_it(s, "a", id), 0);
    // somebody works in it: its folder stays, but nothing new begins
    assert_true(place_has(&s->place, path(id, "")));
    assert_int_equal(get(s, "a", id), SESSIONS_EXPIRED);
    assert_int_equal(end_it(s, "a", id), SESSIONS_EXPIRED);
    assert_int_equal(extend(s, id, 1), SESSIONS_EXPIRED);
    struct session_lease more;
    assert_int_equal(sessions_lease(s->sessions, "a", id, &more), SESSIONS_EXPIRED);
    sessions_release(s->sessions, &lease, SESSIONS_MEASURE);
    sessions_release(s->sessions, &lease, SESSIONS_MEASURE); // harmless
    assert_false(place_has(&s->place, path(id, "")));
    place_run(&s->place, nothing_left, s);
    assert_int_equal(get(s, "a", id), SESSIONS_EXPIRED);
    assert_int_equal(get(s, "b", id), SESSIONS_MISSING);
    restart(s);
    assert_int_equal(get(s, "a", id), SESSIONS_EXPIRED);
    assert_int_equal(sessions_lease(s->sessions, "a", id, &more), SESSIONS_EXPIRED);
    assert_int_equal(sessions_lease(s->sessions, "b", id, &more), SESSIONS_MISSING);
}

static bool tries_later(void *ctx)
{
    struct set *s = ctx;
    return session_find(s->sessions, s->id, strlen(s->id))->retry_ms > 0;
}

// Where no file can be opened none is removed: the session keeps its uid until it is.
static void test_a_removal_that_fails_is_tried_again(void **state)
{
    struct set *s = *state;
    struct rlimit files, none;
    assert_int_equal(create(s, "a", NULL), 0);
    place_write(&s->place, path(s->id, "/w/f"), "x");
    struct session *e = session_find(s->sessions, s->id, strlen(s->id));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = (struct rlimit){.rlim_max = files.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(end_it(s, "a", s->id), 0);
    int64_t pauses_ms[2];
    for (int i = 0; i < 2; i++) {
        place_run(&s->place, tries_later, s);
        assert_int_equal(uids_claim(&s->uids, PLAN_UID_WORKSPACE_0), -EBUSY);
        pauses_ms[i] = e->retry_ms - clock_wall_ms();
        e->retry_ms = i == 0 ? 1 : e->retry_ms;
        sessions_look(&s->sessions->due); // as its timer does; the second one is not due
    }
    assert_true(pauses_ms[0] > 0 && pauses_ms[1] > pauses_ms[0]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    e->retry_ms = 1;
    sessions_look(&s->sessions->due);
    place_run(&s->place, nothing_left, s);
    assert_int_equal(uids_claim(&s->uids, PLAN_UID_WORKSPACE_0), 0);
    assert_int_equal(get(s, "a", s->id), SESSIONS_EXPIRED);
}

// The store names one that has ended, again and again: its end cannot be recorded.
static void test_an_end_that_is_not_recorded(void **state)
{
    struct set *s = *state;
    assert_int_equal(create(s, "a", "talk"), 0);
    struct session *e = session_find(s->sessions, s->id, 36);
    e->removing = true;
    assert_int_equal(create(s, "a", "talk"), -EAGAIN);
    assert_int_equal(s->sessions->n_making, 0);
    e->removing = false;
    assert_int_equal(create(s, "a", "talk"), 0);
    assert_true(s->same);
}

// Its record is there and its folder cannot be made: it has ended, and its names are free.
static void test_a_folder_that_cannot_be_made(void **state)
{
    struct set *s = *state;
    assert_int_equal(unlinkat(s->place.root, "kept", AT_REMOVEDIR), 0);
    assert_int_equal(create(s, "a", "talk"), -ENOENT);
    place_run(&s->place, nothing_left, s);
    assert_int_equal(s->sessions->n_making, 0);
    restart(s);
    assert_int_equal(create(s, "a", "talk"), 0);
    assert_false(s->same);
}

static void test_extended(void **state)
{
    struct set *s = *state;
    assert_int_equal(create(s, "a", NULL), 0);
    char id[37];
    memcpy(id, s->id, sizeof id);
    int64_t before_ms = s->expires_ms;
    assert_int_equal(extend(s, id, 1), 0); // earlier: stays
    assert_int_equal(s->expires_ms, before_ms);
    assert_int_equal(extend(s, id, 720), 0);
    assert_true(s->expires_ms >= before_ms + INT64_C(695) * 3600000);
    before_ms = s->expires_ms;
    restart(s);
    assert_int_equal(get(s, "a", id), 0);
    assert_int_equal(s->expires_ms, before_ms);
}

// Records that end a moment after now, as a start finds them.
static void add_ending(struct set *s, unsigned n, int64_t end_ms)
{
    for (unsigned i = 0; i < n; i++) {
        char id[48];
        snprintf(id, sizeof id, "0190c3f0-0000-7000-8000-0000000000%02u", i % 100);
        struct store_write w = {.kind = STORE_SESSION_CREATE,
                                .session = {.id = {id, 36},
                                            .team = {"a", 1},
                                            .created_ms = 1,
                                            .expires_ms = end_ms,
                                            .uid = PLAN_UID_WORKSPACE_0 + 100 + i}};
        assert_int_equal(store_write(s->store, &w, NULL, NULL), 0);
        place_folder(&s->place, path(id, ""));
        place_folder(&s->place, path(id, "/w"));
    }
}

static bool none_active(void *ctx)
{
    struct sessions_stats stats;
    sessions_stats(((struct set *)ctx)->sessions, &stats);
    return stats.active == 0 && nothing_left(ctx);
}

static bool all_ended(void *ctx)
{
    struct sessions_stats stats;
    sessions_stats(((struct set *)ctx)->sessions, &stats);
    return stats.active == 0;
}

static void test_expired(void **state)
{
    struct set *s = *state;
    add_ending(s, 7, clock_wall_ms() + 3000); // later than a busy host needs for what is next
    restart(s);
    struct sessions_stats stats;
    sessions_stats(s->sessions, &stats);
    assert_int_equal(stats.active, 7);
    assert_int_equal(get(s, "a", "0190c3f0-0000-7000-8000-000000000003"), 0);
    assert_int_equal(uids_claim(&s->uids, PLAN_UID_WORKSPACE_0 + 103), -EBUSY);
    const char *busy = "0190c3f0-0000-7000-8000-000000000004"; // it goes on to its end, and no more
    struct session_lease running, next;
    place_folder(&s->place, path(busy, "/t"));
    assert_int_equal(sessions_lease(s->sessions, "a", busy, &running), 0);
    place_run(&s->place, all_ended, s);
    assert_int_equal(sessions_lease(s->sessions, "a", busy, &next), SESSIONS_EXPIRED);
    assert_true(place_has(&s->place, path(busy, "/w")));
    sessions_release(s->sessions, &running, SESSIONS_UNCHANGED);
    place_run(&s->place, none_active, s);
    assert_int_equal(place_count(&s->place, "kept"), 0);
    assert_int_equal(get(s, "a", "0190c3f0-0000-7000-8000-000000000003"), SESSIONS_EXPIRED);
    assert_int_equal(uids_claim(&s->uids, PLAN_UID_WORKSPACE_0 + 103), 0);
}

static void test_forgotten(void **state)
{
    struct set *s = *state;
    add_ending(s, 1, 1000); // ended in 1970
    restart(s);
    place_run(&s->place, none_active, s);
    restart(s);
    restart(s);
    assert_int_equal(get(s, "a", "0190c3f0-0000-7000-8000-000000000000"), SESSIONS_MISSING);
}

static void test_start_removes_what_is_nobodys(void **state)
{
    struct set *s = *state;
    assert_int_equal(create(s, "a", NULL), 0);
    char id[37];
    memcpy(id, s->id, sizeof id);
    place_folder(&s->place, "kept/unknown");
    place_write(&s->place, "kept/unknown/f", "x");
    place_write(&s->place, "trash/.isle-0.part", "x");
    restart(s);
    place_run(&s->place, nothing_left, s);
    assert_int_equal(place_count(&s->place, "kept"), 1);
    assert_true(place_has(&s->place, path(id, "/w")));
}

static bool measured(void *ctx)
{
    struct sessions_stats stats;
    sessions_stats(((struct set *)ctx)->sessions, &stats);
    return stats.disk_bytes >= 8192 && stats.disk_bytes < 70000;
}

static void test_room(void **state)
{
    struct set *s = *state;
    struct session_lease a, b;
    assert_int_equal(create(s, "a", NULL), 0);
    assert_int_equal(sessions_lease(s->sessions, "a", s->id, &a), 0);
    assert_int_equal(sessions_lease(s->sessions, NULL, s->id, &b), 0);
    assert_int_equal(a.uid, PLAN_UID_WORKSPACE_0);
    assert_int_equal(a.files.uid, a.uid);
    assert_true(sessions_charge(s->sessions, &a, 60000));
    assert_false(sessions_charge(s->sessions, &b, 40001));
    assert_true(sessions_charge(s->sessions, &b, 40000));
    sessions_release(s->sessions, &b, SESSIONS_UNCHANGED);
    assert_false(sessions_charge(s->sessions, &a, 40001));
    assert_true(sessions_charge(s->sessions, &a, 40000));
    assert_false(sessions_charge(s->sessions, &a, 1));
    place_write(&s->place, path(s->id, "/w/f"), "x");
    place_write(&s->place, path(s->id, "/t/f"), "x");
    sessions_release(s->sessions, &a, SESSIONS_MEASURE);
    place_run(&s->place, measured, s);
}

static bool none_waits(void *ctx) { return work_waiting(((struct set *)ctx)->place.pool) == 0; }

// So many bytes in one of its sessions. False: it may not have them.
static bool fill(struct set *s, const char *team, const char *id, uint64_t bytes)
{
    struct session_lease l;
    assert_int_equal(sessions_lease(s->sessions, team, id, &l), 0);
    bool fits = sessions_charge(s->sessions, &l, bytes);
    assert_true(fits || sessions_share_is_less(s->sessions, &l));
    sessions_take(s->sessions, &l, fits ? (int64_t)bytes : 0);
    sessions_release(s->sessions, &l, SESSIONS_UNCHANGED);
    return fits;
}

static bool a_has_room(void *ctx) { return shares_room(((struct set *)ctx)->shares, "a") == 60000; }

// A team's sessions together, also after a start; until their files are gone.
static void test_share(void **state)
{
    struct set *s = *state;
    char a[37];
    s->team_bytes = 60000;
    restart(s);
    assert_int_equal(create(s, "b", NULL), 0);
    assert_true(fill(s, "b", s->id, 60000));
    assert_int_equal(create(s, "a", "talk"), 0);
    memcpy(a, s->id, sizeof a);
    assert_true(fill(s, "a", a, 40000));
    assert_false(fill(s, "a", a, 20001));
    assert_true(fill(s, "a", a, 20000));
    assert_int_equal(create(s, "a", NULL), SESSIONS_NO_SHARE);
    assert_int_equal(create(s, "a", "talk"), 0); // it is there
    assert_true(s->same);
    restart(s);
    assert_int_equal(create(s, "a", NULL), SESSIONS_NO_SHARE);
    assert_false(fill(s, "a", a, 1));
    assert_int_equal(end_it(s, "a", a), 0);
    place_run(&s->place, a_has_room, s);
    assert_int_equal(create(s, "a", NULL), 0);
    assert_true(fill(s, "a", s->id, 60000));
}

static bool all_counted(void *ctx)
{
    struct sessions_stats stats;
    sessions_stats(((struct set *)ctx)->sessions, &stats);
    return stats.disk_bytes >= 60000;
}

// What was written, and not written down, when the service was killed.
static void test_measured_at_the_start(void **state)
{
    struct set *s = *state;
    static char text[60001];
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(create(s, "a", NULL), 0);
        place_write(&s->place, path(s->id, "/w/f"), i ? "" : text);
    }
    restart(s);
    place_run(&s->place, all_counted, s);
    place_run(&s->place, none_waits, s);
    restart(s);
    assert_true(all_counted(s)); // and it is written down
}

// A job ends while its session is being measured: what was measured is older than what the job
// took.
static void test_measured_too_late(void **state)
{
    struct set *s = *state;
    struct session_lease a, b;
    static char text[60001];
    memset(text, 'x', sizeof text - 1);
    assert_int_equal(create(s, "a", NULL), 0);
    assert_int_equal(sessions_lease(s->sessions, "a", s->id, &a), 0);
    assert_int_equal(sessions_lease(s->sessions, "a", s->id, &b), 0);
    sessions_release(s->sessions, &a, SESSIONS_MEASURE);
    clock_pause_ns(50 * NS_PER_MS); // the thread is done most likely, and the loop has not heard
    place_write(&s->place, path(s->id, "/w/f"), text);
    sessions_release(s->sessions, &b, 70000);
    place_run(&s->place, none_waits, s);
    struct sessions_stats stats;
    sessions_stats(s->sessions, &stats);
    assert_true(stats.disk_bytes >= sizeof text - 1);
}

// A job that is ended by its bound is not counted to the end; the next one has to know that there
// is more.
static void test_what_was_not_counted_whole_is_not_known(void **state)
{
    struct set *s = *state;
    struct session_lease l;
    int64_t bytes, entries;
    assert_int_equal(create(s, "a", NULL), 0);
    for (int known = 1; known >= 0; known--) {
        assert_int_equal(sessions_lease(s->sessions, "a", s->id, &l), 0);
        sessions_counted(&l, 7, !known);
        sessions_release(s->sessions, &l, 5000);
        assert_int_equal(sessions_lease(s->sessions, "a", s->id, &l), 0);
        sessions_takes(&l, &bytes, &entries);
        assert_int_equal(bytes, known ? 5000 : -1);
        assert_int_equal(entries, 7);
        sessions_release(s->sessions, &l, SESSIONS_UNCHANGED);
    }
    place_run(&s->place, none_waits, s);
    assert_int_equal(sessions_lease(s->sessions, "a", s->id, &l), 0);
    sessions_takes(&l, &bytes, &entries);
    assert_true(bytes >= 0 && bytes != 5000 && entries > 0 && entries != 7);
    sessions_release(s->sessions, &l, SESSIONS_UNCHANGED);
}

// Many of one team leave places to others; of one that ends nobody asks what it takes.
static void test_measured_in_turn(void **state)
{
    struct set *s = *state;
    struct session *a[6];
    for (size_t i = 0; i < ARRAY_LEN(a); i++) {
        assert_int_equal(create(s, "a", NULL), 0);
        a[i] = session_find(s->sessions, s->id, 36);
    }
    assert_int_equal(create(s, "b", NULL), 0);
    struct session *b = session_find(s->sessions, s->id, 36);
    for (size_t i = 0; i < ARRAY_LEN(a); i++) {
        session_measure(a[i]);
        session_measure(a[i]);
    }
    session_measure(b);
    assert_true(a[0]->measure.queued && a[0]->measure_again && b->measure.queued);
    assert_true(!a[1]->measure.queued && s->sessions->unmeasured == a[1]);
    assert_int_equal(end_it(s, "a", a[1]->id), 0);
    place_run(&s->place, none_waits, s);
    assert_null(s->sessions->unmeasured);
    for (size_t i = 2; i < ARRAY_LEN(a); i++) {
        assert_true(a[i]->disk_bytes > 0);
    }
}

static void test_no_uid_left(void **state)
{
    struct set *s = *state;
    s->uids.count = 8; // six for sessions, of a team as many as are left
    for (int i = 0; i < 3; i++) {
        assert_int_equal(create(s, "a", &"of one conversation"[i]), 0);
    }
    assert_int_equal(create(s, "a", NULL), SESSIONS_NO_UID);
    assert_int_equal(create(s, "a", "of one conversation"), 0);
    assert_true(s->same);
    assert_int_equal(create(s, "b", NULL), 0);
    assert_int_equal(create(s, "b", NULL), SESSIONS_NO_UID);
    assert_int_equal(create(s, "c", NULL), 0);
    assert_int_equal(create(s, "d", NULL), SESSIONS_NO_UID);
    assert_int_equal(end_it(s, "c", s->id), 0);
    place_run(&s->place, nothing_left, s);
    assert_int_equal(create(s, "d", NULL), 0);
}

static void row(void *ctx, const struct store_session *r, bool lives)
{
    struct set *s = ctx;
    if (!lives) {
        s->ended_rows++;
        return;
    }
    snprintf(s->ids[s->rows++ % 16], 37, "%.*s", (int)r->id.len, r->id.data);
}

static void list_end(void *ctx, int error)
{
    struct set *s = ctx;
    s->error = error;
    s->answers = 1;
}

static int list(struct set *s, const char *team, const char *cursor, int64_t limit)
{
    s->answers = s->rows = s->ended_rows = 0;
    sessions_list(s->sessions, team, cursor, limit, row, list_end, s);
    return wait_answer(s);
}

static void test_listed(void **state)
{
    struct set *s = *state;
    char made[3][37];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(create(s, "a", NULL), 0);
        memcpy(made[i], s->id, sizeof made[i]);
    }
    assert_int_equal(create(s, "b", NULL), 0);
    assert_int_equal(end_it(s, "a", made[1]), 0);
    assert_int_equal(list(s, "a", NULL, 10), 0);
    assert_int_equal(s->rows, 2);
    assert_string_equal(s->ids[0], made[2]);
    assert_string_equal(s->ids[1], made[0]);
    assert_int_equal(list(s, "a", made[2], 1), 0);
    assert_int_equal(s->rows, 1);
    assert_string_equal(s->ids[0], made[0]);
    assert_int_equal(list(s, "a", "nonesuch", 1), SESSIONS_MISSING);
    // One that has ended, and not in the store yet, is no last row of a page.
    session_find(s->sessions, made[2], 36)->expires_ms = 1;
    assert_int_equal(list(s, "a", NULL, 1), 0);
    assert_int_equal(s->rows, 0);
    assert_int_equal(s->ended_rows, 1);
}

int main(void)
{
#define SESSIONS_TEST(f) cmocka_unit_test_setup_teardown(f, make, drop)
    const struct CMUnitTest tests[] = {
        SESSIONS_TEST(test_made_and_found),
        SESSIONS_TEST(test_one_per_conversation),
        SESSIONS_TEST(test_deleted),
        SESSIONS_TEST(test_a_removal_that_fails_is_tried_again),
        SESSIONS_TEST(test_an_end_that_is_not_recorded),
        SESSIONS_TEST(test_a_folder_that_cannot_be_made),
        SESSIONS_TEST(test_extended),
        SESSIONS_TEST(test_expired),
        SESSIONS_TEST(test_forgotten),
        SESSIONS_TEST(test_start_removes_what_is_nobodys),
        SESSIONS_TEST(test_share),
        SESSIONS_TEST(test_room),
        SESSIONS_TEST(test_measured_at_the_start),
        SESSIONS_TEST(test_measured_too_late),
        SESSIONS_TEST(test_what_was_not_counted_whole_is_not_known),
        SESSIONS_TEST(test_measured_in_turn),
        SESSIONS_TEST(test_no_uid_left),
        SESSIONS_TEST(test_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
