#include "app/serve_inner.h"

#include "api/api.h"
#include "app/bounds.h"
#include "app/inner.h"
#include "app/passed.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cli/verb.h"
#include "io/work.h"
#include "job/runner.h"
#include "serve/agent.h"
#include "serve/artifacts.h"
#include "serve/jobs.h"
#include "serve/ready.h"
#include "serve/shares.h"
#include "store/sqlite.h"
#include "workspace/zip.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

enum {
    OWN_MAP_BYTES = 1 << 20,
    WORK_THREADS = 4,
    LAST_ANSWERS_MS = 2000, // for readers of what has ended, and event streams
    HUNG_MS = 10000, // beyond the drain's limit: a job that is cancelled has ended long before
    TOLD = 1,        // it has failed, and has said why in words of its own
};

#define complain(...) verb_complain("serve", __VA_ARGS__)

// ---- The end ------------------------------------------------------------------------------------

void serve_stop_now(struct serve *s) { loop_stop(s->loop); }

static void http_stopped(void *ctx) { serve_stop_now(ctx); }

static void last_fires(struct loop_timer *t) { serve_stop_now(t->ctx); }

// A launcher that stands still ends no job. They end with it, as worker_lost.
static void hung_fires(struct loop_timer *t)
{
    struct serve *s = t->ctx;
    log_say(s->log, LOG_ERROR, "jobs do not end", LOG_T("effect", "the service ends without them"));
    serve_stop_now(s);
}

static void drained(void *ctx)
{
    struct serve *s = ctx;
    loop_timer_clear(s->loop, &s->hung);
    loop_timer_set(s->loop, &s->last, LAST_ANSWERS_MS * NS_PER_MS);
    http_server_stop(s->http, http_stopped, s);
}

void serve_drain(struct serve *s, const char *why, uint64_t limit_ms)
{
    if (s->draining) {
        return;
    }
    s->draining = true;
    log_say(s->log, LOG_INFO, "ending", LOG_T("why", why), LOG_I("limit_ms", (int64_t)limit_ms));
    ready_never(s->ready, why);
    loop_timer_set(s->loop, &s->hung, (limit_ms + HUNG_MS) * NS_PER_MS);
    if (s->lost) {
        jobs_lose(s->jobs, drained, s);
    } else {
        jobs_drain(s->jobs, limit_ms, drained, s);
    }
}

// Its jobs have died with it, and are told so.
static void launcher_lost(void *ctx)
{
    struct serve *s = ctx;
    s->lost = true;
    s->status = 1;
    log_say(s->log, LOG_ERROR, "launcher lost", LOG_T("effect", "the service ends"));
    if (s->http) {
        serve_drain(s, "the launcher is gone", 0);
    } else {
        serve_stop_now(s);
    }
}

static void ready_changed(void *ctx, bool ready)
{
    serve_tell(ctx, ready ? TALK_READY : TALK_NOT_READY);
}

// ---- Begin --------------------------------------------------------------------------------------

static int open_store(struct serve *s)
{
    struct store_error why;
    const struct store_sqlite place = {.dir = START_STORE, .now_ms = clock_wall_ms()};
    int e = store_sqlite_open(s->loop, &place, &s->store, &why);
    if (e) {
        complain("the data folder's store: %s%s", why.text,
                 e == -ENOSPC ? " (make room, or name another folder by --data)" : "");
    }
    return e ? TOLD : 0;
}

static int open_log(struct serve *s)
{
    enum log_format format;
    enum log_level least;
    serve_log_settings(s, &format, &least);
    return log_new(STDERR_FILENO, s->audit, format, least, &s->log);
}

static void no_row(void *ctx, const struct store_record *r) { (void)ctx, (void)r; }

static void key_looked_for(void *ctx, int error) { *(int *)ctx = error; }

// What an operator should see of how jobs are isolated, in the first lines of the log.
static int tell_isolation(struct serve *s)
{
    const struct seat *seat = s->seat;
    if (seat->made_by == SEAT_BWRAP) {
        log_say(
            s->log, LOG_INFO, "sandboxes by Bubblewrap", LOG_T("bwrap", seat->bwrap),
            LOG_T("native_would_add",
                  "sandboxes, groups and network namespaces prepared before the job is there; no "
                  "other program with a part in the isolation"));
    }
    if (seat->made_by == SEAT_NONE) {
        log_say(s->log, LOG_WARNING, "jobs are not isolated",
                LOG_T("why", "SANDBOX_FILESYSTEM_ISOLATION_ENABLED=false"),
                LOG_T("isolation", "none"));
    } else if (s->pipeline.fallback) {
        log_say(s->log, LOG_WARNING, "jobs whose sandbox fails run without one",
                LOG_T("why", "SANDBOX_LEGACY_FALLBACK_ENABLED=true"));
    }
    if (!conf_bool(s->conf, SETTING_RUNTIME_ENABLED)) {
        log_say(s->log, LOG_WARNING, "jobs are refused",
                LOG_T("why", "SANDBOX_RUNTIME_ENABLED=false"));
    }
    return 0;
}

