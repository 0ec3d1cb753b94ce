// From options to a job: languages, files, refusals in the words of options.
#include "base/fd.h"
#include "cli/run_job.h"

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

static const struct lower_host host = {
    .cpus_percent = 200, .max_disk_mb = 8192, .tmpfs_max_mb = 64};
static char folder[] = "/tmp/isle-test-XXXXXX";

static const char *make(const char *name, const char *text, mode_t mode)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

static int build(const struct run_options *o, struct run_job *j, struct run_error *e)
{
    *e = (struct run_error){""};
    return run_job_build(o, &host, j, e);
}

static void finds_the_language(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        enum language language; // NONE: refused
    } cases[] = {
        {"a.py", "1", LANGUAGE_PYTHON},
        {"a.js", "1", LANGUAGE_JAVASCRIPT},
        {"a.mjs", "1", LANGUAGE_JAVASCRIPT},
        {"a.cjs", "1", LANGUAGE_JAVASCRIPT},
        {"a.sh", "1", LANGUAGE_BASH},
        {"a.b.py", "#!/bin/bash\n", LANGUAGE_PYTHON}, // the extension goes first
        {"x", "#!/usr/bin/env python3\nprint()", LANGUAGE_PYTHON},
        {"x", "#!/usr/bin/env -S python3 -u", LANGUAGE_PYTHON},
        {"x", "#! /bin/sh\n", LANGUAGE_BASH},
        {"x", "#!/bin/bash\r\necho", LANGUAGE_BASH},
        {"x", "#!/usr/bin/node --flag\n", LANGUAGE_JAVASCRIPT},
        {"x", "#!/usr/bin/perl\n", LANGUAGE_NONE},
        {"x", "#!python3x\n", LANGUAGE_NONE},
        {"x", "#!", LANGUAGE_NONE},
        {"x", "", LANGUAGE_NONE},
        {"a.txt", "print(1)", LANGUAGE_NONE},
        {".py", "1", LANGUAGE_PYTHON},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_options o = {.file = make(cases[i].name, cases[i].text, 0644)};
        struct run_job j;
        struct run_error e;
        int rc = build(&o, &j, &e);
        assert_int_equal(rc == 0, cases[i].language != LANGUAGE_NONE);
        if (rc == 0) {
            assert_int_equal(j.job.language, cases[i].language);
            assert_string_equal(j.job.code, cases[i].text);
            assert_string_equal(j.job.code_name, cases[i].name);
        } else {
            assert_non_null(strstr(e.text, "the language is not known; give -l"));
        }
        run_job_done(&j);
    }
}

static void builds_a_whole_job(void **state)
{
    (void)state;
    char first[256];
    strncpy(first, make("data.csv", "12345", 0640), sizeof first - 1);
    first[sizeof first - 1] = '\0';
    char second[300];
    snprintf(second, sizeof second, "%s:input/deep/", make("tool", "x", 0755));
    const char *files[] = {first, second}, *env[] = {"A=1", "B=x=y z"},
               *artifacts[] = {"o/a", "b?"};
    struct run_options o = {
        .language = "python",
        .code = "return 1",
        .params = "{\"n\": 1.10}",
        .limit[LIMIT_TIMEOUT] = "2.5",
        .input = first,
        .cwd = "output",
        .env = {env, 2},
        .files = {files, 2},
        .artifacts = {artifacts, 2},
    };
    struct run_job j;
    struct run_error e;
    assert_int_equal(build(&o, &j, &e), 0);
    assert_int_equal(j.n_fds, 3);
    assert_int_equal(j.job.stdin_index, 0);
    assert_string_equal(j.job.files[0].target, "data.csv");
    assert_int_equal(j.job.files[0].fd_index, 1);
    assert_int_equal(j.job.files[0].mode, 0644);
    assert_string_equal(j.job.files[1].target, "input/deep/tool");
    assert_int_equal(j.job.files[1].mode, 0755);
    assert_string_equal(j.job.params, "{\"n\":1.10}");
    assert_string_equal(j.job.env[1], "B=x=y z");
    assert_string_equal(j.job.cwd, "/workspace/output");
    assert_int_equal(j.job.limits.value[LIMIT_TIMEOUT], 2500);
    assert_true(j.job.artifacts[1].optional);
    assert_string_equal(j.job.artifacts[1].path, "b");
    assert_int_equal(j.staged_bytes, 8192);
    for (size_t i = 0; i < j.n_fds; i++) {
        assert_int_equal(fcntl(j.fds[i], F_GETFD), FD_CLOEXEC);
        assert_int_equal(fcntl(j.fds[i], F_GETFL) & O_ACCMODE, O_RDONLY);
    }
    run_job_done(&j);
}

static void refuse(const struct run_options *o, const char *text)
{
    struct run_job j;
    struct run_error e;
    assert_int_not_equal(build(o, &j, &e), 0);
    assert_string_equal(e.text, text);
    run_job_done(&j);
}

#define BASH .language = "bash", .code = "true"

