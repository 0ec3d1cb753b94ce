// Listings of hostile workspaces: each entry once, in pieces from cursors, odd names as text.
#include "place.h"

#include "workspace/listing.h"
#include "workspace/names.h"

#include <signal.h>
#include <sys/wait.h>

enum { MANY = 5000 };

// Lists all, `page` entries from each cursor. Entries in all.
static int list(const struct place *p, bool recursive, int page, void (*each)(const char *, void *),
                void *ctx)
{
    AUTO_BUF struct buf cursor = BUF_INIT(LISTING_MAX_CURSOR);
    struct listing l;
    struct listing_entry entry;
    int n = 0;
    for (bool more = true; more;) {
        assert_int_equal(listing_begin(&l, p->ws, recursive, cursor.len ? cursor.data : NULL), 0);
        for (int i = 0; i < page && more; i++) {
            int e = listing_next(&l, &entry);
            assert_true(e >= 0);
            more = e;
            if (e && each) {
                each(entry.path, ctx);
            }
            n += e;
        }
        buf_clear(&cursor);
        assert_int_equal(listing_cursor(&l, &cursor), 0);
        listing_end(&l);
    }
    return n;
}

static void mark(const char *path, void *ctx)
{
    unsigned char *seen = ctx;
    const char *number = strrchr(path, '/');
    int i = atoi(number ? number + 1 : path);
    assert_in_range(i, 0, MANY - 1);
    seen[i]++;
}

static void each_entry_is_told_once(void **state)
{
    struct place *p = *state;
    static unsigned char seen[MANY];
    char name[64];
    for (int i = 0; i < MANY; i++) { // every tenth one level deeper
        snprintf(name, sizeof name, i % 10 ? "%d" : "%d.d", i);
        if (i % 10) {
            place_write(p->ws, name, "", 0);
        } else {
            assert_int_equal(mkdirat(p->ws, name, 0700), 0);
        }
    }
    static const int pages[] = {1 << 30, 1000, 7};
    for (size_t k = 0; k < ARRAY_LEN(pages); k++) {
        memset(seen, 0, sizeof seen);
        assert_int_equal(list(p, true, pages[k], mark, seen), MANY);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(seen[i], 1);
        }
    }
}

static void only_asked_for_it_goes_deeper(void **state)
{
    struct place *p = *state;
    assert_int_equal(mkdirat(p->ws, "a", 0700), 0);
    assert_int_equal(mkdirat(p->ws, "a/b", 0700), 0);
    place_write(p->ws, "a/b/c", "", 0);
    assert_int_equal(symlinkat("a", p->ws, "link"), 0);
    assert_int_equal(symlinkat("/", p->ws, "root"), 0);
    assert_int_equal(list(p, false, 1, NULL, NULL), 3);
    assert_int_equal(list(p, true, 1, NULL, NULL), 5);
}

// What is beside a folder is told when the folder above is open again.
static void however_deep_three_folders_are_open(void **state)
{
    enum { DEPTH = 40, BESIDE = 5 };
    struct place *p = *state;
    struct listing l;
    struct listing_entry entry;
    AUTO_CLOSE int dir = fcntl(p->ws, F_DUPFD_CLOEXEC, 0);
    for (int i = 0; i < DEPTH; i++) {
        for (int k = 0; k < BESIDE; k++) {
            place_write(dir, (const char[]){(char)('a' + k), '\0'}, "", 0);
        }
        assert_int_equal(mkdirat(dir, "folder", 0700), 0);
        int next = openat(dir, "folder", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(dir);
        dir = next;
    }
    int n = 0, spare = open("/dev/null", O_RDONLY | O_CLOEXEC), last = spare;
    close(spare);
    assert_int_equal(listing_begin(&l, p->ws, true, NULL), 0);
    while (listing_next(&l, &entry) > 0) {
        struct stat st;
        assert_int_equal(fstatat(entry.folder, entry.name, &st, AT_SYMLINK_NOFOLLOW), 0);
        for (int i = 0; i < l.depth; i++) {
            last = l.levels[i].fd > last ? l.levels[i].fd : last;
        }
        n++;
    }
    listing_end(&l);
    assert_int_equal(n, DEPTH * (BESIDE + 1));
    assert_true(last <= spare + 3); // and one while the next is opened
    assert_int_equal(list(p, true, 1, NULL, NULL), n);
    assert_int_equal(list(p, true, 7, NULL, NULL), n);
}

static void what_is_too_deep_is_told(void **state)
{
    struct place *p = *state;
    struct listing l;
    struct listing_entry entry;
    AUTO_CLOSE int dir = fcntl(p->ws, F_DUPFD_CLOEXEC, 0);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(mkdirat(dir, "d", 0700), 0);
        int next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(dir);
        dir = next;
    }
    int n = 0;
    assert_int_equal(listing_begin(&l, p->ws, true, NULL), 0);
    while (listing_next(&l, &entry) > 0) {
        n++;
        assert_int_equal(entry.unfit, n == LISTING_MAX_DEPTH);
    }
    assert_int_equal(n, LISTING_MAX_DEPTH);
    assert_true(l.cut);
    listing_end(&l);
    assert_int_equal(list(p, true, 1, NULL, NULL), LISTING_MAX_DEPTH);
}

