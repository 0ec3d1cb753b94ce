#include "job/sets.h"

#include "base/fd.h"

#include <fcntl.h>

static void registered(struct runner_call *c, const struct plan_record *rec, int fd)
{
    struct sets *s = c->ctx;
    fd_close(fd);
    int e = rec->error ? -rec->error : rec->op == PLAN_SET_ADD ? 0 : -EPROTO;
    if (!e) {
        s->number[s->n++] = rec->id;
        e = s->n < s->n_names ? sets_register(s) : 0;
    }
    if (e || s->n == s->n_names) {
        s->done(s->ctx, e);
    }
}

// One at a time: their order is their number's, and eight are the most.
int sets_register(struct sets *s)
{
    // the name is one component, checked with the job; the launcher looks at what was opened
    AUTO_CLOSE int fd =
        openat(s->root, s->names[s->n], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    struct plan_request q = {.op = PLAN_SET_ADD};
    s->call = RUNNER_CALL_INIT(registered, s);
    return runner_send(s->runner, &q, &fd, 1, &s->call);
}

void sets_drop(struct sets *s)
{
    if (!s->runner) {
        return;
    }
    runner_forget(s->runner, &s->call);
    while (s->n > 0) {
        struct plan_request q = {.op = PLAN_SET_DROP, .sets = {s->number[--s->n]}};
        runner_send(s->runner, &q, NULL, 0, NULL);
    }
}
