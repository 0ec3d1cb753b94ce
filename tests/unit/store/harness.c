#include "harness.h"

#include "base/fd.h"
#include "base/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct rows rows;

// Every text of a record: rows keep copies.
#define TEXT(member) offsetof(struct store_record, member)
static const size_t texts[] = {
    TEXT(job.id),
    TEXT(job.team),
    TEXT(job.session),
    TEXT(job.reason),
    TEXT(job.request),
    TEXT(job.result),
    TEXT(session.id),
    TEXT(session.team),
    TEXT(session.agent),
    TEXT(session.user),
    TEXT(session.conversation),
    TEXT(key.id),
    TEXT(key.team),
    TEXT(key.name),
    TEXT(key.salt),
    TEXT(key.hash),
    TEXT(tool.id),
    TEXT(tool.team),
    TEXT(tool.name),
    TEXT(tool.body),
    TEXT(tool.with),
};
static struct store_text *text_at(struct store_record *r, size_t i)
{
    return (struct store_text *)(void *)((char *)r + texts[i]);
}

static void rows_clear(void)
{
    for (size_t i = 0; i < rows.n; i++) {
        for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
            free((void *)(uintptr_t)text_at(&rows.at[i], k)->data);
        }
    }
    free(rows.at);
    rows = (struct rows){0};
}

static void copy(struct store_text *t)
{
    if (t->data) {
        char *own = malloc(t->len + 1);
        assert_non_null(own);
        memcpy(own, t->data, t->len);
        own[t->len] = 0;
        t->data = own;
    }
}

static void on_row(void *ctx, const struct store_record *r)
{
    (void)ctx;
    rows.at = reallocarray(rows.at, rows.n + 1, sizeof *rows.at);
    assert_non_null(rows.at);
    struct store_record *to = &rows.at[rows.n++];
    *to = *r;
    for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
        copy(text_at(to, k));
    }
}

static void on_end(void *ctx, int error)
{
    (void)ctx;
    rows.end = error;
}

const struct rows *harness_read(struct harness *h, const struct store_query *q)
{
    rows_clear();
    rows.end = 1000;
    store_read(h->store, q, &(struct store_reader){on_row, on_end, NULL});
    while (rows.end == 1000) {
        assert_int_equal(loop_step(h->loop, 1000), 0);
    }
    return &rows;
}

const struct store_record *harness_one(struct harness *h, enum store_read_kind kind, const char *id,
                                       const char *team)
{
    const struct rows *r =
        harness_read(h, &(struct store_query){.kind = kind, .id = text(id), .team = text(team)});
    assert_int_equal(r->end, r->n == 1 ? 0 : STORE_MISSING);
    return r->n == 1 ? &r->at[0] : NULL;
}

struct answer {
    bool there;
    struct store_outcome outcome;
};

static void on_outcome(void *ctx, const struct store_outcome *o)
{
    *(struct answer *)ctx = (struct answer){true, *o};
}

struct store_outcome harness_write(struct harness *h, const struct store_write *w)
{
    struct answer a = {0};
    int err = store_write(h->store, w, on_outcome, &a);
    if (err != 0) {
        return (struct store_outcome){.error = err};
    }
    assert_false(a.there); // never before it returns
    while (!a.there) {
        assert_int_equal(loop_step(h->loop, 10000), 0);
    }
    return a.outcome;
}

struct store_outcome harness_submit(struct harness *h, const char *id, const char *team,
                                    const char *request)
{
    struct store_write w = {.kind = STORE_JOB_SUBMIT};
    w.job.id = text(id);
    w.job.team = text(team);
    w.job.request = text(request);
    w.job.submitted_ms = h->now_ms;
    return harness_write(h, &w);
}

int harness_status(struct harness *h, const char *id, enum job_status status)
{
    struct store_write w = {.kind = STORE_JOB_STATUS};
    struct store_stats st;
    store_stats(h->store, &st);
    w.job.id = text(id);
    w.job.status = status;
    w.job.epoch = st.epoch;
    w.job.started_ms = status == STATUS_PREPARING ? h->now_ms : 0;
    return harness_write(h, &w).error;
}

int harness_finish(struct harness *h, const char *id, enum job_status status, const char *result)
{
    struct store_write w = {.kind = STORE_JOB_END};
    w.job.id = text(id);
    w.job.status = status;
    w.job.reason = text(status == STATUS_COMPLETED ? "ok" : "error");
    w.job.ended_ms = h->now_ms;
    w.job.result = text(result);
    return harness_write(h, &w).error;
}

static void open_store(struct harness *h)
{
    assert_int_equal(h->open(h->loop, h->place, h->now_ms, &h->store), 0);
}

void harness_start(struct harness *h, harness_open how)
{
    *h = (struct harness){.open = how, .now_ms = INT64_C(1700000000000)};
    snprintf(h->place, sizeof h->place, "/tmp/isle-store-XXXXXX");
    assert_non_null(mkdtemp(h->place));
    assert_int_equal(loop_new(&h->loop), 0);
    open_store(h);
}

void harness_reopen(struct harness *h)
{
    store_close(h->store);
    open_store(h);
}

void harness_remove(const char *folder)
{
    AUTO_CLOSE int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    tree_empty(dir);
    rmdir(folder);
}

void harness_end(struct harness *h)
{
    rows_clear();
    store_close(h->store);
    loop_free(h->loop);
    harness_remove(h->place);
}
