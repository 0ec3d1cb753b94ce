#include "queue/internal.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// --- lists, each by seq

// Walks from the end: what comes in is the youngest, but for one that is put back.
static void list_put(struct queue_list *l, struct queue_entry *e)
{
    struct queue_entry *at = l->last;
    while (at && at->seq > e->seq) {
        at = at->before;
    }
    e->before = at;
    e->after = at ? at->after : l->first;
    *(at ? &at->after : &l->first) = e;
    *(e->after ? &e->after->before : &l->last) = e;
}

static void list_take(struct queue_list *l, struct queue_entry *e)
{
    *(e->before ? &e->before->after : &l->first) = e->after;
    *(e->after ? &e->after->before : &l->last) = e->before;
    e->before = e->after = NULL;
}

static void all_put(struct queue *q, struct queue_entry *e)
{
    struct queue_entry *at = q->last;
    while (at && at->seq > e->seq) {
        at = at->all_before;
    }
    e->all_before = at;
    e->all_after = at ? at->all_after : q->first;
    *(at ? &at->all_after : &q->first) = e;
    *(e->all_after ? &e->all_after->all_before : &q->last) = e;
}

static void all_take(struct queue *q, struct queue_entry *e)
{
    *(e->all_before ? &e->all_before->all_after : &q->first) = e->all_after;
    *(e->all_after ? &e->all_after->all_before : &q->last) = e->all_before;
    e->all_before = e->all_after = NULL;
}

// --- teams and sessions

static struct queue_team *team_get(struct queue *q, const char *name)
{
    size_t known = q->teams.count;
    struct queue_team *t = names_get(&q->teams, name, sizeof *t);
    if (t && q->teams.count > known) {
        t->after = q->first_team;
        if (t->after) {
            t->after->before = t;
        }
        q->first_team = t;
    }
    return t;
}

static void team_drop_if_empty(struct queue *q, struct queue_team *t)
{
    if (t->waiting > 0 || t->running > 0) {
        return;
    }
    *(t->before ? &t->before->after : &q->first_team) = t->after;
    if (t->after) {
        t->after->before = t->before;
    }
    names_drop(&q->teams, &t->node);
}

// Nothing of its session is before it.
static void make_ready(struct queue_entry *e)
{
    if (!e->held) {
        e->ready = true;
        list_put(&e->of_team->ready, e);
    }
}

// The entry that stood in front of its session has gone: the next one is ready.
static void session_leave(struct queue *q, struct queue_entry *e)
{
    struct queue_session *s = e->of_session;
    if (!s) {
        return;
    }
    e->of_session = NULL;
    if (s->front == e) {
        s->front = s->waiting.first;
        if (s->front) {
            list_take(&s->waiting, s->front);
            make_ready(s->front);
        }
    }
    if (!s->front) {
        names_drop(&q->sessions, &s->node);
    }
}

// --- life

static bool limits_ok(const struct queue_limits *l) { return l->slots > 0 && l->waiting > 0; }

int queue_new(const struct queue_limits *limits, struct queue **ret)
{
    if (!limits_ok(limits)) {
        return -EINVAL;
    }
    struct queue *q = calloc(1, sizeof *q);
    if (!q) {
        return -ENOMEM;
    }
    q->limits = *limits;
    q->mean_duration_ns = NS_PER_S; // until something has been seen
    for (int r = 0; r < QUEUE_RESOURCES; r++) {
        q->capacity[r] = UINT64_MAX;
    }
    *ret = q;
    return 0;
}

void queue_free(struct queue *q)
{
    if (!q) {
        return;
    }
    for (struct names *t = &q->teams; t; t = t == &q->teams ? &q->sessions : NULL) {
        for (size_t i = 0; i < t->n_chains; i++) {
            while (t->chains[i]) {
                names_drop(t, t->chains[i]);
            }
        }
        names_free(t);
    }
    heap_free(&q->deadlines);
    free(q);
}

int queue_set_limits(struct queue *q, const struct queue_limits *limits)
{
    if (!limits_ok(limits)) {
        return -EINVAL;
    }
    q->limits = *limits;
    return 0;
}

