#include "app/serve.h"

#include "api/api.h"
#include "app/bounds.h"
#include "app/inner.h"
#include "app/passed.h"
#include "app/talk.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"
#include "cli/verb.h"
#include "http/http.h"
#include "io/loop.h"
#include "io/work.h"
#include "job/runner.h"
#include "log/log.h"
#include "serve/agent.h"
#include "serve/artifacts.h"
#include "serve/jobs.h"
#include "serve/ready.h"
#include "serve/sessions.h"
#include "serve/shares.h"
#include "store/sqlite.h"
#include "workspace/zip.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
    OWN_MAP_BYTES = 1 << 20,
    WORK_THREADS = 4,
    LAST_ANSWERS_MS = 2000, // for readers of what has ended, and event streams
    HUNG_MS = 10000, // beyond the drain's limit: a job that is cancelled has ended long before
    TOLD = 1,        // it has failed, and has said why in words of its own
};

#define complain(...) verb_complain("serve", __VA_ARGS__)

struct serve {
    const struct seat *seat;
    struct pipeline_config pipeline;
    struct loop *loop;
    struct log *log;
    struct runner *runner;
    struct work_pool *pool;
    struct store *store;
    struct ready *ready;
    struct sessions *sessions;
    struct shares *shares;
    struct artifacts *artifacts;
    struct jobs *jobs;
    struct agents *agents;
    struct api *api;
    struct http_server *http;
    struct http_config listeners;
    int artifacts_dir;
    char artifact_urls[SETTING_MAX_WORD + 64]; // what they begin with
    bool loopback;                             // every TCP listener
    int audit;
    struct loop_watch front;
    struct conf *conf;
    struct buf order;           // as far as it has come
    int order_fd[TALK_MAX_FDS]; // what came with it, or -1
    struct loop_timer last;     // until whoever still reads is cut off
    struct loop_timer hung;     // until what does not end is left to the next start
    bool lost, draining;
    int status;
};

static void tell(struct serve *s, enum talk_note what)
{
    const struct talk_head note = {what, 0};
    send(s->seat->front, &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// ---- The end ------------------------------------------------------------------------------------

static void stop_now(struct serve *s) { loop_stop(s->loop); }

static void http_stopped(void *ctx) { stop_now(ctx); }

static void last_fires(struct loop_timer *t) { stop_now(t->ctx); }

// A launcher that stands still ends no job. They end with it, as worker_lost.
static void hung_fires(struct loop_timer *t)
{
    struct serve *s = t->ctx;
    log_say(s->log, LOG_ERROR, "jobs do not end", LOG_T("effect", "the service ends without them"));
    stop_now(s);
}

static void drained(void *ctx)
{
    struct serve *s = ctx;
    loop_timer_clear(s->loop, &s->hung);
    loop_timer_set(s->loop, &s->last, LAST_ANSWERS_MS * NS_PER_MS);
    http_server_stop(s->http, http_stopped, s);
}

// Results are still told and asked for while jobs end; what is new is refused.
static void drain(struct serve *s, const char *why, uint64_t limit_ms)
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
        drain(s, "the launcher is gone", 0);
    } else {
        stop_now(s);
    }
}

static void ready_changed(void *ctx, bool ready) { tell(ctx, ready ? TALK_READY : TALK_NOT_READY); }

// ---- Settings -----------------------------------------------------------------------------------

static struct sessions_config sessions_config_of(const struct serve *s)
{
    const int64_t *n = s->conf->number;
    return (struct sessions_config){.loop = s->loop,
                                    .store = s->store,
                                    .pool = s->pool,
                                    .log = s->log,
                                    .shares = s->shares,
                                    .uids = s->pipeline.uids,
                                    .workspace_root = s->seat->workspace_root,
                                    .single_uid = s->seat->single_uid,
                                    .ttl_hours = n[SETTING_SESSION_TTL_HOURS],
                                    .cleanup_batch = n[SETTING_SESSION_CLEANUP_BATCH_SIZE],
                                    .disk_bytes = (uint64_t)n[SETTING_MAX_DISK_MB] << 20};
}

// ---- Orders of the front ------------------------------------------------------------------------

static void use_log_settings(const struct serve *s, enum log_format *ret_format,
                             enum log_level *ret_least)
{
    *ret_format = LOG_TEXT;
    *ret_least = LOG_INFO;
    log_format_find(s->conf->text[SETTING_LOG_FORMAT], ret_format);
    log_level_find(s->conf->text[SETTING_LOG_LEVEL], ret_least);
}

static void tell_changes(struct serve *s, const struct conf_changes *changes)
{
    for (size_t i = 0; i < changes->n; i++) {
        const struct conf_change *c = &changes->rows[i];
        const struct setting_spec *spec = &setting_specs[c->setting];
        log_say(s->log, c->taken ? LOG_INFO : LOG_WARNING,
                c->taken ? "setting changed" : "setting needs a restart",
                LOG_T("setting", spec->name),
                LOG_T("value", spec->secret ? NULL : s->conf->text[c->setting]));
    }
}

