// Files of a session become artifacts of a job that runs nothing: all or none, also when it is
// cancelled, when they cannot be stored, and when the service ends meanwhile.
#include "place.h"

#include "base/clock.h"
#include "serve/artifacts.h"
#include "serve/jobs.h"
#include "serve/sessions.h"
#include "serve/shares.h"
#include "store/sqlite.h"
#include "workspace/uids.h"

#include <semaphore.h>

enum { LARGE_BYTES = 48 << 20 };

struct set {
    struct place place;
    int artifacts_dir;
    struct store *store;
    struct uids uids;
    struct sessions *sessions;
    struct shares *shares;
    struct artifacts *artifacts;
    struct pipeline_config pipeline;
    struct jobs *jobs;
    char session[37], id[37];
    bool created, drained;
    // of the last job
    struct jobs_watch watch;
    bool ended, gone;
    enum reason reason;
    char error[512], sha256[SHA256_HEX];
    size_t n_artifacts;
    int status;
};

static void created(void *ctx, const struct sessions_outcome *o)
{
    struct set *s = ctx;
    assert_int_equal(o->error, 0);
    snprintf(s->session, sizeof s->session, "%.*s", (int)o->session->id.len, o->session->id.data);
    s->created = true;
}

static bool is_created(void *ctx) { return ((struct set *)ctx)->created; }

static void open_all(struct set *s)
{
    struct store_error why;
    const struct store_sqlite place = {.dir = s->place.path, .now_ms = clock_wall_ms()};
    assert_int_equal(store_sqlite_open(s->place.loop, &place, &s->store, &why), 0);
    s->uids = (struct uids){0};
    const struct shares_config shares = {.store = s->store, .data_folder = s->place.root};
    assert_int_equal(shares_new(&shares, &s->shares), 0);
    const struct sessions_config sessions = {.loop = s->place.loop,
                                             .shares = s->shares,
                                             .store = s->store,
                                             .pool = s->place.pool,
                                             .uids = &s->uids,
                                             .workspace_root = s->place.root,
                                             .ttl_hours = 1,
                                             .cleanup_batch = 2,
                                             .disk_bytes = 1 << 30};
    assert_int_equal(sessions_new(&sessions, &s->sessions), 0);
    assert_int_equal(artifacts_new(s->artifacts_dir, s->place.pool, s->shares, 0, &s->artifacts),
                     0);
    s->pipeline = (struct pipeline_config){.workspace_root = s->place.root,
                                           .uids = &s->uids,
                                           .artifact_max_bytes = 64 << 20,
                                           .artifacts_max_bytes = 64 << 20,
                                           .launcher = "native",
                                           .artifact_urls = "/jobs/"};
    const struct jobs_config jobs = {.loop = s->place.loop,
                                     .pipeline = &s->pipeline,
                                     .store = s->store,
                                     .sessions = s->sessions,
                                     .artifacts = s->artifacts,
                                     .shares = s->shares,
                                     .pool = s->place.pool,
                                     .limits = {.queue = {.slots = 1, .waiting = 1},
                                                .memory_bytes = 1 << 30,
                                                .result_ttl_ms = 3600000}};
    assert_int_equal(jobs_new(&jobs, &s->jobs), 0);
}

static void close_all(struct set *s)
{
    work_pool_stop(s->place.pool);
    store_close(s->store);
    jobs_free(s->jobs);
    sessions_free(s->sessions);
    artifacts_free(s->artifacts);
    shares_free(s->shares);
}

