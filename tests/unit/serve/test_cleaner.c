// Trees go in the background: deep, wide, closed; one that cannot go stops none.
#include "place.h"

#include "serve/cleaner.h"

struct set {
    struct place place;
    struct cleaner *cleaner;
    int trash;
    unsigned done, failed;
};

static void begin(struct set *s)
{
    *s = (struct set){0};
    place_make(&s->place);
    place_folder(&s->place, "trash");
    s->trash = openat(s->place.root, "trash", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(cleaner_new(s->trash, s->place.pool, &s->cleaner), 0);
}

static void end(struct set *s)
{
    work_pool_stop(s->place.pool);
    cleaner_free(s->cleaner);
    close(s->trash);
    place_drop(&s->place);
}

static void done(void *ctx, int error)
{
    struct set *s = ctx;
    s->done++;
    s->failed += error != 0;
}

static bool is_empty(void *ctx) { return place_count(&((struct set *)ctx)->place, "trash") == 0; }
static bool all_done(void *ctx) { return ((struct set *)ctx)->done == 40; }

static void make_deep(const struct set *s, const char *name)
{
    int at = dup(s->place.root);
    for (int i = 0; i < 400; i++) {
        assert_int_equal(mkdirat(at, i ? "d" : name, 0755), 0);
        int next = openat(at, i ? "d" : name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
        assert_true(at >= 0);
    }
    close(at);
}

static void test_many_at_once(void **state)
{
    (void)state;
    struct set s;
    begin(&s);
    char name[32];
    for (unsigned i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "t%u", i);
        if (i % 8 == 0) {
            make_deep(&s, name);
        } else if (i % 8 == 1) {
            place_write(&s.place, name, "x"); // no folder at all
        } else {
            place_folder(&s.place, name);
            snprintf(name, sizeof name, "t%u/\xff\n", i);
            place_write(&s.place, name, "x");
            snprintf(name, sizeof name, "t%u", i);
            assert_int_equal(fchmodat(s.place.root, name, i % 2 ? 0 : 0555, 0), 0);
        }
        assert_int_equal(cleaner_take(s.cleaner, s.place.root, name, 0, done, &s, NULL), 0);
        assert_false(place_has(&s.place, name)); // at once
    }
    place_run(&s.place, all_done, &s);
    assert_int_equal(s.failed, 0);
    assert_int_equal(place_count(&s.place, "trash"), 0);
    end(&s);
}

static void test_sweep(void **state)
{
    (void)state;
    struct set s;
    begin(&s);
    place_folder(&s.place, "trash/a");
    place_write(&s.place, "trash/a/b", "x");
    place_write(&s.place, "trash/.isle-1.part", "x");
    assert_int_equal(symlinkat("/etc", s.trash, "link"), 0);
    assert_int_equal(cleaner_sweep(s.cleaner), 0);
    place_run(&s.place, is_empty, &s);
    end(&s);
}

static void test_missing(void **state)
{
    (void)state;
    struct set s;
    begin(&s);
    assert_int_equal(cleaner_take(s.cleaner, s.place.root, "none", 0, done, &s, NULL), -ENOENT);
    assert_int_equal(s.done, 0);
    end(&s);
}

static void test_stopped_while_removing(void **state)
{
    (void)state;
    struct set s;
    begin(&s);
    for (unsigned i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%u", i);
        place_folder(&s.place, name);
        assert_int_equal(cleaner_take(s.cleaner, s.place.root, name, 0, done, &s, NULL), 0);
    }
    end(&s); // what is left stays, nothing leaks
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_stopped_while_removing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
