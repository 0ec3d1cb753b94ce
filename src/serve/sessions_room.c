#include "serve/sessions_inner.h"

#include "base/clock.h"
#include "base/fd.h"
#include "model/lower.h"
#include "plan/plan.h"
#include "workspace/path.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { TICKS_MS = 50 }; // more than times on a file system are late or coarse
enum { MEASURE_PIECE = 10000, MEASURE_PIECES = 200 }; // entries: 2 million, then it is a guess

// ---- what one takes

void session_takes(struct session *e, int64_t disk_bytes, uint64_t charged_bytes)
{
    share_add(e->share, SHARE_SESSIONS,
              disk_bytes - e->disk_bytes + (int64_t)(charged_bytes - e->charged_bytes));
    e->disk_bytes = disk_bytes;
    e->charged_bytes = charged_bytes;
}

// A piece: what is to be removed, and other teams' sessions, have their turn in between.
static void measure_run(struct work *w)
{
    struct session *e = w->ctx;
    if (e->measure_pieces++ == 0) {
        AUTO_CLOSE int fd = path_open(e->of->kept, e->id, O_RDONLY | O_DIRECTORY, 0);
        e->walk = (struct walk){0};
        e->measured = fd < 0 || walk_begin(&e->walk, fd);
    }
    e->measured =
        e->measured || walk_step(&e->walk, MEASURE_PIECE) || e->measure_pieces == MEASURE_PIECES;
    if (e->measured) {
        walk_end(&e->walk);
    }
}

// Of one that is under way, or NULL: a free one. NULL: there is none.
static struct session **measure_place(struct sessions *s, const struct session *e)
{
    for (size_t i = 0; i < SESSIONS_MEASURED; i++) {
        if (s->measuring[i] == e) {
            return &s->measuring[i];
        }
    }
    return NULL;
}

static void note(const struct session *e)
{
    struct store_write w = {.kind = STORE_SESSION_TOUCH, .lazy = true};
    session_record(e, &w.session);
    store_write(e->of->config.store, &w, NULL, NULL); // the next one says it again
}

static void measure_done(struct work *w)
{
    struct session *e = w->ctx;
    struct sessions *s = e->of;
    if (!e->measured && !e->removing && work_queue(s->config.pool, w) == 0) {
        return;
    }
    walk_end(&e->walk);
    const bool news = !e->recorded || (int64_t)e->walk.bytes != e->disk_bytes;
    e->recorded = false;
    if (e->measured) {
        session_takes(e, (int64_t)e->walk.bytes, e->charged_bytes);
        e->entries = e->walk.entries;
        e->cut = false;
    }
    e->leases--;
    struct session **place = measure_place(s, e);
    if (place) {
        *place = NULL;
    }
    sessions_measure(s);
    if (e->removing) {
        session_left(e);
        return;
    }
    if (news) {
        note(e);
    }
    if (e->measure_again) {
        session_measure(e);
    }
}

// What is known now is newer than what is being measured.
static void measure_is_late(struct session *e) { e->measure_again |= e->measure.queued; }

static bool is_measured_of(const struct sessions *s, const struct share *team)
{
    bool found = false;
    for (size_t i = 0; i < SESSIONS_MEASURED; i++) {
        found = found || (s->measuring[i] && s->measuring[i]->share == team);
    }
    return found;
}

// The first of a team of which none is under way: none has more than one of the places.
static struct session *first_unmeasured(const struct sessions *s)
{
    struct session *e = s->unmeasured;
    while (e && is_measured_of(s, e->share)) {
        e = e->next_unmeasured;
    }
    return e;
}

// What a service that was killed had not written down yet (what a job wrote that ran, the last
// uploads) would count as nothing until somebody works there again.
static struct session *first_recorded(struct sessions *s)
{
    for (; s->buckets_measured < SESSIONS_BUCKETS; s->buckets_measured++) {
        for (struct session *e = s->buckets[s->buckets_measured]; e; e = e->next) {
            if (e->recorded && !e->removing) {
                return e;
            }
        }
    }
    return NULL;
}

// Those that were there at the start are for when nothing else is to be done, one after another.
static struct session *measure_pick(struct sessions *s)
{
    bool idle = !s->unmeasured;
    for (size_t i = 0; i < SESSIONS_MEASURED; i++) {
        idle = idle && !s->measuring[i];
    }
    return idle ? first_recorded(s) : first_unmeasured(s);
}

