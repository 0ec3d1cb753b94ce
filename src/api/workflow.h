// workflow.h: what running a code node and checking one share. Inside api/ only.
#ifndef ISLE_API_WORKFLOW_H
#define ISLE_API_WORKFLOW_H

#include "api/job_call.h"

enum {
    WORKFLOW_FAULTS_BYTES = 32 << 10,
    WORKFLOW_INPUTS_MAX = 1000, // of a list
};

// The inputs as the params of a job, a JSON object: appended. with_values: each needs one. 0,
// -EINVAL with faults (lines, as tools/node.h has them), -EMSGSIZE: they are too large, -ENOMEM.
int workflow_inputs(yyjson_val *inputs, bool with_values, struct buf *out, struct buf *faults);
// What is declared as compact JSON, null or a list: appended, if it is sound. The same errors.
int workflow_outputs(yyjson_val *outputs, struct buf *out, struct buf *faults);
// The job of a node that has passed its schema, as job_parse() leaves it, to call main. params
// NULL: none.
int workflow_job(yyjson_val *node, const struct buf *params, struct job *ret,
                 struct job_error *ret_error);
// Lines of faults as one: "PATH: WHAT; PATH: WHAT".
void workflow_join(struct buf *out, const struct buf *faults);

// The route that only checks, workflow_check.c.
void workflow_check_read(struct api_call *c);
void workflow_check(struct api_call *c);

#endif
