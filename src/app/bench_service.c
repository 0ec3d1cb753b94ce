#include "app/bench_service.h"

#include "base/clock.h"
#include "base/fd.h"
#include "cli/bench.h"
#include "io/loop.h"
#include "job/runner.h"
#include "plan/args.h"
#include "workspace/uids.h"

#include <stdio.h>
#include <string.h>

static const char *const jobs[BENCH_N_PROGRAMS] = {
    "{\"command\":[\"/bin/true\"]}", "{\"language\":\"python\",\"code\":\"print(1)\"}",
    "{\"language\":\"javascript\",\"code\":\"console.log(1)\"}"};

struct service {
    const struct pipeline_config *config;
    struct loop *loop;
    struct runner *runner;
    struct bench_answer *answer;
    struct plan_record record; // LAUNCHER, PARKED: the launcher's last answer
    bool answered;
};

// ---- Jobs through the pipeline ------------------------------------------------------------------

struct slot {
    struct service *s;
    struct pipeline *pipeline;
    struct job_sink sink;
    bool done;
};

static void job_finished(void *ctx, struct result *r)
{
    struct slot *slot = ctx;
    struct bench_answer *a = slot->s->answer;
    slot->done = true;
    if (r->reason != REASON_OK && a->failed++ == 0) {
        snprintf(a->text, sizeof a->text, "%s: %.90s", reason_names[r->reason],
                 r->error ? r->error : "");
    }
}

static int job_begin(struct slot *slot, const char *json)
{
    struct job job;
    struct job_error error;
    struct service *s = slot->s;
    slot->sink = (struct job_sink){.ctx = slot, .done = job_finished};
    slot->done = false;
    int e = job_parse(json, strlen(json), 0, &job, &error);
    return e ? e
             : pipeline_start(s->loop, s->runner, s->config, &job, &slot->sink, &slot->pipeline);
}

static void job_end(struct slot *slot)
{
    pipeline_free(slot->pipeline);
    slot->pipeline = NULL;
}

static int run_jobs(struct service *s, const struct bench_order *o)
{
    AUTO_FREE struct slot *slots = calloc(BENCH_MAX_IN_FLIGHT, sizeof *slots);
    uint32_t begun = 0, ended = 0;
    int e = 0;
    if (!slots) {
        return -ENOMEM;
    }
    while (!e && begun < o->count && begun < o->in_flight) {
        slots[begun].s = s;
        e = job_begin(&slots[begun], jobs[o->program]);
        begun += !e;
    }
    while (!e && ended < o->count) {
        e = loop_step(s->loop, -1);
        for (uint32_t i = 0; !e && i < o->in_flight; i++) {
            if (!slots[i].pipeline || !slots[i].done) {
                continue;
            }
            job_end(&slots[i]);
            ended++;
            if (begun < o->count) {
                e = job_begin(&slots[i], jobs[o->program]);
                begun += !e;
            }
        }
    }
    for (uint32_t i = 0; i < BENCH_MAX_IN_FLIGHT; i++) {
        job_end(&slots[i]);
    }
    return e;
}

// ---- /bin/true straight by the launcher, without a pipeline -------------------------------------

static void answered(struct runner_call *c, const struct plan_record *r, int fd)
{
    struct service *s = c->ctx;
    s->record = *r;
    s->answered = true;
    fd_close(fd);
}

static int wait_for(struct service *s, uint32_t op)
{
    do {
        for (s->answered = false; !s->answered;) {
            int e = loop_step(s->loop, -1);
            if (e) {
                return e;
            }
        }
        if (s->record.error) {
            return -s->record.error;
        }
    } while (s->record.op != op);
    return 0;
}

// A sandbox that waits between the phases.
static int park(struct service *s, uint32_t *ret_id)
{
    struct runner_call call = RUNNER_CALL_INIT(answered, s);
    struct plan_request prepare = {.op = PLAN_PREPARE};
    int e = runner_send(s->runner, &prepare, NULL, 0, &call);
    e = e ? e : wait_for(s, PLAN_PARKED);
    runner_forget(s->runner, &call);
    *ret_id = s->record.id;
    clock_pause_ns(3 * NS_PER_MS); // its shim has settled
    return e;
}

