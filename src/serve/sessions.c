#include "serve/sessions.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "log/log.h"
#include "model/job.h"
#include "plan/plan.h"
#include "serve/sessions_inner.h"
#include "workspace/folder.h"
#include "workspace/path.h"
#include "workspace/stage.h"
#include "workspace/uids.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { HOUR_MS = 3600 * 1000, CREATE_TRIES = 3 };

// ---- the table

static size_t bucket(const char *id, size_t len) { return hash_bytes(id, len) % SESSIONS_BUCKETS; }

struct session *session_find(const struct sessions *s, const char *id, size_t len)
{
    struct session *e = s->buckets[bucket(id, len)];
    while (e && (strlen(e->id) != len || memcmp(e->id, id, len) != 0)) {
        e = e->next;
    }
    return e;
}

void session_insert(struct session *e)
{
    struct session **first = &e->of->buckets[bucket(e->id, strlen(e->id))];
    e->next = *first;
    *first = e;
    (*(e->removing ? &e->of->n_removing : &e->of->n_active))++;
}

void session_take_out(struct session *e)
{
    struct session **at = &e->of->buckets[bucket(e->id, strlen(e->id))];
    while (*at != e) {
        at = &(*at)->next;
    }
    *at = e->next;
    e->of->n_removing--;
}

static char *text_copy(struct store_text t, bool *ret_failed)
{
    char *copy = t.data ? strndup(t.data, t.len) : NULL;
    *ret_failed |= t.data && !copy;
    return copy;
}

struct session *session_new(struct sessions *s, const struct store_session *record)
{
    struct session *e = calloc(1, sizeof *e);
    if (!e || record->id.len >= sizeof e->id) {
        free(e);
        return NULL;
    }
    bool failed = false;
    memcpy(e->id, record->id.data, record->id.len);
    e->of = s;
    e->team = text_copy(record->team, &failed);
    e->conversation = text_copy(record->conversation, &failed);
    e->agent = text_copy(record->agent, &failed);
    e->user = text_copy(record->user, &failed);
    e->created_ms = record->created_ms;
    e->expires_ms = record->expires_ms;
    e->accessed_ms = record->accessed_ms;
    e->share = e->team ? shares_hold(s->config.shares, e->team) : NULL;
    e->uid = (uint32_t)record->uid;
    e->removing = record->state != STORE_SESSION_ACTIVE;
    if (failed || !e->share) {
        session_free(e);
        return NULL;
    }
    session_takes(e, record->disk_bytes, 0);
    return e;
}

void session_free(struct session *e)
{
    while (e->deleters) {
        struct session_deleter *d = e->deleters;
        e->deleters = d->next;
        free(d);
    }
    if (e->share) {
        session_takes(e, 0, 0);
        share_release(e->share);
    }
    walk_end(&e->walk);
    free(e->team);
    free(e->conversation);
    free(e->agent);
    free(e->user);
    free(e);
}

void session_record(const struct session *e, struct store_session *ret)
{
    *ret = (struct store_session){
        .id = store_text_of(e->id),
        .team = store_text_of(e->team),
        .conversation = store_text_of(e->conversation),
        .agent = store_text_of(e->agent),
        .user = store_text_of(e->user),
        .state = e->removing ? STORE_SESSION_REMOVING : STORE_SESSION_ACTIVE,
        .created_ms = e->created_ms,
        .expires_ms = e->expires_ms,
        .accessed_ms = e->accessed_ms,
        .disk_bytes = e->disk_bytes,
        .uid = e->uid,
    };
}

// Whole or not there: it is made under a name that is nobody's, which a next start removes.
int session_make_folder(const struct session *e)
{
    const struct sessions *s = e->of;
    char name[sizeof e->id + sizeof ".new"];
    snprintf(name, sizeof name, "%s.new", e->id);
    uid_t owner = s->config.single_uid ? (uid_t)PLAN_UID_LAUNCHER : e->uid;
    AUTO_CLOSE int workspace = -1;
    int err = folder_make(s->kept, name, owner, &workspace);
    if (err) {
        return err;
    }
    err = stage_make_folders(workspace, owner);
    AUTO_CLOSE int outer = err ? -1 : path_open(s->kept, name, O_RDONLY | O_DIRECTORY, 0);
    if (!err && (outer < 0 || mkdirat(outer, "t", 0700) ||
                 fchownat(outer, "t", owner, owner, AT_SYMLINK_NOFOLLOW) ||
                 fchmodat(outer, "t", 01777, 0))) {
        err = outer < 0 ? outer : -errno;
    }
    if (!err && renameat(s->kept, name, s->kept, e->id)) {
        err = -errno;
    }
    if (err) {
        folder_remove(s->kept, name);
    }
    return err;
}

