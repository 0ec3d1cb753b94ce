// A job on its way, with a launcher that does what the real one does not do on demand.
#include "fake.h"

#include "base/clock.h"
#include "base/tree.h"
#include "job/pipeline.h"
#include "plan/steps.h"
#include "workspace/uids.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define AHEAD_TAG UINT32_MAX

struct bench {
    struct fake fake;
    struct pipeline *pipeline;
    struct pipeline_config config;
    struct job_sink sink;
    struct uids uids;
    char path[64];
    int root;
    struct buf live;
    struct result seen; // without its pointers
    char error[200], fallback[200];
    int done;
    int hold_after; // bytes of artifact after which the sink holds; 0: never
    size_t artifact_bytes;
};

static void sink_output(void *ctx, bool is_stderr, const char *data, size_t len)
{
    struct bench *b = ctx;
    (void)is_stderr;
    assert_int_equal(buf_add(&b->live, data, len), 0);
}

static int sink_artifact(void *ctx, const struct result_artifact *a, uint32_t mode)
{
    (void)ctx;
    (void)a;
    (void)mode;
    return 0;
}

static int sink_data(void *ctx, const char *data, size_t len)
{
    struct bench *b = ctx;
    (void)data;
    b->artifact_bytes += len;
    if (b->hold_after && b->artifact_bytes >= (size_t)b->hold_after) {
        pipeline_hold(b->pipeline, true);
    }
    return 0;
}

static void sink_done(void *ctx, struct result *r)
{
    struct bench *b = ctx;
    b->done++;
    b->seen = *r;
    snprintf(b->error, sizeof b->error, "%s", r->error ? r->error : "");
    const char *why = r->isolation.fallback;
    snprintf(b->fallback, sizeof b->fallback, "%s", why ? why : "");
}

// A command job with a folder workspace below a root of the test's own.
static void begin_for(struct bench *b, unsigned seconds, const char *artifact)
{
    *b = (struct bench){.live = BUF_INIT(1 << 20)};
    fake_begin(&b->fake);
    strcpy(b->path, "/tmp/isle-test-XXXXXX");
    assert_non_null(mkdtemp(b->path));
    b->root = open(b->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(b->root, "once", 0700), 0);
    b->config = (struct pipeline_config){
        .launcher = "native",
        .workspace_root = b->root,
        .null = open("/dev/null", O_RDWR | O_CLOEXEC),
        .uids = &b->uids,
        .host = {.max_disk_mb = 1000, .tmpfs_max_mb = 10},
        .artifact_max_bytes = 1 << 20,
        .artifacts_max_bytes = 1 << 20,
    };
    b->sink = (struct job_sink){.ctx = b,
                                .output = sink_output,
                                .artifact = sink_artifact,
                                .artifact_data = sink_data,
                                .done = sink_done};
    char text[256];
    struct job j;
    struct job_error e;
    int n = snprintf(text, sizeof text,
                     "{\"command\":[\"x\"],\"limits\":{\"timeout_seconds\":%u,\"disk_mb\":100}%s}",
                     seconds, artifact);
    assert_int_equal(job_parse(text, (size_t)n, 0, &j, &e), 0);
    assert_int_equal(
        pipeline_start(b->fake.loop, b->fake.runner, &b->config, &j, &b->sink, &b->pipeline), 0);
}

// With more time than a busy host takes for the rest.
static void begin(struct bench *b, const char *artifact) { begin_for(b, 60, artifact); }

static void end(struct bench *b)
{
    pipeline_free(b->pipeline);
    fake_end(&b->fake);
    buf_free(&b->live);
    close(b->config.null);
    assert_int_equal(tree_empty(b->root), 0);
    close(b->root);
    rmdir(b->path);
}

// Hears START; keeps the job's ends of its pipes.
static struct plan_request started(struct bench *b, int *fds)
{
    struct plan_request q = fake_hear(&b->fake, fds);
    assert_int_equal(q.op, PLAN_START);
    const char *why;
    assert_int_equal(plan_check(&q, PLAN_N_START_FDS, &why), 0);
    return q;
}

static void drop(int *fds)
{
    for (int i = 0; i < PLAN_N_START_FDS; i++) {
        fds[i] = fd_close(fds[i]);
    }
}

static void say_end(struct bench *b, uint32_t tag, int status, uint32_t flags)
{
    fake_say(
        &b->fake,
        (struct plan_record){.op = PLAN_END, .tag = tag, .id = 5, .status = status, .flags = flags},
        -1);
}

