// serve_inner.h: what the two halves of a service's wiring share: its parts from their begin to
// their end (serve.c), and what its front tells it meanwhile (serve_orders.c).
#ifndef ISLE_APP_SERVE_INNER_H
#define ISLE_APP_SERVE_INNER_H

#include "app/serve.h"
#include "app/talk.h"
#include "http/http.h"
#include "io/loop.h"
#include "log/log.h"
#include "serve/sessions.h"

struct serve {
    const struct seat *seat;
    struct pipeline_config pipeline;
    struct loop *loop;
    struct log *log;
    struct runner *runner;
    struct work_pool *pool;
    struct store *store;
    struct ready *ready;
    struct sessions *sessions;
    struct shares *shares;
    struct artifacts *artifacts;
    struct jobs *jobs;
    struct agents *agents;
    struct api *api;
    struct http_server *http;
    struct http_config listeners;
    int artifacts_dir;
    char artifact_urls[SETTING_MAX_WORD + 64]; // what they begin with
    bool loopback;                             // every TCP listener
    int audit;
    struct loop_watch front;
    struct conf *conf;
    struct buf order;           // as far as it has come
    int order_fd[TALK_MAX_FDS]; // what came with it, or -1
    struct loop_timer last;     // until whoever still reads is cut off
    struct loop_timer hung;     // until what does not end is left to the next start
    bool lost, draining;
    int status;
};

// serve.c
void serve_stop_now(struct serve *s);
// Results are still told and asked for while jobs end; what is new is refused.
void serve_drain(struct serve *s, const char *why, uint64_t limit_ms);

// serve_orders.c
void serve_tell(struct serve *s, enum talk_note what);
void serve_log_settings(const struct serve *s, enum log_format *ret_format,
                        enum log_level *ret_least);
struct sessions_config serve_sessions_config(const struct serve *s);
// In the log, where fewer jobs can run at once than the settings ask for. 0.
int serve_tell_slots(struct serve *s);
// The front has told something: for s->front.
void serve_front_ready(struct loop_watch *w, uint32_t events);

#endif
