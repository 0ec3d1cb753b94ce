// Names that lead out of a workspace, and links that wait in it.
#include "place.h"

#include "workspace/folder.h"
#include "workspace/path.h"

static void names_that_lead_out_are_refused(void **state)
{
    struct place *p = *state;
    assert_int_equal(mkdirat(p->ws, "d", 0755), 0);
    assert_int_equal(mkdirat(p->ws, "d/e", 0755), 0);
    place_write(p->ws, "d/file", "x", 1);
    const struct {
        const char *link, *target; // made first, if any
        const char *path;
        int expected;
    } table[] = {
        {NULL, NULL, "../secret", -EXDEV},
        {NULL, NULL, "d/../../secret", -EXDEV},
        {NULL, NULL, "d/../../../../../../etc/passwd", -EXDEV},
        {NULL, NULL, "/etc/passwd", -EXDEV},
        {NULL, NULL, "//etc/passwd", -EXDEV},
        {NULL, NULL, "", -ENOENT},
        {NULL, NULL, "none", -ENOENT},
        {NULL, NULL, "d/file/x", -ENOTDIR},
        {"l1", "/etc/passwd", "l1", -ELOOP},
        {"l2", "../secret", "l2", -ELOOP},
        {"l3", "/", "l3/etc/passwd", -ELOOP},
        {"l4", "..", "l4/secret", -ELOOP},
        {"l5", "d", "l5/file", -ELOOP}, // even where it would stay inside
        {"l6", "l6", "l6", -ELOOP},
        {"l7", "none", "l7", -ELOOP},
        {"l8", "/proc/self/root", "l8/etc/passwd", -ELOOP},
        {"l9", "/proc/self/cwd", "l9", -ELOOP},
        {"d/l10", "../../secret", "d/l10", -ELOOP},
        {"d/e/l11", "../..", "d/e/l11/l1", -ELOOP},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (table[i].link) {
            assert_int_equal(symlinkat(table[i].target, p->ws, table[i].link), 0);
        }
        int fd = path_open(p->ws, table[i].path, O_RDONLY, 0);
        if (fd != table[i].expected) {
            fail_msg("%s: %d, not %d", table[i].path, fd, table[i].expected);
        }
    }
}

static void magic_links_are_refused(void **state)
{
    (void)state;
    AUTO_CLOSE int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(path_open(proc, "exe", O_RDONLY, 0), -ELOOP);
    assert_int_equal(path_open(proc, "root/etc/passwd", O_RDONLY, 0), -ELOOP);
    assert_int_equal(path_open(proc, "fd/0", O_RDONLY, 0), -ELOOP);
}

static void other_mounts_are_refused(void **state)
{
    (void)state;
    AUTO_CLOSE int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(path_open(root, "proc/version", O_RDONLY, 0), -EXDEV);
}

static void what_lies_inside_opens(void **state)
{
    struct place *p = *state;
    const char *const names[] = {"a",        " ",    "-", "...",  "..a",
                                 "\xff\x80", "a\nb", "*", "$(x)", "名"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        place_write(p->ws, names[i], "x", 1);
        AUTO_CLOSE int fd = path_open(p->ws, names[i], O_RDONLY, 0);
        assert_true(fd >= 0);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    }
}

static void a_fifo_does_not_hold_the_opener(void **state)
{
    struct place *p = *state;
    assert_int_equal(mkfifoat(p->ws, "fifo", 0644), 0);
    AUTO_CLOSE int fd = path_open(p->ws, "fifo", O_RDONLY, 0);
    assert_true(fd >= 0);
    assert_int_equal(path_open(p->ws, "fifo", O_WRONLY | O_CREAT | O_EXCL, 0644), -EEXIST);
}

static void parents_are_made_but_never_through_a_link(void **state)
{
    struct place *p = *state;
    const char *name = NULL;
    AUTO_CLOSE int deep = path_open_parent(p->ws, "a/b/c/file.txt", 1, getuid(), &name);
    assert_true(deep >= 0);
    assert_string_equal(name, "file.txt");
    struct stat st;
    assert_int_equal(fstatat(p->ws, "a/b/c", &st, 0), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0755);
    assert_int_equal(symlinkat("..", p->ws, "up"), 0);
    assert_int_equal(path_open_parent(p->ws, "up/new/file", 1, getuid(), &name), -ENOTDIR);
    assert_int_equal(path_open_parent(p->ws, "../new/file", 1, getuid(), &name), -EXDEV);
    assert_int_equal(path_open_parent(p->ws, "/new/file", 1, getuid(), &name), -EINVAL);
    assert_int_equal(path_open_parent(p->ws, "a//file", 1, getuid(), &name), -EINVAL);
    assert_int_equal(path_open_parent(p->ws, "a/", 1, getuid(), &name), -EINVAL);
    assert_int_equal(path_open_parent(p->ws, "none/file", 0, 0, &name), -ENOENT);
    assert_int_equal(faccessat(p->outer, "new", F_OK, 0), -1);
}

static void a_workspace_folder_comes_and_goes(void **state)
{
    struct place *p = *state;
    int ws = -1;
    assert_int_equal(mkdirat(p->outer, "once", 0700), 0);
    assert_int_equal(folder_make(p->outer, "once/r1", getuid(), &ws), 0);
    struct stat st;
    assert_int_equal(fstat(ws, &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0700);
    assert_int_equal(fstatat(p->outer, "once/r1", &st, 0), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0711);
    int again = -1;
    assert_int_equal(folder_make(p->outer, "once/r1", getuid(), &again), -EEXIST);
    assert_int_equal(again, -1);
    assert_int_equal(mkdirat(ws, "d", 0), 0);
    close(ws);
    assert_int_equal(folder_remove(p->outer, "once/r1"), 0);
    assert_int_equal(faccessat(p->outer, "once/r1", F_OK, 0), -1);
}

static void a_folder_made_ready_is_taken_by_its_owner_alone(void **state)
{
    struct place *p = *state;
    assert_int_equal(mkdirat(p->outer, "once", 0700), 0);
    AUTO_CLOSE int once = openat(p->outer, "once", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(folder_open_ready(p->outer, "once/ready", getuid()), -ENOENT);
    assert_int_equal(folder_make_ready(once, "ready", getuid(), getuid()), 0);
    assert_int_equal(folder_open_ready(p->outer, "once/ready", getuid() + 1), -ENOENT);
    AUTO_CLOSE int ws = folder_open_ready(p->outer, "once/ready", getuid());
    assert_true(ws >= 0);
    assert_int_equal(faccessat(ws, "input", F_OK, 0), 0);
    assert_int_equal(folder_make_ready(once, "ready", getuid(), getuid()), -EEXIST);
    assert_int_equal(faccessat(ws, "input", F_OK, 0), 0); // and the first is still there
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(names_that_lead_out_are_refused),
        PLACE_TEST(magic_links_are_refused),
        PLACE_TEST(other_mounts_are_refused),
        PLACE_TEST(what_lies_inside_opens),
        PLACE_TEST(a_fifo_does_not_hold_the_opener),
        PLACE_TEST(parents_are_made_but_never_through_a_link),
        PLACE_TEST(a_workspace_folder_comes_and_goes),
        PLACE_TEST(a_folder_made_ready_is_taken_by_its_owner_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
