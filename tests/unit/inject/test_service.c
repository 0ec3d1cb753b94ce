// The queue and the store, each call failing once: what was taken in is there, what was refused is
// not, and nothing leaks.
#include "base/fd.h"
#include "base/tree.h"
#include "inject.h"
#include "queue/queue.h"
#include "store/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static char folder[] = "/tmp/isle-inject-XXXXXX";

static int queue_two(void)
{
    struct queue_limits limits = {.slots = 1, .waiting = 10};
    struct queue_entry a = {.team = "a", .session = "s"}, b = {.team = "b", .session = "s"};
    struct queue *q;
    struct queue_stats st;
    int rc = queue_new(&limits, &q);
    if (rc != 0) {
        return rc;
    }
    int first = queue_add(q, &a, 1, NULL);
    int second = queue_add(q, &b, 1, NULL);
    queue_stats(q, &st);
    assert_int_equal(st.waiting, (first == 0) + (second == 0));
    assert_int_equal(st.teams, st.waiting);
    for (struct queue_entry *e; (e = queue_next(q, 1));) {
        queue_finish(q, e, 2);
    }
    queue_stats(q, &st);
    assert_int_equal(st.waiting + st.running + st.teams, 0);
    queue_free(q);
    return first ? first : second;
}

static void on_done(void *ctx, const struct store_outcome *o)
{
    *(int *)ctx = o->error == 0 || o->error == -EEXIST ? 1 : o->error;
}

static int open_write_close(void)
{
    struct loop *l;
    struct store *st;
    struct store_error e = {""};
    int answered = 0;
    int rc = loop_new(&l);
    if (rc != 0) {
        return rc;
    }
    rc = store_sqlite_open(l, &(struct store_sqlite){.dir = folder}, &st, &e);
    if (rc != 0) {
        assert_true(e.text[0] != 0);
        loop_free(l);
        return rc;
    }
    struct store_write w = {.kind = STORE_JOB_SUBMIT};
    w.job = (struct store_job){.id = {"j", 1}, .team = {"t", 1}};
    rc = store_write(st, &w, on_done, &answered);
    store_close(st); // answers, even if the loop was never woken
    loop_free(l);
    assert_int_equal(answered, rc == 0);
    return rc;
}

static void everything_fails_once(void **state)
{
    (void)state;
    assert_true(inject_all(queue_two, 0) >= 7);
    assert_true(inject_all(open_write_close, 0) >= 6);
}

int main(void)
{
    if (!mkdtemp(folder)) {
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_fails_once)};
    int failed = cmocka_run_group_tests_name("inject", tests, NULL, NULL);
    AUTO_CLOSE int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    tree_empty(dir);
    rmdir(folder);
    return failed;
}
