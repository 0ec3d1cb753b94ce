// internal.h: what the files of the queue share.
#ifndef ISLE_QUEUE_INTERNAL_H
#define ISLE_QUEUE_INTERNAL_H

#include "queue/heap.h"
#include "queue/names.h"
#include "queue/queue.h"

// A doubly linked list through before/after.
struct queue_list {
    struct queue_entry *first, *last;
};

struct queue_team {
    struct name_node node;
    uint32_t waiting, running;
    uint64_t turn;           // order of the last service, or of its coming
    struct queue_list ready; // waiting and not behind another of their session; by seq
    struct queue_team *before, *after;
};

struct queue_session {
    struct name_node node;
    struct queue_list waiting; // those that are behind another one; by seq
    struct queue_entry *front; // the one that is ready or runs
};

struct queue {
    struct queue_limits limits;
    enum queue_mode mode;
    struct names teams, sessions;
    struct queue_team *first_team;
    struct queue_entry *first, *last; // all that wait, by seq
    struct heap deadlines;
    uint32_t waiting, running;
    uint32_t teams_running; // that have a running job
    uint32_t may_come;      // queue_set_teams()
    uint64_t seq, turn;
    uint64_t used[QUEUE_RESOURCES], capacity[QUEUE_RESOURCES];
    struct queue_entry *kept;  // resources are kept for this one; NULL: for none
    uint64_t mean_duration_ns; // of the last jobs, an exponential average
};

// The one whose turn it is by the rules of queue.h, or NULL; counts whom it passes.
struct queue_entry *queue_pick(struct queue *q);

#endif
