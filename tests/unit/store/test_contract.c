// The contract of store.h, kept by each implementation.
#include "harness.h"

#include "base/fd.h"
#include "store/sqlite.h"

#include <stdio.h>

static int open_sqlite(struct loop *l, const char *place, int64_t now_ms, struct store **ret)
{
    struct store_error e;
    int err = store_sqlite_open(l, &(struct store_sqlite){.dir = place, .now_ms = now_ms}, ret, &e);
    if (err != 0) {
        print_message("%s\n", e.text);
    }
    return err;
}

static const struct {
    const char *name;
    harness_open open;
} places[] = {{"SQLite", open_sqlite}};

static harness_open current;

static int set_up(void **state)
{
    static struct harness h;
    harness_start(&h, current);
    *state = &h;
    return 0;
}

static int tear_down(void **state)
{
    harness_end(*state);
    return 0;
}

static int run(const char *name, const struct CMUnitTest *tests, size_t n)
{
    struct CMUnitTest with[64];
    assert_true(n <= ARRAY_LEN(with));
    for (size_t i = 0; i < n; i++) {
        with[i] = tests[i];
        with[i].setup_func = set_up;
        with[i].teardown_func = tear_down;
    }
    return _cmocka_run_group_tests(name, with, n, NULL, NULL);
}

int main(void)
{
    int failed = 0;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        current = places[i].open;
        failed += run(places[i].name, contract_jobs, n_contract_jobs);
        failed += run(places[i].name, contract_rest, n_contract_rest);
        failed += run(places[i].name, contract_tools, n_contract_tools);
    }
    return failed;
}
