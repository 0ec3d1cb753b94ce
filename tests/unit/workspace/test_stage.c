// Input files: what arrives, what it is measured as, what is refused.
#include "place.h"

#include "workspace/stage.h"

#include <sys/mman.h>

static int source(const char *text, size_t len)
{
    int fd = memfd_create("source", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, len), 0);
    return fd; // its offset is at the end: staging does not depend on it
}

static void files_arrive_with_parents_modes_and_owner(void **state)
{
    struct place *p = *state;
    struct job_file files[] = {
        {.target = (char *)(uintptr_t) "input/a.csv", .mode = 0644, .fd = source("abc", 3)},
        {.target = (char *)(uintptr_t) "deep/er/run.sh", .mode = 0755, .fd = source("x", 1)},
        {.target = (char *)(uintptr_t) "empty", .mode = 0644, .fd = source("", 0)},
    };
    struct job j = {.files = files, .n_files = ARRAY_LEN(files)};
    struct stage_need need;
    struct stage_error error = {.text = ""};
    assert_int_equal(stage_measure(&j, &need, &error), 0);
    assert_int_equal(need.bytes, 2 * 4096);
    // the root, four folders, three files, deep, deep/er
    assert_int_equal(need.inodes, 1 + 4 + 3 + 2);
    uid_t uid = getuid() == 0 ? 20480 : getuid();
    assert_int_equal(stage_make_folders(p->ws, uid), 0);
    assert_int_equal(stage_files(p->ws, &j, uid, 4, &error), 0); // just enough
    char text[16];
    assert_int_equal(fd_read_at(p->ws, "input/a.csv", text, sizeof text), 3);
    assert_string_equal(text, "abc");
    const struct {
        const char *path;
        mode_t mode;
    } made[] = {{"input", S_IFDIR | 0755},
                {"output", S_IFDIR | 0755},
                {"tmp", S_IFDIR | 0755},
                {"logs", S_IFDIR | 0755},
                {"deep/er", S_IFDIR | 0755},
                {"input/a.csv", S_IFREG | 0644},
                {"deep/er/run.sh", S_IFREG | 0755},
                {"empty", S_IFREG | 0644}};
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        struct stat st;
        assert_int_equal(fstatat(p->ws, made[i].path, &st, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(st.st_mode, made[i].mode);
        assert_int_equal(st.st_uid, uid);
        assert_int_equal(st.st_gid, uid);
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        close(files[i].fd);
    }
}

// In whichever order they come.
static void each_folder_is_measured_once(void **state)
{
    (void)state;
    static const char *const targets[] = {"b/c/2",   "a",   "b/c-d/1", "input/x/1", "b/c/1",
                                          "b/c/d/1", "b/0", "input/y", "b0/c/1",    "inputs/z"};
    struct job_file files[ARRAY_LEN(targets)] = {0};
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        files[i].target = (char *)(uintptr_t)targets[i];
        files[i].content = (char *)(uintptr_t) "";
    }
    struct job j = {.files = files, .n_files = ARRAY_LEN(targets)};
    struct stage_need need;
    struct stage_error error = {.text = ""};
    assert_int_equal(stage_measure(&j, &need, &error), 0);
    // b, b/c, b/c-d, b/c/d, b0, b0/c, input/x, inputs
    assert_int_equal(need.inodes, 1 + 4 + ARRAY_LEN(targets) + 8);
}

static void one_byte_too_much_is_refused_by_name(void **state)
{
    struct place *p = *state;
    struct job_file files[] = {
        {.target = (char *)(uintptr_t) "a", .mode = 0644, .fd = source("abc", 3)},
        {.target = (char *)(uintptr_t) "b", .mode = 0644, .fd = source("de", 2)},
    };
    struct job j = {.files = files, .n_files = 2};
    struct stage_error error = {.text = ""};
    assert_int_equal(stage_files(p->ws, &j, getuid(), 4, &error), -ENOSPC);
    assert_string_equal(error.text, "input_files: b: larger than what limits.disk_mb leaves");
    close(files[0].fd);
    close(files[1].fd);
}