// ---- answers

static void answer_error(sessions_answer answer, void *ctx, int error)
{
    answer(ctx, &(struct sessions_outcome){.error = error});
}

static void answer_session(sessions_answer answer, void *ctx, const struct session *e, bool same)
{
    struct store_session record;
    session_record(e, &record);
    answer(ctx, &(struct sessions_outcome){.same = same, .session = &record});
}

// A session that is not in memory: the store may remember it.
struct recall {
    sessions_answer answer;
    void *ctx;
    bool found;
};

static void recall_row(void *ctx, const struct store_record *r)
{
    (void)r;
    ((struct recall *)ctx)->found = true;
}

static void recall_end(void *ctx, int error)
{
    struct recall *r = ctx;
    answer_error(r->answer, r->ctx,
                 r->found     ? SESSIONS_EXPIRED
                 : error >= 0 ? SESSIONS_MISSING
                              : error);
    free(r);
}

static void recall(struct sessions *s, const char *team, const char *id, sessions_answer answer,
                   void *ctx)
{
    struct recall *r = malloc(sizeof *r);
    if (!r) {
        answer_error(answer, ctx, -ENOMEM);
        return;
    }
    *r = (struct recall){.answer = answer, .ctx = ctx};
    store_read(s->config.store,
               &(struct store_query){
                   .kind = STORE_GET_SESSION, .id = store_text_of(id), .team = store_text_of(team)},
               &(struct store_reader){.row = recall_row, .end = recall_end, .ctx = r});
}

// The session if it lives; else NULL with *ret_error: 0 when the store is to be asked.
static struct session *living(const struct sessions *s, const char *team, const char *id,
                              int *ret_error)
{
    struct session *e = session_find(s, id, strlen(id));
    *ret_error = 0;
    if (!e) {
        return NULL;
    }
    if (team && strcmp(team, e->team) != 0) {
        *ret_error = SESSIONS_MISSING;
    } else if (e->removing || e->expires_ms <= clock_wall_ms()) {
        *ret_error = SESSIONS_EXPIRED;
    }
    return *ret_error ? NULL : e;
}

bool sessions_lives(const struct sessions *s, const char *team, const char *id)
{
    int ignored;
    return living(s, team, id, &ignored) != NULL;
}

// As living(); answers where there is none.
static struct session *living_or_answer(struct sessions *s, const char *team, const char *id,
                                        sessions_answer answer, void *ctx)
{
    int error;
    struct session *e = living(s, team, id, &error);
    if (!e && error) {
        answer_error(answer, ctx, error);
    } else if (!e) {
        recall(s, team, id, answer, ctx);
    }
    return e;
}

void sessions_get(struct sessions *s, const char *team, const char *id, sessions_answer answer,
                  void *ctx)
{
    const struct session *e = living_or_answer(s, team, id, answer, ctx);
    if (e) {
        answer_session(answer, ctx, e, true);
    }
}

// ---- create

struct op {
    struct sessions *s;
    sessions_answer answer;
    void *ctx;
    struct session *session; // create: the new one; extend: none
    char id[37];             // extend
    int64_t expires_ms;
    unsigned tries; // create: that found one of its names which has ended
};

static void unmake(struct op *o)
{
    o->s->n_making--;
    uids_give(o->s->config.uids, o->session->uid);
    session_free(o->session);
}

static void op_fail(struct op *o, int error)
{
    if (o->session) {
        unmake(o);
    }
    answer_error(o->answer, o->ctx,
                 error == -ENOSPC || error == -EDQUOT ? (int)SESSIONS_NO_DISK : error);
    free(o);
}

static void create(struct op *o);

// The names have one already. It may have ended while the store was asked: then again. Where the
// store cannot record an end (its disk is full), that would go on for ever.
static void created_before(struct op *o, const char *id, size_t len)
{
    const struct session *e = session_find(o->s, id, len);
    bool ended = e && (e->removing || e->expires_ms <= clock_wall_ms());
    if (!e) {
        op_fail(o, -EIO);
    } else if (ended && o->tries++ < CREATE_TRIES) {
        create(o);
    } else if (ended) {
        op_fail(o, -EAGAIN);
    } else {
        unmake(o);
        answer_session(o->answer, o->ctx, e, true);
        free(o);
    }
}