static void say_executed(struct bench *b, uint32_t tag)
{
    fake_say(&b->fake, (struct plan_record){.op = PLAN_EXECUTED, .tag = tag, .id = 5}, -1);
}

static void step_until_done(struct bench *b)
{
    for (int i = 0; i < 300 && !b->done; i++) {
        loop_step(b->fake.loop, 10);
    }
    assert_int_equal(b->done, 1);
}

static void nothing_is_left(struct bench *b)
{
    struct stat st;
    assert_int_equal(fstatat(b->root, "once", &st, 0), 0);
    assert_int_equal(st.st_nlink, 2); // no folder in it
}

static void the_last_bytes_are_read_though_the_pipe_never_ends(void **state)
{
    (void)state;
    struct bench b;
    int fds[PLAN_N_START_FDS];
    begin(&b, "");
    struct plan_request q = started(&b, fds);
    say_executed(&b, q.tag);
    assert_int_equal(write(fds[PLAN_FD_STDOUT], "a\xe2\x82", 3), 3);
    loop_step(b.fake.loop, 100);
    assert_string_equal(buf_text(&b.live), "a"); // the rest may become a character
    assert_int_equal(write(fds[PLAN_FD_STDOUT], "\xac late", 6), 6);
    // our copy of the write end stays open, as a stray descriptor somewhere would
    say_end(&b, q.tag, 0, 0);
    step_until_done(&b);
    assert_string_equal(buf_text(&b.live), "a\xe2\x82\xac late");
    assert_int_equal(b.seen.reason, REASON_OK);
    assert_int_equal(b.seen.usage.stdout_bytes, 9);
    nothing_is_left(&b);
    drop(fds);
    end(&b);
}

static void a_timeout_stands_though_the_job_then_exits_well(void **state)
{
    (void)state;
    struct bench b;
    int fds[PLAN_N_START_FDS];
    begin_for(&b, 1, "");
    struct plan_request q = started(&b, fds);
    uint64_t from = clock_now_ns();
    say_executed(&b, q.tag);
    struct plan_request term = fake_hear(&b.fake, NULL);
    uint64_t after_ms = (clock_now_ns() - from) / NS_PER_MS;
    assert_int_equal(term.op, PLAN_SIGNAL);
    assert_int_equal(term.signal, SIGTERM);
    assert_int_equal(term.id, 5);
    assert_true(after_ms >= 990 && after_ms < 30000);
    say_end(&b, q.tag, 0, 0);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_TIMEOUT);
    assert_string_equal(b.error, "Execution timeout (1.0s)");
    assert_int_equal(b.seen.exit_code, 0);
    drop(fds);
    end(&b);
}

static void time_counts_from_the_program_not_from_the_request(void **state)
{
    (void)state;
    struct bench b;
    int fds[PLAN_N_START_FDS];
    begin_for(&b, 1, "");
    struct plan_request q = started(&b, fds);
    for (uint64_t until = clock_now_ns() + 1200 * NS_PER_MS; clock_now_ns() < until;) {
        loop_step(b.fake.loop, 50); // a launcher that is slow
    }
    assert_true(fake_hears_nothing(&b.fake));
    say_executed(&b, q.tag);
    say_end(&b, q.tag, 0, 0);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_OK);
    drop(fds);
    end(&b);
}

static void a_cancel_before_the_program_runs_reaches_it(void **state)
{
    (void)state;
    struct bench b;
    int fds[PLAN_N_START_FDS];
    begin(&b, "");
    struct plan_request q = started(&b, fds);
    pipeline_cancel(b.pipeline);
    pipeline_cancel(b.pipeline);
    loop_step(b.fake.loop, 0);
    assert_true(fake_hears_nothing(&b.fake)); // it has no number yet
    uint64_t from = clock_now_ns();
    say_executed(&b, q.tag);
    assert_int_equal(fake_hear(&b.fake, NULL).op, PLAN_SIGNAL);
    assert_int_equal(fake_hear(&b.fake, NULL).op, PLAN_KILL);
    assert_true(clock_now_ns() - from >= 490 * NS_PER_MS);
    say_end(&b, q.tag, -1, PLAN_KILLED);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_CANCELLED);
    pipeline_cancel(b.pipeline); // harmless
    drop(fds);
    end(&b);
}

static void a_cancel_at_once_runs_nothing(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "");
    pipeline_cancel(b.pipeline);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_CANCELLED);
    assert_true(fake_hears_nothing(&b.fake));
    nothing_is_left(&b);
    end(&b);
}

