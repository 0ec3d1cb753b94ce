// queue.h: who is next. Pure: no descriptor, no thread, no clock; time is a parameter.
//
// The rules, in the order in which they are asked:
//   1. A job waits for a free slot, and for its team to be below its bound of running jobs, or
//      without one, for a slot that is not kept for teams that run nothing.
//   2. Jobs of one session run one at a time, in the order in which they came. Those behind a busy
//      session wait without standing in the way of other sessions.
//   3. Between teams: the team with the fewest running jobs, and among equals the one that was
//      served longest ago. Within a team: the oldest.
//   4. A job whose resources are not free waits at its place while others that fit pass it, but not
//      for ever: after QUEUE_PASSES of them what it lacks is kept for it.
//
// An entry lives in its owner's struct; the queue allocates when an entry comes in, never later, so
// that starting, ending, cancelling and expiring cannot fail.
#ifndef ISLE_QUEUE_QUEUE_H
#define ISLE_QUEUE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    QUEUE_PASSES = 8,      // how often a job that could run may be passed for want of resources
    QUEUE_LOOK_AHEAD = 64, // how many of a team that do not fit are looked at for one that does
    QUEUE_NAME_MAX = 256,  // bytes of a team's or session's name
    QUEUE_RETRY_MIN_S = 1, // bounds of the estimate that a refused caller gets
    QUEUE_RETRY_MAX_S = 300,
};

// What a running job holds beside its slot.
enum queue_resource { QUEUE_UIDS, QUEUE_MEMORY_BYTES, QUEUE_DISK_BYTES, QUEUE_RESOURCES };

// What an entry waits for.
enum queue_wait {
    QUEUE_FOR_SLOT,     // its turn
    QUEUE_FOR_RELEASE,  // it is held
    QUEUE_FOR_SESSION,  // another one of its session is before it
    QUEUE_FOR_TEAM,     // its team runs as many as it may
    QUEUE_FOR_SHARE,    // the free slots are kept for teams that run nothing
    QUEUE_FOR_RESOURCE, // and one more for each enum queue_resource
    QUEUE_WAITS = QUEUE_FOR_RESOURCE + QUEUE_RESOURCES
};

enum queue_state { QUEUE_OUT, QUEUE_WAITING, QUEUE_RUNNING };

// Positive answers of queue_add().
enum queue_refused { QUEUE_TEAM_FULL = 1, QUEUE_FULL, QUEUE_NOT_OPEN };

enum queue_mode {
    QUEUE_OPEN,
    QUEUE_CLOSED,  // nothing comes in; what waits is still started
    QUEUE_STOPPED, // nothing starts either; what runs may end
};

// Of a full queue's length: a team of which less waits is still taken in, until half as many as the
// bound wait beyond it.
enum { QUEUE_SPARED_PART = 8 };

struct queue_limits {
    uint32_t slots;        // jobs that run at once
    uint32_t team_running; // of one team; 0: see queue_set_teams()
    uint32_t waiting;      // jobs that wait, in all; see QUEUE_SPARED_PART
    uint32_t team_waiting; // of one team; 0: no bound but the former
};

struct queue_team;
struct queue_session;

struct queue_entry {
    // The owner's, filled before queue_add() and left alone until the entry is out again.
    void *ctx;
    const char *team;                // read by queue_add() only
    const char *session;             // as team; NULL: none
    uint64_t wait_deadline_ns;       // must have been started by then (queue_timeout); 0: none
    uint64_t needs[QUEUE_RESOURCES]; // of a held one they may change
    bool accepted;                   // promised before (a restart): bounds and mode do not apply
    bool held;                       // has its place, and does not start before queue_release()

    // The queue's; `state`, `since_ns` and `started_ns` may be read.
    enum queue_state state;
    uint64_t since_ns, started_ns;
    uint64_t seq; // order of arrival
    uint32_t passed;
    bool ready; // in its team's list: nothing of its session is before it
    struct queue_team *of_team;
    struct queue_session *of_session;
    struct queue_entry *before, *after;         // in the team's list, or in its session's
    struct queue_entry *all_before, *all_after; // among all that wait
    size_t heap_at;                             // 1-based; 0: no deadline
};

struct queue_refusal {
    uint32_t length, bound; // of the queue that is full: the team's or the whole one
    uint32_t retry_after_s; // estimate of when a place is free
};

struct queue_stats {
    uint32_t waiting, running, teams; // teams: that have something here
    uint64_t oldest_since_ns;         // 0: nothing waits
    uint64_t used[QUEUE_RESOURCES], capacity[QUEUE_RESOURCES];
};

struct queue;

// 0 or -errno: -EINVAL for no slots or nothing that may wait.
int queue_new(const struct queue_limits *limits, struct queue **ret);
// Entries that are still in it are forgotten, not touched.
void queue_free(struct queue *q);
// Other bounds from now on: what is over them stays. 0 or -EINVAL.
int queue_set_limits(struct queue *q, const struct queue_limits *limits);

// So many teams may come, whether they have something here or not. Without a bound of a team's
// running jobs a slot is kept for each of them that runs nothing, up to a quarter of the slots (of
// two or three: one), and is taken by one that does. So where there is one team it has all slots;
// one of several leaves the next one a place at once; where all have work nothing is kept.
void queue_set_teams(struct queue *q, uint32_t n);
void queue_set_mode(struct queue *q, enum queue_mode mode);
// How much of a resource there is for all running jobs together; unlimited until said. May fall
// below what is used: then nothing that needs it starts until enough has ended.
void queue_set_capacity(struct queue *q, enum queue_resource r, uint64_t amount);

// Puts an entry (state OUT) in. 0; positive: refused, with *ret_refusal (may be NULL) filled;
// -EINVAL (a name that is empty or too long) or -ENOMEM.
int queue_add(struct queue *q, struct queue_entry *e, uint64_t now_ns,
              struct queue_refusal *ret_refusal);

// The entry that starts now, which is RUNNING from here on; NULL when none may. To be asked again
// after every other call until it says NULL.
struct queue_entry *queue_next(struct queue *q, uint64_t now_ns);

// A held entry may start from here on. Harmless on one that is not held.
void queue_release(struct queue_entry *e);

// A RUNNING entry is over: its slot, session and resources are free, and it is OUT.
void queue_finish(struct queue *q, struct queue_entry *e, uint64_t now_ns);
// A RUNNING entry could not be started for want of something: it waits again, at its old place.
// Say what is lacking first, by queue_set_capacity(), or it is next again.
void queue_put_back(struct queue *q, struct queue_entry *e);
// A WAITING entry is taken out (cancelled, or its caller has gone). Harmless when it is OUT.
void queue_remove(struct queue *q, struct queue_entry *e);

// When queue_expired() has something to say; 0: nothing to wait for.
uint64_t queue_deadline_ns(const struct queue *q);
// Takes out one entry that has waited beyond its deadline, and tells for what; NULL: there is none.
struct queue_entry *queue_expired(struct queue *q, uint64_t now_ns, enum queue_wait *ret_why);

// What a WAITING entry would still wait for if it were looked at now, by the capacities as they
// were said last.
enum queue_wait queue_why(const struct queue *q, const struct queue_entry *e);
// Of which resource there is too little in all for one of those that could start otherwise, so that
// it waits though a slot is free and whatever ends. Looks at the oldest. False: of none.
bool queue_is_short(const struct queue *q, enum queue_resource *ret);
void queue_stats(const struct queue *q, struct queue_stats *ret);

#endif