static void created(void *ctx, const struct store_outcome *out)
{
    struct op *o = ctx;
    struct session *e = o->session;
    if (out->error == STORE_SAME) {
        created_before(o, out->id, out->id_len);
        return;
    }
    if (out->error) {
        op_fail(o, out->error);
        return;
    }
    o->s->n_making--;
    session_insert(e);
    int error = session_make_folder(e);
    if (error) { // its record is there: it ends as any other, until the store has taken that
        session_end(e);
        o->session = NULL;
        op_fail(o, error);
        return;
    }
    sessions_look_later(o->s, e->expires_ms);
    answer_session(o->answer, o->ctx, e, false);
    free(o);
}

static void create(struct op *o)
{
    struct session *e = o->session;
    int64_t lasts_ms = e->expires_ms - e->created_ms;
    e->created_ms = e->accessed_ms = clock_wall_ms();
    e->expires_ms = e->created_ms + lasts_ms;
    struct store_write w = {.kind = STORE_SESSION_CREATE};
    session_record(e, &w.session);
    int error = store_write(o->s->config.store, &w, created, o);
    if (error) {
        op_fail(o, error);
    }
}

// No new one can be made; that of a conversation is still found.
static void find_only(struct sessions *s, const struct sessions_create *c, int refusal,
                      sessions_answer answer, void *ctx)
{
    const struct session *e = session_of_names(s, c, clock_wall_ms());
    if (e) {
        answer_session(answer, ctx, e, true);
    } else {
        answer_error(answer, ctx, refusal);
    }
}

void sessions_create(struct sessions *s, const struct sessions_create *c, sessions_answer answer,
                     void *ctx)
{
    int refusal = sessions_why_not(s, c->team);
    if (refusal) {
        find_only(s, c, refusal, answer, ctx);
        return;
    }
    char id[37];
    job_new_id(id);
    int64_t hours = c->ttl_hours ? c->ttl_hours : s->config.ttl_hours;
    struct store_session record = {
        .id = store_text_of(id),
        .team = store_text_of(c->team),
        .conversation = store_text_of(c->conversation),
        .agent = store_text_of(c->agent),
        .user = store_text_of(c->user),
        .expires_ms = hours * HOUR_MS, // of 0: create() sets both
    };
    struct op *o = calloc(1, sizeof *o);
    struct session *e = o ? session_new(s, &record) : NULL;
    if (!e) {
        free(o);
        answer_error(answer, ctx, -ENOMEM);
        return;
    }
    *o = (struct op){.s = s, .answer = answer, .ctx = ctx, .session = e};
    s->n_making++;
    e->uid = uids_take(s->config.uids);
    if (e->uid) {
        create(o);
    } else {
        op_fail(o, SESSIONS_NO_UID);
    }
}

// ---- extend, delete, list

static void extended(void *ctx, const struct store_outcome *out)
{
    struct op *o = ctx;
    struct session *e = session_find(o->s, o->id, strlen(o->id));
    if (out->error || !e || e->removing) {
        op_fail(o, out->error < 0 ? out->error : (int)SESSIONS_EXPIRED);
        return;
    }
    e->expires_ms = o->expires_ms;
    answer_session(o->answer, o->ctx, e, false);
    free(o);
}

void sessions_extend(struct sessions *s, const char *team, const char *id, int64_t ttl_hours,
                     sessions_answer answer, void *ctx)
{
    struct session *e = living_or_answer(s, team, id, answer, ctx);
    if (!e) {
        return;
    }
    int64_t now_ms = clock_wall_ms();
    int64_t end_ms = now_ms + (ttl_hours ? ttl_hours : s->config.ttl_hours) * HOUR_MS;
    e->accessed_ms = now_ms;
    if (end_ms <= e->expires_ms) {
        answer_session(answer, ctx, e, true);
        return;
    }
    struct op *o = calloc(1, sizeof *o);
    if (!o) {
        answer_error(answer, ctx, -ENOMEM);
        return;
    }
    *o = (struct op){.s = s, .answer = answer, .ctx = ctx, .expires_ms = end_ms};
    memcpy(o->id, e->id, sizeof o->id);
    struct store_write w = {
        .kind = STORE_SESSION_EXTEND,
        .session = {.id = store_text_of(e->id), .expires_ms = end_ms, .accessed_ms = now_ms}};
    int error = store_write(s->config.store, &w, extended, o);
    if (error) {
        op_fail(o, error);
    }
}

