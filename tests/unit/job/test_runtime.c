// How jobs start: argv, environment, descriptor 3.
#include "base/fd.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct job job_of(enum job_kind kind, enum language language)
{
    struct job j = {.kind = kind, .language = language};
    limits_init(&j.limits);
    return j;
}

static const char *find(const struct runtime_start *s, const char *name)
{
    const char *found = NULL;
    size_t len = strlen(name);
    for (size_t i = 0; s->env[i]; i++) {
        if (!strncmp(s->env[i], name, len) && s->env[i][len] == '=') {
            assert_null(found); // no name twice
            found = s->env[i] + len + 1;
        }
    }
    return found;
}

static void languages_start_as_they_should(void **state)
{
    (void)state;
    const struct {
        enum job_kind kind;
        enum language language;
        enum runtime_fd3 fd3;
        const char *first, *last;
    } table[] = {
        {JOB_SNIPPET, LANGUAGE_PYTHON, RUNTIME_FD3_FRAMES, "/usr/bin/python3.13",
         "/usr/lib/isle/python.pyc"},
        {JOB_SNIPPET, LANGUAGE_JAVASCRIPT, RUNTIME_FD3_FRAMES, "/usr/bin/node",
         "/usr/lib/isle/javascript.cjs"},
        {JOB_SCRIPT, LANGUAGE_BASH, RUNTIME_FD3_SCRIPT, "/bin/bash", "/script.sh"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct job j = job_of(table[i].kind, table[i].language);
        struct runtime_start s;
        assert_int_equal(runtime_begin(&s, &j, NULL, NULL), 0);
        size_t n = 0;
        while (s.argv[n]) {
            n++;
        }
        assert_string_equal(s.argv[0], table[i].first);
        assert_string_equal(s.argv[n - 1], table[i].last);
        assert_int_equal(s.fd3, table[i].fd3);
        runtime_done(&s);
    }
}

static void a_command_is_taken_as_it_is(void **state)
{
    (void)state;
    char a[] = "prog", b[] = "--x";
    char *argv[] = {a, b, NULL};
    struct job j = job_of(JOB_COMMAND, LANGUAGE_NONE);
    j.argv = argv;
    struct runtime_start s;
    assert_int_equal(runtime_begin(&s, &j, "UTC", NULL), 0);
    assert_ptr_equal(s.argv, argv);
    assert_int_equal(s.fd3, RUNTIME_FD3_NONE);
    runtime_done(&s);
}

static void the_chosen_python_runs_snippets(void **state)
{
    (void)state;
    struct job j = job_of(JOB_SNIPPET, LANGUAGE_PYTHON);
    struct runtime_start s;
    assert_int_equal(runtime_begin(&s, &j, NULL, "/usr/local/bin/python3.13"), 0);
    assert_string_equal(s.argv[0], "/usr/local/bin/python3.13");
    assert_string_equal(s.argv[1], "-s");
    runtime_done(&s);
    assert_int_equal(runtime_begin(&s, &j, NULL, ""), 0);
    assert_string_equal(s.argv[0], RUNTIME_PYTHON);
    runtime_done(&s);
    j.language = LANGUAGE_JAVASCRIPT;
    assert_int_equal(runtime_begin(&s, &j, NULL, "/usr/local/bin/python3.13"), 0);
    assert_string_equal(s.argv[0], "/usr/bin/node");
    runtime_done(&s);
}

static void the_heap_stays_below_the_memory(void **state)
{
    (void)state;
    struct job j = job_of(JOB_SNIPPET, LANGUAGE_JAVASCRIPT);
    j.limits.value[LIMIT_MEMORY] = 256;
    struct runtime_start s;
    assert_int_equal(runtime_begin(&s, &j, "UTC", NULL), 0);
    bool seen = false;
    for (size_t i = 0; s.argv[i]; i++) {
        seen |= !strcmp(s.argv[i], "--max-old-space-size=160");
    }
    assert_true(seen);
    runtime_done(&s);
    assert_int_equal(runtime_heap_mb(32), 16);
    for (int64_t mb = 64; mb <= 65536; mb *= 2) {
        assert_true(runtime_heap_mb(mb) >= 16 && runtime_heap_mb(mb) < mb);
    }
}

static void the_environment_is_built(void **state)
{
    (void)state;
    struct job j = job_of(JOB_SNIPPET, LANGUAGE_PYTHON);
    j.limits.value[LIMIT_CPUS] = 150;
    struct runtime_start s;
    assert_int_equal(runtime_begin(&s, &j, "Asia/Tokyo", NULL), 0);
    const struct {
        const char *name, *value;
    } table[] = {
        {"HOME", "/workspace"},        {"TMPDIR", "/tmp"},       {"LANG", "C.UTF-8"},
        {"LC_ALL", "C.UTF-8"},         {"TZ", "Asia/Tokyo"},     {"PYTHON_CPU_COUNT", "2"},
        {"OPENBLAS_NUM_THREADS", "2"}, {"OMP_NUM_THREADS", "2"}, {"MKL_NUM_THREADS", "2"},
        {"NUMEXPR_NUM_THREADS", "2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        assert_non_null(find(&s, table[i].name));
        assert_string_equal(find(&s, table[i].name), table[i].value);
    }
    runtime_done(&s);
}

static void what_the_job_gives_wins_and_comes_once(void **state)
{
    (void)state;
    static char *env[1024];
    static char names[900][32];
    struct job j = job_of(JOB_COMMAND, LANGUAGE_NONE);
    char a[] = "x", tz[] = "TZ=Europe/Paris", threads[] = "OMP_NUM_THREADS=7", path[] = "PATHS=1";
    char *argv[] = {a, NULL};
    j.argv = argv;
    j.env = env;
    env[0] = tz;
    env[1] = threads;
    env[2] = path; // not PATH
    for (int i = 0; i < 800; i++) {
        snprintf(names[i], sizeof names[i], "V%d=%d", i, i);
        env[3 + i] = names[i];
    }
    struct runtime_start s;
    assert_int_equal(runtime_begin(&s, &j, "UTC", NULL), 0);
    assert_string_equal(find(&s, "TZ"), "Europe/Paris");
    assert_string_equal(find(&s, "OMP_NUM_THREADS"), "7");
    assert_string_equal(find(&s, "PATHS"), "1");
    assert_non_null(find(&s, "PATH"));
    assert_string_equal(find(&s, "V799"), "799");
    runtime_done(&s);
}

static void package_sets_come_first(void **state)
{
    (void)state;
    char name[] = "a";
    char *names[JOB_MAX_SETS] = {name, name, name, name, name, name, name, name};
    struct job j = job_of(JOB_SNIPPET, LANGUAGE_PYTHON);
    j.package_sets = names;
    struct runtime_start s;
    assert_int_equal(runtime_begin(&s, &j, NULL, NULL), 0);
    assert_null(find(&s, "PYTHONPATH"));
    assert_null(find(&s, "NODE_PATH"));
    assert_null(find(&s, "VIRTUAL_ENV"));
    runtime_done(&s);
    j.n_package_sets = 2;
    assert_int_equal(runtime_begin(&s, &j, NULL, NULL), 0);
    assert_string_equal(find(&s, "PATH"),
                        "/packages/0/bin:/packages/0/node_modules/.bin:/packages/1/bin:"
                        "/packages/1/node_modules/.bin:/usr/local/bin:/usr/bin:/bin");
    assert_string_equal(
        find(&s, "PYTHONPATH"),
        "/packages/0/lib/python3.13/site-packages:/packages/1/lib/python3.13/site-packages");
    assert_string_equal(find(&s, "NODE_PATH"), "/packages/0/node_modules:/packages/1/node_modules");
    assert_string_equal(find(&s, "VIRTUAL_ENV"), "/packages/0");
    runtime_done(&s);
    j.n_package_sets = JOB_MAX_SETS;
    assert_int_equal(runtime_begin(&s, &j, NULL, NULL), 0);
    assert_non_null(strstr(find(&s, "PYTHONPATH"), ":/packages/7/lib/python3.13/site-packages"));
    runtime_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(languages_start_as_they_should),
        cmocka_unit_test(a_command_is_taken_as_it_is),
        cmocka_unit_test(the_chosen_python_runs_snippets),
        cmocka_unit_test(the_heap_stays_below_the_memory),
        cmocka_unit_test(the_environment_is_built),
        cmocka_unit_test(package_sets_come_first),
        cmocka_unit_test(what_the_job_gives_wins_and_comes_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
