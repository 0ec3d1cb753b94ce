// A job in a session's workspace, one that cannot begin for want of something, and what the sink
// hears of the stages. With a launcher that says what the test tells it.
#include "fake.h"

#include "base/clock.h"
#include "base/tree.h"
#include "io/work.h"
#include "job/pipeline.h"
#include "plan/steps.h"
#include "workspace/uids.h"
#include "workspace/zip.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

struct bench {
    struct fake fake;
    struct pipeline *pipeline;
    struct pipeline_config config;
    struct job_sink sink;
    struct uids uids;
    char path[64];
    int root;
    int statuses[8], n_statuses;
    int done, lacked;
    bool does_not_wait;
    enum pipeline_lack lack;
    enum reason reason;
    int64_t queued_ms, disk_bytes;
    char error[200], artifact[64];
    struct job back; // a job that was given back
};

static void sink_status(void *ctx, enum job_status status)
{
    struct bench *b = ctx;
    b->statuses[b->n_statuses++] = (int)status;
    assert_true(pipeline_result(b->pipeline)->under_way);
    assert_int_equal(pipeline_result(b->pipeline)->status, status);
}

static void sink_done(void *ctx, struct result *r)
{
    struct bench *b = ctx;
    b->done++;
    b->reason = r->reason;
    b->queued_ms = r->queued_at;
    b->disk_bytes = r->usage.disk_bytes;
    assert_false(r->under_way);
    snprintf(b->error, sizeof b->error, "%s", r->error ? r->error : "");
}

static bool sink_lacking(void *ctx, enum pipeline_lack lack, struct job *job)
{
    struct bench *b = ctx;
    b->lacked++;
    b->lack = lack;
    if (b->does_not_wait) {
        return false;
    }
    b->back = *job;
    return true;
}

static void begin(struct bench *b)
{
    *b = (struct bench){.reason = REASON_COUNT};
    fake_begin(&b->fake);
    strcpy(b->path, "/tmp/isle-test-XXXXXX");
    assert_non_null(mkdtemp(b->path));
    b->root = open(b->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(b->root, "once", 0700), 0);
    assert_int_equal(mkdirat(b->root, "kept", 0700), 0);
    b->config = (struct pipeline_config){.launcher = "native",
                                         .workspace_root = b->root,
                                         .cache_root = -1,
                                         .null = open("/dev/null", O_RDWR | O_CLOEXEC),
                                         .uids = &b->uids,
                                         .host = {.max_disk_mb = 1000, .tmpfs_max_mb = 64},
                                         .artifact_max_bytes = 1 << 20,
                                         .artifacts_max_bytes = 1 << 20};
    b->sink = (struct job_sink){
        .ctx = b, .done = sink_done, .status = sink_status, .lacking = sink_lacking};
}

static void start_job(struct bench *b, struct job *j)
{
    assert_int_equal(
        pipeline_start(b->fake.loop, b->fake.runner, &b->config, j, &b->sink, &b->pipeline), 0);
}

static void start_text(struct bench *b, const char *text)
{
    struct job j;
    struct job_error e;
    assert_int_equal(job_parse(text, strlen(text), 0, &j, &e), 0);
    start_job(b, &j);
}

static void end(struct bench *b)
{
    pipeline_free(b->pipeline);
    fake_end(&b->fake);
    close(b->config.null);
    assert_int_equal(tree_empty(b->root), 0);
    close(b->root);
    rmdir(b->path);
}

static struct plan_request started(struct bench *b)
{
    int fds[PLAN_N_START_FDS];
    const char *why;
    struct plan_request q = fake_hear(&b->fake, fds);
    assert_int_equal(q.op, PLAN_START);
    assert_int_equal(plan_check(&q, PLAN_N_START_FDS, &why), 0);
    for (int i = 0; i < PLAN_N_START_FDS; i++) {
        close(fds[i]);
    }
    return q;
}

static void say(struct bench *b, struct plan_record r)
{
    r.id = 5;
    fake_say(&b->fake, r, -1);
}

static void run_well(struct bench *b, uint32_t tag)
{
    say(b, (struct plan_record){.op = PLAN_EXECUTED, .tag = tag});
    say(b, (struct plan_record){.op = PLAN_END, .tag = tag});
    for (int i = 0; i < 3000 && !b->done; i++) {
        loop_step(b->fake.loop, 10);
    }
    assert_int_equal(b->done, 1);
}