static int make(void **state)
{
    struct set *s = calloc(1, sizeof *s);
    place_make(&s->place);
    place_folder(&s->place, "artifacts");
    s->artifacts_dir = openat(s->place.root, "artifacts", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    open_all(s);
    sessions_create(s->sessions, &(struct sessions_create){.team = "a"}, created, s);
    place_run(&s->place, is_created, s);
    *state = s;
    return 0;
}

static int drop(void **state)
{
    struct set *s = *state;
    close_all(s);
    close(s->artifacts_dir);
    place_drop(&s->place);
    free(s);
    return 0;
}

// A file of the session, with that text and then a hole.
static void put(struct set *s, const char *name, const char *text, off_t size)
{
    struct session_lease l;
    assert_int_equal(sessions_lease(s->sessions, "a", s->session, &l), 0);
    AUTO_CLOSE int fd = openat(l.files.root, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    assert_int_equal(ftruncate(fd, size ? size : (off_t)strlen(text)), 0);
    assert_int_equal(fchown(fd, l.files.uid, (gid_t)-1), 0);
    sessions_release(s->sessions, &l, SESSIONS_UNCHANGED);
}

static void ended(struct jobs_watch *w, const struct result *r, const char *json, size_t len)
{
    struct set *s = w->ctx;
    (void)json, (void)len;
    s->ended = true;
    s->reason = r->reason;
    s->n_artifacts = r->n_artifacts;
    snprintf(s->error, sizeof s->error, "%s", r->error ? r->error : "");
    if (r->n_artifacts) {
        memcpy(s->sha256, r->artifacts[0].sha256, sizeof s->sha256);
    }
}

static int collect(struct set *s, const char *session, const char *artifacts)
{
    char json[512];
    struct job_error why;
    struct jobs_submission order = {.team = "a", .entry = "test", .tool_call = true};
    int n = snprintf(json, sizeof json,
                     "{\"command\":[\"true\"],\"session_id\":\"%s\",\"artifacts\":%s}", session,
                     artifacts);
    assert_int_equal(job_parse(json, (size_t)n, 0, &order.job, &why), 0);
    s->watch = (struct jobs_watch){.ended = ended, .ctx = s};
    s->ended = s->gone = false;
    return jobs_collect(s->jobs, &order, &s->watch, s->id);
}

static bool has_ended(void *ctx) { return ((struct set *)ctx)->ended; }

static void got(void *ctx, const char *json, size_t len, int status)
{
    (void)len;
    ((struct set *)ctx)->status = json ? status : -1;
}

// The job's status as a caller reads it, once it has one that stays.
static bool has_status(void *ctx)
{
    struct set *s = ctx;
    s->status = -1;
    jobs_get(s->jobs, "a", s->id, got, s);
    return s->status >= STATUS_COMPLETED;
}

static bool nothing_kept(void *ctx)
{
    return place_count(&((struct set *)ctx)->place, "artifacts") == 0;
}

static void test_kept(void **state)
{
    struct set *s = *state;
    uint64_t size;
    put(s, "f", "abc", 0);
    assert_int_equal(collect(s, s->session, "[\"f\",{\"path\":\"none\",\"optional\":true}]"), 0);
    jobs_get(s->jobs, "a", s->id, got, s);
    assert_int_equal(s->status, STATUS_COLLECTING);
    jobs_get(s->jobs, "b", s->id, got, s);
    assert_int_equal(s->status, -1);
    place_run(&s->place, has_ended, s);
    assert_int_equal(s->reason, REASON_OK);
    assert_int_equal(s->n_artifacts, 1);
    assert_string_equal(s->sha256,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    int fd = artifacts_open(s->artifacts, s->id, 0, &size);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(size, 3);
    assert_true(has_status(s));
    assert_int_equal(s->status, STATUS_COMPLETED);
    struct jobs_stats stats;
    jobs_stats(s->jobs, &stats);
    assert_int_equal(stats.ended[0][REASON_OK], 1);
}

static void test_all_or_none(void **state)
{
    struct set *s = *state;
    put(s, "f", "abc", 0);
    assert_int_equal(collect(s, s->session, "[\"x\",\"f\",\"y/z\"]"), 0);
    place_run(&s->place, has_ended, s);
    assert_int_equal(s->reason, REASON_ARTIFACT);
    assert_string_equal(s->error, "x: does not exist; y/z: does not exist");
    assert_int_equal(s->n_artifacts, 0);
    place_run(&s->place, nothing_kept, s);
}

static void test_no_session(void **state)
{
    struct set *s = *state;
    assert_int_equal(collect(s, "0190c3f0-0000-7000-8000-000000000001", "[\"f\"]"),
                     JOBS_NO_SESSION);
    sessions_delete(s->sessions, "a", s->session, created, s);
    assert_int_equal(collect(s, s->session, "[\"f\"]"), JOBS_SESSION_GONE);
}

static void test_caller_leaves(void **state)
{
    struct set *s = *state;
    put(s, "f", "abc", LARGE_BYTES);
    assert_int_equal(collect(s, s->session, "[\"f\"]"), 0);
    jobs_leave(s->jobs, &s->watch);
    place_run(&s->place, has_status, s);
    assert_int_equal(s->status, STATUS_CANCELLED);
    assert_false(s->ended);
    place_run(&s->place, nothing_kept, s);
}

static void test_cancelled(void **state)
{
    struct set *s = *state;
    put(s, "f", "abc", LARGE_BYTES);
    assert_int_equal(collect(s, s->session, "[\"f\"]"), 0);
    assert_int_equal(jobs_cancel(s->jobs, "b", s->id), -ENOENT);
    jobs_cancel_session(s->jobs, s->session);
    assert_int_equal(jobs_cancel(s->jobs, "a", s->id), 0); // the first verdict stays
    place_run(&s->place, has_ended, s);
    assert_int_equal(s->reason, REASON_CANCELLED);
    assert_string_equal(s->error, "Cancelled: its session was deleted");
    place_run(&s->place, nothing_kept, s);
}

static void set_limits(struct set *s, bool disabled, uint64_t tool_timeout_ms)
{
    const struct jobs_limits limits = {.queue = {.slots = 1, .waiting = 1},
                                       .memory_bytes = 1 << 30,
                                       .result_ttl_ms = 3600000,
                                       .disabled = disabled,
                                       .tool_timeout_ms = tool_timeout_ms};
    assert_int_equal(jobs_change(s->jobs, &limits), 0);
}

static void test_disabled(void **state)
{
    struct set *s = *state;
    put(s, "f", "abc", 0);
    set_limits(s, true, 0);
    assert_int_equal(collect(s, s->session, "[\"f\"]"), JOBS_DISABLED);
    set_limits(s, false, 0);
    assert_int_equal(collect(s, s->session, "[\"f\"]"), 0);
    place_run(&s->place, has_ended, s);
    assert_int_equal(s->reason, REASON_OK);
}

// Both threads of the place stand before it.
static sem_t door;

static void stand(struct work *w)
{
    (void)w;
    sem_wait(&door);
}

static void stood(struct work *w) { *(int *)w->ctx += 1; }

static bool both_stood(void *ctx) { return *(int *)ctx == 2; }

static void open_door(struct loop_timer *t)
{
    (void)t;
    sem_post(&door);
    sem_post(&door);
}

// In a tool call's time no thread has come to it: it ends when one comes, and its caller has the
// answer a moment after that time whether or not one has.
static void test_time_is_over(void **state)
{
    struct set *s = *state;
    put(s, "f", "abc", 0);
    assert_int_equal(sem_init(&door, 0, 0), 0);
    for (int late = 0; late < 2; late++) {
        int n = 0;
        struct work standing[2];
        struct loop_timer opens = LOOP_TIMER_INIT(open_door, NULL);
        for (int i = 0; i < 2; i++) {
            standing[i] =
                (struct work){.run = stand, .done = stood, .ctx = &n, .owner = (uint64_t)i + 1};
            assert_int_equal(work_queue(s->place.pool, &standing[i]), 0);
        }
        set_limits(s, false, 1);
        assert_int_equal(collect(s, s->session, "[\"f\"]"), 0);
        if (!late) {
            loop_timer_set(s->place.loop, &opens, 2 * NS_PER_MS);
        }
        place_run(&s->place, has_ended, s);
        assert_int_equal(s->reason, REASON_CALLER_TIMEOUT);
        assert_string_equal(s->error, "Tool call timeout (0s)");
        if (late) {
            assert_false(has_status(s));
            open_door(NULL);
        }
        place_run(&s->place, both_stood, &n);
        place_run(&s->place, has_status, s);
        assert_int_equal(s->status, STATUS_FAILED);
        place_run(&s->place, nothing_kept, s);
    }
    sem_destroy(&door);
}

static void test_cannot_be_stored(void **state)
{
    struct set *s = *state;
    char name[64];
    put(s, "f", "abc", LARGE_BYTES);
    assert_int_equal(collect(s, s->session, "[\"f\"]"), 0);
    snprintf(name, sizeof name, "artifacts/%s", s->id); // where it is to be at the end
    place_folder(&s->place, name);
    place_run(&s->place, has_ended, s);
    assert_int_equal(s->reason, REASON_INTERNAL);
    assert_string_equal(s->error, "the artifacts cannot be stored: File exists");
    assert_int_equal(s->n_artifacts, 0);
}

static void drained(void *ctx) { ((struct set *)ctx)->drained = true; }

static bool is_drained(void *ctx) { return ((struct set *)ctx)->drained; }

static void test_drain(void **state)
{
    struct set *s = *state;
    put(s, "f", "abc", LARGE_BYTES);
    assert_int_equal(collect(s, s->session, "[\"f\"]"), 0);
    jobs_drain(s->jobs, 60000, drained, s);
    assert_false(s->drained);
    place_run(&s->place, is_drained, s);
    assert_true(s->ended);
    assert_int_equal(s->reason, REASON_OK);
    assert_int_equal(collect(s, s->session, "[\"f\"]"), JOBS_CLOSED);
}

static void test_end_meanwhile(void **state)
{
    struct set *s = *state;
    put(s, "f", "abc", LARGE_BYTES);
    assert_int_equal(collect(s, s->session, "[\"f\"]"), 0);
    close_all(s);
    assert_false(s->ended);
    place_no_threads(&s->place);
    place_threads(&s->place);
    open_all(s);
    jobs_get(s->jobs, "a", s->id, got, s);
    assert_int_equal(s->status, -1); // nobody heard of it
    assert_int_equal(collect(s, s->session, "[\"f\"]"), 0);
    place_run(&s->place, has_ended, s);
    assert_int_equal(s->reason, REASON_OK);
}

int main(void)
{
#define COLLECT_TEST(f) cmocka_unit_test_setup_teardown(f, make, drop)
    const struct CMUnitTest tests[] = {
        COLLECT_TEST(test_kept),       COLLECT_TEST(test_all_or_none),
        COLLECT_TEST(test_no_session), COLLECT_TEST(test_caller_leaves),
        COLLECT_TEST(test_cancelled),  COLLECT_TEST(test_cannot_be_stored),
        COLLECT_TEST(test_disabled),   COLLECT_TEST(test_time_is_over),
        COLLECT_TEST(test_drain),      COLLECT_TEST(test_end_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