static void refuses_in_words_of_options(void **state)
{
    (void)state;
    const char *none[] = {"/no/such/file"}, *folder_file[] = {"/etc"}, *empty[] = {"/etc/passwd:"};
    const char *outside[] = {"/etc/passwd:../x"}, *device[] = {"/dev/null"}, *bad_env[] = {"NO"};
    const char *twice[] = {"A=1", "A=2"}, *loader[] = {"LD_PRELOAD=x"}, *bytes[] = {"A=\xff"};
    const char *artifact[] = {"/etc/passwd"};
    char *command[] = {(char *)(uintptr_t) "ls", (char *)(uintptr_t) "\xff", NULL};
    refuse(&(struct run_options){BASH, .limit[LIMIT_TIMEOUT] = "601"},
           "--timeout: 601 is above the maximum of 600 s (limits.timeout_seconds)");
    refuse(&(struct run_options){BASH, .limit[LIMIT_MEMORY] = "1e3"},
           "--memory: 1e3 is not a number: digits, at most one point (unit: MB)");
    refuse(&(struct run_options){BASH, .limit[LIMIT_MEMORY] = "064"},
           "--memory: 064 is not a number: digits, at most one point (unit: MB)");
    refuse(&(struct run_options){BASH, .limit[LIMIT_MEMORY] = ""},
           "--memory:  is not a number: digits, at most one point (unit: MB)");
    refuse(&(struct run_options){BASH, .limit[LIMIT_CPUS] = "2."},
           "--cpus: 2. is not a number: digits, at most one point (unit: CPUs)");
    refuse(&(struct run_options){BASH, .limit[LIMIT_CPUS] = "2.5"},
           "--cpus: 2.5 is above the maximum of 2 CPUs (of this host) (limits.cpus)");
    refuse(&(struct run_options){BASH, .limit[LIMIT_DISK] = "8193"},
           "--disk: 8193 is above the maximum of 8192 MB (SANDBOX_MAX_DISK_MB) (limits.disk_mb)");
    refuse(&(struct run_options){BASH, .cwd = "/etc"},
           "--cwd: \"/etc\" is outside /workspace (cwd)");
    refuse(&(struct run_options){BASH, .files = {none, 1}},
           "--file: /no/such/file: No such file or directory");
    refuse(&(struct run_options){BASH, .files = {folder_file, 1}},
           "--file: /etc is not a regular file");
    refuse(&(struct run_options){BASH, .files = {device, 1}},
           "--file: /dev/null is not a regular file");
    refuse(&(struct run_options){BASH, .files = {empty, 1}},
           "--file: /etc/passwd: is not SRC or SRC:DEST");
    refuse(&(struct run_options){BASH, .files = {outside, 1}},
           "--file: \"../x\" may not contain \"..\" (input_files[0].target_path)");
    refuse(&(struct run_options){BASH, .env = {bad_env, 1}}, "--env: NO is not NAME=VALUE");
    refuse(&(struct run_options){BASH, .env = {twice, 2}}, "--env: A is given twice");
    refuse(&(struct run_options){BASH, .env = {bytes, 1}}, "--env: not valid UTF-8 at byte 0");
    refuse(
        &(struct run_options){BASH, .env = {loader, 1}},
        "--env: refused: it steers a loader or an interpreter; set it in the job's own code if it "
        "is needed (env.LD_PRELOAD)");
    refuse(&(struct run_options){BASH, .artifacts = {artifact, 1}},
           "--artifact: \"/etc/passwd\" is outside /workspace (artifacts[0].path)");
    refuse(&(struct run_options){BASH, .params = "{\"a\":1}"},
           "--params: only a python or javascript snippet takes them (params)");
    refuse(&(struct run_options){BASH, .params = "{\"a\":1,\"a\":2}"},
           "--params: not valid JSON: duplicate key \"a\" at byte 8");
    refuse(&(struct run_options){BASH, .params = "data.json"},
           "--params: not valid JSON: unexpected character, expected a valid root value at byte 0; "
           "a file is @FILE");
    refuse(&(struct run_options){.file = "no-such-command"},
           "code: no-such-command: no such file; a command goes behind --: isle run -- "
           "no-such-command");
    refuse(&(struct run_options){BASH, .params = "@/no/such"},
           "--params: /no/such: No such file or directory");
    refuse(&(struct run_options){BASH, .input = "/etc"}, "--stdin: /etc is a folder");
    refuse(&(struct run_options){.language = "cobol", .code = "x"},
           "-l: unknown language cobol; python, javascript or bash");
    refuse(&(struct run_options){.code = "x"},
           "-c: the language is not known; give -l python, javascript or bash");
    refuse(&(struct run_options){.file = "/etc"}, "code: /etc is neither a file nor a pipe");
    refuse(&(struct run_options){.command = command}, "command: not valid UTF-8 at byte 0");
    refuse(&(struct run_options){.command = command, .language = "bash"},
           "-l: goes with code, not with a command");
}

static void deep_params_fit_in_the_job(void **state)
{
    (void)state;
    AUTO_BUF struct buf params = BUF_INIT(1000);
    buf_puts(&params, "{\"a\":");
    for (int i = 0; i < 63; i++) {
        buf_putc(&params, '[');
    }
    for (int i = 0; i < 63; i++) {
        buf_putc(&params, ']');
    }
    buf_putc(&params, '}');
    struct run_options o = {.language = "python", .code = "1", .params = buf_text(&params)};
    struct run_job j;
    struct run_error e;
    assert_int_equal(build(&o, &j, &e), 0);
    assert_string_equal(j.job.params, params.data);
    run_job_done(&j);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"a.py", "a.js",  "a.mjs", "a.cjs",    "a.sh", "a.b.py",
                                        "x",    "a.txt", ".py",   "data.csv", "tool"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_language),
        cmocka_unit_test(builds_a_whole_job),
        cmocka_unit_test(refuses_in_words_of_options),
        cmocka_unit_test(deep_params_fit_in_the_job),
    };
    return cmocka_run_group_tests_name("run_job", tests, set_up, tear_down);
}