void sessions_measure(struct sessions *s)
{
    struct session **place, *e;
    while ((place = measure_place(s, NULL)) && (e = measure_pick(s))) {
        session_unmeasure(e);
        e->measure_pieces = 0;
        e->measure = (struct work){.run = measure_run,
                                   .done = measure_done,
                                   .ctx = e,
                                   .background = true,
                                   .owner = work_owner(e->team)};
        if (work_queue(s->config.pool, &e->measure) == 0) {
            e->leases++;
            *place = e;
        } else {
            e->recorded = false; // it is not tried again
        }
    }
}

void session_unmeasure(struct session *e)
{
    struct session **at = &e->of->unmeasured;
    while (*at && *at != e) {
        at = &(*at)->next_unmeasured;
    }
    if (*at) {
        *at = e->next_unmeasured;
    }
    e->unmeasured = false;
}

void session_measure(struct session *e)
{
    struct session **last = &e->of->unmeasured;
    e->measure_again = e->measure.queued;
    e->recorded = false;
    if (e->measure.queued || e->unmeasured) {
        return;
    }
    while (*last) {
        last = &(*last)->next_unmeasured;
    }
    e->unmeasured = true;
    e->next_unmeasured = NULL;
    *last = e;
    sessions_measure(e->of);
}

// ---- who works in one

// The answer for one that is not in memory, where the store gives it at once.
struct asked {
    int error;
    bool answered, left;
};

static void asked_answer(void *ctx, const struct sessions_outcome *o)
{
    struct asked *a = ctx;
    if (a->left) {
        free(a);
        return;
    }
    a->error = o->error;
    a->answered = true;
}

static int why_not(struct sessions *s, const char *team, const char *id)
{
    struct asked *a = calloc(1, sizeof *a);
    if (!a) {
        return -ENOMEM;
    }
    sessions_get(s, team, id, asked_answer, a);
    if (!a->answered) {
        a->left = true;
        return SESSIONS_MISSING;
    }
    int error = a->error;
    free(a);
    return error;
}

static int open_folders(struct session_lease *l, const struct session *e)
{
    AUTO_CLOSE int outer = path_open(e->of->kept, e->id, O_PATH | O_DIRECTORY, 0);
    if (outer < 0) {
        return outer;
    }
    AUTO_CLOSE int workspace = path_open(outer, "w", O_RDONLY | O_DIRECTORY, 0);
    AUTO_CLOSE int tmp = path_open(outer, "t", O_RDONLY | O_DIRECTORY, 0);
    if (workspace < 0 || tmp < 0) {
        return workspace < 0 ? workspace : tmp;
    }
    l->files.root = fd_take(&workspace);
    l->tmp = fd_take(&tmp);
    return 0;
}

int sessions_lease(struct sessions *s, const char *team, const char *id, struct session_lease *ret)
{
    int why = why_not(s, team, id);
    if (why) {
        return why;
    }
    struct session *e = session_find(s, id, strlen(id));
    if (!e->uid) {
        return SESSIONS_NO_UID;
    }
    struct session_lease l = {.session = e, .uid = e->uid};
    l.files.uid = s->config.single_uid ? (uid_t)PLAN_UID_LAUNCHER : e->uid;
    memcpy(l.id, e->id, sizeof l.id);
    snprintf(l.workspace, sizeof l.workspace, "kept/%s", e->id);
    int error = open_folders(&l, e);
    if (error) {
        return error;
    }
    e->leases++;
    e->accessed_ms = clock_wall_ms();
    *ret = l;
    return 0;
}

// There are as many files and folders as a job may make.
static bool is_crowded(const struct session *e)
{
    return e->entries >= lower_inodes(e->of->config.disk_bytes >> 20);
}

void sessions_release(struct sessions *s, struct session_lease *l, int64_t disk_bytes)
{
    (void)s;
    struct session *e = l->session;
    if (!e) {
        return;
    }
    fd_close(l->files.root);
    fd_close(l->tmp);
    int64_t takes = disk_bytes;
    if (disk_bytes >= 0) {
        measure_is_late(e);
    } else { // what was written counts until it is measured
        takes = e->disk_bytes + (disk_bytes == SESSIONS_MEASURE ? (int64_t)l->charged_bytes : 0);
    }
    session_takes(e, takes, e->charged_bytes - l->charged_bytes);
    e->accessed_ms = clock_wall_ms();
    const bool again =
        l->measure || disk_bytes == SESSIONS_MEASURE || (disk_bytes >= 0 && is_crowded(e));
    *l = (struct session_lease){.tmp = -1, .files = {.root = -1}};
    e->leases--;
    if (e->removing) {
        session_left(e);
    } else if (again) {
        session_measure(e);
    } else {
        note(e);
    }
}

