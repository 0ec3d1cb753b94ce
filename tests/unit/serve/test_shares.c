// What teams have of the disk, and how much more each may have.
#include "place.h"

#include "base/clock.h"
#include "serve/shares.h"
#include "store/sqlite.h"

#define MB (UINT64_C(1) << 20)
#define TB (INT64_C(1) << 40)

struct set {
    struct place place;
    struct store *store;
    struct shares *shares;
    bool written;
};

static int make(void **state)
{
    struct set *s = calloc(1, sizeof *s);
    struct store_error why;
    place_make(&s->place);
    const struct store_sqlite place = {.dir = s->place.path, .now_ms = clock_wall_ms()};
    assert_int_equal(store_sqlite_open(s->place.loop, &place, &s->store, &why), 0);
    const struct shares_config config = {.store = s->store, .data_folder = s->place.root};
    assert_int_equal(shares_new(&config, &s->shares), 0);
    *state = s;
    return 0;
}

static int drop(void **state)
{
    struct set *s = *state;
    shares_free(s->shares);
    store_close(s->store);
    place_drop(&s->place);
    free(s);
    return 0;
}

static void written(void *ctx, const struct store_outcome *o)
{
    assert_int_equal(o->error, 0);
    ((struct set *)ctx)->written = true;
}

static bool is_written(void *ctx) { return ((struct set *)ctx)->written; }

static void write_key(struct set *s, struct store_write w)
{
    s->written = false;
    assert_int_equal(store_write(s->store, &w, written, s), 0);
    place_run(&s->place, is_written, s);
    shares_look(s->shares);
}

static void make_key(struct set *s, const char *id, const char *team)
{
    const struct store_text some = store_text_of("x");
    write_key(s, (struct store_write){.kind = STORE_KEY_CREATE,
                                      .key = {.id = store_text_of(id),
                                              .team = store_text_of(team),
                                              .salt = some,
                                              .hash = some,
                                              .created_ms = 1}});
}

static void test_teams(void **state)
{
    struct set *s = *state;
    assert_int_equal(shares_teams(s->shares), 0);
    make_key(s, "1", "a");
    make_key(s, "2", "a");
    assert_int_equal(shares_teams(s->shares), 1);
    make_key(s, "3", "b");
    assert_int_equal(shares_teams(s->shares), 2);
    write_key(s, (struct store_write){.kind = STORE_KEY_REVOKE,
                                      .key = {.id = store_text_of("3"), .revoked_ms = 2}});
    assert_int_equal(shares_teams(s->shares), 1);
    struct share *a = shares_hold(s->shares, "a"), *c = shares_hold(s->shares, "c");
    assert_int_equal(shares_teams(s->shares), 2); // without a key, and yet here
    share_add(c, SHARE_SESSIONS, 5);
    share_release(c);
    assert_int_equal(shares_teams(s->shares), 2); // its bytes are
    c = shares_hold(s->shares, "c");
    share_add(c, SHARE_SESSIONS, -5);
    share_release(c);
    assert_int_equal(shares_teams(s->shares), 1);
    share_release(a);
    share_release(NULL);
}

static void test_bound(void **state)
{
    struct set *s = *state;
    char text[SHARES_TEXT];
    struct share *a = shares_hold(s->shares, "a");
    shares_change(s->shares, 10 * MB);
    assert_int_equal(share_room(a), 10 * MB); // of a single team, too
    share_add(a, SHARE_SESSIONS, 4 * (int64_t)MB);
    share_add(a, SHARE_ARTIFACTS, 5 * (int64_t)MB);
    assert_int_equal(share_room(a), MB);
    assert_int_equal(shares_room(s->shares, "b"), 10 * MB);
    share_add(a, SHARE_ARTIFACTS, 5 * (int64_t)MB);
    assert_int_equal(share_room(a), 0);
    assert_non_null(strstr(shares_refuse(s->shares, "a", text),
                           "takes 14 MB of the 10 MB that it may have (SANDBOX_TEAM_DISK_MB)"));
    share_add(a, SHARE_ARTIFACTS, -20 * (int64_t)MB); // never below nothing
    struct shares_stats stats;
    shares_stats(s->shares, &stats);
    assert_int_equal(stats.bytes[SHARE_SESSIONS], 4 * MB);
    assert_int_equal(stats.bytes[SHARE_ARTIFACTS], 0);
    assert_int_equal(stats.largest_bytes, 4 * MB);
    assert_int_equal(stats.refused, 1);
    share_release(a);
}

// Against the disk that this runs on, of which others write, too: nothing exact is asked.
static void test_beside_others(void **state)
{
    struct set *s = *state;
    char text[SHARES_TEXT];
    struct share *a = shares_hold(s->shares, "a");
    share_add(a, SHARE_SESSIONS, 1000 * TB);
    assert_true(share_room(a) == UINT64_MAX); // alone
    make_key(s, "1", "a");
    make_key(s, "2", "b");
    assert_int_equal(share_room(a), 0); // more than any disk has left
    assert_non_null(strstr(shares_refuse(s->shares, "a", text), "(SANDBOX_TEAM_DISK_MB 0)"));
    share_add(a, SHARE_SESSIONS, -1000 * TB);
    assert_true(share_room(a) < (uint64_t)(1000 * TB));
    share_add(a, SHARE_SESSIONS, SHARES_SMALL_BYTES - (int64_t)MB);
    assert_true(share_room(a) >= MB); // what is small it may have, if there is room at all
    share_release(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_teams, make, drop),
        cmocka_unit_test_setup_teardown(test_bound, make, drop),
        cmocka_unit_test_setup_teardown(test_beside_others, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