#define FOLDER "\"limits\":{\"disk_mb\":100}"

static void stages_are_told_in_order(void **state)
{
    (void)state;
    struct bench b;
    begin(&b);
    start_text(&b, "{\"command\":[\"x\"]," FOLDER ",\"artifacts\":[\"nothing\"]}");
    run_well(&b, started(&b).tag);
    assert_int_equal(b.n_statuses, 3);
    assert_int_equal(b.statuses[0], STATUS_PREPARING);
    assert_int_equal(b.statuses[1], STATUS_RUNNING);
    assert_int_equal(b.statuses[2], STATUS_COLLECTING);
    assert_int_equal(b.reason, REASON_ARTIFACT);
    end(&b);
}

static void without_a_uid_the_job_comes_back_and_can_begin_again(void **state)
{
    (void)state;
    struct bench b;
    begin(&b);
    b.uids.count = 1;
    uint32_t taken = uids_take(&b.uids);
    assert_int_equal(uids_left(&b.uids), 0);
    start_text(&b, "{\"command\":[\"x\"]," FOLDER "}");
    loop_step(b.fake.loop, 100);
    assert_int_equal(b.lacked, 1);
    assert_int_equal(b.lack, PIPELINE_NO_UID);
    assert_int_equal(b.done, 0);
    pipeline_free(b.pipeline);
    uids_give(&b.uids, taken);
    assert_int_equal(uids_left(&b.uids), 1);
    start_job(&b, &b.back);
    const uint32_t tag = started(&b).tag;
    assert_false(pipeline_began(b.pipeline));
    run_well(&b, tag);
    assert_true(pipeline_began(b.pipeline));
    assert_int_equal(b.reason, REASON_OK);
    assert_int_equal(uids_left(&b.uids), 1);
    end(&b);
}

static void a_sandbox_that_finds_no_room_gives_the_job_back(void **state)
{
    (void)state;
    struct bench b;
    struct stat st;
    begin(&b);
    start_text(&b, "{\"command\":[\"x\"]," FOLDER ",\"stdin_base64\":\"aGk=\"}");
    struct plan_request q = started(&b);
    say(&b, (struct plan_record){.op = PLAN_END, .tag = q.tag, .error = EAGAIN, .status = -1});
    assert_int_equal(b.lacked, 1);
    assert_int_equal(b.lack, PIPELINE_NO_MEMORY);
    assert_int_equal(b.done, 0);
    assert_int_equal(fstatat(b.root, "once", &st, 0), 0);
    assert_int_equal(st.st_nlink, 2); // its workspace is gone
    pipeline_free(b.pipeline);
    start_job(&b, &b.back);
    run_well(&b, started(&b).tag);
    assert_int_equal(b.reason, REASON_OK);
    end(&b);
}

static void whoever_cannot_wait_hears_of_it_as_an_end(void **state)
{
    (void)state;
    struct bench b;
    begin(&b);
    b.sink.lacking = NULL;
    b.uids.count = 1;
    uids_take(&b.uids);
    start_text(&b, "{\"command\":[\"x\"]," FOLDER "}");
    loop_step(b.fake.loop, 100);
    assert_int_equal(b.done, 1);
    assert_int_equal(b.reason, REASON_INTERNAL);
    assert_non_null(strstr(b.error, "no uid"));
    pipeline_free(b.pipeline);
    b.sink.lacking = sink_lacking; // nor does one that is asked
    b.does_not_wait = true;
    start_text(&b, "{\"command\":[\"x\"]," FOLDER "}");
    loop_step(b.fake.loop, 100);
    assert_int_equal(b.lacked, 1);
    assert_int_equal(b.done, 2);
    assert_int_equal(b.reason, REASON_INTERNAL);
    end(&b);
}

static void a_cancelled_job_does_not_come_back(void **state)
{
    (void)state;
    struct bench b;
    begin(&b);
    start_text(&b, "{\"command\":[\"x\"]," FOLDER "}");
    struct plan_request q = started(&b);
    pipeline_stop(b.pipeline, REASON_CALLER_TIMEOUT, "too late");
    say(&b, (struct plan_record){.op = PLAN_END, .tag = q.tag, .error = EAGAIN, .status = -1});
    assert_int_equal(b.lacked, 0);
    assert_int_equal(b.done, 1);
    assert_int_equal(b.reason, REASON_CALLER_TIMEOUT);
    assert_string_equal(b.error, "too late");
    end(&b);
}

