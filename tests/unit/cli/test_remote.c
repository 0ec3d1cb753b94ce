// Words of the verbs that speak to a service: every action, and what is refused.
#include "base/fd.h"
#include "cli/remote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX = 12 };

#define ID "0199f3a2-5a9d-7c41-9d7c-3f1b2a4c5d6e"

static int parse(const char *const *words, struct remote_command *c)
{
    char *argv[MAX + 1] = {};
    int status = 0;
    for (size_t i = 0; words[i]; i++) {
        argv[i] = (char *)(uintptr_t)words[i];
    }
    return remote_parse(remote_find(words[0]), argv, c, &status) ? 0 : status;
}

static void what_is_taken(void **state)
{
    (void)state;
    static const struct {
        const char *words[MAX], *action;
        size_t n;
    } rows[] = {
        {{"jobs"}, "list", 0},
        {{"jobs", "--status", "failed"}, "list", 0},
        {{"jobs", "submit", "-", "--wait=3"}, "submit", 1},
        {{"sessions", "create", "--ttl", "2"}, "create", 0},
        {{"files", "get", ID ":p"}, "get", 1},
        {{"files", "get", ID ":p", "-"}, "get", 2},
        {{"files", "move", ID ":p", "q", "--replace"}, "move", 2},
        {{"files", "list", "-r", ID}, "list", 1},
        {{"artifacts", "get", ID, "n", "--output-dir", "d"}, "get", 2},
        {{"jobs", "wait", ID}, "wait", 1},
        {{"key", "revoke", "9f86d081884c7d65"}, "revoke", 1},
        {{"tools", "run", "t", "--session", ID}, "run", 1},
        {{"tools"}, "list", 0},
        {{"tools", "create", "f.py", "-p", "a", "--parameter=b:integer"}, "create", 1},
        {{"tools", "update", "t", "--name", "u"}, "update", 1},
        {{"tools", "share", "t", "team", "--permission", "read_only"}, "share", 2},
        {{"tools", "run", "t"}, "run", 1},
        {{"tools", "run", "t", "a=1", "b=2", "c=3", "d=4", "e=5", "--json", "f=6"}, "run", 7},
        {{"tools", "export"}, "export", 0},
        {{"key", "create", "--team=a", "--name=b", "--admin"}, "create", 0},
        {{"key", "--url", "unix:/x", "--key", "k", "--json"}, "list", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct remote_command c;
        assert_int_equal(parse(rows[i].words, &c), 0);
        assert_string_equal(c.action->name, rows[i].action);
        assert_int_equal(c.n_operands, rows[i].n);
        for (size_t k = 0; k < c.n_operands; k++) {
            assert_non_null(c.operands[k]);
        }
        remote_done(&c);
    }
}

static void what_is_refused(void **state)
{
    (void)state;
    static const char *const rows[][MAX] = {
        {"jobs", "destroy"},
        {"jobs", "show"},
        {"jobs", "show", ID, "b"},
        {"jobs", "list", "a"},
        {"jobs", "list", "--wait", "3"},
        {"jobs", "list", "--", "x"},
        {"jobs", "cancel", ID, "--status", "failed"},
        {"sessions", "show", ID, "--ttl", "3"},
        {"sessions", "--team", "x"},
        {"files", "put", "a"},
        {"files", "get", ID ":p", "x", "y"},
        {"files", "move", ID ":p"},
        {"artifacts", "get", ID},
        {"tools", "run"},
        {"tools", "show", "a", "b"},
        {"tools", "share", "t", "team"},
        {"tools", "list", "-p", "a"},
        {"tools", "restore", "t"},
        {"key", "create", "--team", "a"},
        {"key", "create", "--name", "a"},
        {"key", "revoke"},
        // ids and teams that are none
        {"jobs", "show", "123"},
        {"jobs", "show", ""},
        {"jobs", "wait", ID "0"},
        {"jobs", "events", "0199F3A2-5A9D-7C41-9D7C-3F1B2A4C5D6E"},
        {"sessions", "extend", "a"},
        {"files", "list", "a"},
        {"files", "list", "a:" ID},
        {"files", "put", ID, "a:p"},
        {"artifacts", "list", "a"},
        {"tools", "share", "t", "_", "--permission", "read_only"},
        {"tools", "run", "t", "--session", "a"},
        {"key", "create", "--team", "_", "--name", "a"},
        {"key", "list", "--team", ""},
        {"key", "revoke", ID},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct remote_command c;
        assert_int_equal(parse(rows[i], &c), CLI_REFUSED);
        remote_done(&c);
    }
}

static void how_many_arguments(void **state)
{
    (void)state;
    enum { WORDS = 66 };
    for (size_t n = WORDS; n < WORDS + 3; n++) { // the verb, its action, the tool, 64 or more
        char verb[] = "tools", action[] = "run", word[] = "a=1";
        char *argv[WORDS + 4] = {verb, action};
        struct remote_command c;
        int status = 0;
        for (size_t i = 2; i < n + 1; i++) {
            argv[i] = word;
        }
        bool taken = remote_parse(remote_find(argv[0]), argv, &c, &status);
        assert_int_equal(taken, n == WORDS);
        assert_int_equal(status, taken ? 0 : CLI_REFUSED);
        remote_done(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(how_many_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