void sessions_delete(struct sessions *s, const char *team, const char *id, sessions_answer answer,
                     void *ctx)
{
    struct session *e = living_or_answer(s, team, id, answer, ctx);
    if (!e) {
        return;
    }
    struct session_deleter *d = malloc(sizeof *d);
    if (!d) {
        answer_error(answer, ctx, -ENOMEM);
        return;
    }
    *d = (struct session_deleter){.answer = answer, .ctx = ctx, .next = e->deleters};
    e->deleters = d;
    session_end(e);
}

struct list {
    struct sessions *s;
    int64_t now_ms;
    void (*row)(void *ctx, const struct store_session *session, bool lives);
    void (*end)(void *ctx, int error);
    void *ctx;
};

// What is in memory is newer than the record.
static void list_row(void *ctx, const struct store_record *r)
{
    const struct list *l = ctx;
    const struct session *e = session_find(l->s, r->session.id.data, r->session.id.len);
    struct store_session record = r->session;
    if (e) {
        session_record(e, &record);
    }
    l->row(l->ctx, &record, e && !e->removing && e->expires_ms > l->now_ms);
}

static void list_end(void *ctx, int error)
{
    struct list *l = ctx;
    l->end(l->ctx, error == STORE_MISSING ? (int)SESSIONS_MISSING : error);
    free(l);
}

void sessions_list(struct sessions *s, const char *team, const char *cursor, int64_t limit,
                   void (*row)(void *ctx, const struct store_session *session, bool lives),
                   void (*end)(void *ctx, int error), void *ctx)
{
    struct list *l = malloc(sizeof *l);
    if (!l) {
        end(ctx, -ENOMEM);
        return;
    }
    *l = (struct list){.s = s, .now_ms = clock_wall_ms(), .row = row, .end = end, .ctx = ctx};
    store_read(s->config.store,
               &(struct store_query){.kind = STORE_LIST_SESSIONS,
                                     .team = store_text_of(team),
                                     .cursor = store_text_of(cursor),
                                     .limit = limit},
               &(struct store_reader){.row = list_row, .end = list_end, .ctx = l});
}

// ---- all of them

static int make_folder(int root, const char *name, mode_t mode)
{
    return mkdirat(root, name, mode) && errno != EEXIST
               ? -errno
               : path_open(root, name, O_RDONLY | O_DIRECTORY, 0);
}

int sessions_new(const struct sessions_config *c, struct sessions **ret)
{
    struct sessions *s = calloc(1, sizeof *s);
    if (!s) {
        return -ENOMEM;
    }
    s->config = *c;
    s->due = LOOP_TIMER_INIT(sessions_look, s);
    s->trash = -1;
    s->kept = make_folder(c->workspace_root, "kept", 0711);
    int e = s->kept < 0 ? s->kept : 0;
    if (!e) {
        s->trash = make_folder(c->workspace_root, "trash", 0700);
        e = s->trash < 0 ? s->trash : cleaner_new(s->trash, c->pool, &s->cleaner);
    }
    e = e ? e : cleaner_sweep(s->cleaner);
    e = e ? e : sessions_load(s);
    if (e) {
        work_pool_stop(c->pool);
        sessions_free(s);
        return e;
    }
    *ret = s;
    return 0;
}

void sessions_change(struct sessions *s, const struct sessions_config *c)
{
    s->config.ttl_hours = c->ttl_hours;
    s->config.cleanup_batch = c->cleanup_batch;
    s->config.disk_bytes = c->disk_bytes;
}

void sessions_free(struct sessions *s)
{
    if (!s) {
        return;
    }
    loop_timer_clear(s->config.loop, &s->due);
    for (size_t i = 0; i < SESSIONS_BUCKETS; i++) {
        while (s->buckets[i]) {
            struct session *e = s->buckets[i];
            s->buckets[i] = e->next;
            session_free(e);
        }
    }
    cleaner_free(s->cleaner);
    fd_close(s->kept);
    fd_close(s->trash);
    free(s);
}
