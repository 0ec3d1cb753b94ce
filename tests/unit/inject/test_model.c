// Codec, job, result, settings and the front's part of a job, each call failing once: an error
// comes out, nothing leaks (the sanitizers look), nothing half-made is used.
#include "base/fd.h"
#include "cli/outdir.h"
#include "cli/run_job.h"
#include "codec/frame.h"
#include "conf/conf.h"
#include "inject.h"
#include "model/result.h"
#include "plan/args.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int parse_job(void)
{
    static const char json[] =
        "{\"language\":\"javascript\",\"code\":\"return "
        "1\",\"code_name\":\"a.js\",\"params\":{\"n\":[1]},"
        "\"env\":{\"A\":\"1\",\"B\":\"2\"},\"cwd\":\"output\",\"limits\":{\"timeout_seconds\":2.5},"
        "\"input_files\":[{\"target_path\":\"a/b\",\"fd\":0},{\"target_path\":\"c\",\"fd\":1}],"
        "\"artifacts\":[\"x\",{\"path\":\"y\",\"optional\":true}]}";
    struct job j;
    struct job_error e = {"", ""};
    int rc = job_parse(json, sizeof json - 1, 2, &j, &e);
    assert_true(rc == 0 || e.text[0]);
    job_done(&j);
    return rc;
}

static int parse_command(void)
{
    static const char json[] = "{\"command\":[\"ls\",\"-l\"],\"env\":{\"A\":5}}";
    struct job j;
    struct job_error e = {"", ""};
    int rc = job_parse(json, sizeof json - 1, 0, &j, &e);
    job_done(&j);
    assert_true(rc < 0);
    return rc;
}

static int write_result(void)
{
    struct result r;
    AUTO_BUF struct buf out = BUF_INIT(1 << 16);
    result_init(&r, "0193f1c2-0000-7000-8000-000000000000", 100, 100);
    result_fail(&r, REASON_ERROR, STAGE_EXECUTION, "%s", "why");
    buf_puts(&r.out, "text");
    int rc = result_write(&out, &r);
    assert_int_equal(r.reason, REASON_ERROR); // with or without its text
    result_done(&r);
    return rc;
}

static int talk_in_frames(void)
{
    AUTO_BUF struct buf wire = BUF_INIT(1 << 16);
    struct frame_decoder d;
    struct frame f;
    frame_decoder_init(&d, FRAME_FROM_GUEST);
    int rc = frame_encode(&wire, FRAME_FROM_GUEST, FRAME_RESULT, 1, 1, "42", 2);
    rc = rc ? rc : frame_feed(&d, wire.data, wire.len);
    rc = rc ? rc : frame_next(&d, &f) == 1 ? 0 : -EBADMSG;
    frame_decoder_done(&d);
    return rc;
}

// The service's part of a plan: what a job's own process reads is whole or not there at all.
static int pack_arguments(void)
{
    const char *const argv[] = {"ls", "-l", NULL}, *const env[] = {"A=1", NULL};
    AUTO_CLOSE int fd = args_pack(argv, env, "/workspace");
    return fd < 0 ? fd : 0;
}

// How a snippet is started: argv and environment of the plan.
static int begin_runtime(void)
{
    static const char json[] = "{\"language\":\"python\",\"code\":\"1\",\"env\":{\"A\":\"1\"}}";
    struct job j;
    struct job_error e;
    struct runtime_start start;
    int rc = job_parse(json, sizeof json - 1, 0, &j, &e);
    rc = rc ? rc : runtime_begin(&start, &j, "UTC", NULL);
    if (!rc) {
        runtime_done(&start);
    }
    job_done(&j);
    return rc;
}

static char conf_path[64]; // a settings file, made by main()

static int read_again(struct conf *c)
{
    struct conf_error e;
    struct conf_changes changes;
    AUTO_CLOSE int fd = open(conf_path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : conf_reload(c, fd, &changes, &e);
}

static int pass_settings_on(void)
{
    char *environment[] = {(char *)(uintptr_t) "SANDBOX_HOSTNAME=a",
                           (char *)(uintptr_t) "SANDBOX_MAX_DISK_MB=5", NULL};
    struct conf c, passed;
    struct conf_error e = {""};
    int rc = conf_load(&(struct conf_sources){.environment = environment,
                                              .file = conf_path,
                                              .file_must_exist = true},
                       &c, &e);
    if (rc) {
        assert_true(e.text[0]);
        return rc;
    }
    char **variables = conf_environment(&c);
    rc = variables ? conf_load_passed(variables, &passed, &e) : -ENOMEM;
    if (!rc) {
        rc = read_again(&passed);
        conf_done(&passed);
    }
    conf_environment_free(variables);
    conf_done(&c);
    return rc;
}

static char folder[] = "/tmp/isle-test-XXXXXX";

static int build_job(void)
{
    static const char *files[] = {"/etc/passwd:a", "/etc/hostname:b/"}, *env[] = {"A=1"};
    const struct lower_host host = {.cpus_percent = 100, .max_disk_mb = 8192, .tmpfs_max_mb = 64};
    struct run_options o = {.language = "python",
                            .file = "/etc/hostname",
                            .params = "{\"a\":1}",
                            .files = {files, 2},
                            .env = {env, 1}};
    struct run_job j;
    struct run_error e = {""};
    int rc = run_job_build(&o, &host, &j, &e);
    assert_true(rc == 0 || e.text[0]);
    run_job_done(&j);
    return rc;
}

static int write_artifact(void)
{
    static struct job_artifact asked = {(char *)(uintptr_t) "d/a", false};
    const struct job job = {.artifacts = &asked, .n_artifacts = 1};
    struct outdir o;
    char path[64];
    int rc = outdir_open(&o, folder, &job);
    if (!rc) {
        outdir_begin(&o, "d/a", 3);
        outdir_write(&o, "abc", 3);
        rc = o.error[0] ? -EIO : 0;
    }
    outdir_done(&o);
    snprintf(path, sizeof path, "%s/d/a", folder);
    assert_int_equal(access(path, F_OK) == 0, rc == 0); // whole or not at all
    unlink(path);
    snprintf(path, sizeof path, "%s/d", folder);
    assert_true(rmdir(path) == 0 || errno == ENOENT); // and no half beside it
    return rc;
}

static void everything_fails_once(void **state)
{
    (void)state;
    static const struct {
        int (*what)(void);
        int good;
        unsigned least; // fallible calls
    } cases[] = {
        {parse_job, 0, 15},     {parse_command, -EINVAL, 4}, {write_result, 0, 2},
        {talk_in_frames, 0, 2}, {pass_settings_on, 0, 20},   {build_job, 0, 15},
        {write_artifact, 0, 6}, {pack_arguments, 0, 3},      {begin_runtime, 0, 10},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        unsigned calls = inject_all(cases[i].what, cases[i].good);
        print_message("case %zu: %u calls\n", i, calls);
        assert_true(calls >= cases[i].least);
    }
}

int main(void)
{
    if (!mkdtemp(folder)) {
        return 1;
    }
    static const char settings[] = "SANDBOX_QUEUE_LIMIT=5\nISLE_LOG_LEVEL=debug\n";
    snprintf(conf_path, sizeof conf_path, "%s/isle.conf", folder);
    AUTO_CLOSE int file = open(conf_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || fd_write_all(file, settings, sizeof settings - 1)) {
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_fails_once)};
    int failed = cmocka_run_group_tests_name("inject", tests, NULL, NULL);
    unlink(conf_path);
    rmdir(folder);
    return failed;
}
