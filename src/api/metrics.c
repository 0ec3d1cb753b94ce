// metrics.c: how the service does, as Prometheus reads it (text format 0.0.4). No label holds what
// a tenant wrote, nor a team's name: there are as many series after a year as on the first day.
#include "api/internal.h"

#include "log/log.h"
#include "serve/jobs.h"
#include "serve/ready.h"
#include "serve/sessions.h"
#include "serve/shares.h"
#include "workspace/disk.h"

#include <inttypes.h>
#include <stdio.h>

#ifndef ISLE_VERSION
#define ISLE_VERSION "unknown"
#endif

static void head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(struct buf *out, const char *name, const char *type, const char *help,
                uint64_t value)
{
    head(out, name, type, help);
    buf_printf(out, "%s %" PRIu64 "\n", name, value);
}

// What a reason makes of the status; as result_status() says it of a result.
static const char *status_of(enum reason reason)
{
    const struct result r = {.reason = reason};
    return status_names[result_status(&r)];
}

static void put_ended(struct buf *out, const struct jobs_stats *s)
{
    head(out, "isle_jobs_ended_total", "counter", "Jobs that ended, by how.");
    for (int kind = 0; kind < JOBS_KINDS; kind++) {
        for (int reason = 0; reason < REASON_COUNT; reason++) {
            if (s->ended[kind][reason]) {
                buf_printf(out,
                           "isle_jobs_ended_total{language=\"%s\",status=\"%s\",reason=\"%s\"} "
                           "%" PRIu64 "\n",
                           jobs_kind_names[kind], status_of((enum reason)reason),
                           reason_names[reason], s->ended[kind][reason]);
            }
        }
    }
}

static void put_stage(struct buf *out, const char *stage, const struct jobs_histogram *h)
{
    uint64_t sum = 0;
    for (int i = 0; i < JOBS_BUCKETS; i++) {
        sum += h->count[i];
        buf_printf(out, "isle_job_stage_seconds_bucket{stage=\"%s\",le=\"%g\"} %" PRIu64 "\n",
                   stage, jobs_bucket_ms[i] / 1000.0, sum);
    }
    sum += h->count[JOBS_BUCKETS];
    buf_printf(out,
               "isle_job_stage_seconds_bucket{stage=\"%s\",le=\"+Inf\"} %" PRIu64 "\n"
               "isle_job_stage_seconds_sum{stage=\"%s\"} %.3f\n"
               "isle_job_stage_seconds_count{stage=\"%s\"} %" PRIu64 "\n",
               stage, sum, stage, (double)h->sum_ms / 1000.0, stage, sum);
}

static void put_jobs(struct buf *out, const struct jobs_stats *s)
{
    put_ended(out, s);
    head(out, "isle_job_stage_seconds", "histogram", "How long jobs were in each stage.");
    for (int i = 0; i < JOBS_STAGES; i++) {
        put_stage(out, jobs_stage_names[i], &s->stages[i]);
    }
    one(out, "isle_jobs_accepted_total", "counter", "Jobs that were stored to be run.",
        s->accepted);
    one(out, "isle_jobs_refused_total", "counter", "Jobs refused because a queue was full.",
        s->refused);
    one(out, "isle_jobs_put_back_total", "counter",
        "Times that a job's turn had come and it went back, as a uid, memory or disk was short.",
        s->put_back);
    one(out, "isle_warm_hits_total", "counter",
        "Jobs whose sandbox was there, made ahead, when they began.", s->warm);
    one(out, "isle_warm_misses_total", "counter",
        "Jobs whose sandbox had to be made when they began.", s->cold);
    one(out, "isle_job_results_lost_total", "counter", "Results that the store did not take.",
        s->lost_results);
    one(out, "isle_sandbox_failures_total", "counter",
        "Jobs that failed as their sandbox did, not as they did.", s->sandbox_failures);
    one(out, "isle_unisolated_jobs_total", "counter",
        "Jobs that ran without a sandbox, as the operator allows.", s->unisolated);
    one(out, "isle_fallback_runs_total", "counter",
        "Of these, jobs that were run again because their sandbox had failed.", s->fallbacks);
    one(out, "isle_queue_jobs", "gauge", "Jobs that wait.", s->waiting);
    head(out, "isle_queue_oldest_seconds", "gauge", "How long the oldest of them has waited.");
    buf_printf(out, "isle_queue_oldest_seconds %.3f\n", (double)s->oldest_ms / 1000.0);
    one(out, "isle_slots", "gauge", "Jobs that may run at once.", s->slots);
    one(out, "isle_slots_used", "gauge", "Jobs that run.", s->running);
    one(out, "isle_memory_reserved_bytes", "gauge", "Memory limits of the jobs that run.",
        s->memory_used);
    one(out, "isle_memory_capacity_bytes", "gauge", "What those may be together; 0: no bound.",
        s->memory_capacity);
}

