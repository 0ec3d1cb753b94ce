// A folder of a test's own, with something outside that no test may reach.
#ifndef ISLE_TESTS_PLACE_H
#define ISLE_TESTS_PLACE_H

#include "base/fd.h"
#include "base/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

struct place {
    char path[64];
    int outer, ws; // outer holds "secret" and the workspace "w"
};

static inline void place_write(int dir, const char *name, const void *data, size_t len)
{
    AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, data, len), 0);
}

static inline int place_make(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    strcpy(p->path, "/tmp/isle-test-XXXXXX");
    assert_non_null(mkdtemp(p->path));
    p->outer = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    place_write(p->outer, "secret", "secret", 6);
    assert_int_equal(mkdirat(p->outer, "w", 0755), 0);
    p->ws = openat(p->outer, "w", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(p->ws >= 0);
    *state = p;
    return 0;
}

static inline int place_drop(void **state)
{
    struct place *p = *state;
    close(p->ws);
    assert_int_equal(tree_empty(p->outer), 0);
    close(p->outer);
    assert_int_equal(rmdir(p->path), 0);
    free(p);
    return 0;
}

#define PLACE_TEST(f) cmocka_unit_test_setup_teardown(f, place_make, place_drop)

#endif
