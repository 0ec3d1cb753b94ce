// tool_job.c: the job of a call.
#include "tools/tool_inner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int name_code(const struct tool *t, struct job *j)
{
    free(j->code_name);
    int n = asprintf(&j->code_name, "%s.%s", t->name, j->language == LANGUAGE_PYTHON ? "py" : "js");
    j->code_name = n < 0 ? NULL : j->code_name;
    return n < 0 ? -ENOMEM : 0;
}

int tool_job(const struct tool *t, struct buf *params, int64_t timeout_ms, const char *session,
             struct job *ret, struct job_error *ret_why)
{
    int e = job_parse(t->code_config, t->code_config_len, 0, ret, ret_why);
    e = e ? e : name_code(t, ret); // a traceback names the tool
    if (e) {
        return e;
    }
    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (ret->limits.source[i] == LIMIT_FROM_JOB) {
            ret->limits.source[i] = LIMIT_FROM_TOOL;
        }
    }
    if (timeout_ms && !t->timeout_ms) {
        ret->limits.value[LIMIT_TIMEOUT] = timeout_ms;
        ret->limits.source[LIMIT_TIMEOUT] = LIMIT_FROM_JOB;
    }
    if (session) {
        snprintf(ret->session, sizeof ret->session, "%s", session);
    }
    free(ret->params);
    ret->params_len = params->len;
    ret->params = buf_take(params);
    return ret->params ? 0 : -ENOMEM;
}