void queue_set_teams(struct queue *q, uint32_t n) { q->may_come = n; }

void queue_set_mode(struct queue *q, enum queue_mode mode) { q->mode = mode; }

void queue_set_capacity(struct queue *q, enum queue_resource r, uint64_t amount)
{
    q->capacity[r] = amount;
}

// --- in

// A place is free when the next one starts; callers that come back all at once would meet a full
// queue again, so they are sent away for as long as an eighth of it takes.
static uint32_t retry_after_s(const struct queue *q, uint32_t length, uint32_t slots)
{
    uint64_t places = 1 + length / 8;
    uint64_t s = (uint64_t)((double)q->mean_duration_ns * (double)places / slots / 1e9) + 1;
    return s > QUEUE_RETRY_MAX_S ? QUEUE_RETRY_MAX_S : (uint32_t)s;
}

static uint32_t at_least_1(uint32_t n) { return n ? n : 1; }

// A full queue still takes in teams of which little waits, up to half as many again: one that keeps
// it full does not keep others out.
static bool is_full(const struct queue *q, const struct queue_team *t)
{
    uint32_t bound = q->limits.waiting;
    bool spared = t->waiting < at_least_1(bound / QUEUE_SPARED_PART) &&
                  q->waiting - bound < at_least_1(bound / 2);
    return q->waiting >= bound && !spared;
}

// 0 or a positive answer of queue_add().
static int check_bounds(const struct queue *q, const struct queue_team *t,
                        struct queue_refusal *ret)
{
    uint32_t share = q->limits.slots / (uint32_t)(q->teams.count ? q->teams.count : 1);
    if (q->mode != QUEUE_OPEN) {
        *ret = (struct queue_refusal){q->waiting, q->limits.waiting, QUEUE_RETRY_MIN_S};
        return QUEUE_NOT_OPEN;
    }
    if (q->limits.team_waiting != 0 && t->waiting >= q->limits.team_waiting) {
        *ret = (struct queue_refusal){t->waiting, q->limits.team_waiting,
                                      retry_after_s(q, t->waiting, at_least_1(share))};
        return QUEUE_TEAM_FULL;
    }
    if (is_full(q, t)) {
        *ret = (struct queue_refusal){q->waiting, q->limits.waiting,
                                      retry_after_s(q, q->waiting, q->limits.slots)};
        return QUEUE_FULL;
    }
    return 0;
}

static bool name_ok(const char *name)
{
    size_t len = strnlen(name, QUEUE_NAME_MAX + 1);
    return len > 0 && len <= QUEUE_NAME_MAX;
}

static void begin_waiting(struct queue *q, struct queue_entry *e)
{
    struct queue_team *t = e->of_team;
    struct queue_session *s = e->of_session;
    if (t->waiting++ == 0) {
        // A team that comes again goes behind those that wait, or one with a single job at a time
        // would always be first.
        t->turn = ++q->turn;
    }
    q->waiting++;
    e->state = QUEUE_WAITING;
    e->passed = 0;
    all_put(q, e);
    heap_set(&q->deadlines, e, e->wait_deadline_ns);
    if (s && s->front && s->front != e) {
        e->ready = false;
        list_put(&s->waiting, e);
    } else {
        if (s) {
            s->front = e;
        }
        make_ready(e);
    }
}

int queue_add(struct queue *q, struct queue_entry *e, uint64_t now_ns,
              struct queue_refusal *ret_refusal)
{
    struct queue_refusal refusal = {0};
    if (!name_ok(e->team) || (e->session && !name_ok(e->session))) {
        return -EINVAL;
    }
    if (heap_reserve(&q->deadlines, (size_t)q->waiting + q->running + 1) != 0) {
        return -ENOMEM;
    }
    struct queue_team *t = team_get(q, e->team);
    if (!t) {
        return -ENOMEM;
    }
    int refused = e->accepted ? 0 : check_bounds(q, t, &refusal);
    struct queue_session *s = NULL;
    if (refused == 0 && e->session) {
        s = names_get(&q->sessions, e->session, sizeof *s);
        refused = s ? 0 : -ENOMEM;
    }
    if (refused != 0) {
        team_drop_if_empty(q, t);
        if (refused > 0 && ret_refusal) {
            *ret_refusal = refusal;
        }
        return refused;
    }
    e->of_team = t;
    e->of_session = s;
    e->seq = ++q->seq;
    e->since_ns = now_ns;
    e->started_ns = 0;
    e->heap_at = 0;
    begin_waiting(q, e);
    return 0;
}