// Who reaches an address that others reach, too, must show a key: there must be one.
static int check_listeners(struct serve *s)
{
    if (s->seat->made_by == SEAT_NONE && !s->loopback) { // the front has refused it before
        return -EACCES;
    }
    int found = STORE_MISSING; // else 0 or -errno
    const struct store_query q = {.kind = STORE_FIND_KEY};
    store_read(s->store, &q, &(struct store_reader){no_row, key_looked_for, &found});
    if (found <= 0 || s->loopback) {
        return s->loopback ? 0 : found;
    }
    complain(
        "an address that is not loopback needs a key, and there is none that is not revoked: run "
        "isle serve on 127.0.0.1, make one (isle key create --team TEAM --name NAME), then listen "
        "here");
    return TOLD;
}

static int open_runner(struct serve *s)
{
    const struct seat *seat = s->seat;
    int e = runner_new(s->loop, seat->launcher, seat->launcher_pidfd, launcher_lost, s, &s->runner);
    if (!e && seat->ahead_tag) {
        runner_expect_parked(s->runner, seat->ahead_tag);
    }
    if (!e) {
        pipeline_keep_ahead(&s->pipeline, s->runner);
    }
    return e;
}

static int open_shares(struct serve *s)
{
    const struct shares_config config = {.store = s->store,
                                         .data_folder = s->seat->workspace_root,
                                         .team_bytes = bounds_team_bytes(s->conf)};
    return shares_new(&config, &s->shares);
}

static int open_kept(struct serve *s)
{
    const struct sessions_config sessions = serve_sessions_config(s);
    const int64_t ttl_ms = s->conf->number[SETTING_RESULT_TTL_SECONDS] * 1000;
    s->artifacts_dir = openat(s->seat->workspace_root, "artifacts",
                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int e = s->artifacts_dir < 0 ? -errno : 0;
    e = e ? e
          : artifacts_new(s->artifacts_dir, s->pool, s->shares, clock_wall_ms() - ttl_ms,
                          &s->artifacts);
    return e ? e : sessions_new(&sessions, &s->sessions);
}

static void doubt(void *ctx, const char *why) { ready_doubt(((struct serve *)ctx)->ready, why); }

static int open_jobs(struct serve *s)
{
    const struct jobs_config config = {.loop = s->loop,
                                       .runner = s->runner,
                                       .pipeline = &s->pipeline,
                                       .store = s->store,
                                       .sessions = s->sessions,
                                       .artifacts = s->artifacts,
                                       .shares = s->shares,
                                       .pool = s->pool,
                                       .doubt = doubt,
                                       .doubt_ctx = s,
                                       .log = s->log,
                                       .limits = bounds_jobs(s->conf)};
    return jobs_new(&config, &s->jobs);
}

static int open_agents(struct serve *s)
{
    const struct agents_config config = {
        .loop = s->loop, .sessions = s->sessions, .jobs = s->jobs, .pool = s->pool, .log = s->log};
    return agents_new(&config, &s->agents);
}

static int open_http(struct serve *s)
{
    const struct api_config config = {.loop = s->loop,
                                      .conf = s->conf,
                                      .store = s->store,
                                      .jobs = s->jobs,
                                      .sessions = s->sessions,
                                      .artifacts = s->artifacts,
                                      .shares = s->shares,
                                      .agents = s->agents,
                                      .pool = s->pool,
                                      .log = s->log,
                                      .ready = s->ready,
                                      .workspace_root = s->seat->workspace_root,
                                      .loopback = s->loopback};
    int e = api_new(&config, &s->api);
    if (!e) {
        api_configure_http(s->api, &s->listeners);
        e = http_server_new(s->loop, &s->listeners, &s->http);
    }
    if (!e) {
        api_show_server(s->api, s->http);
    }
    return e;
}

static int watch_front(struct serve *s)
{
    return loop_add(s->loop, &s->front, s->seat->front, EPOLLIN);
}

static int open_pool(struct serve *s) { return work_pool_new(s->loop, WORK_THREADS, &s->pool); }

static int open_loop(struct serve *s) { return loop_new(&s->loop); }

static int open_ready(struct serve *s)
{
    int e = ready_new(&(struct ready_config){.loop = s->loop,
                                             .runner = s->runner,
                                             .pipeline = &s->pipeline,
                                             .store = s->store,
                                             .log = s->log,
                                             .changed = ready_changed,
                                             .ctx = s},
                      &s->ready);
    if (!e && !conf_bool(s->conf, SETTING_RUNTIME_ENABLED)) {
        ready_disable(s->ready, JOBS_DISABLED_TEXT);
    }
    return e;
}

// In the order in which they need each other; end() goes the other way.
static const struct part {
    const char *name;
    int (*open)(struct serve *s);
} parts[] = {
    {"event loop", open_loop},
    {"log", open_log},
    {"isolation", tell_isolation},
    {"slots", serve_tell_slots},
    {"launcher's socket", open_runner},
    {"threads", open_pool},
    {"store", open_store},
    {"teams' shares", open_shares},
    {"listeners", check_listeners},
    {"trial run", open_ready},
    {"sessions and artifacts", open_kept},
    {"jobs", open_jobs},
    {"agents' tools", open_agents},
    {"HTTP", open_http},
    {"front's socket", watch_front},
};

static int begin(struct serve *s)
{
    http_config_init(&s->listeners);
    s->loopback = passed_sort(s->seat, &s->listeners, &s->audit);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        int e = parts[i].open(s);
        if (e) {
            if (e != TOLD) {
                complain("%s: %s", parts[i].name, strerror(-e));
            }
            return e;
        }
    }
    return 0;
}