// What a job holds itself is written as what came by descriptor.
static void contents_of_the_job_arrive(void **state)
{
    struct place *p = *state;
    struct job_file files[] = {
        {.target = (char *)(uintptr_t) "t", .mode = 0644, .fd = -1, .content_len = 3},
        {.target = (char *)(uintptr_t) "e", .mode = 0755, .fd = -1, .content_len = 0},
    };
    files[0].content = (char *)(uintptr_t) "a\0b";
    files[1].content = (char *)(uintptr_t) "";
    struct job j = {.files = files, .n_files = 2};
    struct stage_need need;
    struct stage_error error = {.text = ""};
    char text[8] = "";
    assert_int_equal(stage_measure(&j, &need, &error), 0);
    assert_int_equal(need.bytes, 4096);
    assert_int_equal(stage_files(p->ws, &j, getuid(), 3, &error), 0);
    assert_int_equal(fd_read_at(p->ws, "t", text, sizeof text), 3);
    assert_memory_equal(text, "a\0b", 3);
    assert_int_equal(fd_read_at(p->ws, "e", text, sizeof text), 0);
    files[0].target = (char *)(uintptr_t) "t2";
    files[1].target = (char *)(uintptr_t) "e2";
    assert_int_equal(stage_files(p->ws, &j, getuid(), 2, &error), -ENOSPC);
    assert_string_equal(error.text, "input_files: t2: larger than what limits.disk_mb leaves");
    assert_false(error.no_room);
    assert_int_equal(faccessat(p->ws, "t2", F_OK, 0), -1); // no part of it
}

static void check_text(int dir, const char *name, const char *expected)
{
    char text[16];
    fd_read_at(dir, name, text, sizeof text);
    assert_string_equal(text, expected);
}

static void what_is_there_is_replaced(void **state)
{
    struct place *p = *state;
    struct job_file files[] = {
        {.target = (char *)(uintptr_t) "x", .mode = 0644, .fd = source("new", 3)}};
    struct job j = {.files = files, .n_files = 1};
    struct stage_error error = {.no_room = false};
    assert_int_equal(symlinkat("../secret", p->ws, "x"), 0);
    assert_int_equal(stage_files(p->ws, &j, getuid(), 100, &error), 0);
    check_text(p->outer, "secret", "secret"); // a link is not followed
    check_text(p->ws, "x", "new");
    place_write(p->ws, "y", "old", 3);
    assert_int_equal(linkat(p->ws, "y", p->ws, "z", 0), 0);
    files[0].target = (char *)(uintptr_t) "y";
    assert_int_equal(stage_files(p->ws, &j, getuid(), 100, &error), 0);
    check_text(p->ws, "y", "new");
    check_text(p->ws, "z", "old"); // another name of the old file is another file now
    assert_int_equal(mkdirat(p->ws, "d", 0755), 0);
    files[0].target = (char *)(uintptr_t) "d";
    assert_int_equal(stage_files(p->ws, &j, getuid(), 100, &error), -EISDIR);
    assert_string_equal(error.text, "input_files: d: is a folder");
    assert_int_equal(symlinkat("..", p->ws, "up"), 0);
    files[0].target = (char *)(uintptr_t) "up/secret";
    assert_int_not_equal(stage_files(p->ws, &j, getuid(), 100, &error), 0);
    check_text(p->outer, "secret", "secret");
    close(files[0].fd);
}

static void a_source_that_is_no_file_is_refused(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct job_file files[] = {{.target = (char *)(uintptr_t) "x", .mode = 0644, .fd = ends[0]}};
    struct job j = {.files = files, .n_files = 1};
    struct stage_need need;
    struct stage_error error = {.text = ""};
    assert_int_equal(stage_measure(&j, &need, &error), -EINVAL);
    assert_string_equal(error.text, "input_files: x: the source is not a regular file");
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(files_arrive_with_parents_modes_and_owner),
        PLACE_TEST(each_folder_is_measured_once),
        PLACE_TEST(one_byte_too_much_is_refused_by_name),
        PLACE_TEST(contents_of_the_job_arrive),
        PLACE_TEST(what_is_there_is_replaced),
        PLACE_TEST(a_source_that_is_no_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
