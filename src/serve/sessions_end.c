#include "serve/sessions_inner.h"

#include "base/clock.h"
#include "base/fd.h"
#include "log/log.h"
#include "workspace/path.h"
#include "workspace/uids.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    PAGE_ROWS = STORE_LIST_MAX,
    RETRY_MS = 10 * 1000,     // what the store or the disk refused; twice as long each time ...
    RETRY_DOUBLED = 8,        // ... up to about 43 minutes
    LONGEST_MS = 3600 * 1000, // the clock of the day may be set meanwhile
    FORGET_ROWS = 100,
};

static void log_failure(const struct session *e, const char *event, int error)
{
    log_say(e->of->config.log, LOG_WARNING, event, LOG_T("session", e->id), LOG_T("team", e->team),
            LOG_T("error", error ? strerror(-error) : NULL));
}

// ---- the end of one

static void answer_deleters(struct session *e, int error)
{
    struct store_session record;
    session_record(e, &record);
    const struct sessions_outcome o = {.error = error, .session = error ? NULL : &record};
    while (e->deleters) {
        struct session_deleter *d = e->deleters;
        e->deleters = d->next;
        d->answer(d->ctx, &o);
        free(d);
    }
}

static void forget_row(void *ctx, const struct store_record *r)
{
    struct sessions *s = ctx;
    struct store_write w = {.kind = STORE_SESSION_DELETE, .lazy = true};
    w.session.id = r->session.id;
    store_write(s->config.store, &w, NULL, NULL); // when it is refused, the next look finds it
}

static void forget_end(void *ctx, int error)
{
    (void)ctx;
    (void)error;
}

// Records of sessions that ended long ago.
static void forget_old(struct sessions *s)
{
    const struct store_query q = {
        .kind = STORE_LIST_GONE,
        .before_ms = clock_wall_ms() - (int64_t)SESSIONS_REMEMBER_HOURS * 3600 * 1000,
        .limit = FORGET_ROWS,
    };
    store_read(s->config.store, &q,
               &(struct store_reader){.row = forget_row, .end = forget_end, .ctx = s});
}

static void retry_later(struct session *e, const char *event, int error)
{
    log_failure(e, event, error);
    unsigned doubled = e->tries < RETRY_DOUBLED ? e->tries : RETRY_DOUBLED;
    e->tries++;
    e->retry_ms = clock_wall_ms() + ((int64_t)RETRY_MS << doubled);
    sessions_look_later(e->of, e->retry_ms);
}

static void gone(void *ctx, const struct store_outcome *o)
{
    struct session *e = ctx;
    struct sessions *s = e->of;
    if (o->error < 0) {
        retry_later(e, "session end not recorded", o->error);
        return;
    }
    answer_deleters(e, 0);
    session_take_out(e);
    session_free(e);
    forget_old(s);
}

static void write_gone(struct session *e)
{
    struct store_write w = {.kind = STORE_SESSION_STATE};
    w.session.id = store_text_of(e->id);
    w.session.state = STORE_SESSION_GONE;
    int error = store_write(e->of->config.store, &w, gone, e);
    if (error) {
        retry_later(e, "session end not recorded", error);
    }
}

// Neither its record nor its files say so far that it has ended: whoever deleted it hears of that.
static void tell_not_ended(struct session *e, int error)
{
    if (e->unrecorded && e->retry_ms) {
        answer_deleters(e, error);
    }
}

static void removed(void *ctx, int error)
{
    struct session *e = ctx;
    if (error) { // its uid stays taken: its files are there
        retry_later(e, "session not removed", error);
        tell_not_ended(e, error);
        return;
    }
    e->removed = true;
    session_takes(e, 0, 0);
    uids_give(e->of->config.uids, e->uid);
    e->uid = 0;
    write_gone(e);
}

void session_left(struct session *e)
{
    if (!e->removing || e->leases) {
        return;
    }
    struct sessions *s = e->of;
    const uint64_t owner = work_owner(e->team);
    int error = *e->trashed
                    ? cleaner_remove(s->cleaner, e->trashed, owner, removed, e)
                    : cleaner_take(s->cleaner, s->kept, e->id, owner, removed, e, e->trashed);
    if (error) {
        removed(e, error == -ENOENT ? 0 : error);
    }
}

static void not_recorded(struct session *e, int error)
{
    log_failure(e, "session end not recorded", error);
    e->unrecorded = true;
    tell_not_ended(e, error);
}

// Durable: whoever deleted it may know. If it is not, its files go all the same, which makes room
// on a full disk, and the end is recorded then.
static void end_recorded(void *ctx, const struct store_outcome *o)
{
    struct session *e = ctx;
    if (o->error >= 0) {
        answer_deleters(e, 0);
    } else {
        not_recorded(e, o->error);
    }
}

void session_end(struct session *e)
{
    struct sessions *s = e->of;
    s->n_active--;
    s->n_removing++;
    e->removing = true;
    session_unmeasure(e);
    struct store_write w = {.kind = STORE_SESSION_STATE};
    w.session.id = store_text_of(e->id);
    w.session.state = STORE_SESSION_REMOVING;
    int error = store_write(s->config.store, &w, end_recorded, e);
    if (error) {
        not_recorded(e, error);
    }
    session_left(e);
}