// "kept/s1" with w, which has 1 MB, and t.
static int make_session(struct bench *b)
{
    char block[4096] = {1};
    assert_int_equal(mkdirat(b->root, "kept/s1", 0711), 0);
    assert_int_equal(mkdirat(b->root, "kept/s1/w", 0700), 0);
    assert_int_equal(mkdirat(b->root, "kept/s1/t", 0700), 0);
    int fd = openat(b->root, "kept/s1/w/old", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (int i = 0; i < 256; i++) {
        assert_int_equal(write(fd, block, sizeof block), sizeof block);
    }
    fsync(fd); // blocks are counted when they are there
    close(fd);
    return openat(b->root, "kept/s1/w", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void a_session_is_used_and_stays(void **state)
{
    (void)state;
    struct bench b;
    struct stat st;
    begin(&b);
    int w = make_session(&b);
    struct pipeline_place place = {.workspace = "kept/s1",
                                   .fd = w,
                                   .uid = PLAN_UID_WORKSPACE_0 + 7,
                                   .bytes = -1,
                                   .entries = -1,
                                   .queued_ms = 12345};
    // small enough for a tmpfs, if it had a workspace of its own
    start_text(&b, "{\"command\":[\"x\"],\"limits\":{\"disk_mb\":10}}");
    pipeline_set_place(b.pipeline, &place);
    struct plan_request q = started(&b);
    assert_int_equal(q.workspace_kind, PLAN_WORKSPACE_FOLDER);
    assert_int_equal(q.filter, PLAN_FILTER_FOLDER);
    assert_string_equal(q.workspace, "kept/s1");
    assert_int_equal(q.tmp_folder, 1);
    assert_int_equal(q.uid, place.uid);
    run_well(&b, q.tag);
    assert_int_equal(b.reason, REASON_OK);
    assert_int_equal(b.queued_ms, 12345);
    // what was there counts, but for the folders that every session has
    assert_true(b.disk_bytes >= (1 << 20) - 6 * 4096 && b.disk_bytes < 2 << 20);
    assert_int_equal(fstatat(b.root, "kept/s1/w/old", &st, 0), 0);
    assert_int_equal(fcntl(w, F_GETFD), FD_CLOEXEC); // the caller's
    assert_int_equal(uids_left(&b.uids), UIDS_COUNT);
    close(w);
    end(&b);
}

static void what_is_above_its_limit_may_stay(void **state)
{
    (void)state;
    // what is known of it: nothing, or that it is more
    static const int64_t known[][2] = {{-1, -1}, {2 << 20, 1}, {0, 5000}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct bench b;
        begin(&b);
        int w = make_session(&b);
        struct pipeline_place place = {.workspace = "kept/s1",
                                       .fd = w,
                                       .uid = PLAN_UID_WORKSPACE_0,
                                       .bytes = known[i][0],
                                       .entries = known[i][1]};
        start_text(&b, "{\"command\":[\"x\"],\"limits\":{\"disk_mb\":0}}");
        pipeline_set_place(b.pipeline, &place);
        struct plan_request q = started(&b);
        run_well(&b, q.tag);
        assert_int_equal(b.reason, REASON_OK);
        close(w);
        end(&b);
    }
}

// More files than are put there at once.
static void start_with_files(struct bench *b, struct work_pool **ret_pool)
{
    AUTO_BUF struct buf text = BUF_INIT(64 << 10);
    buf_puts(&text, "{\"command\":[\"x\"]," FOLDER ",\"input_files\":[");
    for (int i = 0; i < 200; i++) {
        buf_printf(&text, "%s{\"target_path\":\"%d/f\",\"content_base64\":\"\"}", i ? "," : "", i);
    }
    buf_puts(&text, "]}");
    start_text(b, buf_text(&text));
    assert_int_equal(work_pool_new(b->fake.loop, 1, ret_pool), 0);
    pipeline_set_place(b->pipeline, &(struct pipeline_place){.pool = *ret_pool});
}

static int in_once(const struct bench *b)
{
    int n = 0;
    DIR *d = fdopendir(openat(b->root, "once", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n - 2;
}

static void many_files_are_staged_and_removed_beside_the_loop(void **state)
{
    (void)state;
    struct bench b;
    struct work_pool *pool;
    bool waited = false;
    begin(&b);
    start_with_files(&b, &pool);
    while (!waited) {
        loop_step(b.fake.loop, 10);
        waited = work_waiting(pool) > 0;
    }
    struct plan_request q = started(&b);
    assert_int_equal(in_once(&b), 1);
    say(&b, (struct plan_record){.op = PLAN_EXECUTED, .tag = q.tag});
    say(&b, (struct plan_record){.op = PLAN_END, .tag = q.tag});
    waited = false;
    for (int i = 0; i < 1000 && !b.done; i++) {
        loop_step(b.fake.loop, 10);
        waited = waited || work_waiting(pool) > 0;
    }
    assert_int_equal(b.done, 1);
    assert_true(waited);
    assert_int_equal(b.reason, REASON_OK);
    assert_true(b.disk_bytes >= 0);
    assert_int_equal(in_once(&b), 0);
    work_pool_free(pool);
    end(&b);
}

// Work that keeps a pool's only thread until it is told to go on.
struct gate {
    struct work work;
    int ends[2];
};

static void read_gate(struct work *w)
{
    char c;
    assert_int_equal(read(((struct gate *)w->ctx)->ends[0], &c, 1), 1);
}

static void nothing(struct work *w) { (void)w; }

static void gate_close(struct gate *g, struct work_pool *pool)
{
    assert_int_equal(pipe2(g->ends, O_CLOEXEC), 0);
    g->work = (struct work){.run = read_gate, .done = nothing, .ctx = g};
    assert_int_equal(work_queue(pool, &g->work), 0);
}

// Until the job's piece waits behind it.
static void gate_meets(const struct bench *b, const struct work_pool *pool)
{
    for (int i = 0; i < 1000 && work_waiting(pool) < 2; i++) {
        loop_step(b->fake.loop, 10);
    }
    assert_int_equal(work_waiting(pool), 2);
}

// And the job ends.
static void gate_open(struct gate *g, struct bench *b)
{
    assert_int_equal(write(g->ends[1], "", 1), 1);
    for (int i = 0; i < 1000 && !b->done; i++) {
        loop_step(b->fake.loop, 10);
    }
    assert_int_equal(b->done, 1);
}

// The thread goes on: the cancelled job ends as that, and its workspace with it.
static void gate_ends_cancelled(struct gate *g, struct bench *b, struct work_pool *pool)
{
    gate_open(g, b);
    assert_int_equal(b->lacked, 0);
    assert_int_equal(b->reason, REASON_CANCELLED);
    assert_int_equal(in_once(b), 0);
    work_pool_free(pool);
    end(b);
    close(g->ends[0]);
    close(g->ends[1]);
}

static void whoever_is_cancelled_meanwhile_ends_when_the_thread_is_done(void **state)
{
    (void)state;
    struct bench b;
    struct work_pool *pool;
    struct gate gate;
    begin(&b);
    start_with_files(&b, &pool);
    gate_close(&gate, pool);
    gate_meets(&b, pool);
    pipeline_cancel(b.pipeline);
    loop_step(b.fake.loop, 0);
    assert_int_equal(b.done, 0);
    assert_int_equal(in_once(&b), 1);
    gate_ends_cancelled(&gate, &b, pool);
}

// What is above its limit may be a large tree: it is counted beside the loop, and no further than
// anybody waits for it.
static void whoever_is_cancelled_while_his_session_is_counted_ends(void **state)
{
    (void)state;
    struct bench b;
    struct work_pool *pool;
    struct gate gate;
    char name[32];
    begin(&b);
    int w = make_session(&b);
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_int_equal(symlinkat("x", w, name), 0);
    }
    assert_int_equal(work_pool_new(b.fake.loop, 1, &pool), 0);
    gate_close(&gate, pool);
    struct pipeline_place place = {.workspace = "kept/s1",
                                   .fd = w,
                                   .uid = PLAN_UID_WORKSPACE_0,
                                   .bytes = -1,
                                   .entries = -1,
                                   .pool = pool};
    start_text(&b, "{\"command\":[\"x\"],\"limits\":{\"disk_mb\":1}}");
    pipeline_set_place(b.pipeline, &place);
    gate_meets(&b, pool);
    pipeline_cancel(b.pipeline);
    loop_step(b.fake.loop, 0);
    assert_int_equal(b.done, 0);
    close(w);
    gate_ends_cancelled(&gate, &b, pool);
}

// It would begin again, and nobody would cancel it once more.
static void whoever_is_cancelled_while_his_workspace_goes_does_not_come_back(void **state)
{
    (void)state;
    struct bench b;
    struct work_pool *pool;
    struct gate gate;
    begin(&b);
    start_with_files(&b, &pool);
    struct plan_request q = started(&b);
    gate_close(&gate, pool);
    say(&b, (struct plan_record){.op = PLAN_END, .tag = q.tag, .error = EAGAIN, .status = -1});
    assert_int_equal(work_waiting(pool), 2);
    pipeline_cancel(b.pipeline);
    assert_int_equal(b.done, 0);
    gate_ends_cancelled(&gate, &b, pool);
}

// What it replaces may be large, and its removal take its time.
static void a_file_of_a_session_is_replaced_beside_the_loop(void **state)
{
    (void)state;
    struct bench b;
    struct stat st;
    struct work_pool *pool;
    struct gate gate;
    begin(&b);
    int w = make_session(&b);
    start_text(&b, "{\"command\":[\"x\"],"
                   "\"input_files\":[{\"target_path\":\"old\",\"content_base64\":\"\"}]}");
    assert_int_equal(work_pool_new(b.fake.loop, 1, &pool), 0);
    pipeline_set_place(b.pipeline, &(struct pipeline_place){.workspace = "kept/s1",
                                                            .fd = w,
                                                            .uid = PLAN_UID_WORKSPACE_0,
                                                            .bytes = 1 << 20,
                                                            .pool = pool});
    gate_close(&gate, pool);
    gate_meets(&b, pool);
    assert_int_equal(fstatat(w, "old", &st, 0), 0);
    assert_true(st.st_size > 0);
    pipeline_cancel(b.pipeline);
    close(w);
    gate_ends_cancelled(&gate, &b, pool);
}

// What it left has blocks, which are given back when the disk has time.
static void what_a_job_leaves_is_removed_beside_the_loop(void **state)
{
    (void)state;
    struct bench b;
    struct work_pool *pool;
    struct gate gate;
    char path[160], block[4096] = {1};
    begin(&b);
    start_text(&b, "{\"command\":[\"x\"]," FOLDER "}");
    assert_int_equal(work_pool_new(b.fake.loop, 1, &pool), 0);
    pipeline_set_place(b.pipeline, &(struct pipeline_place){.pool = pool});
    struct plan_request q = started(&b);
    say(&b, (struct plan_record){.op = PLAN_EXECUTED, .tag = q.tag});
    snprintf(path, sizeof path, "%s/w/left", q.workspace);
    int fd = openat(b.root, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, block, sizeof block), sizeof block);
    fsync(fd);
    close(fd);
    gate_close(&gate, pool);
    say(&b, (struct plan_record){.op = PLAN_END, .tag = q.tag});
    gate_meets(&b, pool);
    assert_int_equal(faccessat(b.root, path, F_OK, 0), 0);
    gate_open(&gate, &b);
    assert_int_equal(b.reason, REASON_OK);
    assert_int_equal(in_once(&b), 0);
    work_pool_free(pool);
    end(&b);
    close(gate.ends[0]);
    close(gate.ends[1]);
}

// Others will give some back: it ends when its folder is gone, and well.
static void without_descriptors_its_end_waits(void **state)
{
    (void)state;
    struct bench b;
    struct work_pool *pool;
    struct rlimit files;
    begin(&b);
    start_text(&b, "{\"command\":[\"x\"]," FOLDER "}");
    assert_int_equal(work_pool_new(b.fake.loop, 1, &pool), 0);
    pipeline_set_place(b.pipeline, &(struct pipeline_place){.pool = pool});
    struct plan_request q = started(&b);
    say(&b, (struct plan_record){.op = PLAN_EXECUTED, .tag = q.tag});
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    const struct rlimit none = {0, files.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    say(&b, (struct plan_record){.op = PLAN_END, .tag = q.tag});
    for (int i = 0; i < 50; i++) {
        loop_step(b.fake.loop, 10);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(b.done, 0);
    assert_int_equal(in_once(&b), 1);
    for (int i = 0; i < 3000 && !b.done; i++) {
        loop_step(b.fake.loop, 10);
    }
    assert_int_equal(b.reason, REASON_OK);
    assert_int_equal(in_once(&b), 0);
    work_pool_free(pool);
    end(&b);
}

// ---- archives

static struct {
    pthread_t loop;
    int pieces, here, ended;
} packing;

static int pack_begin(int folder, const struct zip_options *o, struct zip **ret)
{
    (void)folder, (void)o;
    *ret = (struct zip *)&packing;
    return 0;
}

static ssize_t pack_next(struct zip *z, void *ret_data, size_t size)
{
    (void)z, (void)size;
    packing.here += pthread_equal(packing.loop, pthread_self()) != 0;
    memcpy(ret_data, "zip", 3);
    return ++packing.pieces % 2 ? -EAGAIN : packing.pieces < 20 ? 3 : 0;
}

static void pack_end(struct zip *z, struct work_pool *pool, uint64_t owner)
{
    (void)z, (void)pool, (void)owner;
    packing.ended++;
}

static int sink_artifact(void *ctx, const struct result_artifact *a, uint32_t mode)
{
    struct bench *b = ctx;
    (void)mode;
    snprintf(b->artifact, sizeof b->artifact, "%s %llu", a->filename,
             (unsigned long long)a->size_bytes);
    return 0;
}

// A folder may have had a million names, or hold files that nobody has read lately.
static void an_archive_is_made_beside_the_loop(void **state)
{
    (void)state;
    static const struct zip_ops ops = {pack_begin, pack_next, pack_end};
    struct bench b;
    struct work_pool *pool;
    begin(&b);
    packing.loop = pthread_self();
    b.config.zip = &ops;
    b.sink.artifact = sink_artifact;
    start_text(&b, "{\"command\":[\"x\"]," FOLDER ",\"artifacts\":[\"output\"]}");
    assert_int_equal(work_pool_new(b.fake.loop, 1, &pool), 0);
    pipeline_set_place(b.pipeline, &(struct pipeline_place){.pool = pool});
    run_well(&b, started(&b).tag);
    assert_int_equal(b.reason, REASON_OK);
    assert_string_equal(b.artifact, "output.zip 27");
    assert_int_equal(packing.pieces, 20);
    assert_int_equal(packing.here, 0);
    assert_int_equal(packing.ended, 1);
    work_pool_free(pool);
    end(&b);
}

static void a_folder_that_is_not_there_is_named(void **state)
{
    (void)state;
    struct bench b;
    begin(&b);
    int w = make_session(&b);
    assert_int_equal(symlinkat("/", w, "link"), 0);
    struct pipeline_place place = {
        .workspace = "kept/s1", .fd = w, .uid = PLAN_UID_WORKSPACE_0, .bytes = -1, .entries = -1};
    start_text(&b, "{\"command\":[\"x\"],\"cwd\":\"/workspace/none\"}");
    pipeline_set_place(b.pipeline, &place);
    loop_step(b.fake.loop, 100);
    assert_int_equal(b.reason, REASON_ERROR);
    assert_string_equal(b.error, "cwd: /workspace/none: No such file or directory");
    assert_true(fake_hears_nothing(&b.fake));
    pipeline_free(b.pipeline);
    start_text(&b, "{\"command\":[\"x\"],\"cwd\":\"/workspace/link\"}");
    pipeline_set_place(b.pipeline, &place);
    loop_step(b.fake.loop, 100);
    assert_int_equal(b.done, 2);
    assert_non_null(strstr(b.error, "cwd: /workspace/link"));
    close(w);
    end(&b);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); // as the service does
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_are_told_in_order),
        cmocka_unit_test(without_a_uid_the_job_comes_back_and_can_begin_again),
        cmocka_unit_test(a_sandbox_that_finds_no_room_gives_the_job_back),
        cmocka_unit_test(whoever_cannot_wait_hears_of_it_as_an_end),
        cmocka_unit_test(a_cancelled_job_does_not_come_back),
        cmocka_unit_test(a_session_is_used_and_stays),
        cmocka_unit_test(what_is_above_its_limit_may_stay),
        cmocka_unit_test(many_files_are_staged_and_removed_beside_the_loop),
        cmocka_unit_test(whoever_is_cancelled_meanwhile_ends_when_the_thread_is_done),
        cmocka_unit_test(whoever_is_cancelled_while_his_session_is_counted_ends),
        cmocka_unit_test(whoever_is_cancelled_while_his_workspace_goes_does_not_come_back),
        cmocka_unit_test(a_file_of_a_session_is_replaced_beside_the_loop),
        cmocka_unit_test(what_a_job_leaves_is_removed_beside_the_loop),
        cmocka_unit_test(without_descriptors_its_end_waits),
        cmocka_unit_test(an_archive_is_made_beside_the_loop),
        cmocka_unit_test(a_folder_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