static void the_launchers_death_is_internal_and_keeps_the_output(void **state)
{
    (void)state;
    struct bench b;
    int fds[PLAN_N_START_FDS];
    begin(&b, "");
    struct plan_request q = started(&b, fds);
    say_executed(&b, q.tag);
    assert_int_equal(write(fds[PLAN_FD_STDOUT], "partial", 7), 7);
    fake_die(&b.fake);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_WORKER_LOST);
    assert_string_equal(b.error, "the sandbox was lost: its launcher is gone");
    assert_string_equal(buf_text(&b.live), "partial");
    assert_int_equal(b.fake.lost, 1);
    drop(fds);
    end(&b);
}

static void a_launch_that_fails_leaves_nothing(void **state)
{
    (void)state;
    struct bench b;
    int fds[PLAN_N_START_FDS];
    begin(&b, "");
    struct plan_request q = started(&b, fds);
    drop(fds);
    fake_say(
        &b.fake,
        (struct plan_record){.op = PLAN_END, .tag = q.tag, .error = EPERM, .step = 4, .status = -1},
        -1);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_ISOLATION_UNAVAILABLE);
    assert_false(b.seen.isolation.isolated);
    nothing_is_left(&b);
    end(&b);
}

// Without a sandbox, but only where an operator wants that, and only when the sandbox failed: what
// was sent to the program before is still there for it.
static void a_sandbox_that_failed_is_done_without(void **state)
{
    (void)state;
    struct bench b;
    int fds[PLAN_N_START_FDS], again[PLAN_N_START_FDS];
    begin(&b, "");
    b.config.fallback = true;
    struct plan_request q = started(&b, fds);
    assert_int_equal(q.plain, 0);
    drop(fds);
    fake_say(&b.fake,
             (struct plan_record){
                 .op = PLAN_END, .tag = q.tag, .error = ENOSPC, .step = PLAN_STEP_clone},
             -1);
    struct plan_request second = started(&b, again);
    assert_int_equal(second.plain, 1);
    assert_int_equal(second.id, 0);
    assert_string_equal(second.workspace, q.workspace);
    fake_say(&b.fake,
             (struct plan_record){.op = PLAN_EXECUTED,
                                  .tag = second.tag,
                                  .id = 6,
                                  .downgrades = PLAN_NO_ISOLATION | PLAN_HOST_NETWORK},
             -1);
    assert_int_equal(write(again[PLAN_FD_STDOUT], "hi", 2), 2);
    say_end(&b, second.tag, 0, 0);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_OK);
    assert_string_equal(buf_text(&b.live), "hi");
    assert_string_equal(b.fallback, "the sandbox could not be set up: step clone: No space left on "
                                    "device");
    assert_string_equal(b.seen.isolation.launcher, "none");
    assert_true(b.seen.isolation.downgrades & PLAN_NO_ISOLATION);
    nothing_is_left(&b);
    drop(again);
    end(&b);
}

static void what_is_not_the_sandboxs_fault_is_not_tried_again(void **state)
{
    (void)state;
    static const struct {
        struct plan_record end;
        bool executed, fallback;
    } cases[] = {
        {{.error = EPERM, .step = PLAN_STEP_root}, .fallback = false},
        {{.error = ECHILD, .step = PLAN_STEP_end}, .fallback = true, .executed = true},
        {{.error = EPERM, .step = PLAN_STEP_root, .flags = PLAN_HIT_MEMORY}, .fallback = true},
        {{.error = EPERM, .step = PLAN_STEP_root, .flags = PLAN_KILLED}, .fallback = true},
        {{.error = ENOENT, .step = PLAN_STEP_exec}, .fallback = true},
        {{.error = ENOENT, .step = PLAN_STEP_chdir}, .fallback = true},
        {{.error = ENOMEM, .step = PLAN_STEP_root}, .fallback = true},
        {{.error = ECHILD, .step = PLAN_STEP_end, .marks_ns = {[PLAN_T_EXEC] = 1}},
         .fallback = true},
        {{.status = 1 << 8}, .fallback = true, .executed = true},
        {{.error = EPERM, .step = PLAN_PSTEP_allowed}, .fallback = true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench b;
        int fds[PLAN_N_START_FDS];
        begin(&b, "");
        b.config.fallback = cases[i].fallback;
        struct plan_request q = started(&b, fds);
        struct plan_record r = cases[i].end;
        r.op = PLAN_END;
        r.tag = q.tag;
        if (cases[i].executed) {
            say_executed(&b, q.tag);
        }
        fake_say(&b.fake, r, -1);
        step_until_done(&b);
        assert_true(b.seen.reason != REASON_OK);
        assert_string_equal(b.fallback, "");
        assert_true(fake_hears_nothing(&b.fake));
        drop(fds);
        end(&b);
    }
}

static void a_held_job_is_not_read_but_ends_in_time(void **state)
{
    (void)state;
    struct bench b;
    int fds[PLAN_N_START_FDS];
    begin_for(&b, 1, "");
    struct plan_request q = started(&b, fds);
    say_executed(&b, q.tag);
    pipeline_hold(b.pipeline, true);
    assert_int_equal(write(fds[PLAN_FD_STDOUT], "x", 1), 1);
    loop_step(b.fake.loop, 50);
    assert_int_equal(b.live.len, 0);
    assert_int_equal(fake_hear(&b.fake, NULL).op, PLAN_SIGNAL); // the time limit goes on
    drop(fds);
    say_end(&b, q.tag, SIGTERM, 0);
    pipeline_hold(b.pipeline, false);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_TIMEOUT);
    assert_string_equal(buf_text(&b.live), "x");
    end(&b);
}

