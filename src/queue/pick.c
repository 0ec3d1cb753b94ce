// The choice: rules 1, 3 and 4 of queue.h. Rule 2 is in the lists: what stands behind another job
// of its session is in no team's list.
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

static bool could_ever_fit(const struct queue *q, const struct queue_entry *e)
{
    for (int r = 0; r < QUEUE_RESOURCES; r++) {
        if (e->needs[r] > q->capacity[r]) {
            return false;
        }
    }
    return true;
}

static uint64_t left(const struct queue *q, int r)
{
    return q->capacity[r] > q->used[r] ? q->capacity[r] - q->used[r] : 0;
}

static bool fits(const struct queue *q, const struct queue_entry *e)
{
    for (int r = 0; r < QUEUE_RESOURCES; r++) {
        if (e->needs[r] > 0 && e->needs[r] > left(q, r)) {
            return false;
        }
    }
    return true;
}

// May e start without taking what is kept for another one?
static bool leaves_enough(const struct queue *q, const struct queue_entry *e,
                          const struct queue_entry *kept)
{
    for (int r = 0; kept && r < QUEUE_RESOURCES; r++) {
        uint64_t rest = left(q, r);
        if (e->needs[r] > 0 && kept->needs[r] > 0 &&
            (rest < e->needs[r] || rest - e->needs[r] < kept->needs[r])) {
            return false;
        }
    }
    return true;
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
        if (fits(q, e) && leaves_enough(q, e, kept)) {
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
            return fits(q, e) ? NULL : e;
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
    if (kept && fits(q, kept)) {
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
