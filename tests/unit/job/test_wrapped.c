// What a person is told when Bubblewrap did not make the sandbox.
#include "base/fd.h"
#include "job/wrapped.h"
#include "plan/steps.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define BWRAP "/usr/bin/bwrap 0.12.0"

static void tell(struct result *r, const char *bwrap, struct plan_record end, const char *said)
{
    AUTO_CLOSE int fd = said ? fd_sealed("said", said, strlen(said)) : -1;
    result_init(r, "", 0, 0);
    wrapped_failed(r, bwrap, &end, fd);
}

static void each_way_has_its_words(void **state)
{
    static const struct {
        struct plan_record end;
        const char *said, *text;
    } cases[] = {
        {{.error = ECHILD, .step = PLAN_BSTEP_bubblewrap, .status = 1 << 8},
         "first\nbwrap: setting up uid map: Permission denied\n",
         "Bubblewrap (" BWRAP
         ") exited with status 1 and had made no sandbox (step bubblewrap): bwrap: setting up uid "
         "map: Permission denied: this host lets nobody map user ids (a container's or a security "
         "module's rule); nothing of the job ran"},
        {{.error = ECHILD, .step = PLAN_BSTEP_bubblewrap, .status = 9},
         NULL,
         "Bubblewrap (" BWRAP ") was ended by signal 9 (step bubblewrap); nothing of the job ran"},
        {{.error = ETIMEDOUT, .step = PLAN_BSTEP_bubblewrap, .status = 9},
         "",
         "Bubblewrap (" BWRAP
         ") did not make the sandbox in time and was killed (step bubblewrap); "
         "nothing of the job ran"},
        {{.error = ENOEXEC, .step = PLAN_BSTEP_exec, .status = 125 << 8},
         "\n\n",
         "Bubblewrap (" BWRAP
         ") cannot be executed: Exec format error (step exec); nothing of the job ran"},
        {{.error = EPROTO, .step = PLAN_BSTEP_verify, .status = 125 << 8},
         "not as \033[1masked\n",
         "Bubblewrap (" BWRAP
         ") made another sandbox than it was asked for (step verify): not as ?[1masked; nothing of "
         "the job ran"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct result r;
        tell(&r, BWRAP, cases[i].end, cases[i].said);
        assert_int_equal(r.reason, REASON_ISOLATION_UNAVAILABLE);
        assert_int_equal(r.stage, STAGE_PREPARATION);
        assert_string_equal(r.error, cases[i].text);
        result_done(&r);
    }
}

static void whatever_it_writes_is_one_short_line(void **state)
{
    static char much[5000];
    struct result r;
    (void)state;
    memset(much, 'x', sizeof much - 1);
    tell(&r, BWRAP, (struct plan_record){.error = ECHILD, .step = PLAN_BSTEP_bubblewrap}, much);
    assert_true(strlen(r.error) < 600);
    result_done(&r);
}

static void others_are_not_told_so(void **state)
{
    static const struct plan_record ends[] = {
        {.error = 0, .step = PLAN_BSTEP_bubblewrap},
        {.error = ENOMEM, .step = PLAN_BSTEP_papers},
        {.error = ENOENT, .step = PLAN_BSTEP_chdir},
        {.error = ECHILD, .step = PLAN_STEP_end},
        {.error = EPERM, .step = PLAN_STEP_user_namespace},
    };
    struct result r;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        tell(&r, BWRAP, ends[i], "bwrap: words");
        assert_int_equal(r.reason, REASON_OK);
        result_done(&r);
    }
    tell(&r, NULL, (struct plan_record){.error = ECHILD, .step = PLAN_BSTEP_bubblewrap}, NULL);
    assert_int_equal(r.reason, REASON_OK);
    result_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_has_its_words),
        cmocka_unit_test(whatever_it_writes_is_one_short_line),
        cmocka_unit_test(others_are_not_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