static void artifacts_wait_for_a_slow_sink(void **state)
{
    (void)state;
    struct bench b;
    int fds[PLAN_N_START_FDS];
    begin(&b, ",\"artifacts\":[\"big\"]");
    b.hold_after = 100000;
    struct plan_request q = started(&b, fds);
    char name[128];
    snprintf(name, sizeof name, "%s/w/big", q.workspace);
    AUTO_CLOSE int big = openat(b.root, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(big, 500000), 0);
    assert_int_equal(fchown(big, q.uid, q.uid), 0);
    say_executed(&b, q.tag);
    drop(fds);
    say_end(&b, q.tag, 0, 0);
    for (int i = 0; i < 10; i++) {
        loop_step(b.fake.loop, 0);
    }
    assert_int_equal(b.done, 0);
    assert_true(b.artifact_bytes >= 100000 && b.artifact_bytes < 250000);
    b.hold_after = 0;
    pipeline_hold(b.pipeline, false);
    step_until_done(&b);
    assert_int_equal(b.artifact_bytes, 500000);
    assert_int_equal(b.seen.n_artifacts, 1);
    nothing_is_left(&b);
    end(&b);
}

static void freed_in_mid_flight_it_takes_its_sandbox_along(void **state)
{
    (void)state;
    struct bench b;
    int fds[PLAN_N_START_FDS];
    begin(&b, "");
    struct plan_request q = started(&b, fds);
    say_executed(&b, q.tag);
    drop(fds);
    pipeline_free(b.pipeline);
    b.pipeline = NULL;
    assert_int_equal(fake_hear(&b.fake, NULL).op, PLAN_KILL);
    say_end(&b, q.tag, -1, PLAN_KILLED); // nobody is there to hear it
    nothing_is_left(&b);
    assert_int_equal(b.done, 0);
    end(&b);
}

static void a_sandbox_that_waits_is_used(void **state)
{
    (void)state;
    struct bench b;
    int fds[PLAN_N_START_FDS];
    begin(&b, "");
    runner_expect_parked(b.fake.runner, AHEAD_TAG);
    for (int i = 0; i < 5; i++) {
        loop_step(b.fake.loop, 10);
    }
    assert_true(fake_hears_nothing(&b.fake)); // it is being made: START waits for its number
    fake_say(&b.fake, (struct plan_record){.op = PLAN_PREPARE, .tag = AHEAD_TAG, .id = 5}, -1);
    struct plan_request q = started(&b, fds);
    assert_int_equal(q.id, 5);
    assert_int_not_equal(q.tag, AHEAD_TAG);
    fake_say(&b.fake, (struct plan_record){.op = PLAN_PARKED, .tag = AHEAD_TAG, .id = 5},
             -1); // late
    say_executed(&b, q.tag);
    say_end(&b, q.tag, 0, 0);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_OK);
    drop(fds);
    end(&b);
}

