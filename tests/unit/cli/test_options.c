// Options of `isle run`: forms, and what is refused.
#include "base/fd.h"
#include "cli/run_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX 12

static int parse(const char *const *words, struct run_options *o, struct option_error *e)
{
    char *argv[MAX + 2] = {(char *)(uintptr_t) "run"};
    for (size_t i = 0; words[i]; i++) {
        argv[i + 1] = (char *)(uintptr_t)words[i];
    }
    *e = (struct option_error){""};
    // the words of a command stay in argv: only whether there are some is looked at afterwards
    return run_options_parse(argv, o, e);
}

static void every_form(void **state)
{
    (void)state;
    const char *words[] = {"-l",        "python", "--timeout=2.5", "--env", "A=1", "--json",
                           "--env=B==", "-",      "--disk",        "-1",    NULL};
    struct run_options o;
    struct option_error e;
    assert_int_equal(parse(words, &o, &e), 0);
    assert_string_equal(o.language, "python");
    assert_string_equal(o.limit[LIMIT_TIMEOUT], "2.5");
    assert_string_equal(o.limit[LIMIT_DISK], "-1");
    assert_int_equal(o.env.n, 2);
    assert_string_equal(o.env.words[1], "B==");
    assert_true(o.json);
    assert_string_equal(o.file, "-");
    run_options_done(&o);
}

static void a_command_keeps_its_words(void **state)
{
    (void)state;
    char *argv[] = {(char *)(uintptr_t) "run",
                    (char *)(uintptr_t) "--json",
                    (char *)(uintptr_t) "--",
                    (char *)(uintptr_t) "ls",
                    (char *)(uintptr_t) "--json",
                    (char *)(uintptr_t) "--",
                    NULL};
    struct run_options o;
    struct option_error e;
    assert_int_equal(run_options_parse(argv, &o, &e), 0);
    assert_string_equal(o.command[0], "ls");
    assert_string_equal(o.command[1], "--json");
    assert_string_equal(o.command[2], "--");
    assert_null(o.command[3]);
    run_options_done(&o);
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *words[MAX];
        const char *text;
    } cases[] = {
        {{NULL}, "nothing to run: give FILE, -c CODE, - or -- CMD"},
        {{"--", NULL}, "--: a command must follow"},
        {{"--nonesuch", NULL}, "--nonesuch: unknown option"},
        {{"--nonesuch=3", NULL}, "--nonesuch=3: unknown option"},
        {{"-x", NULL}, "-x: unknown option"},
        {{"-lbash", NULL}, "-lbash: unknown option; did you mean -l bash?"},
        {{"-l=bash", NULL}, "-l=bash: unknown option; did you mean -l bash?"},
        {{"ls", "-la", NULL}, "-la: unknown option; words of a command go behind --"},
        {{"--time", "3", NULL}, "--time: unknown option; did you mean --timeout?"},
        {{"--arg", "3", NULL}, "--arg: unknown option"},
        {{"--max-stdot-kb=3", NULL},
         "--max-stdot-kb=3: unknown option; did you mean --max-stdout-kb?"},
        {{"--output-directory", "x", NULL},
         "--output-directory: unknown option; did you mean --output-dir?"},
        {{"--json=1", NULL}, "--json: takes no value"},
        {{"--timeout", NULL}, "--timeout: needs a value (s)"},
        {{"--timeout", "-l", "bash", NULL}, "--timeout: needs a value (s)"},
        {{"a", "b", NULL}, "b: one FILE is enough; words of a command go behind --"},
        {{"--timeout", "--", "a", NULL}, "--timeout: needs a value (s)"},
        {{"ls", "-x", NULL}, "-x: unknown option; words of a command go behind --"},
        {{"-c", "1", "a", NULL},
         "a: give either FILE or -c CODE; code with spaces is one word in quotes, a command goes "
         "behind --"},
        {{"-c", "1", "--", "a", NULL}, "give only one of FILE, -c CODE, - and -- CMD"},
        {{"--key", "x", "a", NULL}, "--key: nobody is asked without --url or --session"},
        {{"-", "--stdin", "-", NULL}, "--stdin: - cannot be both the code and its input"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_options o;
        struct option_error e;
        assert_int_not_equal(parse(cases[i].words, &o, &e), 0);
        assert_string_equal(e.text, cases[i].text);
        run_options_done(&o);
    }
}

static void fields_lead_back_to_options(void **state)
{
    (void)state;
    assert_string_equal(run_options_of_field("limits.timeout_seconds"), "--timeout");
    assert_string_equal(run_options_of_field("input_files[3].target_path"), "--file");
    assert_string_equal(run_options_of_field("env.A"), "--env");
    assert_null(run_options_of_field("code"));
    assert_null(run_options_of_field("limits.nonesuch"));
    assert_null(run_options_of_field("environment"));
    for (int i = 0; i < LIMIT_COUNT; i++) {
        assert_non_null(limit_specs[i].option);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form),
        cmocka_unit_test(a_command_keeps_its_words),
        cmocka_unit_test(refuses),
        cmocka_unit_test(fields_lead_back_to_options),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
