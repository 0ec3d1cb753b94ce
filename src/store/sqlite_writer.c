#include "store/sqlite_internal.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

enum {
    GROUP_MAX = 512,        // writes in one transaction
    GROUP_BYTES = 32 << 20, // of their texts: bounds the log
    LAZY_MAX = 256,         // lazy writes that wait no longer for company
};
// While the place fails, between two looks at it.
#define RETRY_NS (2 * NS_PER_S)

// --- one write

// Not the place has failed but this write: the others of its group go on.
static bool of_write_only(sqlite3 *db)
{
    int code = sqlite3_errcode(db) & 0xff;
    return code == SQLITE_CONSTRAINT || code == SQLITE_TOOBIG;
}

static void found(sqlite3_stmt *st, struct store_outcome *o)
{
    const void *id = sqlite3_column_blob(st, 0);
    size_t len = (size_t)sqlite3_column_bytes(st, 0);
    o->error = sqlite3_column_int(st, 1);
    o->id_len = len < sizeof o->id ? len : sizeof o->id;
    if (id) {
        memcpy(o->id, id, o->id_len);
    }
}

// 1: the write is over, its outcome is filled; 0: on to the next step; -errno.
static int run_step(struct sqlite_writer *w, size_t i, const struct store_write *one,
                    struct store_outcome *o)
{
    const struct sql_step *step = &sql_steps[i];
    sqlite3_stmt *st = w->steps[i];
    if (step->only_with.type == PLACE_TEXT) {
        const void *text = (const char *)one + step->only_with.offset;
        if (!((const struct store_text *)text)->data) {
            return 0;
        }
    }
    int over = sqlite_bind(st, step->params, one);
    if (over == 0) {
        int got = sqlite3_step(st);
        if (got == SQLITE_ROW) {
            found(st, o);
            over = 1;
        } else if (got != SQLITE_DONE) {
            over = sqlite_errno(w->db);
        } else if (step->role == SQL_NEED && sqlite3_changes(w->db) == 0) {
            o->error = STORE_MISSING;
            over = 1;
        }
    }
    bool own = over < 0 && of_write_only(w->db);
    sqlite3_reset(st);
    sqlite3_clear_bindings(st); // of texts that are freed soon
    if (own) {
        o->error = over;
        return 1;
    }
    return over;
}

// 0 or 1 as above, or -errno.
static int run_steps(struct sqlite_writer *w, const struct store_write *one,
                     struct store_outcome *o)
{
    int over = 0;
    for (size_t i = 0; over == 0 && i < sql_n_steps; i++) {
        over = sql_steps[i].kind == one->kind ? run_step(w, i, one, o) : 0;
    }
    return over;
}

// Up to the first that cannot be.
static int run_import(struct sqlite_writer *w, const struct store_write *all,
                      struct store_outcome *o)
{
    int err = 0;
    for (size_t i = 0; err >= 0 && o->error == 0 && i < all->import.n; i++) {
        o->at = i;
        err = run_steps(w, &all->import.writes[i], o);
    }
    return err;
}

