// submit.h: what the operations that start jobs share. Inside api/ only.
#ifndef ISLE_API_SUBMIT_H
#define ISLE_API_SUBMIT_H

#include "api/call.h"

#include "serve/jobs.h"

enum { SUBMIT_MAX_BYTES = JOB_MAX_JSON_BYTES };

// The body as a job: parsed, checked against this host. 0, or -EINVAL: then the call has failed and
// *ret is empty.
int submit_parse(struct api_call *c, struct job *ret);
// Fails the call for what jobs_run() or jobs_accept() said: a refusal, or -errno.
void submit_refuse(struct api_call *c, int error, const struct queue_refusal *queue);

#endif