// A fresh tmpfs workspace and a launch in it, until its END.
static int launch(struct service *s, struct lowered *plan, struct runner_call *call, bool parked)
{
    static const char *const argv[] = {"/bin/true", NULL}, *const env[] = {"PATH=/usr/bin", NULL};
    struct plan_request *q = &plan->start;
    uint64_t begin = clock_now_ns();
    int e = runner_tmpfs(s->runner, q->uid, plan->workspace_bytes, plan->workspace_inodes, call);
    e = e ? e : wait_for(s, PLAN_TMPFS);
    if (e) {
        return e;
    }
    q->workspace_no = s->record.id;
    begin = parked ? clock_now_ns() : begin;
    AUTO_CLOSE int args = args_pack(argv, env, "/workspace");
    int null = s->config->null;
    const int fds[PLAN_N_START_FDS] = {null, null, null, null, args};
    e = runner_send(s->runner, q, fds, PLAN_N_START_FDS, call);
    e = e ? e : wait_for(s, PLAN_END);
    s->answer->ns = clock_now_ns() - begin;
    s->answer->failed += !e && s->record.status != 0;
    for (int i = 0; i < PLAN_N_MARKS; i++) {
        uint64_t at = s->record.marks_ns[i];
        s->answer->marks_ns[i] = at > begin ? at - begin : 0;
    }
    runner_tmpfs_drop(s->runner, q->workspace_no);
    return e;
}

// Both phases; or phase two alone in a parked sandbox, whose workspace is made ahead as well.
static int run_launch(struct service *s, bool parked)
{
    static const char small[] = "{\"command\":[\"/bin/true\"],\"limits\":{\"disk_mb\":64}}";
    struct job job;
    struct job_error error;
    struct lowered plan;
    struct runner_call call = RUNNER_CALL_INIT(answered, s);
    uint32_t id = 0;
    int e = job_parse(small, sizeof small - 1, 0, &job, &error);
    e = e || !parked ? e : park(s, &id);
    if (!e) {
        lower_job(&job, &s->config->host, &(struct lower_staged){0, 4}, &plan);
        plan.start.id = id;
        plan.start.uid = uids_take(s->config->uids);
        e = launch(s, &plan, &call, parked);
        runner_forget(s->runner, &call);
        uids_give(s->config->uids, plan.start.uid);
    }
    job_done(&job);
    return e;
}

// ---- Orders -------------------------------------------------------------------------------------

static int obey(struct service *s, const struct bench_order *o)
{
    uint64_t begin = clock_now_ns();
    if (o->program >= BENCH_N_PROGRAMS || o->in_flight > BENCH_MAX_IN_FLIGHT) {
        return -EINVAL;
    }
    // as the service does; the other rows are what they say
    if (o->kind == BENCH_ISLE) {
        pipeline_keep_ahead(s->config, s->runner);
    } else {
        runner_keep_parked(s->runner, 0, 0);
        return run_launch(s, o->kind == BENCH_PARKED);
    }
    int e = run_jobs(s, o);
    s->answer->ns = clock_now_ns() - begin;
    return e;
}

int bench_service_run(const struct seat *seat, struct conf *conf,
                      const struct pipeline_config *given)
{
    (void)conf;
    struct pipeline_config config = *given;
    struct service s = {.config = &config};
    struct bench_order o;
    config.ready_workspace = NULL; // only the first job could have it, and no sample is to differ
    int e = loop_new(&s.loop);
    e = e ? e : runner_new(s.loop, seat->launcher, seat->launcher_pidfd, NULL, NULL, &s.runner);
    while (!e && fd_read_full(seat->front, &o, sizeof o) == (ssize_t)sizeof o) {
        struct bench_answer a = {.downgrades = seat->downgrades};
        s.answer = &a;
        a.error = obey(&s, &o);
        e = fd_write_all(seat->front, &a, sizeof a);
    }
    if (s.runner) {
        runner_finish(s.runner);
    }
    runner_free(s.runner);
    loop_free(s.loop);
    return e != 0;
}