static void without_one_it_is_made_whole(void **state)
{
    (void)state;
    const struct plan_record answers[] = {
        {.op = PLAN_PREPARE, .tag = AHEAD_TAG, .error = ENOMEM},
        {.op = PLAN_END, .tag = AHEAD_TAG, .id = 5, .status = -1, .error = ECHILD},
    };
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct bench b;
        int fds[PLAN_N_START_FDS];
        begin(&b, "");
        runner_expect_parked(b.fake.runner, AHEAD_TAG);
        loop_step(b.fake.loop, 10);
        fake_say(&b.fake, answers[i], -1);
        struct plan_request q = started(&b, fds);
        assert_int_equal(q.id, 0);
        drop(fds);
        end(&b);
    }
}

static void a_cancel_while_it_waits_for_one(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "");
    runner_expect_parked(b.fake.runner, AHEAD_TAG);
    for (int i = 0; i < 5; i++) {
        loop_step(b.fake.loop, 10);
    }
    pipeline_cancel(b.pipeline);
    fake_say(&b.fake, (struct plan_record){.op = PLAN_PREPARE, .tag = AHEAD_TAG, .id = 5}, -1);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_CANCELLED);
    assert_true(fake_hears_nothing(&b.fake));
    nothing_is_left(&b);
    end(&b);
}

static void the_launchers_death_while_it_waits_for_one(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "");
    runner_expect_parked(b.fake.runner, AHEAD_TAG);
    for (int i = 0; i < 5; i++) {
        loop_step(b.fake.loop, 10);
    }
    fake_die(&b.fake);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_WORKER_LOST);
    end(&b);
}

static void a_launcher_that_does_not_answer_is_not_waited_for(void **state)
{
    (void)state;
    struct bench b;
    int fds[PLAN_N_START_FDS];
    begin(&b, "");
    b.config.launcher_patience_ms = 100;
    started(&b, fds); // and never a word
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_INTERNAL);
    assert_string_equal(b.error, "the launcher does not answer");
    drop(fds);
    end(&b);

    begin(&b, "");
    b.config.launcher_patience_ms = 1000;
    struct plan_request q = started(&b, fds);
    say_executed(&b, q.tag);
    assert_int_equal(write(fds[PLAN_FD_STDOUT], "x", 1), 1);
    pipeline_cancel(b.pipeline);
    step_until_done(&b); // TERM, KILL, and no END
    assert_int_equal(b.seen.reason, REASON_CANCELLED);
    assert_string_equal(buf_text(&b.live), "x");
    drop(fds);
    end(&b);
}

static bool sink_collected(void *ctx)
{
    struct bench *b = ctx;
    runner_finish(b->fake.runner);
    return true;
}

static void what_the_launcher_takes_along_is_left_to_it(void **state)
{
    (void)state;
    struct bench b;
    int fds[PLAN_N_START_FDS];
    begin(&b, "");
    b.sink.collected = sink_collected;
    struct plan_request q = started(&b, fds);
    drop(fds);
    say_executed(&b, q.tag);
    say_end(&b, q.tag, 0, 0);
    step_until_done(&b);
    struct stat st;
    assert_int_equal(fstatat(b.root, q.workspace, &st, 0), 0); // still there: not ours to remove
    struct plan_request nothing;
    assert_int_equal(msg_recv(b.fake.theirs, &nothing, sizeof nothing, NULL, 0, NULL, 0), 0);
    assert_int_equal(b.fake.lost, 0); // its end is no loss
    fake_die(&b.fake);
    loop_step(b.fake.loop, 10);
    assert_int_equal(b.fake.lost, 0);
    end(&b);
}

#define SETS ",\"package_sets\":[\"s1\",\"s2\"]"

static void begin_with_sets(struct bench *b, const char *job)
{
    begin(b, job);
    assert_int_equal(mkdirat(b->root, "s1", 0755), 0);
    assert_int_equal(mkdirat(b->root, "s2", 0755), 0);
    b->config.cache_root = b->root;
}

// Hears one set and answers with a number or an error.
static void say_set(struct bench *b, const char *name, uint32_t id, int error)
{
    int fds[PLAN_N_START_FDS] = {-1, -1, -1, -1, -1};
    struct stat got, want;
    struct plan_request q = fake_hear(&b->fake, fds);
    assert_int_equal(q.op, PLAN_SET_ADD);
    assert_int_equal(fstat(fds[0], &got), 0);
    assert_int_equal(fstatat(b->root, name, &want, 0), 0);
    assert_int_equal(got.st_ino, want.st_ino);
    drop(fds);
    fake_say(&b->fake,
             (struct plan_record){.op = PLAN_SET_ADD, .tag = q.tag, .id = id, .error = error}, -1);
}

