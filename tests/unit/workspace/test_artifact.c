// Artifacts out of hostile workspaces: the bytes of a regular file of the job's, or a refusal.
#include "place.h"

#include "workspace/artifact.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

static int open_it(struct place *p, const char *path, const char **ret_why)
{
    struct artifact a = {.fd = -1};
    int e = artifact_open(p->ws, path, getuid(), &a, ret_why);
    fd_close(a.fd);
    assert_int_equal(e == 0, a.fd >= 0);
    return e;
}

static void a_file_opens_with_its_size_and_mode(void **state)
{
    struct place *p = *state;
    assert_int_equal(mkdirat(p->ws, "out", 0), 0);
    place_write(p->ws, "out/a.bin", "12345", 5);
    assert_int_equal(fchmodat(p->ws, "out/a.bin", 0755, 0), 0);
    struct artifact a = {.fd = -1};
    const char *why = "";
    assert_int_equal(artifact_open(p->ws, "out/a.bin", getuid(), &a, &why), 0);
    assert_int_equal(a.size_bytes, 5);
    assert_int_equal(a.mode, 0755);
    char text[8] = "";
    assert_int_equal(fd_read_full(a.fd, text, sizeof text), 5);
    close(a.fd);
}

static void a_sparse_file_counts_what_reading_it_gives(void **state)
{
    struct place *p = *state;
    place_write(p->ws, "sparse", "", 0);
    AUTO_CLOSE int f = openat(p->ws, "sparse", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(f, (off_t)1 << 40), 0);
    struct artifact a = {.fd = -1};
    const char *why = "";
    assert_int_equal(artifact_open(p->ws, "sparse", getuid(), &a, &why), 0);
    assert_int_equal(a.size_bytes, UINT64_C(1) << 40);
    close(a.fd);
}

static void what_is_no_regular_file_is_refused(void **state)
{
    struct place *p = *state;
    place_write(p->ws, "real", "x", 1);
    assert_int_equal(mkfifoat(p->ws, "fifo", 0644), 0);
    assert_int_equal(mkdirat(p->ws, "folder", 0755), 0);
    assert_int_equal(symlinkat("real", p->ws, "inside"), 0);
    assert_int_equal(symlinkat("/etc/shadow", p->ws, "outside"), 0);
    assert_int_equal(symlinkat("../secret", p->ws, "secret"), 0);
    assert_int_equal(symlinkat("..", p->ws, "up"), 0);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s/w/sock", p->path);
    assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof a), 0);
    close(s);
    const struct {
        const char *path;
        int expected;
        const char *word;
    } table[] = {
        {"none", ARTIFACT_MISSING, "does not exist"},
        {"real/x", ARTIFACT_MISSING, "does not exist"},
        {"fifo", ARTIFACT_REFUSED, "FIFO"},
        {"sock", ARTIFACT_REFUSED, "socket"},
        {"folder", ARTIFACT_REFUSED, "folder"},
        {"inside", ARTIFACT_REFUSED, "symbolic link"},
        {"outside", ARTIFACT_REFUSED, "symbolic link"},
        {"secret", ARTIFACT_REFUSED, "symbolic link"},
        {"up/secret", ARTIFACT_REFUSED, "symbolic link"},
        {"../secret", ARTIFACT_REFUSED, "outside"},
        {"/etc/passwd", ARTIFACT_REFUSED, "outside"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const char *why = "";
        assert_int_equal(open_it(p, table[i].path, &why), table[i].expected);
        assert_non_null(strstr(why, table[i].word));
    }
}

static void a_file_of_another_owner_is_refused(void **state)
{
    struct place *p = *state;
    struct artifact a = {.fd = -1};
    const char *why = "";
    place_write(p->ws, "a", "x", 1);
    assert_int_equal(artifact_open(p->ws, "a", getuid() + 1, &a, &why), ARTIFACT_REFUSED);
    assert_int_equal(a.fd, -1);
}

struct swapper {
    struct place *place;
    atomic_bool stop;
};

// out <-> a link that leads to the folder with the secret
static void *swap(void *arg)
{
    struct swapper *s = arg;
    while (!s->stop) {
        renameat2(s->place->ws, "out", s->place->ws, "link", RENAME_EXCHANGE);
    }
    return NULL;
}

static void a_swap_while_opening_never_gives_the_other_file(void **state)
{
    struct place *p = *state;
    struct swapper s = {.place = p};
    assert_int_equal(mkdirat(p->ws, "out", 0755), 0);
    place_write(p->ws, "out/secret", "mine!!", 6);
    assert_int_equal(symlinkat("..", p->ws, "link"), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, swap, &s), 0);
    int opened = 0, refused = 0;
    for (int i = 0; i < 20000; i++) {
        struct artifact a = {.fd = -1};
        const char *why = "";
        if (artifact_open(p->ws, "out/secret", getuid(), &a, &why) == 0) {
            char text[8] = "";
            fd_read_full(a.fd, text, 6);
            assert_string_equal(text, "mine!!");
            close(a.fd);
            opened++;
        } else {
            refused++;
        }
    }
    s.stop = true;
    pthread_join(thread, NULL);
    assert_true(opened > 0 && refused > 0); // else nothing was tried
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(a_file_opens_with_its_size_and_mode),
        PLACE_TEST(a_sparse_file_counts_what_reading_it_gives),
        PLACE_TEST(what_is_no_regular_file_is_refused),
        PLACE_TEST(a_file_of_another_owner_is_refused),
        PLACE_TEST(a_swap_while_opening_never_gives_the_other_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