static void end(struct serve *s)
{
    work_pool_stop(s->pool); // what its threads had is the requests' again
    http_server_free(s->http);
    agents_stop(s->agents);
    store_close(s->store);
    agents_free(s->agents);
    jobs_free(s->jobs);
    sessions_free(s->sessions);
    artifacts_free(s->artifacts);
    shares_free(s->shares);
    fd_close(s->artifacts_dir);
    api_free(s->api);
    ready_free(s->ready);
    work_pool_free(s->pool);
    if (s->runner && !s->lost) {
        runner_finish(s->runner);
    }
    runner_free(s->runner);
    log_free(s->log);
    if (s->loop) {
        loop_timer_clear(s->loop, &s->last);
        loop_timer_clear(s->loop, &s->hung);
    }
    loop_free(s->loop);
    buf_free(&s->order);
    for (int i = 0; i < TALK_MAX_FDS; i++) {
        fd_close(s->order_fd[i]);
    }
}

// The path alone, where nobody has said how callers reach the service.
static void place_artifacts(struct serve *s)
{
    const char *url = s->conf->text[SETTING_PUBLIC_URL];
    size_t n = strlen(url);
    snprintf(s->artifact_urls, sizeof s->artifact_urls, "%.*s/api/v1/sandbox/jobs/",
             (int)(n && url[n - 1] == '/' ? n - 1 : n), url);
    s->pipeline.artifact_urls = s->artifact_urls;
}

int serve_run(const struct seat *seat, struct conf *conf, const struct pipeline_config *config)
{
    struct serve s = {.seat = seat,
                      .conf = conf,
                      .pipeline = *config,
                      .audit = -1,
                      .artifacts_dir = -1,
                      .order = BUF_INIT(sizeof(struct talk_head) + TALK_MAX_BYTES + 4096),
                      .order_fd = {-1, -1}};
    s.front = LOOP_WATCH_INIT(serve_front_ready, &s);
    s.last = LOOP_TIMER_INIT(last_fires, &s);
    s.hung = LOOP_TIMER_INIT(hung_fires, &s);
    s.pipeline.ready_workspace = NULL; // its front makes none
    s.pipeline.zip = &zip_ops;
    place_artifacts(&s);
    // A large body or result is a map of its own, gone when it is freed. Left to itself glibc
    // learns from the first one to keep the next ones in its heap.
    mallopt(M_MMAP_THRESHOLD, OWN_MAP_BYTES);
    int e = begin(&s);
    if (!e) {
        serve_tell(&s, TALK_LISTENS);
        e = loop_run(s.loop);
        if (e) {
            log_say(s.log, LOG_ERROR, "event loop failed", LOG_T("error", strerror(-e)));
        }
    }
    end(&s);
    return e ? CLI_REFUSED : s.status;
}
