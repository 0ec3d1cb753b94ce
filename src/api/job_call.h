// job_call.h: what the operations on jobs share. Inside api/ only.
#ifndef ISLE_API_JOB_CALL_H
#define ISLE_API_JOB_CALL_H

#include "api/call.h"

#include "serve/jobs.h"

enum { JOB_CALL_ANSWER_MAX = 256 << 20 }; // bytes of a result's JSON

// The body's job (api_route.job), once it is checked against this host: the caller's from here on.
// 0, or -EINVAL: then the call has failed.
int job_call_take(struct api_call *c, struct job *ret);
// The same where its caller waits: JOB_MAX_EXECUTE_SECONDS at most.
int job_call_take_waiting(struct api_call *c, struct job *ret);
// Fails the call for what jobs_run() or jobs_accept() said: a refusal, or -errno.
void job_call_refuse(struct api_call *c, int error, const struct queue_refusal *queue);
// A call that waits for a job: its ctx.
struct job_wait {
    struct jobs_watch watch; // ctx: this
    struct api_call *call;
    const struct result *result; // held until the answer is written, once it is there
};
typedef void job_ended(struct jobs_watch *w, const struct result *r, const char *json, size_t len);
// Runs the job, which is taken, for a caller that waits: `ended` is to answer, and who is gone
// cancels it. Where nothing was started the call has failed.
void job_call_run(struct api_call *c, struct jobs_submission *s, job_ended *ended);
// In `ended`: holds the result and answers with what `write` makes of it, as api_reply_written():
// what that costs, as bytes that are written.
void job_call_reply(struct jobs_watch *w, const struct result *r, size_t bytes,
                    void (*write)(struct api_call *c, struct buf *data));
// The job is none of the team's, or its record is gone.
void api_fail_no_job(struct api_call *c);
// The record of the job cannot be read.
void api_fail_no_record(struct api_call *c);

#endif