void sessions_takes(const struct session_lease *l, int64_t *ret_bytes, int64_t *ret_entries)
{
    const struct session *e = l->session;
    *ret_bytes = e->recorded || e->cut ? -1 : e->disk_bytes + (int64_t)e->charged_bytes;
    *ret_entries = e->entries ? (int64_t)e->entries : -1;
}

void sessions_counted(struct session_lease *l, uint64_t entries, bool more)
{
    struct session *e = l->session;
    e->entries = entries ? entries : 1;
    e->cut = l->measure = more;
}

// Its own, whatever its team has.
static uint64_t room_of(const struct session *e)
{
    const uint64_t used = (uint64_t)e->disk_bytes + e->charged_bytes;
    const uint64_t most = is_crowded(e) ? 0 : e->of->config.disk_bytes;
    return used < most ? most - used : 0;
}

uint64_t sessions_room(const struct sessions *s, const struct session_lease *l)
{
    (void)s;
    const struct session *e = l->session;
    const uint64_t own = room_of(e), share = share_room(e->share);
    return own < share ? own : share;
}

bool sessions_share_is_less(const struct sessions *s, const struct session_lease *l)
{
    (void)s;
    const struct session *e = l->session;
    return share_room(e->share) < room_of(e);
}

bool sessions_charge(struct sessions *s, struct session_lease *l, uint64_t bytes)
{
    struct session *e = l->session;
    if (bytes > sessions_room(s, l)) {
        return false;
    }
    l->charged_bytes += bytes;
    session_takes(e, e->disk_bytes, e->charged_bytes + bytes);
    return true;
}

void sessions_take(struct sessions *s, struct session_lease *l, int64_t more_bytes)
{
    (void)s;
    struct session *e = l->session;
    const int64_t takes = e->disk_bytes + more_bytes;
    session_takes(e, takes < 0 ? 0 : takes, e->charged_bytes - l->charged_bytes);
    l->charged_bytes = 0;
    measure_is_late(e);
}

int sessions_open_beside(const struct session_lease *l)
{
    const struct session *e = l->session; // its folder and id stay as long as the lease
    return path_open(e->of->kept, e->id, O_RDONLY | O_DIRECTORY, 0);
}

uint64_t sessions_disk_bytes(const struct sessions *s) { return s->config.disk_bytes; }

int sessions_trash(const struct sessions *s) { return s->trash; }

void sessions_trashed(struct sessions *s, const char *name, uint64_t owner)
{
    cleaner_remove(s->cleaner, name, owner, NULL, NULL); // else the next start does
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool sessions_known_hash(const struct sessions *s, const struct files_file *file,
                         char ret[SHA256_HEX])
{
    const struct stat *st = &file->looked;
    const struct session_hash *h = &s->hashes[st->st_ino % SESSIONS_HASHES];
    if (h->of.st_ino != st->st_ino || h->of.st_dev != st->st_dev || h->of.st_size != st->st_size ||
        !same_time(&h->of.st_mtim, &st->st_mtim) || !same_time(&h->of.st_ctim, &st->st_ctim)) {
        return false;
    }
    memcpy(ret, h->hex, sizeof h->hex);
    return true;
}

void sessions_keep_hash(struct sessions *s, const struct files_file *file, int64_t opened_ms,
                        const char *hash)
{
    const struct stat *st = &file->looked;
    struct session_hash *h = &s->hashes[st->st_ino % SESSIONS_HASHES];
    int64_t changed_ms = (int64_t)st->st_ctim.tv_sec * 1000 + st->st_ctim.tv_nsec / 1000000;
    if (opened_ms - changed_ms > TICKS_MS) {
        h->of = *st;
        memcpy(h->hex, hash, sizeof h->hex);
    }
}

void sessions_stats(const struct sessions *s, struct sessions_stats *ret)
{
    *ret = (struct sessions_stats){.active = s->n_active, .removing = s->n_removing};
    for (size_t i = 0; i < SESSIONS_BUCKETS; i++) {
        for (const struct session *e = s->buckets[i]; e; e = e->next) {
            ret->disk_bytes += (uint64_t)e->disk_bytes;
        }
    }
}
