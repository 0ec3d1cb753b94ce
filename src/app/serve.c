#include "app/serve.h"

#include "app/talk.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"
#include "http/http.h"
#include "io/loop.h"
#include "io/work.h"
#include "job/runner.h"
#include "log/log.h"
#include "store/sqlite.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { WORK_THREADS = 4, LOCAL_CONNECTIONS = 64, REFUSED = 125 };

struct serve {
    const struct seat *seat;
    const struct pipeline_config *pipeline;
    struct loop *loop;
    struct log *log;
    struct runner *runner;
    struct work_pool *pool;
    struct store *store;
    struct http_server *http;
    struct http_config listeners;
    bool loopback; // every TCP listener
    int audit;
    struct loop_watch front;
    struct conf *conf;
    struct buf order;           // as far as it has come
    int order_fd[TALK_MAX_FDS]; // what came with it, or -1
    bool lost, draining;
    int status;
};

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "isle: serve: ");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

static void tell(struct serve *s, enum talk_note what)
{
    const struct talk_head note = {what, 0};
    send(s->seat->front, &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// ---- The end ------------------------------------------------------------------------------------

static void stop_now(struct serve *s) { loop_stop(s->loop); }

static void http_stopped(void *ctx) { stop_now(ctx); }

static void drain(struct serve *s)
{
    if (!s->draining) {
        s->draining = true;
        http_server_stop(s->http, http_stopped, s);
    }
}

static void launcher_lost(void *ctx)
{
    struct serve *s = ctx;
    s->lost = true;
    s->status = 1;
    log_say(s->log, LOG_ERROR, "launcher lost", LOG_T("effect", "the service ends"));
    drain(s);
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

static void reload_file(struct serve *s, int fd)
{
    AUTO_FREE struct conf_changes *changes = calloc(1, sizeof *changes);
    struct conf_error why = {"not enough memory"};
    enum log_format format;
    enum log_level least;
    if (!changes || conf_reload(s->conf, fd, changes, &why)) {
        log_say(s->log, LOG_ERROR, "settings refused", LOG_T("error", why.text));
        return;
    }
    use_log_settings(s, &format, &least);
    log_change(s->log, format, least);
    tell_changes(s, changes);
}

static void reload(struct serve *s, const struct talk_reload *what)
{
    int *next = s->order_fd;
    if (what->file && *next >= 0) {
        reload_file(s, *next);
        *next = fd_close(*next);
        next++;
    }
    if (what->audit && *next >= 0) {
        int former = s->audit;
        s->audit = fd_take(next);
        log_change_files(s->log, STDERR_FILENO, s->audit);
        fd_close(former);
    }
    log_say(s->log, LOG_INFO, "settings read again", LOG_T("file", s->conf->file));
    tell(s, TALK_RELOADED);
}

static void take_order(struct serve *s, const struct talk_head *head, const char *payload)
{
    switch (head->what) {
    case TALK_DRAIN:
        drain(s);
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
        s->status = 1;
        stop_now(s);
        return;
    }
    take_orders(s);
}

// ---- What was passed ----------------------------------------------------------------------------

static bool is_loopback(const struct sockaddr_storage *a)
{
    const struct sockaddr_in *v4 = (const void *)a;
    const struct sockaddr_in6 *v6 = (const void *)a;
    return a->ss_family == AF_INET ? ntohl(v4->sin_addr.s_addr) >> 24 == 127
                                   : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static void sort_passed(struct serve *s)
{
    const struct seat *seat = s->seat;
    struct http_config *c = &s->listeners;
    http_config_init(c);
    s->loopback = true;
    for (uint32_t i = 0; i < seat->n_passed; i++) {
        struct sockaddr_storage a = {};
        socklen_t len = sizeof a;
        if (getsockname(seat->passed[i], (struct sockaddr *)&a, &len)) {
            s->audit = seat->passed[i]; // the one that is no socket
            continue;
        }
        const bool local = a.ss_family == AF_UNIX;
        s->loopback = s->loopback && (local || is_loopback(&a));
        c->listeners[c->n_listeners++] =
            (struct http_listener){seat->passed[i], local ? LOCAL_CONNECTIONS : 1000, 1000};
    }
}

// ---- Begin --------------------------------------------------------------------------------------

static void begin_request(void *ctx, struct http_request *r)
{
    (void)ctx;
    if (!strcmp(http_path(r), "/healthz")) {
        http_reply(r, 200, "application/json", "{\"status\":\"ok\"}", 15);
    } else {
        http_reply(r, 404, NULL, NULL, 0);
    }
}

static int open_store(struct serve *s)
{
    struct store_error why;
    const struct store_sqlite place = {.dir = START_STORE, .now_ms = clock_wall_ms()};
    int e = store_sqlite_open(s->loop, &place, &s->store, &why);
    if (e) {
        complain("store: %s", why.text);
    }
    return e;
}

static int open_log(struct serve *s)
{
    enum log_format format;
    enum log_level least;
    use_log_settings(s, &format, &least);
    return log_new(STDERR_FILENO, s->audit, format, least, &s->log);
}

static int begin(struct serve *s)
{
    const struct seat *seat = s->seat;
    sort_passed(s);
    int e = loop_new(&s->loop);
    e = e ? e : open_log(s);
    e = e ? e
          : runner_new(s->loop, seat->launcher, seat->launcher_pidfd, launcher_lost, s, &s->runner);
    if (!e && seat->ahead_tag) {
        runner_expect_parked(s->runner, seat->ahead_tag);
    }
    e = e ? e : work_pool_new(s->loop, WORK_THREADS, &s->pool);
    e = e ? e : open_store(s);
    s->listeners.begin = begin_request;
    s->listeners.ctx = s;
    e = e ? e : http_server_new(s->loop, &s->listeners, &s->http);
    return e ? e : loop_add(s->loop, &s->front, seat->front, EPOLLIN);
}

static void end(struct serve *s)
{
    http_server_free(s->http);
    store_close(s->store);
    work_pool_free(s->pool);
    if (s->runner && !s->lost) {
        runner_finish(s->runner);
    }
    runner_free(s->runner);
    log_free(s->log);
    loop_free(s->loop);
    buf_free(&s->order);
    for (int i = 0; i < TALK_MAX_FDS; i++) {
        fd_close(s->order_fd[i]);
    }
}

int serve_run(const struct seat *seat, struct conf *conf, const struct pipeline_config *config)
{
    struct serve s = {.seat = seat,
                      .conf = conf,
                      .pipeline = config,
                      .audit = -1,
                      .order = BUF_INIT(sizeof(struct talk_head) + TALK_MAX_BYTES + 4096),
                      .order_fd = {-1, -1}};
    s.front = LOOP_WATCH_INIT(front_ready, &s);
    int e = begin(&s);
    if (!e) {
        tell(&s, TALK_LISTENS);
        e = loop_run(s.loop);
    }
    if (e) {
        complain("%s", strerror(-e));
    }
    end(&s);
    return e ? REFUSED : s.status;
}