// What is live in the settings reaches everybody who has a copy of it.
static void use_settings(struct serve *s)
{
    inner_use_settings(&s->pipeline, s->conf);
    const struct jobs_limits limits = bounds_jobs(s->conf);
    const struct sessions_config sessions = sessions_config_of(s);
    jobs_change(s->jobs, &limits);
    ready_disable(s->ready, limits.disabled ? JOBS_DISABLED_TEXT : NULL);
    sessions_change(s->sessions, &sessions);
    shares_change(s->shares, bounds_team_bytes(s->conf));
}

static void refuse_settings(struct serve *s, const char *why)
{
    log_say(s->log, LOG_ERROR, "settings refused", LOG_T("file", s->conf->file),
            LOG_T("error", why), LOG_T("effect", "all stay as they were"));
}

static void reload_file(struct serve *s, int fd)
{
    AUTO_FREE struct conf_changes *changes = calloc(1, sizeof *changes);
    struct conf_error why = {"not enough memory"};
    enum log_format format;
    enum log_level former, least;
    use_log_settings(s, &format, &former);
    if (!changes || conf_reload(s->conf, fd, changes, &why)) {
        refuse_settings(s, why.text);
        return;
    }
    use_settings(s);
    use_log_settings(s, &format, &least);
    tell(s, format == LOG_JSON ? TALK_LOG_JSON : TALK_LOG_TEXT);
    log_change(s->log, format, former < least ? former : least); // also what silences us is told
    tell_changes(s, changes);
    log_say(s->log, LOG_INFO, "settings read again", LOG_T("file", s->conf->file),
            LOG_I("changes", (int64_t)changes->n));
    log_change(s->log, format, least);
}

static void reload(struct serve *s, const struct talk_reload *what)
{
    int *next = s->order_fd;
    if (what->file && *next >= 0) {
        reload_file(s, *next);
        *next = fd_close(*next);
        next++;
    } else if (what->file_error) {
        refuse_settings(s, strerror((int)what->file_error));
    }
    if (what->audit && *next >= 0) {
        int former = s->audit;
        s->audit = fd_take(next);
        log_change_files(s->log, STDERR_FILENO, s->audit);
        fd_close(former);
    } else if (what->audit_error) {
        log_say(s->log, LOG_ERROR, "audit log not opened again",
                LOG_T("file", s->conf->text[SETTING_AUDIT_LOG]),
                LOG_T("error", strerror((int)what->audit_error)),
                LOG_T("effect", "the former one goes on"));
    }
    tell(s, TALK_RELOADED);
}

static void take_order(struct serve *s, const struct talk_head *head, const char *payload)
{
    switch (head->what) {
    case TALK_DRAIN:
        drain(s, "the service ends", (uint64_t)s->conf->number[SETTING_DRAIN_SECONDS] * 1000);
        break;
    case TALK_STOP:
        stop_now(s);
        break;
    case TALK_RELOAD:
        if (head->length == sizeof(struct talk_reload)) {
            struct talk_reload what;
            memcpy(&what, payload, sizeof what);
            reload(s, &what);
        }
        break;
    default:
        break;
    }
}

static void take_orders(struct serve *s)
{
    struct talk_head head;
    while (s->order.len >= sizeof head) {
        memcpy(&head, s->order.data, sizeof head);
        size_t whole = sizeof head + head.length;
        if (s->order.len < whole) {
            return;
        }
        take_order(s, &head, s->order.data + sizeof head);
        memmove(s->order.data, s->order.data + whole, s->order.len - whole);
        s->order.len -= whole;
    }
}

static void front_ready(struct loop_watch *w, uint32_t events)
{
    struct serve *s = w->ctx;
    char data[4096];
    int fds[TALK_MAX_FDS];
    (void)events;
    ssize_t n = msg_recv(s->seat->front, data, sizeof data, fds, TALK_MAX_FDS, NULL, MSG_DONTWAIT);
    for (int i = 0; n > 0 && i < TALK_MAX_FDS && fds[0] >= 0; i++) {
        fd_close(s->order_fd[i]);
        s->order_fd[i] = fds[i];
    }
    if (n == -EAGAIN) {
        return;
    }
    if (n <= 0 || buf_add(&s->order, data, (size_t)n)) { // nobody is there to stop us any more
        log_say(s->log, LOG_ERROR, "front lost", LOG_T("effect", "the service ends"));
        s->status = 1;
        stop_now(s);
        return;
    }
    take_orders(s);
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
    use_log_settings(s, &format, &least);
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
    const struct sessions_config sessions = sessions_config_of(s);
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
    s.front = LOOP_WATCH_INIT(front_ready, &s);
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
        tell(&s, TALK_LISTENS);
        e = loop_run(s.loop);
        if (e) {
            log_say(s.log, LOG_ERROR, "event loop failed", LOG_T("error", strerror(-e)));
        }
    }
    end(&s);
    return e ? CLI_REFUSED : s.status;
}
