// serve_orders.c: what the front tells its service (app/talk.h), and what it is told: the end, and
// the settings and files that SIGHUP brings anew.
#include "app/serve_inner.h"

#include "app/bounds.h"
#include "app/inner.h"
#include "base/fd.h"
#include "base/msg.h"
#include "serve/jobs.h"
#include "serve/ready.h"
#include "serve/shares.h"

#include <string.h>
#include <sys/socket.h>

void serve_tell(struct serve *s, enum talk_note what)
{
    const struct talk_head note = {what, 0};
    send(s->seat->front, &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
}

struct sessions_config serve_sessions_config(const struct serve *s)
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

void serve_log_settings(const struct serve *s, enum log_format *ret_format,
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

int serve_tell_slots(struct serve *s)
{
    const uint32_t most = bounds_slots_by_descriptors();
    if (bounds_slots_wanted(s->conf) > most) {
        log_say(s->log, LOG_WARNING, "fewer jobs run at once than are set", LOG_I("slots", most),
                LOG_T("why", "the limit of open files (ulimit -Hn, LimitNOFILE=)"));
    }
    return 0;
}

// What is live in the settings reaches everybody who has a copy of it.
static void use_settings(struct serve *s)
{
    inner_use_settings(&s->pipeline, s->conf);
    const struct jobs_limits limits = bounds_jobs(s->conf);
    const struct sessions_config sessions = serve_sessions_config(s);
    jobs_change(s->jobs, &limits);
    ready_disable(s->ready, limits.disabled ? JOBS_DISABLED_TEXT : NULL);
    sessions_change(s->sessions, &sessions);
    shares_change(s->shares, bounds_team_bytes(s->conf));
    serve_tell_slots(s);
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
    serve_log_settings(s, &format, &former);
    if (!changes || conf_reload(s->conf, fd, changes, &why)) {
        refuse_settings(s, why.text);
        return;
    }
    use_settings(s);
    serve_log_settings(s, &format, &least);
    serve_tell(s, format == LOG_JSON ? TALK_LOG_JSON : TALK_LOG_TEXT);
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
    } else if (what->file_error || what->file) {
        refuse_settings(s, strerror(what->file_error ? (int)what->file_error : EMFILE));
    }
    if (what->audit && *next >= 0) {
        int former = s->audit;
        s->audit = fd_take(next);
        log_change_files(s->log, STDERR_FILENO, s->audit);
        fd_close(former);
    } else if (what->audit_error || what->audit) {
        log_say(s->log, LOG_ERROR, "audit log not opened again",
                LOG_T("file", s->conf->text[SETTING_AUDIT_LOG]),
                LOG_T("error", strerror(what->audit_error ? (int)what->audit_error : EMFILE)),
                LOG_T("effect", "the former one goes on"));
    }
    serve_tell(s, TALK_RELOADED);
}

static void take_order(struct serve *s, const struct talk_head *head, const char *payload)
{
    switch (head->what) {
    case TALK_DRAIN:
        serve_drain(s, "the service ends", (uint64_t)s->conf->number[SETTING_DRAIN_SECONDS] * 1000);
        break;
    case TALK_STOP:
        serve_stop_now(s);
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

void serve_front_ready(struct loop_watch *w, uint32_t events)
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
        serve_stop_now(s);
        return;
    }
    take_orders(s);
}