// --- out

static void end_waiting(struct queue *q, struct queue_entry *e)
{
    if (e->ready) {
        list_take(&e->of_team->ready, e);
    } else if (e->of_session && e->of_session->front != e) {
        list_take(&e->of_session->waiting, e);
    } // else it is held, and in neither
    e->ready = false;
    all_take(q, e);
    q->waiting--;
    e->of_team->waiting--;
    if (q->kept == e) {
        q->kept = NULL;
    }
}

static void leave(struct queue *q, struct queue_entry *e)
{
    heap_set(&q->deadlines, e, 0);
    e->state = QUEUE_OUT;
    session_leave(q, e);
    team_drop_if_empty(q, e->of_team);
    e->of_team = NULL;
}

struct queue_entry *queue_next(struct queue *q, uint64_t now_ns)
{
    struct queue_entry *e = queue_pick(q);
    if (!e) {
        return NULL;
    }
    end_waiting(q, e);
    e->state = QUEUE_RUNNING;
    e->started_ns = now_ns;
    q->teams_running += e->of_team->running++ == 0;
    e->of_team->turn = ++q->turn;
    q->running++;
    for (int r = 0; r < QUEUE_RESOURCES; r++) {
        q->used[r] += e->needs[r];
    }
    heap_set(&q->deadlines, e, 0);
    return e;
}

static void end_running(struct queue *q, struct queue_entry *e)
{
    for (int r = 0; r < QUEUE_RESOURCES; r++) {
        q->used[r] -= e->needs[r];
    }
    q->running--;
    q->teams_running -= --e->of_team->running == 0;
}

void queue_release(struct queue_entry *e)
{
    bool front = !e->of_session || e->of_session->front == e;
    bool waits = e->state == QUEUE_WAITING && e->held;
    e->held = false;
    if (waits && front) {
        make_ready(e);
    }
}

void queue_finish(struct queue *q, struct queue_entry *e, uint64_t now_ns)
{
    uint64_t took = now_ns > e->started_ns ? now_ns - e->started_ns : 0;
    q->mean_duration_ns = q->mean_duration_ns - q->mean_duration_ns / 8 + took / 8;
    end_running(q, e);
    leave(q, e);
}

void queue_put_back(struct queue *q, struct queue_entry *e)
{
    end_running(q, e);
    begin_waiting(q, e);
}

void queue_remove(struct queue *q, struct queue_entry *e)
{
    if (e->state == QUEUE_WAITING) {
        end_waiting(q, e);
        leave(q, e);
    }
}

// --- deadlines

uint64_t queue_deadline_ns(const struct queue *q)
{
    const struct deadline *d = heap_first(&q->deadlines);
    return d ? d->due_ns : 0;
}

struct queue_entry *queue_expired(struct queue *q, uint64_t now_ns, enum queue_wait *ret_why)
{
    const struct deadline *d = heap_first(&q->deadlines);
    if (!d || d->due_ns > now_ns) {
        return NULL;
    }
    struct queue_entry *e = d->entry;
    *ret_why = queue_why(q, e);
    queue_remove(q, e);
    return e;
}

// --- looks

void queue_stats(const struct queue *q, struct queue_stats *ret)
{
    *ret = (struct queue_stats){
        .waiting = q->waiting,
        .running = q->running,
        .teams = (uint32_t)q->teams.count,
        .oldest_since_ns = q->first ? q->first->since_ns : 0,
    };
    memcpy(ret->used, q->used, sizeof q->used);
    memcpy(ret->capacity, q->capacity, sizeof q->capacity);
}
