// The choice: rules 1, 3 and 4 of queue.h. Rule 2 is in the lists: what stands behind another job
// of its session is in no team's list. And why one that waits was not chosen.
#include "queue/internal.h"

enum { KEPT_PART = 4 }; // of the slots, at most

// For teams that run nothing, where no team has a bound.
static uint32_t kept_slots(const struct queue *q)
{
    uint32_t slots = q->limits.slots, most = slots / KEPT_PART;
    uint32_t teams = q->may_come > q->teams.count ? q->may_come : (uint32_t)q->teams.count;
    uint32_t idle = teams > q->teams_running ? teams - q->teams_running : 0;
    most = most == 0 && slots > 1 ? 1 : most;
    return q->limits.team_running ? 0 : idle < most ? idle : most;
}

static bool team_may_start(const struct queue *q, const struct queue_team *t)
{
    if (q->limits.team_running) {
        return t->running < q->limits.team_running;
    }
    return t->running == 0 || q->limits.slots - q->running > kept_slots(q);
}

// The first resource of which e needs more than there is in all; QUEUE_RESOURCES: none.
static int short_in_all(const struct queue *q, const struct queue_entry *e)
{
    int r = 0;
    while (r < QUEUE_RESOURCES && e->needs[r] <= q->capacity[r]) {
        r++;
    }
    return r;
}

static bool could_ever_fit(const struct queue *q, const struct queue_entry *e)
{
    return short_in_all(q, e) == QUEUE_RESOURCES;
}

static uint64_t left(const struct queue *q, int r)
{
    return q->capacity[r] > q->used[r] ? q->capacity[r] - q->used[r] : 0;
}

// The first resource of which e needs more than is left, of that with what is kept for another one
// (NULL: nothing is); QUEUE_RESOURCES: none.
static int short_now(const struct queue *q, const struct queue_entry *e,
                     const struct queue_entry *kept)
{
    for (int r = 0; r < QUEUE_RESOURCES; r++) {
        uint64_t rest = left(q, r), others = kept ? kept->needs[r] : 0;
        if (e->needs[r] > 0 && (rest < e->needs[r] || rest - e->needs[r] < others)) {
            return r;
        }
    }
    return QUEUE_RESOURCES;
}

static bool fits(const struct queue *q, const struct queue_entry *e, const struct queue_entry *kept)
{
    return short_now(q, e, kept) == QUEUE_RESOURCES;
}

// For whom resources are kept now: not while waiting for them is in vain.
static struct queue_entry *kept_for(const struct queue *q)
{
    struct queue_entry *e = q->kept;
    return e && team_may_start(q, e->of_team) && could_ever_fit(q, e) ? e : NULL;
}

static struct queue_entry *first_that_fits(const struct queue *q, const struct queue_team *t,
                                           const struct queue_entry *kept)
{
    int looked = 0;
    for (struct queue_entry *e = t->ready.first; e && looked < QUEUE_LOOK_AHEAD; e = e->after) {
        if (fits(q, e, kept)) {
            return e;
        }
        looked++;
    }
    return NULL;
}

static bool before(const struct queue_team *a, const struct queue_team *b)
{
    return a->running != b->running ? a->running < b->running : a->turn < b->turn;
}

// The oldest of a team that waits for resources it can hope for, if it stands before `chosen`.
static struct queue_entry *first_in_want(const struct queue *q, const struct queue_team *t,
                                         const struct queue_entry *chosen)
{
    int looked = 0;
    for (struct queue_entry *e = t->ready.first; e && e != chosen; e = e->after) {
        if (could_ever_fit(q, e)) {
            return fits(q, e, NULL) ? NULL : e;
        }
        if (++looked == QUEUE_LOOK_AHEAD) {
            break;
        }
    }
    return NULL;
}

// One of each team whose turn was not later than that of the chosen one has been passed.
static void count_passed(struct queue *q, const struct queue_entry *chosen)
{
    for (struct queue_team *t = q->first_team; t; t = t->after) {
        if (!team_may_start(q, t) || (t != chosen->of_team && !before(t, chosen->of_team))) {
            continue;
        }
        struct queue_entry *e = first_in_want(q, t, chosen);
        if (!e) {
            continue;
        }
        if (e->passed < QUEUE_PASSES) {
            e->passed++;
        }
        if (e->passed == QUEUE_PASSES && (!q->kept || e->seq < q->kept->seq)) {
            q->kept = e;
        }
    }
}

struct queue_entry *queue_pick(struct queue *q)
{
    if (q->mode == QUEUE_STOPPED || q->running >= q->limits.slots) {
        return NULL;
    }
    struct queue_entry *kept = kept_for(q);
    if (kept && fits(q, kept, NULL)) {
        return kept;
    }
    struct queue_entry *best = NULL;
    for (struct queue_team *t = q->first_team; t; t = t->after) {
        if (t->ready.first && team_may_start(q, t) && (!best || before(t, best->of_team))) {
            struct queue_entry *e = first_that_fits(q, t, kept);
            best = e ? e : best;
        }
    }
    if (best) {
        count_passed(q, best);
    }
    return best;
}

enum queue_wait queue_why(const struct queue *q, const struct queue_entry *e)
{
    const struct queue_entry *kept = kept_for(q);
    if (e->of_session && e->of_session->front != e) {
        return QUEUE_FOR_SESSION;
    }
    if (!e->ready) {
        return QUEUE_FOR_RELEASE;
    }
    const uint32_t bound = q->limits.team_running, slots = q->limits.slots;
    const bool full = q->running >= slots;
    if (!team_may_start(q, e->of_team) && (bound ? bound < slots : !full)) {
        return bound ? QUEUE_FOR_TEAM : QUEUE_FOR_SHARE;
    }
    int r = short_in_all(q, e);
    if (r == QUEUE_RESOURCES && !full) { // else it is what runs that has it
        r = short_now(q, e, kept == e ? NULL : kept);
    }
    return r < QUEUE_RESOURCES ? QUEUE_FOR_RESOURCE + (enum queue_wait)r : QUEUE_FOR_SLOT;
}

bool queue_is_short(const struct queue *q, enum queue_resource *ret)
{
    int looked = 0;
    for (const struct queue_entry *e = q->first; e && looked < QUEUE_LOOK_AHEAD;
         e = e->all_after, looked++) {
        int r = e->ready && team_may_start(q, e->of_team) ? short_in_all(q, e) : QUEUE_RESOURCES;
        if (r < QUEUE_RESOURCES) {
            *ret = (enum queue_resource)r;
            return true;
        }
    }
    return false;
}
