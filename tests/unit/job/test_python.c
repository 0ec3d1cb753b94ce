// Which Python of a runtime root the words of a setting mean, in made-up roots.
#include "../start/fixture.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void put_program(const char *path)
{
    fixture_put(path, "");
    assert_int_equal(fchmodat(fixture_root, path, 0755, 0), 0);
}

static void put_link(const char *path, const char *to)
{
    assert_int_equal(symlinkat(to, fixture_root, path), 0);
}

static void is(const char *words, const char *path)
{
    char found[RUNTIME_PYTHON_MAX] = "as before";
    int e = runtime_find_python(fixture_root, words, found);
    assert_int_equal(e, path ? 0 : -ENOENT);
    assert_string_equal(found, path ? path : "as before");
}

// As Debian has it.
static void make_root(void)
{
    put_program("usr/bin/python3.13");
    put_link("usr/bin/python3", "python3.13");
    put_link("usr/bin/python", "python3");
    put_link("bin", "usr/bin");
}

static void test_first_that_is_there(void **state)
{
    (void)state;
    make_root();
    is("python3.13", "/usr/bin/python3.13");
    is("python3.11,/opt/venv/bin/python,python3", "/usr/bin/python3.13");
    is("/usr/bin/python", "/usr/bin/python3.13");
    is("/bin/python3", "/usr/bin/python3.13"); // where the job's own links lead, too
    is("pypy3,python2", NULL);
    put_program("usr/local/bin/python3.13"); // an image of Docker's, first in the PATH
    put_link("usr/local/bin/python3", "python3.13");
    is("python3", "/usr/local/bin/python3.13");
    is("/usr/bin/python3,python3", "/usr/bin/python3.13");
}

// The wrapper is compiled for one version; another would fail each job.
static void test_another_version_is_none(void **state)
{
    (void)state;
    make_root();
    put_program("usr/bin/python3.12");
    put_program("usr/local/bin/python3");
    is("python3.12", NULL);
    is("python3.12,python3", "/usr/bin/python3.13");
}

static void test_not_a_program(void **state)
{
    (void)state;
    fixture_put("usr/bin/python3.13", "");
    assert_int_equal(fchmodat(fixture_root, "usr/bin/python3.13", 0644, 0), 0);
    is("python3.13", NULL);
    fixture_folder("usr/local/bin/python3.13");
    is("python3.13", NULL);
}

// A job's id is not that of the file's owner, nor of its group.
static void test_all_may_execute_it(void **state)
{
    (void)state;
    const mode_t modes[] = {0100, 0744, 0754, 0711, 0755};
    fixture_put("usr/bin/python3.13", "");
    fixture_folder("usr/bin/node");
    put_link("usr/bin/bash", "/usr/bin/python3.13"); // the root's own
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        const bool all = (modes[i] & 0111) == 0111;
        assert_int_equal(fchmodat(fixture_root, "usr/bin/python3.13", modes[i], 0), 0);
        is("python3.13", all ? "/usr/bin/python3.13" : NULL);
        assert_int_equal(runtime_has_program(fixture_root, "usr/bin/python3.13"), all);
        assert_int_equal(runtime_has_program(fixture_root, "usr/bin/bash"), all);
    }
    assert_false(runtime_has_program(fixture_root, "usr/bin/node"));
}

// Links lead to places of the root, never to the host's; what jobs do not see of it is not taken.
static void test_stays_in_the_root(void **state)
{
    (void)state;
    fixture_folder("usr/bin");
    put_program("opt/bin/python3.13");
    put_link("usr/bin/python3", "/opt/bin/python3.13");
    is("python3", NULL);
    is("/opt/bin/python3.13", NULL);
    put_link("usr/bin/python3.13", "../../../../../../../usr/bin/python3.13");
    is("python3.13", NULL); // itself, by way of the root's own top
    put_link("usr/bin/a", "/usr/lib/python3.13");
    is("a", NULL);
    put_program("usr/lib/python3.13");
    is("a", "/usr/lib/python3.13"); // the root's, not the host's folder
    put_link("usr/bin/sh", "/bin/sh");
    is("sh", NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_first_that_is_there), TEST(test_another_version_is_none),
        TEST(test_not_a_program),       TEST(test_all_may_execute_it),
        TEST(test_stays_in_the_root),
    };
    return cmocka_run_group_tests_name("job-python", tests, NULL, NULL);
}