// ---- ends by time

void sessions_look_later(struct sessions *s, int64_t at_ms)
{
    int64_t wait_ms = at_ms - clock_wall_ms();
    wait_ms = wait_ms < 1 ? 1 : wait_ms > LONGEST_MS ? LONGEST_MS : wait_ms;
    uint64_t due_ns = clock_now_ns() + (uint64_t)wait_ms * NS_PER_MS;
    if (!s->due.due_ns || due_ns < s->due.due_ns) {
        loop_timer_set(s->config.loop, &s->due, (uint64_t)wait_ms * NS_PER_MS);
    }
}

static void try_again(struct session *e)
{
    e->retry_ms = 0;
    if (e->removed) {
        write_gone(e);
    } else {
        session_left(e);
    }
}

// False: it is none of this round.
static bool look_at(struct session *e, int64_t now_ms, int64_t *left)
{
    if (e->removing) {
        if (e->retry_ms && e->retry_ms <= now_ms) {
            try_again(e);
        }
        return true;
    }
    if (e->expires_ms > now_ms) {
        return true;
    }
    if (*left == 0) {
        return false;
    }
    --*left;
    log_audited(e->of->config.log, "session expired", LOG_T("session", e->id),
                LOG_T("team", e->team));
    session_end(e);
    return true;
}

void sessions_look(struct loop_timer *t)
{
    struct sessions *s = t->ctx;
    int64_t now_ms = clock_wall_ms();
    int64_t left = s->config.cleanup_batch;
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < SESSIONS_BUCKETS; i++) {
        for (struct session *e = s->buckets[i]; e; e = e->next) {
            bool looked = look_at(e, now_ms, &left);
            int64_t due_ms = !looked       ? now_ms
                             : e->removing ? (e->retry_ms ? e->retry_ms : INT64_MAX)
                                           : e->expires_ms;
            next_ms = due_ms < next_ms ? due_ms : next_ms;
        }
    }
    if (next_ms != INT64_MAX) {
        sessions_look_later(s, next_ms);
    }
}

// ---- the start

static void load_row(void *ctx, const struct store_record *r)
{
    struct sessions *s = ctx;
    struct session *e = session_new(s, &r->session);
    s->page_rows++;
    if (!e) {
        s->load_error = -ENOMEM;
        return;
    }
    memcpy(s->page, e->id, sizeof e->id);
    int error = uids_claim(s->config.uids, e->uid);
    if (error) { // nothing can run in it; its files stay until its end
        log_failure(e, "session has no uid", error);
        e->uid = 0;
    }
    e->recorded = true;
    session_insert(e);
}

// Its folder may never have been made, when the service was killed at its creation.
static void take_up(struct session *e)
{
    struct stat st;
    if (e->removing) {
        session_left(e);
    } else if (fstatat(e->of->kept, e->id, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT && e->uid) {
        int error = session_make_folder(e);
        log_failure(e, "session folder was missing", error);
    }
}

static int remove_unknown(struct sessions *s)
{
    int fd = openat(s->kept, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int e = -errno;
        fd_close(fd);
        return e;
    }
    for (const struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
            !session_find(s, name, strlen(name))) {
            int e = cleaner_take(s->cleaner, s->kept, name, 0, NULL, NULL, NULL);
            if (e) { // somebody put it there who is nobody here; no reason not to serve
                log_say(s->config.log, LOG_WARNING, "folder of no session stays",
                        LOG_T("folder", name), LOG_T("error", strerror(-e)));
            }
        }
    }
    closedir(d);
    return 0;
}

static void loaded(struct sessions *s)
{
    s->load_error = remove_unknown(s);
    for (size_t i = 0; i < SESSIONS_BUCKETS && !s->load_error; i++) {
        for (struct session *e = s->buckets[i]; e; e = e->next) {
            take_up(e);
        }
    }
    forget_old(s);
    sessions_look_later(s, 0);
    sessions_measure(s);
}

static void load_page(struct sessions *s);

static void load_end(void *ctx, int error)
{
    struct sessions *s = ctx;
    s->load_error = error < 0 ? error : s->load_error;
    if (s->load_error) {
        log_say(s->config.log, LOG_ERROR, "sessions not read",
                LOG_T("error", strerror(-s->load_error)));
    } else if (s->page_rows == PAGE_ROWS) {
        load_page(s);
    } else {
        loaded(s);
    }
}

static void load_page(struct sessions *s)
{
    s->page_rows = 0;
    store_read(s->config.store,
               &(struct store_query){.kind = STORE_LIST_KEPT,
                                     .cursor = store_text_of(*s->page ? s->page : NULL),
                                     .limit = PAGE_ROWS},
               &(struct store_reader){.row = load_row, .end = load_end, .ctx = s});
}

int sessions_load(struct sessions *s)
{
    load_page(s);
    return s->load_error;
}