static void cursors_that_are_none_are_refused(void **state)
{
    struct place *p = *state;
    struct listing l;
    assert_int_equal(mkdirat(p->ws, "a", 0700), 0);
    static const char *const bad[] = {
        "",
        ":",
        "0",
        "g:",
        "0:a",
        "0.0:",
        "0.0:..",
        "0.0:./",
        "0.0:a/",
        "0.0:/a",
        "0.0.0:a",
        "0.0:a/b",
        "0.0:a%00",
        "0.0:a%0",
        "0.0:.",
        "0.:a",
        "ffffffffffffffff:",
        "00000000000000000:",
        "0 :",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        print_message("%s\n", bad[i]);
        assert_int_equal(listing_begin(&l, p->ws, true, bad[i]), -EINVAL);
        listing_end(&l);
    }
    struct listing_entry entry;
    // an offset nobody gave, and a folder that is gone: some entries or none, no failure
    static const char *const odd[] = {"7fffffffffffffff:", "0.0:gone", "0.12345:a"};
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        assert_int_equal(listing_begin(&l, p->ws, true, odd[i]), 0);
        while (listing_next(&l, &entry) > 0) {
        }
        listing_end(&l);
    }
    assert_int_equal(symlinkat("..", p->ws, "up"), 0);
    assert_int_equal(listing_begin(&l, p->ws, true, "0.0:up"), 0);
    while (listing_next(&l, &entry) > 0) {
        assert_null(strstr(entry.path, "secret"));
    }
    listing_end(&l);
}

static void odd_names_are_text_and_back(void **state)
{
    (void)state;
    static const struct {
        const char *raw, *text;
        bool escaped;
    } cases[] = {
        {"a/b c", "a/b c", false},
        {"100%", "100%", false},
        {"\xe4\xb8\xad", "\xe4\xb8\xad", false},
        {"new\nline", "new%0Aline", true},
        {"\x1b[2J%", "%1B[2J%25", true},
        {"\xff\xfe", "%FF%FE", true},
        {"\xe4\xb8", "%E4%B8", true},
        {"\xc2\x9b\xc3\xa9", "%C2%9B\xc3\xa9", true},
        {"a\\b:", "a%5Cb%3A", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf text = BUF_INIT(100);
        AUTO_BUF struct buf raw = BUF_INIT(100);
        bool escaped;
        assert_int_equal(names_escape(&text, cases[i].raw, strlen(cases[i].raw), "\\:", &escaped),
                         0);
        assert_string_equal(text.data, cases[i].text);
        assert_int_equal(escaped, cases[i].escaped);
        if (escaped) {
            assert_int_equal(names_unescape(&raw, text.data, text.len), 0);
            assert_string_equal(raw.data, cases[i].raw);
        }
    }
    static const char *const bad[] = {"%", "a%1", "%00", "%g0", "%0g"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO_BUF struct buf raw = BUF_INIT(100);
        assert_int_equal(names_unescape(&raw, bad[i], strlen(bad[i])), -EINVAL);
    }
}

static void not_secret(const char *path, void *ctx)
{
    (void)ctx;
    assert_null(strstr(path, "secret"));
}

static void nothing_outside_is_told_while_entries_are_swapped(void **state)
{
    struct place *p = *state;
    pid_t pid = fork();
    for (int made = 0; pid == 0 && made >= 0;) {
        made += !mkdirat(p->ws, "d", 0700);
        unlinkat(p->ws, "d", AT_REMOVEDIR);
        made += !symlinkat("..", p->ws, "d");
        unlinkat(p->ws, "d", 0);
    }
    for (int i = 0; i < 3000; i++) {
        list(p, true, 1, not_secret, NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(each_entry_is_told_once),
        PLACE_TEST(only_asked_for_it_goes_deeper),
        PLACE_TEST(however_deep_three_folders_are_open),
        PLACE_TEST(what_is_too_deep_is_told),
        PLACE_TEST(cursors_that_are_none_are_refused),
        PLACE_TEST(odd_names_are_text_and_back),
        PLACE_TEST(nothing_outside_is_told_while_entries_are_swapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