static void put_requests(struct buf *out, const struct api *a)
{
    unsigned connections = 0, requests = 0;
    head(out, "isle_http_requests_total", "counter", "Requests answered, by class of status.");
    for (int i = 2; i < API_CLASSES; i++) {
        buf_printf(out, "isle_http_requests_total{status=\"%dxx\"} %" PRIu64 "\n", i,
                   a->answered[i]);
    }
    if (a->server) {
        http_server_count(a->server, &connections, &requests);
    }
    one(out, "isle_http_connections", "gauge", "Connections that are open.", connections);
    one(out, "isle_http_requests", "gauge", "Requests under way.", requests);
}

// What may still be written, as those ask who write for tenants; nothing where nobody knows.
static void put_room(struct buf *out, const struct api *a)
{
    uint64_t left;
    if (!disk_left(a->with.workspace_root, &left)) {
        one(out, "isle_data_free_bytes", "gauge",
            "What tenants may still write to the data folder's disk; 0: jobs wait.", left);
    }
}

static void put_kept(struct buf *out, const struct api *a)
{
    struct sessions_stats sessions;
    struct shares_stats shares;
    sessions_stats(a->with.sessions, &sessions);
    shares_stats(a->with.shares, &shares);
    one(out, "isle_sessions", "gauge", "Sessions that live.", sessions.active);
    one(out, "isle_sessions_removing", "gauge", "Sessions whose files are being removed.",
        sessions.removing);
    one(out, "isle_sessions_disk_bytes", "gauge", "What sessions take, as last measured.",
        sessions.disk_bytes);
    one(out, "isle_artifacts_disk_bytes", "gauge", "What artifacts take.",
        shares.bytes[SHARE_ARTIFACTS]);
    one(out, "isle_largest_share_bytes", "gauge",
        "What sessions and artifacts of the one that has most of them take.", shares.largest_bytes);
    one(out, "isle_share_refused_total", "counter",
        "Requests refused as much was kept for the caller already (SANDBOX_TEAM_DISK_MB).",
        shares.refused);
    put_room(out, a);
}

static void put_store(struct buf *out, const struct api *a)
{
    struct store_stats store;
    store_stats(a->with.store, &store);
    one(out, "isle_store_disk_bytes", "gauge", "What the store's files take.", store.disk_bytes);
    one(out, "isle_store_commits_total", "counter", "Commits of the store.", store.commits);
    one(out, "isle_store_writes_total", "counter", "Records that those held.", store.writes);
    one(out, "isle_store_waiting", "gauge", "Records that wait for a commit.", store.waiting);
    one(out, "isle_store_failed", "gauge", "1: the last commit failed.", store.error != 0);
}

static void put_state(struct buf *out, const struct api *a)
{
    one(out, "isle_log_lines_lost_total", "counter", "Lines that the log's reader did not take.",
        log_lost(a->with.log));
    one(out, "isle_ready", "gauge", "1: /readyz is 200: jobs can run.", ready_now(a->with.ready));
    one(out, "isle_downgrades", "gauge",
        "Layers of isolation that are missing; /readyz names them.",
        (uint64_t)__builtin_popcount(ready_downgrades(a->with.ready)));
    head(out, "isle_build_info", "gauge", "The version.");
    buf_puts(out, "isle_build_info{version=\"" ISLE_VERSION "\"} 1\n");
}

void api_metrics(struct api_call *c)
{
    struct buf out = BUF_INIT(1 << 20);
    struct jobs_stats jobs;
    jobs_stats(c->with->jobs, &jobs);
    put_jobs(&out, &jobs);
    put_requests(&out, c->api);
    put_kept(&out, c->api);
    put_store(&out, c->api);
    put_state(&out, c->api);
    if (out.error) {
        buf_free(&out);
        api_fail(c, API_INTERNAL, "not enough memory");
        return;
    }
    c->status = 200;
    http_reply_buf(c->r, 200, "text/plain; version=0.0.4; charset=utf-8", &out);
}
