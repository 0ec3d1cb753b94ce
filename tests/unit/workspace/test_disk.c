// Counting a tree, and what the counting decides.
#include "place.h"

#include "workspace/disk.h"
#include "workspace/walk.h"

#include <dirent.h>

static void fill(int dir, const char *name, size_t len)
{
    char *data = malloc(len);
    memset(data, 'x', len);
    place_write(dir, name, data, len);
    free(data);
}

// Empty ones: f0, f1 ...
static void make_files(int dir, int n)
{
    char name[16];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "f%d", i);
        place_write(dir, name, "", 0);
    }
}

static void count(struct place *p, uint64_t step, struct walk *ret)
{
    int e = walk_begin(ret, p->ws);
    while (!e && (e = walk_step(ret, step)) == 0) {
    }
    assert_int_equal(e, 1);
}

static void any_step_gives_the_same_figures(void **state)
{
    struct place *p = *state;
    char name[64];
    for (int i = 0; i < 300; i++) { // more than one listing of getdents
        snprintf(name, sizeof name, "a-rather-long-name-for-a-file-%d", i);
        fill(p->ws, name, 100);
    }
    assert_int_equal(mkdirat(p->ws, "d", 0700), 0);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "d/sub%d", i);
        assert_int_equal(mkdirat(p->ws, name, 0700), 0);
        snprintf(name, sizeof name, "d/sub%d/file", i);
        fill(p->ws, name, 5000);
    }
    assert_int_equal(symlinkat("/usr", p->ws, "link"), 0);
    struct walk whole;
    count(p, UINT64_MAX / 2, &whole);
    assert_int_equal(whole.entries, 300 + 1 + 20 + 20 + 1);
    assert_true(whole.bytes >= 300 * 4096 + 20 * 8192 && whole.bytes < 3000000);
    assert_false(whole.blind);
    const uint64_t steps[] = {1, 7, 100};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct walk w;
        count(p, steps[i], &w);
        assert_int_equal(w.entries, whole.entries);
        assert_int_equal(w.bytes, whole.bytes);
    }
}

static void hard_links_and_holes_are_not_counted_twice(void **state)
{
    struct place *p = *state;
    struct walk w;
    fill(p->ws, "big", 1 << 20);
    for (int i = 0; i < 9; i++) {
        char name[16];
        snprintf(name, sizeof name, "link%d", i);
        assert_int_equal(linkat(p->ws, "big", p->ws, name, 0), 0);
    }
    AUTO_CLOSE int sparse = openat(p->ws, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(sparse, (off_t)1 << 40), 0);
    count(p, 1000, &w);
    assert_true(w.bytes >= (1 << 20) - 10 && w.bytes < (1 << 20) + 65536);
}

// With something before, beside and below each folder of it; as many pieces as there are entries.
static void a_tree_is_counted_however_deep_it_is(void **state)
{
    struct place *p = *state;
    enum { DEPTH = 2 * WALK_OPEN + 20 };
    int at = dup(p->ws);
    for (int i = 0; i < DEPTH; i++) {
        fill(at, "a", 1);
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        assert_int_equal(mkdirat(at, "e", 0700), 0);
        assert_int_equal(mkdirat(at, "e/f", 0700), 0);
        fill(at, "z", 1);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    fill(at, "big", 1 << 20);
    close(at);
    const uint64_t steps[] = {1, 1000000};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct walk w;
        count(p, steps[i], &w);
        assert_false(w.blind);
        assert_int_equal(w.entries, 5 * DEPTH + 1);
        assert_true(w.bytes >= 1 << 20);
    }
}

// The way back is not where the walk came from: said, and the end.
static void a_deep_tree_that_is_moved_is_said_to_be_unseen(void **state)
{
    struct place *p = *state;
    struct walk w;
    int at = dup(p->ws);
    for (int i = 0; i < WALK_OPEN + 20; i++) {
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    close(at);
    assert_int_equal(walk_begin(&w, p->ws), 0);
    assert_int_equal(walk_step(&w, WALK_OPEN + 10), 0);
    assert_int_equal(mkdirat(p->ws, "x", 0700), 0);
    assert_int_equal(renameat(p->ws, "d/d/d", p->ws, "x/d"), 0);
    while (walk_step(&w, 1000) == 0) {
    }
    assert_true(w.blind);
}

// One that has lost its names is as long as ever, on many file systems, and read whole in one call.
static void a_long_folder_is_left_to_who_can_wait(void **state)
{
    struct place *p = *state;
    struct walk w;
    struct disk d;
    char name[64];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "file%d", i);
        fill(p->ws, name, 1);
    }
    assert_int_equal(walk_begin(&w, p->ws), 0);
    w.folder_max = 1;
    assert_int_equal(walk_step(&w, 1000), 0);
    assert_true(w.waits);
    assert_int_equal(w.entries, 0);
    w.folder_max = 0;
    assert_int_equal(walk_step(&w, 1000), 1);
    assert_false(w.waits);
    assert_int_equal(w.entries, 20);
    assert_int_equal(disk_begin(&d, p->ws, 4 << 20, 1000), 0);
    d.folder_max = 1;
    assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_MORE);
    d.folder_max = 0;
    assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_FINE);
    assert_int_equal(d.used_entries, 20);
    disk_end(&d);
}

