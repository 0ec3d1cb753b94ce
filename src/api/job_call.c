#include "api/job_call.h"

#include "api/session_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_S = 5 };

int job_call_take(struct api_call *c, struct job *ret)
{
    int e = c->job_error;
    e = e ? e : lower_check_host(&c->job, jobs_host(c->with->jobs), &c->job_why);
    if (!e) {
        *ret = c->job;
        c->job = (struct job){.stdin_fd = -1};
        return 0;
    }
    if (e == -EINVAL) {
        api_fail_field(c, &c->job_why);
    } else {
        api_fail(c, API_INTERNAL, "%s", strerror(-e));
    }
    return -EINVAL;
}

int job_call_take_waiting(struct api_call *c, struct job *ret)
{
    int e = job_call_take(c, ret);
    if (e) {
        return e;
    }
    if (ret->limits.value[LIMIT_TIMEOUT] > JOB_MAX_EXECUTE_SECONDS * INT64_C(1000)) {
        api_fail(c, API_VALIDATION, "limits.timeout_seconds: above the maximum of %d s here",
                 JOB_MAX_EXECUTE_SECONDS);
        job_done(ret);
        return -EINVAL;
    }
    return 0;
}

void job_call_refuse(struct api_call *c, int error, const struct queue_refusal *queue)
{
    switch (error) {
    case JOBS_TEAM_FULL:
        api_fail_later(c, API_LIMITED, queue->retry_after_s,
                       "the queue is full: %u jobs of this team wait, which is the most "
                       "(SANDBOX_QUEUE_TEAM_LIMIT %u)",
                       queue->length, queue->bound);
        break;
    case JOBS_FULL:
        api_fail_later(
            c, API_LIMITED, queue->retry_after_s,
            "the queue is full: %u jobs wait, which is the most (SANDBOX_QUEUE_LIMIT %u)",
            queue->length, queue->bound);
        break;
    case JOBS_HEAVY:
        api_fail_later(c, API_LIMITED, queue->retry_after_s,
                       "the jobs that wait hold as much code, input and files as there is memory "
                       "for");
        break;
    case JOBS_NO_SHARE:
        api_fail_share(c, "job");
        break;
    case JOBS_CLOSED:
        api_fail_later(c, API_UNAVAILABLE, RETRY_S, "the service is being stopped");
        break;
    case JOBS_DISABLED:
        api_fail(c, API_UNAVAILABLE, "%s", JOBS_DISABLED_TEXT);
        break;
    case JOBS_CONFLICT:
        api_fail(c, API_EXISTS, "Idempotency-Key: it has been used for another job");
        break;
    case JOBS_NO_SESSION:
        api_fail(c, API_NOT_FOUND, "session_id: there is no such session");
        break;
    case JOBS_SESSION_GONE:
        api_fail(c, API_GONE, "session_id: the session has expired or was deleted");
        break;
    default:
        // the place where jobs are stored is full or broken
        api_fail_later(c, API_UNAVAILABLE, RETRY_S, "the job cannot be stored: %s",
                       strerror(-error));
        break;
    }
}

// Who waited is gone: so is the reason to run it.
static void gone(struct api_call *c)
{
    struct job_wait *w = c->ctx;
    jobs_leave(c->with->jobs, &w->watch);
    http_abort(c->r);
}

static void written(struct api_call *c)
{
    struct job_wait *w = c->ctx;
    jobs_result_release(w->result);
    w->result = NULL;
}

static void end(struct api_call *c)
{
    struct job_wait *w = c->ctx;
    jobs_leave(c->with->jobs, &w->watch);
    jobs_result_release(w->result);
    free(w);
}

void job_call_run(struct api_call *c, struct jobs_submission *s, job_ended *ended)
{
    struct queue_refusal queue = {0};
    char id[37];
    struct job_wait *w = calloc(1, sizeof *w);
    if (!w) {
        job_done(&s->job);
        api_fail(c, API_INTERNAL, "no memory");
        return;
    }
    w->call = c;
    w->watch = (struct jobs_watch){.ended = ended, .ctx = w};
    c->ctx = w;
    c->gone = gone;
    c->written = written;
    c->end = end;
    int e = jobs_run(c->with->jobs, s, &w->watch, id, &queue);
    if (e) {
        job_call_refuse(c, e, &queue);
    }
}

void job_call_reply(struct jobs_watch *watch, const struct result *r, size_t bytes,
                    void (*write)(struct api_call *c, struct buf *data))
{
    struct job_wait *w = watch->ctx;
    jobs_result_hold(r);
    w->result = r;
    api_reply_written(w->call, 200, bytes, write);
}

void api_fail_no_job(struct api_call *c)
{
    api_fail(c, API_NOT_FOUND,
             "there is no such job: none of this team has this id, or its result "
             "has been kept long enough (SANDBOX_RESULT_TTL_SECONDS)");
}

void api_fail_no_record(struct api_call *c)
{
    api_fail_later(c, API_UNAVAILABLE, RETRY_S, "the store of the jobs does not answer");
}
