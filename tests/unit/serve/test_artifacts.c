// Artifacts are there whole, or not at all, also after a crash.
#include "place.h"

#include "base/clock.h"
#include "serve/artifacts.h"
#include "serve/shares.h"
#include "store/sqlite.h"

static const char *const job = "0190c3f0-0000-7000-8000-000000000001";
static const char *const other = "0190c3f0-0000-7000-8000-000000000002";

struct set {
    struct place place;
    struct store *store;
    struct shares *shares;
    struct share *share; // of the team "t"
    uint64_t team_bytes;
    struct artifacts *artifacts;
    int dir;
};

static void begin(struct set *s, int64_t forget_before_ms)
{
    struct store_error why;
    const struct store_sqlite place = {.dir = s->place.path, .now_ms = clock_wall_ms()};
    assert_int_equal(store_sqlite_open(s->place.loop, &place, &s->store, &why), 0);
    const struct shares_config shares = {
        .store = s->store, .data_folder = s->place.root, .team_bytes = s->team_bytes};
    assert_int_equal(shares_new(&shares, &s->shares), 0);
    s->share = shares_hold(s->shares, "t");
    assert_int_equal(
        artifacts_new(s->dir, s->place.pool, s->shares, forget_before_ms, &s->artifacts), 0);
}

static void end(struct set *s)
{
    work_pool_stop(s->place.pool);
    artifacts_free(s->artifacts);
    share_release(s->share);
    shares_free(s->shares);
    store_close(s->store);
}

static int make(void **state)
{
    struct set *s = calloc(1, sizeof *s);
    place_make(&s->place);
    place_folder(&s->place, "artifacts");
    s->dir = openat(s->place.root, "artifacts", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    begin(s, 0);
    *state = s;
    return 0;
}

static int drop(void **state)
{
    struct set *s = *state;
    end(s);
    close(s->dir);
    place_drop(&s->place);
    free(s);
    return 0;
}

static bool is_empty(void *ctx)
{
    return place_count(&((struct set *)ctx)->place, "artifacts") == 0;
}

static void write_two(struct artifacts_writer *w, const struct set *s, const char *id)
{
    artifacts_writer_init(w, s->artifacts, s->share, id);
    assert_int_equal(artifacts_begin(w), 0);
    assert_int_equal(artifacts_add(w, "first", 5), 0);
    assert_int_equal(artifacts_add(w, "!", 1), 0);
    assert_int_equal(artifacts_begin(w), 0); // an empty one
}

static void test_written_and_read(void **state)
{
    struct set *s = *state;
    struct artifacts_writer w;
    uint64_t size = 0;
    write_two(&w, s, job);
    assert_int_equal(artifacts_open(s->artifacts, job, 0, &size), -ENOENT); // not yet
    assert_int_equal(artifacts_commit(&w), 0);
    artifacts_drop(&w);
    AUTO_CLOSE int fd = artifacts_open(s->artifacts, job, 0, &size);
    char got[16] = "";
    assert_true(fd >= 0);
    assert_int_equal(size, 6);
    assert_int_equal(read(fd, got, sizeof got), 6);
    assert_string_equal(got, "first!");
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    AUTO_CLOSE int empty = artifacts_open(s->artifacts, job, 1, &size);
    assert_true(empty >= 0);
    assert_int_equal(size, 0);
    assert_int_equal(artifacts_open(s->artifacts, job, 2, &size), -ENOENT);
    assert_int_equal(artifacts_open(s->artifacts, other, 0, &size), -ENOENT);
    artifacts_remove(s->artifacts, other);
    artifacts_remove(s->artifacts, job);
    place_run(&s->place, is_empty, s);
}

static void test_dropped(void **state)
{
    struct set *s = *state;
    struct artifacts_writer w;
    write_two(&w, s, job);
    artifacts_drop(&w);
    artifacts_drop(&w);
    place_run(&s->place, is_empty, s);
    artifacts_writer_init(&w, s->artifacts, s->share, job);
    assert_int_equal(artifacts_commit(&w), 0); // none: no folder
    artifacts_drop(&w);
    assert_true(is_empty(s));
}

static void restart(struct set *s, int64_t forget_before_ms)
{
    end(s);
    place_no_threads(&s->place);
    place_threads(&s->place);
    begin(s, forget_before_ms);
}

static bool one_left(void *ctx)
{
    return place_count(&((struct set *)ctx)->place, "artifacts") == 1;
}

static void test_after_a_crash(void **state)
{
    struct set *s = *state;
    struct artifacts_writer w, cut;
    write_two(&w, s, job);
    assert_int_equal(artifacts_commit(&w), 0);
    write_two(&cut, s, other);
    close(cut.fd);
    close(cut.dir);
    assert_int_equal(place_count(&s->place, "artifacts"), 2);
    restart(s, 1000);
    place_run(&s->place, one_left, s);
    uint64_t size;
    int fd = artifacts_open(s->artifacts, job, 0, &size);
    assert_true(fd >= 0);
    close(fd);
    restart(s, INT64_MAX); // nobody's by now
    place_run(&s->place, is_empty, s);
}

static uint64_t taken(const struct set *s)
{
    struct shares_stats stats;
    shares_stats(s->shares, &stats);
    return stats.bytes[SHARE_ARTIFACTS];
}

static bool one_is_counted(void *ctx) { return taken(ctx) == 4096; }
static bool nothing_is_counted(void *ctx) { return taken(ctx) == 0 && is_empty(ctx); }

static void test_counted(void **state)
{
    struct set *s = *state;
    struct artifacts_writer w;
    s->team_bytes = 8192;
    restart(s, 0);
    write_two(&w, s, job);
    assert_int_equal(taken(s), 0); // not before they are there
    assert_int_equal(artifacts_commit(&w), 0);
    artifacts_drop(&w);
    artifacts_drop(&w);
    assert_int_equal(taken(s), 4096); // a block, and an empty one
    assert_int_equal(share_room(s->share), 4096);
    artifacts_writer_init(&w, s->artifacts, s->share, other);
    assert_int_equal(artifacts_begin(&w), 0);
    assert_int_equal(artifacts_add(&w, "more", 4), 0);
    assert_int_equal(artifacts_begin(&w), 0); // a second one may be there, if it is empty
    assert_int_equal(artifacts_add(&w, "than", 4), -EDQUOT);
    artifacts_drop(&w);
    assert_int_equal(taken(s), 4096);
    restart(s, 0);
    place_run(&s->place, one_is_counted, s);
    place_run(&s->place, one_left, s);
    restart(s, 0);
    artifacts_remove(s->artifacts, job); // at once: it has been counted all the same
    place_run(&s->place, nothing_is_counted, s);
    struct shares_stats stats;
    shares_stats(s->shares, &stats);
    assert_int_equal(stats.largest_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_written_and_read, make, drop),
        cmocka_unit_test_setup_teardown(test_dropped, make, drop),
        cmocka_unit_test_setup_teardown(test_counted, make, drop),
        cmocka_unit_test_setup_teardown(test_after_a_crash, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