static void a_walk_can_be_given_up(void **state)
{
    struct place *p = *state;
    struct walk w = {0};
    walk_end(&w);
    assert_int_equal(walk_begin(&w, p->ws), 0);
    walk_end(&w);
    walk_end(&w);
}

static int look_until(struct disk *d)
{
    for (int i = 0; i < 200; i++) {
        int verdict = disk_look(d, UINT64_MAX);
        if (verdict != DISK_FINE) {
            return verdict;
        }
        usleep(DISK_LOOK_MS * 1000);
    }
    return DISK_FINE;
}

static void more_than_the_limit_is_seen(void **state)
{
    struct place *p = *state;
    struct disk d;
    assert_int_equal(disk_begin(&d, p->ws, 4 << 20, 1000), 0);
    fill(p->ws, "some", 3 << 20);
    assert_int_equal(disk_look(&d, UINT64_MAX), DISK_FINE);
    fill(p->ws, "more", 2 << 20);
    assert_int_equal(look_until(&d), DISK_OVER);
    disk_end(&d);
}

static void more_files_than_the_limit_are_seen(void **state)
{
    struct place *p = *state;
    struct disk d;
    assert_int_equal(disk_begin(&d, p->ws, 4 << 20, 10), 0);
    for (int i = 0; i < 30; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        place_write(p->ws, name, "", 0);
    }
    assert_int_equal(look_until(&d), DISK_FILES);
    assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_FILES);
    disk_end(&d);
}

static int first(struct disk *d)
{
    int e;
    while ((e = disk_first(d, 0)) == DISK_MORE) {
    }
    return e;
}

static void what_begins_above_the_limit_may_stay_and_shrink(void **state)
{
    struct place *p = *state;
    struct disk d;
    fill(p->ws, "a", 6 << 20);
    fill(p->ws, "b", 6 << 20);
    assert_int_equal(disk_begin(&d, p->ws, 4 << 20, 1000), 0);
    assert_int_equal(first(&d), DISK_FINE);
    assert_true(disk_began_above(&d) && !d.cut);
    assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_FINE); // still the same
    assert_int_equal(unlinkat(p->ws, "a", 0), 0);
    for (int i = 0; i < 2; i++) { // what it takes now is the most: by two walks
        assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_FINE);
    }
    assert_true(disk_began_above(&d));
    fill(p->ws, "c", 1 << 20); // less than there was, more than there is
    assert_int_equal(look_until(&d), DISK_OVER);
    assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_OVER);
    assert_int_equal(unlinkat(p->ws, "b", 0), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_FINE);
    }
    assert_false(disk_began_above(&d));
    fill(p->ws, "d", 2 << 20); // below it the limit holds, as ever
    assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_FINE);
    fill(p->ws, "e", 2 << 20);
    assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_OVER);
    disk_end(&d);
}

static void what_begins_above_the_limit_never_grows(void **state)
{
    struct place *p = *state;
    struct disk d;
    fill(p->ws, "a", 6 << 20);
    assert_int_equal(disk_begin(&d, p->ws, 4 << 20, 1000), 0);
    assert_int_equal(first(&d), DISK_FINE);
    fill(p->ws, "b", 64 << 10);
    assert_int_equal(look_until(&d), DISK_OVER);
    assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_OVER);
    assert_true(d.used_bytes > 6 << 20);
    disk_end(&d);
}

// As a file system may take them when it writes a file out.
static void blocks_beside_the_content_are_no_growth(void **state)
{
    struct place *p = *state;
    struct disk d;
    fill(p->ws, "a", 6 << 20);
    assert_int_equal(disk_begin(&d, p->ws, 4 << 20, 1000), 0);
    assert_int_equal(first(&d), DISK_FINE);
    AUTO_CLOSE int fd = openat(p->ws, "a", O_WRONLY | O_CLOEXEC);
    assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, 6 << 20, 64 << 10), 0);
    assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_FINE);
    assert_true(d.used_bytes > d.may_bytes && disk_began_above(&d));
    assert_int_equal(pwrite(fd, "x", 1, 6 << 20), 1);
    assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_OVER);
    disk_end(&d);
}

static void more_files_than_the_limit_may_stay_and_become_fewer(void **state)
{
    struct place *p = *state;
    struct disk d;
    make_files(p->ws, 300);
    assert_int_equal(disk_begin(&d, p->ws, 4 << 20, 100), 0);
    assert_int_equal(first(&d), DISK_FINE);
    assert_int_equal(d.used_entries, 300);
    assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_FINE);
    assert_int_equal(unlinkat(p->ws, "f7", 0), 0);
    assert_int_equal(disk_look(&d, UINT64_MAX), DISK_FINE);
    place_write(p->ws, "f7", "", 0);
    place_write(p->ws, "one more", "", 0);
    assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_FILES);
    disk_end(&d);
}

