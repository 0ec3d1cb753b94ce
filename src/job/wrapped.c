#include "job/wrapped.h"

#include "base/fd.h"
#include "base/text.h"
#include "plan/bwrap.h"
#include "plan/steps.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static bool is_its_own(const struct plan_record *end)
{
    return end->error && (end->step == PLAN_BSTEP_exec || end->step == PLAN_BSTEP_bubblewrap ||
                          end->step == PLAN_BSTEP_verify);
}

// Its last line, which is the one that says why.
static void last_line(int said, char *ret, size_t size)
{
    char text[1024];
    ret[0] = '\0';
    ssize_t n = said < 0 ? -1 : pread(said, text, sizeof text - 1, 0);
    if (n <= 0) {
        return;
    }
    text[n] = '\0';
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        snprintf(ret, size, "%s", line);
    }
    text_no_controls(ret);
}

static void what_happened(const struct plan_record *end, char *ret, size_t size)
{
    if (end->step == PLAN_BSTEP_exec) {
        snprintf(ret, size, "cannot be executed: %s", strerror(end->error));
    } else if (end->step == PLAN_BSTEP_verify) {
        snprintf(ret, size, "made another sandbox than it was asked for");
    } else if (end->error == ETIMEDOUT) {
        snprintf(ret, size, "did not make the sandbox in time and was killed");
    } else if (WIFSIGNALED(end->status)) {
        snprintf(ret, size, "was ended by signal %d", WTERMSIG(end->status));
    } else {
        snprintf(ret, size, "exited with status %d and had made no sandbox",
                 WEXITSTATUS(end->status));
    }
}

void wrapped_failed(struct result *r, const char *bwrap, const struct plan_record *end, int said)
{
    char what[160], line[256];
    if (!bwrap || !is_its_own(end)) {
        return;
    }
    what_happened(end, what, sizeof what);
    last_line(said, line, sizeof line);
    const char *meaning = bwrap_translate(line);
    result_fail(r, REASON_ISOLATION_UNAVAILABLE, STAGE_PREPARATION,
                "Bubblewrap (%s) %s (step %s)%s%s%s%s; nothing of the job ran", bwrap, what,
                plan_step_name(end->step), line[0] ? ": " : "", line, meaning ? ": " : "",
                meaning ? meaning : "");
}
