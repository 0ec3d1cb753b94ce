#include "store/sweep.h"

#include <string.h>

static void next_batch(struct store_sweep *s);

static void on_row(void *ctx, const struct store_record *r)
{
    struct store_sweep *s = ctx;
    if (s->in_batch == SWEEP_BATCH || r->job.id.len > STORE_ID_MAX) {
        return;
    }
    s->id_len[s->in_batch] = r->job.id.len;
    memcpy(s->ids[s->in_batch++], r->job.id.data, r->job.id.len);
    if (s->removing) {
        s->removing(s->ctx, &r->job);
    }
}

static void on_deleted(void *ctx, const struct store_outcome *o)
{
    struct store_sweep *s = ctx;
    s->removed += o->error == 0;
    if (o->error < 0) { // MISSING: somebody else removed it
        s->error = o->error;
    }
    if (--s->waiting == 0) {
        next_batch(s);
    }
}

static void on_end(void *ctx, int error)
{
    struct store_sweep *s = ctx;
    s->error = error;
    s->waiting = 1; // this function itself: no answer may end the batch before it is handed in
    for (unsigned i = 0; s->error == 0 && i < s->in_batch; i++) {
        struct store_write w = {.kind = STORE_JOB_DELETE, .lazy = true};
        w.job.id = (struct store_text){s->ids[i], s->id_len[i]};
        s->error = store_write(s->store, &w, on_deleted, s);
        s->waiting += s->error == 0;
    }
    if (--s->waiting == 0) {
        s->done(s->ctx, s->error, s->removed);
    }
}

static void next_batch(struct store_sweep *s)
{
    if (s->error != 0) {
        s->done(s->ctx, s->error, s->removed);
        return;
    }
    s->in_batch = 0;
    struct store_query q = {
        .kind = STORE_LIST_ENDED, .before_ms = s->before_ms, .limit = SWEEP_BATCH};
    store_read(s->store, &q, &(struct store_reader){on_row, on_end, s});
}

void store_sweep_start(struct store_sweep *s)
{
    s->removed = 0;
    s->error = 0;
    next_batch(s);
}