// All that is there is not looked at then: whoever asks what it takes has to count again.
static void a_count_that_was_cut_says_so(void **state)
{
    struct place *p = *state;
    struct disk d;
    make_files(p->ws, 300);
    assert_int_equal(disk_begin(&d, p->ws, 4 << 20, 10), 0);
    assert_int_equal(disk_settle(&d, 0), DISK_FILES);
    assert_true(d.cut && d.used_entries < 300);
    disk_end(&d);
}

static void what_was_deleted_does_not_count(void **state)
{
    struct place *p = *state;
    struct disk d;
    assert_int_equal(disk_begin(&d, p->ws, 4 << 20, 1000), 0);
    for (int i = 0; i < 10; i++) {
        fill(p->ws, "file", 3 << 20);
        assert_int_equal(disk_look(&d, UINT64_MAX), DISK_FINE);
        assert_int_equal(unlinkat(p->ws, "file", 0), 0);
    }
    fill(p->ws, "last", 1 << 20);
    assert_int_equal(disk_settle(&d, UINT64_MAX), DISK_FINE);
    assert_true(d.used_bytes >= (1 << 20) - 4 * 4096 && d.used_bytes <= 2 << 20);
    disk_end(&d);
}

// What is moved from where the walk has been to where it has not is counted twice: by one walk.
static void settles_in_pieces(void **state)
{
    struct place *p = *state;
    struct disk d;
    char name[64];
    int verdict, pieces = 1;
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "d%d", i);
        assert_int_equal(mkdirat(p->ws, name, 0700), 0);
    }
    assert_int_equal(disk_begin(&d, p->ws, 4 << 20, 1000), 0);
    while ((verdict = disk_settle(&d, 0)) == DISK_MORE) {
        pieces++;
    }
    assert_int_equal(verdict, DISK_FINE);
    assert_true(pieces > 3);
    assert_int_equal(d.used_entries, 300);
    disk_end(&d);
}

static void a_move_in_mid_walk_is_no_use(void **state)
{
    struct place *p = *state;
    struct disk d;
    char order[3][8], name[64];
    int n = 0;
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "d%d", i);
        assert_int_equal(mkdirat(p->ws, name, 0700), 0);
    }
    DIR *listing = fdopendir(openat(p->ws, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (struct dirent *e; n < 3 && (e = readdir(listing));) { // the walk's order, too
        if (e->d_name[0] == 'd') {
            snprintf(order[n++], sizeof order[0], "%.7s", e->d_name);
        }
    }
    closedir(listing);
    assert_int_equal(disk_begin(&d, p->ws, 4 << 20, 100000), 0);
    char from[16], to[16];
    snprintf(from, sizeof from, "%s/f", order[0]);
    snprintf(to, sizeof to, "%s/f", order[2]);
    fill(p->ws, from, 3 << 20);
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "%s/%d", order[1], i);
        place_write(p->ws, name, "", 0);
    }
    usleep(1100000); // then a change is reason enough to walk
    assert_int_equal(disk_look(&d, 0), DISK_FINE);
    assert_true(d.walking);
    assert_int_equal(renameat(p->ws, from, p->ws, to), 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(disk_look(&d, UINT64_MAX), DISK_FINE);
    }
    fill(p->ws, "more", 2 << 20);
    assert_int_equal(look_until(&d), DISK_OVER);
    disk_end(&d);
}

static void the_floor_is_the_smaller_of_two(void **state)
{
    (void)state;
    assert_int_equal(disk_floor(UINT64_C(1) << 40), UINT64_C(256) << 20);
    assert_int_equal(disk_floor(UINT64_C(1) << 30), (UINT64_C(1) << 30) / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(any_step_gives_the_same_figures),
        PLACE_TEST(hard_links_and_holes_are_not_counted_twice),
        PLACE_TEST(a_tree_is_counted_however_deep_it_is),
        PLACE_TEST(a_deep_tree_that_is_moved_is_said_to_be_unseen),
        PLACE_TEST(a_long_folder_is_left_to_who_can_wait),
        PLACE_TEST(a_walk_can_be_given_up),
        PLACE_TEST(more_than_the_limit_is_seen),
        PLACE_TEST(more_files_than_the_limit_are_seen),
        PLACE_TEST(what_begins_above_the_limit_may_stay_and_shrink),
        PLACE_TEST(what_begins_above_the_limit_never_grows),
        PLACE_TEST(blocks_beside_the_content_are_no_growth),
        PLACE_TEST(more_files_than_the_limit_may_stay_and_become_fewer),
        PLACE_TEST(a_count_that_was_cut_says_so),
        PLACE_TEST(what_was_deleted_does_not_count),
        PLACE_TEST(settles_in_pieces),
        PLACE_TEST(a_move_in_mid_walk_is_no_use),
        PLACE_TEST(the_floor_is_the_smaller_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