static void hear_drop(struct bench *b, uint32_t id)
{
    struct plan_request q = fake_hear(&b->fake, NULL);
    assert_int_equal(q.op, PLAN_SET_DROP);
    assert_int_equal(q.sets[0], id);
}

static void sets_are_registered_in_order_and_given_back(void **state)
{
    (void)state;
    struct bench b;
    int fds[PLAN_N_START_FDS];
    begin_with_sets(&b, SETS);
    say_set(&b, "s1", 7, 0);
    say_set(&b, "s2", 3, 0);
    struct plan_request q = started(&b, fds);
    assert_int_equal(q.n_sets, 2);
    assert_int_equal(q.sets[0], 7);
    assert_int_equal(q.sets[1], 3);
    say_executed(&b, q.tag);
    say_end(&b, q.tag, 0, 0);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_OK);
    hear_drop(&b, 3);
    hear_drop(&b, 7);
    drop(fds);
    end(&b);
}

static void a_set_that_is_not_there_ends_the_job(void **state)
{
    (void)state;
    struct bench b;
    begin_with_sets(&b, ",\"package_sets\":[\"s1\",\"s3\"]");
    say_set(&b, "s1", 7, 0);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_INSTALL_FAILED);
    assert_string_equal(b.error,
                        "package set s3: there is no such folder in SANDBOX_PACKAGES_ROOT");
    hear_drop(&b, 7);
    assert_true(fake_hears_nothing(&b.fake));
    nothing_is_left(&b);
    end(&b);
}

static void a_set_that_the_launcher_refuses_ends_the_job(void **state)
{
    (void)state;
    struct bench b;
    begin_with_sets(&b, SETS);
    say_set(&b, "s1", 0, EPERM);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_INSTALL_FAILED);
    assert_non_null(strstr(b.error, "package set s1: its folder must belong to"));
    assert_true(fake_hears_nothing(&b.fake));
    nothing_is_left(&b);
    end(&b);
}

static void a_cancel_while_sets_are_registered(void **state)
{
    (void)state;
    struct bench b;
    begin_with_sets(&b, SETS);
    loop_step(b.fake.loop, 10);
    pipeline_cancel(b.pipeline);
    say_set(&b, "s1", 7, 0);
    say_set(&b, "s2", 8, 0);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_CANCELLED);
    hear_drop(&b, 8);
    hear_drop(&b, 7);
    nothing_is_left(&b);
    end(&b);
}

static void the_launchers_death_while_sets_are_registered(void **state)
{
    (void)state;
    struct bench b;
    begin_with_sets(&b, SETS);
    say_set(&b, "s1", 7, 0);
    fake_die(&b.fake);
    step_until_done(&b);
    assert_int_equal(b.seen.reason, REASON_INTERNAL);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_bytes_are_read_though_the_pipe_never_ends),
        cmocka_unit_test(a_timeout_stands_though_the_job_then_exits_well),
        cmocka_unit_test(time_counts_from_the_program_not_from_the_request),
        cmocka_unit_test(a_cancel_before_the_program_runs_reaches_it),
        cmocka_unit_test(a_cancel_at_once_runs_nothing),
        cmocka_unit_test(the_launchers_death_is_internal_and_keeps_the_output),
        cmocka_unit_test(a_launch_that_fails_leaves_nothing),
        cmocka_unit_test(a_sandbox_that_failed_is_done_without),
        cmocka_unit_test(what_is_not_the_sandboxs_fault_is_not_tried_again),
        cmocka_unit_test(a_held_job_is_not_read_but_ends_in_time),
        cmocka_unit_test(artifacts_wait_for_a_slow_sink),
        cmocka_unit_test(freed_in_mid_flight_it_takes_its_sandbox_along),
        cmocka_unit_test(a_sandbox_that_waits_is_used),
        cmocka_unit_test(without_one_it_is_made_whole),
        cmocka_unit_test(a_cancel_while_it_waits_for_one),
        cmocka_unit_test(the_launchers_death_while_it_waits_for_one),
        cmocka_unit_test(what_the_launcher_takes_along_is_left_to_it),
        cmocka_unit_test(sets_are_registered_in_order_and_given_back),
        cmocka_unit_test(a_set_that_is_not_there_ends_the_job),
        cmocka_unit_test(a_set_that_the_launcher_refuses_ends_the_job),
        cmocka_unit_test(a_cancel_while_sets_are_registered),
        cmocka_unit_test(the_launchers_death_while_sets_are_registered),
        cmocka_unit_test(a_launcher_that_does_not_answer_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
