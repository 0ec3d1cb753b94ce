// sqlite_large.c: one record that takes its time: a job with a long request or result. It is read
// on a thread with a connection of its own, so that the loop is not held meanwhile.
#include "store/sqlite_internal.h"

#include "base/shared.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sqlite_large_read {
    struct sqlite_large_read *next;
    struct read_params params;
    struct store_reader to;
    struct store_record record;
    bool found;
    int error;
    char texts[2 * STORE_NAME_MAX]; // id and team of the query
    char kept[3 * STORE_ID_MAX + STORE_NAME_MAX];
};

static struct store_text put(char **at, struct store_text t)
{
    if (t.data) {
        memcpy(*at, t.data, t.len);
        t.data = *at;
        *at += t.len;
    }
    return t;
}

// ---- On the thread

// What SQLite holds becomes the record's own. 0 or -ENOMEM.
static int keep_record(struct sqlite_large_read *op)
{
    struct store_job *j = &op->record.job;
    char *at = op->kept;
    struct store_text *small[] = {&j->id, &j->team, &j->session, &j->reason};
    struct store_text *large[] = {&j->request, &j->result};
    int err = 0;
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        *small[i] = put(&at, *small[i]);
    }
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        if (large[i]->data) {
            large[i]->data = shared_of(large[i]->data, large[i]->len);
            err = large[i]->data ? err : -ENOMEM;
        }
    }
    op->record.shared = true;
    return err;
}

static void read_one(struct sqlite_large *l, struct sqlite_large_read *op)
{
    const struct sql_read *read = &sql_reads[STORE_GET_JOB];
    op->error = sqlite_bind(l->get, read->params, &op->params);
    int got = op->error ? SQLITE_DONE : sqlite3_step(l->get);
    if (got == SQLITE_ROW) {
        op->error = sqlite_fill(l->get, read->columns, &op->record);
        op->found = op->error == 0;
        op->error = op->found ? keep_record(op) : op->error;
    } else if (op->error == 0) {
        op->error = got == SQLITE_DONE ? STORE_MISSING : sqlite_errno(l->db);
    }
    sqlite3_reset(l->get);
    sqlite3_clear_bindings(l->get);
}

static void *large_main(void *arg)
{
    struct sqlite_large *l = arg;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        struct sqlite_large_read *op = l->todo;
        if (!op) {
            pthread_cond_wait(&l->wake, &l->lock);
            continue;
        }
        l->todo = op->next;
        pthread_mutex_unlock(&l->lock);
        read_one(l, op);
        pthread_mutex_lock(&l->lock);
        op->next = NULL;
        struct sqlite_large_read **end = &l->over;
        while (*end) {
            end = &(*end)->next;
        }
        *end = op;
        uint64_t one = 1;
        ssize_t n = write(l->event_fd, &one, sizeof one); // a full counter wakes the loop as well
        (void)n;
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

// ---- On the loop's

int sqlite_large_open(struct sqlite_large *l, sqlite3 *db, int event_fd)
{
    *l = (struct sqlite_large){.db = db, .event_fd = event_fd, .made = true};
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->wake, NULL);
    return sqlite3_prepare_v3(db, sql_reads[STORE_GET_JOB].sql, -1, SQLITE_PREPARE_PERSISTENT,
                              &l->get, NULL) == SQLITE_OK
               ? 0
               : sqlite_errno(db);
}

// With the first one. Signals are the loop's.
static int start(struct sqlite_large *l)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = l->started ? 0 : pthread_create(&l->thread, NULL, large_main, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    l->started = err == 0;
    return -err;
}

int sqlite_large_add(struct sqlite_large *l, const struct store_query *q,
                     const struct store_reader *to)
{
    struct sqlite_large_read *op = calloc(1, sizeof *op);
    if (!op || q->id.len > STORE_NAME_MAX || q->team.len > STORE_NAME_MAX) {
        free(op);
        return -ENOMEM;
    }
    char *at = op->texts;
    op->to = *to;
    op->params.q.kind = STORE_GET_JOB;
    op->params.q.id = put(&at, q->id);
    op->params.q.team = put(&at, q->team);
    int err = start(l);
    if (err) {
        free(op);
        return err;
    }
    pthread_mutex_lock(&l->lock);
    struct sqlite_large_read **end = &l->todo;
    while (*end) {
        end = &(*end)->next;
    }
    *end = op;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    return 0;
}

static void tell(struct sqlite_large_read *op, bool *in_row)
{
    if (op->error == 0) {
        *in_row = true;
        op->to.row(op->to.ctx, &op->record);
        *in_row = false;
    }
    op->to.end(op->to.ctx, op->error);
    if (op->found) {
        shared_release(op->record.job.request.data);
        shared_release(op->record.job.result.data);
    }
    free(op);
}

void sqlite_large_answer(struct sqlite_large *l, bool *in_row)
{
    pthread_mutex_lock(&l->lock);
    struct sqlite_large_read *op = l->over;
    l->over = NULL;
    pthread_mutex_unlock(&l->lock);
    for (struct sqlite_large_read *next; op; op = next) {
        next = op->next;
        tell(op, in_row);
    }
}

void sqlite_large_close(struct sqlite_large *l)
{
    bool in_row;
    if (!l->made) {
        return;
    }
    if (l->started) {
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        pthread_cond_signal(&l->wake);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
    }
    sqlite_large_answer(l, &in_row);
    for (struct sqlite_large_read *op = l->todo, *next; op; op = next) {
        next = op->next;
        op->error = -ESHUTDOWN;
        tell(op, &in_row);
    }
    sqlite3_finalize(l->get);
    sqlite3_close(l->db);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->lock);
    *l = (struct sqlite_large){0};
}