static int exec(struct sqlite_writer *w, const char *sql)
{
    return sqlite3_exec(w->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_errno(w->db);
}

// Inside a transaction. 0 (with an outcome) or -errno: the transaction is worth nothing.
static int run_write(struct sqlite_writer *w, struct sqlite_write *op)
{
    op->outcome = (struct store_outcome){0};
    int err = exec(w, "SAVEPOINT one");
    if (err == 0 && op->w.kind == STORE_TOOL_IMPORT) {
        err = run_import(w, &op->w, &op->outcome);
    } else if (err == 0) {
        err = run_steps(w, &op->w, &op->outcome);
    }
    if (err >= 0 && op->outcome.error != 0) { // of an answer, too: an import has done part of it
        err = exec(w, "ROLLBACK TO one");
    }
    return err < 0 ? err : exec(w, "RELEASE one");
}

// --- groups

// The file was removed or replaced under us: what is written to it now, no later start would find.
static int check_place(struct sqlite_writer *w)
{
    int moved = 0;
    int code = sqlite3_file_control(w->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return code == SQLITE_OK && moved ? -ESTALE : 0;
}

// All of `first` to `last` in one transaction. 0 or -errno: nothing of it is there.
static int run_group(struct sqlite_writer *w, struct sqlite_write *first,
                     const struct sqlite_write *last)
{
    int err = check_place(w);
    err = err == 0 ? exec(w, "BEGIN IMMEDIATE") : err;
    for (struct sqlite_write *op = first; err == 0; op = op->next) {
        err = run_write(w, op);
        if (op == last) {
            break;
        }
    }
    err = err == 0 ? exec(w, "COMMIT") : err;
    if (err != 0 && !sqlite3_get_autocommit(w->db)) {
        exec(w, "ROLLBACK");
    }
    return err;
}

static int fail_all(struct sqlite_write *first, int err)
{
    for (struct sqlite_write *op = first; op; op = op->next) {
        op->outcome = (struct store_outcome){.error = err};
    }
    return err;
}

// Gives each of the list its outcome. Returns what the place has to be told as, 0 or -errno.
static int run_list(struct sqlite_writer *w, struct sqlite_list *l)
{
    int err = run_group(w, l->first, l->last);
    if (err == 0) {
        return 0;
    }
    if (err != -ENOSPC || l->first == l->last) {
        return fail_all(l->first, err);
    }
    // Where there is little room left, the small ones shall not fail with the big ones.
    for (struct sqlite_write *op = l->first; op; op = op->next) {
        int own = run_group(w, op, op);
        if (own != 0) {
            op->outcome = (struct store_outcome){.error = own};
        }
    }
    return err;
}

// --- the thread

static void list_add(struct sqlite_list *l, struct sqlite_write *op)
{
    op->next = NULL;
    *(l->last ? &l->last->next : &l->first) = op;
    l->last = op;
}

static struct timespec in_ns(uint64_t ns)
{
    uint64_t due_ns = clock_now_ns() + ns;
    return (struct timespec){(time_t)(due_ns / NS_PER_S), (long)(due_ns % NS_PER_S)};
}

// Whether a row can be written; it is none afterwards. (An unchanged value would not be written.)
static int try_place(struct sqlite_writer *w)
{
    int err = check_place(w);
    if (err != 0) {
        return err;
    }
    err = exec(w, "BEGIN IMMEDIATE; INSERT INTO requests VALUES (-1, zeroblob(4096));"
                  "DELETE FROM requests WHERE seq = -1; COMMIT");
    if (err != 0 && !sqlite3_get_autocommit(w->db)) {
        exec(w, "ROLLBACK");
    }
    return err;
}

// With the lock: waits for something to write that is worth a transaction. False: the end.
static bool wait_for_work(struct sqlite_writer *w)
{
    while (!w->todo.first && !w->stop) {
        struct timespec due = in_ns(RETRY_NS);
        if (w->error == 0) {
            pthread_cond_wait(&w->wake, &w->lock);
        } else if (pthread_cond_timedwait(&w->wake, &w->lock, &due) == ETIMEDOUT) {
            // who is told that nothing can be written does not write: nobody else would find out
            pthread_mutex_unlock(&w->lock);
            int err = try_place(w);
            pthread_mutex_lock(&w->lock);
            w->error = err;
        }
    }
    struct timespec due = in_ns(w->lazy_ms * NS_PER_MS);
    while (!w->stop && w->todo_lazy == w->todo_count && w->todo_count < LAZY_MAX) {
        if (pthread_cond_timedwait(&w->wake, &w->lock, &due) == ETIMEDOUT) {
            break;
        }
    }
    return w->todo.first != NULL;
}

// With the lock: takes a group from the front.
static struct sqlite_list take_group(struct sqlite_writer *w, size_t *ret_count)
{
    struct sqlite_list group = {0};
    size_t count = 0, bytes = 0;
    while (w->todo.first && count < GROUP_MAX && (count == 0 || bytes < GROUP_BYTES)) {
        struct sqlite_write *op = w->todo.first;
        w->todo.first = op->next;
        w->todo_count--;
        w->todo_lazy -= op->w.lazy;
        bytes += op->bytes;
        count++;
        list_add(&group, op);
    }
    if (!w->todo.first) {
        w->todo.last = NULL;
    }
    *ret_count = count;
    return group;
}

static void *writer_main(void *arg)
{
    struct sqlite_writer *w = arg;
    pthread_mutex_lock(&w->lock);
    while (wait_for_work(w)) {
        size_t count;
        struct sqlite_list group = take_group(w, &count);
        pthread_mutex_unlock(&w->lock);
        int err = run_list(w, &group);
        pthread_mutex_lock(&w->lock);
        *(w->done.last ? &w->done.last->next : &w->done.first) = group.first;
        w->done.last = group.last;
        w->error = err;
        w->commits += err == 0;
        w->writes += err == 0 ? count : 0;
        uint64_t one = 1;
        // A full counter would wake the loop just the same.
        ssize_t n = write(w->event_fd, &one, sizeof one);
        (void)n;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

// --- from the loop's thread

static int prepare(struct sqlite_writer *w)
{
    for (size_t i = 0; i < sql_n_steps; i++) {
        if (sqlite3_prepare_v3(w->db, sql_steps[i].sql, -1, SQLITE_PREPARE_PERSISTENT, &w->steps[i],
                               NULL) != SQLITE_OK) {
            return sqlite_errno(w->db);
        }
    }
    return 0;
}

// Signals are the loop's.
static int start_thread(struct sqlite_writer *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&w->thread, NULL, writer_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -err;
}

int sqlite_writer_start(struct sqlite_writer *w, sqlite3 *db, uint32_t lazy_ms)
{
    *w = (struct sqlite_writer){.made = true, .db = db, .lazy_ms = lazy_ms, .event_fd = -1};
    pthread_condattr_t monotonic;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int err = w->event_fd < 0 ? -errno : prepare(w);
    err = err == 0 ? start_thread(w) : err;
    w->started = err == 0;
    return err;
}

void sqlite_writer_add(struct sqlite_writer *w, struct sqlite_write *op)
{
    pthread_mutex_lock(&w->lock);
    list_add(&w->todo, op);
    w->todo_count++;
    w->todo_lazy += op->w.lazy;
    // A lazy one among lazy ones wakes nobody: the first of them did.
    if (!op->w.lazy || w->todo_count == 1 || w->todo_count >= LAZY_MAX) {
        pthread_cond_signal(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
}

struct sqlite_write *sqlite_writer_collect(struct sqlite_writer *w)
{
    uint64_t count;
    ssize_t n = read(w->event_fd, &count, sizeof count); // EAGAIN: nothing new
    (void)n;
    pthread_mutex_lock(&w->lock);
    struct sqlite_write *first = w->done.first;
    w->done = (struct sqlite_list){0};
    pthread_mutex_unlock(&w->lock);
    return first;
}

void sqlite_writer_stop(struct sqlite_writer *w)
{
    if (!w->started) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    w->started = false;
}

void sqlite_writer_free(struct sqlite_writer *w)
{
    if (!w->made) {
        return;
    }
    for (size_t i = 0; i < sql_n_steps; i++) {
        sqlite3_finalize(w->steps[i]);
    }
    sqlite3_close(w->db);
    w->event_fd = fd_close(w->event_fd);
    w->made = false;
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
}
