#include "place.h"

#include "base/clock.h"
#include "base/tree.h"

#include <dirent.h>

void place_threads(struct place *p)
{
    assert_int_equal(loop_new(&p->loop), 0);
    assert_int_equal(work_pool_new(p->loop, 2, &p->pool), 0);
}

void place_no_threads(struct place *p)
{
    work_pool_free(p->pool);
    loop_free(p->loop);
    p->pool = NULL;
    p->loop = NULL;
}

void place_make(struct place *p)
{
    *p = (struct place){.path = "/tmp/isle-serve-XXXXXX"};
    assert_non_null(mkdtemp(p->path));
    p->root = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(p->root >= 0);
    place_threads(p);
}

void place_drop(struct place *p)
{
    place_no_threads(p);
    assert_int_equal(tree_empty(p->root), 0);
    close(p->root);
    assert_int_equal(rmdir(p->path), 0);
}

void place_run(struct place *p, bool (*until)(void *ctx), void *ctx)
{
    uint64_t end_ns = clock_now_ns() + 60 * NS_PER_S;
    while (!until(ctx)) {
        assert_true(clock_now_ns() < end_ns);
        assert_int_equal(loop_step(p->loop, 20), 0);
    }
}

bool place_has(const struct place *p, const char *path)
{
    struct stat st;
    return !fstatat(p->root, path, &st, AT_SYMLINK_NOFOLLOW);
}

void place_folder(const struct place *p, const char *path)
{
    assert_int_equal(mkdirat(p->root, path, 0755), 0);
}

void place_write(const struct place *p, const char *path, const char *text)
{
    AUTO_CLOSE int fd = openat(p->root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

unsigned place_count(const struct place *p, const char *path)
{
    int fd = openat(p->root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    DIR *d = fdopendir(fd);
    assert_non_null(d);
    unsigned n = 0;
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n - 2;
}
