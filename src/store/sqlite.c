#include "store/sqlite_internal.h"

#include "base/fd.h"
#include "store/record.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { SHORT_BYTES = 64 << 10 };

struct sqlite_store {
    struct store base; // first
    struct loop *loop;
    struct loop_watch watch;
    struct sqlite_writer writer;
    struct sqlite_reader reader;
    struct sqlite_large large;
    int lock_fd;
    bool closing;
    size_t waiting, waiting_bytes, max_bytes;
    int64_t epoch;
    uint64_t lost, queued;
};

int sqlite_errno(sqlite3 *db)
{
    int code = sqlite3_extended_errcode(db);
    int system = sqlite3_system_errno(db);
    if (code == SQLITE_CONSTRAINT_NOTNULL) {
        return -EINVAL;
    }
    switch (code & 0xff) {
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_IOERR: // some calls tell a full disk this way
        return system == ENOSPC || system == EDQUOT ? -ENOSPC : -EIO;
    case SQLITE_CANTOPEN:
        return system > 0 ? -system : -EIO;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EBADMSG;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_TOOBIG:
        return -EMSGSIZE;
    case SQLITE_READONLY:
        return -EROFS;
    case SQLITE_CONSTRAINT:
        return -EEXIST;
    default:
        return -EIO;
    }
}

int sqlite_bind(sqlite3_stmt *st, const struct sql_place *params, const void *from)
{
    for (int i = 0; i < SQL_PARAMS_MAX && params[i].type != PLACE_END; i++) {
        const void *at = (const char *)from + params[i].offset;
        int code;
        if (params[i].type == PLACE_INT) {
            code = sqlite3_bind_int64(st, i + 1, *(const int64_t *)at);
        } else {
            const struct store_text *t = at;
            code = sqlite3_bind_blob64(st, i + 1, t->data, t->len, SQLITE_STATIC);
        }
        if (code != SQLITE_OK) {
            return sqlite_errno(sqlite3_db_handle(st));
        }
    }
    return 0;
}

// --- opening

// temp_store: no files elsewhere; mmap_size: a failing disk is an error, not a SIGBUS;
// secure_delete: what was removed does not linger in free pages.
static const char pragmas[] = "PRAGMA journal_mode = WAL;"
                              "PRAGMA synchronous = FULL;"
                              "PRAGMA temp_store = MEMORY;"
                              "PRAGMA mmap_size = 0;"
                              "PRAGMA secure_delete = FAST;"
                              "PRAGMA trusted_schema = OFF;"
                              "PRAGMA cell_size_check = ON;"
                              "PRAGMA cache_size = -16384;"
                              "PRAGMA journal_size_limit = 67108864;";

static int say(struct store_error *ret, int err, const char *what, const char *detail)
{
    snprintf(ret->text, sizeof ret->text, "%s: %s", what, detail);
    return err;
}

static int say_db(struct store_error *ret, sqlite3 *db, const char *what)
{
    return say(ret, sqlite_errno(db), what, sqlite3_errmsg(db));
}

// Made here for its mode, which SQLite gives to its other files too. Only before the first
// connection: to close a descriptor of a file drops all fcntl(2) locks that the process has on it,
// SQLite's own among them, and another process could take the log away.
static int make_file(const char *dir, struct store_error *ret_error)
{
    AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/isle.db", dir) < 0) {
        path = NULL;
        return say(ret_error, -ENOMEM, "store", "no memory");
    }
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        int err = -errno;
        return say(ret_error, err, path, strerror(-err));
    }
    return 0;
}

static int connect_db(const char *dir, sqlite3 **ret, struct store_error *ret_error)
{
    AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/isle.db", dir) < 0) {
        path = NULL;
        return say(ret_error, -ENOMEM, "store", "no memory");
    }
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
    if (sqlite3_open_v2(path, &db, flags, NULL) != SQLITE_OK) {
        int err = db ? say_db(ret_error, db, path) : say(ret_error, -ENOMEM, path, "no memory");
        sqlite3_close(db);
        return err;
    }
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, 5000); // somebody may look at the file with sqlite3(1)
    if (sqlite3_exec(db, pragmas, NULL, NULL, NULL) != SQLITE_OK) {
        int err = say_db(ret_error, db, path);
        sqlite3_close(db);
        return err;
    }
    *ret = db;
    return 0;
}

static int check_integrity(sqlite3 *db, struct store_error *ret_error)
{
    sqlite3_stmt *st = NULL;
    int err = 0;
    if (sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &st, NULL) != SQLITE_OK ||
        sqlite3_step(st) != SQLITE_ROW) {
        err = say_db(ret_error, db, "the store cannot be checked");
    } else {
        const char *text = (const char *)sqlite3_column_text(st, 0);
        if (!text || strcmp(text, "ok") != 0) {
            err = say(ret_error, -EBADMSG, "the store is damaged", text ? text : "no answer");
        }
    }
    sqlite3_finalize(st);
    return err;
}

// One value of a statement without parameters but perhaps ?1, a time.
static int number(sqlite3 *db, const char *sql, int64_t at, int64_t *ret)
{
    sqlite3_stmt *st = NULL;
    int err = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK) {
        return sqlite_errno(db);
    }
    if (sqlite3_bind_parameter_count(st) > 0) {
        sqlite3_bind_int64(st, 1, at);
    }
    int got = sqlite3_step(st);
    if (got == SQLITE_ROW) {
        *ret = sqlite3_column_int64(st, 0);
    } else if (got == SQLITE_DONE) {
        *ret = sqlite3_changes(db);
    } else {
        err = sqlite_errno(db);
    }
    if (sqlite3_finalize(st) != SQLITE_OK && err == 0) {
        err = sqlite_errno(db);
    }
    return err;
}

// A new epoch: what an older one had begun is lost. In one transaction, so that it is told once.
static int begin_epoch(struct sqlite_store *s, sqlite3 *db, int64_t now_ms)
{
    int64_t epoch = 0, lost = 0, queued = 0, none;
    int err = number(db, "BEGIN IMMEDIATE", 0, &none);
    if (err != 0) {
        return err;
    }
    const struct {
        const char *sql;
        int64_t *ret;
    } steps[] = {
        {"UPDATE meta SET epoch = epoch + 1", &none},
        {"SELECT epoch FROM meta", &epoch},
        // the clock may have been set back since it began
        {"UPDATE jobs SET status = 5, reason = CAST('worker_lost' AS BLOB),"
         " ended_ms = max(?1, started_ms, submitted_ms) WHERE status > 0 AND status < 4",
         &lost},
        {"SELECT count(*) FROM jobs WHERE status = 0 AND status < 4", &queued},
        {"COMMIT", &none},
    };
    static_assert(STATUS_FAILED == 5, "the statement above");
    for (size_t i = 0; err == 0 && i < ARRAY_LEN(steps); i++) {
        err = number(db, steps[i].sql, now_ms, steps[i].ret);
    }
    if (err != 0) {
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        return err;
    }
    s->epoch = epoch;
    s->lost = (uint64_t)lost;
    s->queued = (uint64_t)queued;
    return 0;
}

static int take_lock(struct sqlite_store *s, const char *dir, struct store_error *ret_error)
{
    AUTO_CLOSE int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0) {
        int err = -errno;
        return say(ret_error, err, dir, strerror(-err));
    }
    s->lock_fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock_fd < 0 || flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        int err = errno == EWOULDBLOCK ? -EBUSY : -errno;
        return say(ret_error, err, dir,
                   err == -EBUSY ? "in use by another process" : strerror(-err));
    }
    return 0;
}

// The database's file must be found after a loss of power, too.
static int sync_dir(const char *dir)
{
    AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && fsync(fd) == 0 ? 0 : -errno;
}

static int prepare_db(struct sqlite_store *s, sqlite3 *db, const struct store_sqlite *c,
                      struct store_error *ret_error)
{
    int err = check_integrity(db, ret_error);
    if (err != 0) {
        return err;
    }
    err = sqlite_migrate(db, sqlite_migrations, sqlite_n_migrations);
    if (err == -EPROTONOSUPPORT) {
        return say(ret_error, err, c->dir, "written by a newer version of isle");
    }
    err = err == 0 ? begin_epoch(s, db, c->now_ms) : err;
    err = err == 0 ? sync_dir(c->dir) : err;
    return err == 0 ? 0 : say(ret_error, err, c->dir, strerror(-err));
}

static int open_parts(struct sqlite_store *s, const struct store_sqlite *c,
                      struct store_error *ret_error)
{
    sqlite3 *db = NULL, *read_db = NULL, *large_db = NULL;
    int err = take_lock(s, c->dir, ret_error);
    err = err == 0 ? make_file(c->dir, ret_error) : err;
    err = err == 0 ? connect_db(c->dir, &db, ret_error) : err;
    if (err != 0) {
        return err;
    }
    err = prepare_db(s, db, c, ret_error);
    err = err == 0 ? connect_db(c->dir, &read_db, ret_error) : err;
    err = err == 0 ? connect_db(c->dir, &large_db, ret_error) : err;
    if (err != 0) {
        sqlite3_close(read_db);
        sqlite3_close(db);
        return err;
    }
    err = sqlite_reader_open(&s->reader, read_db);
    if (err != 0) {
        sqlite3_close(large_db);
        sqlite3_close(db);
        return say(ret_error, err, c->dir, strerror(-err));
    }
    err = sqlite_writer_start(&s->writer, db, c->lazy_ms ? c->lazy_ms : 200);
    int large = sqlite_large_open(&s->large, large_db, s->writer.event_fd);
    err = err == 0 ? large : err;
    err = err == 0 ? loop_add(s->loop, &s->watch, s->writer.event_fd, EPOLLIN) : err;
    return err == 0 ? 0 : say(ret_error, err, c->dir, strerror(-err));
}

// --- the interface

// Each `done` may hand in new writes, and they come in a later round.
static void answer(struct sqlite_store *s)
{
    for (struct sqlite_write *op = sqlite_writer_collect(&s->writer), *next; op; op = next) {
        next = op->next;
        s->waiting--;
        s->waiting_bytes -= op->bytes;
        if (op->done) {
            op->done(op->ctx, &op->outcome);
        }
        free(op);
    }
}

static void on_done(struct loop_watch *w, uint32_t events)
{
    (void)events;
    struct sqlite_store *s = w->ctx;
    answer(s);
    sqlite_large_answer(&s->large, &s->reader.in_row);
}

static int sqlite_store_write(struct store *st, const struct store_write *w, store_done done,
                              void *ctx)
{
    struct sqlite_store *s = (struct sqlite_store *)st;
    int err = s->closing ? -ESHUTDOWN : store_write_check(w);
    if (err != 0) {
        return err;
    }
    size_t bytes = store_write_size(w);
    size_t all = bytes + sizeof(struct sqlite_write);
    // The last of it is for short ones: how jobs and sessions end, whatever large ones wait.
    size_t max = all > SHORT_BYTES ? s->max_bytes - s->max_bytes / 8 : s->max_bytes;
    if (s->waiting_bytes + all > max) {
        return -EAGAIN;
    }
    struct sqlite_write *op = malloc(w->lent ? sizeof *op : all);
    if (!op) {
        return -ENOMEM;
    }
    *op = (struct sqlite_write){.done = done, .ctx = ctx, .bytes = all};
    if (w->lent) {
        op->w = *w;
    } else {
        store_write_copy(w, &op->w, op->texts);
    }
    s->waiting++;
    s->waiting_bytes += all;
    sqlite_writer_add(&s->writer, op);
    return 0;
}

static void sqlite_store_read(struct store *st, const struct store_query *q,
                              const struct store_reader *r)
{
    struct sqlite_store *s = (struct sqlite_store *)st;
    if (s->closing || !sqlite_reader_is_long(&s->reader, q) || sqlite_large_add(&s->large, q, r)) {
        sqlite_reader_run(&s->reader, q, r);
    }
}

// The database and its log. Looked at by name: a descriptor of theirs must not be closed.
static uint64_t disk_bytes_of(sqlite3 *db)
{
    const char *name = sqlite3_db_filename(db, "main");
    const char *const files[] = {name, sqlite3_filename_wal(name)};
    uint64_t bytes = 0;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct stat st;
        bytes += stat(files[i], &st) ? 0 : (uint64_t)st.st_blocks * 512;
    }
    return bytes;
}

static void sqlite_store_stats(struct store *st, struct store_stats *ret)
{
    struct sqlite_store *s = (struct sqlite_store *)st;
    const uint64_t disk_bytes = disk_bytes_of(s->reader.db);
    pthread_mutex_lock(&s->writer.lock);
    *ret = (struct store_stats){.error = s->writer.error,
                                .disk_bytes = disk_bytes,
                                .commits = s->writer.commits,
                                .writes = s->writer.writes,
                                .waiting = s->waiting,
                                .waiting_bytes = s->waiting_bytes,
                                .epoch = s->epoch,
                                .lost = s->lost,
                                .queued = s->queued};
    pthread_mutex_unlock(&s->writer.lock);
}

static void sqlite_store_close(struct store *st)
{
    struct sqlite_store *s = (struct sqlite_store *)st;
    s->closing = true;
    loop_remove(s->loop, &s->watch);
    sqlite_writer_stop(&s->writer);
    if (s->writer.made) {
        answer(s);
    }
    sqlite_large_close(&s->large);
    sqlite_reader_close(&s->reader); // first: the last one to close puts the log away
    sqlite_writer_free(&s->writer);
    fd_close(s->lock_fd);
    free(s);
}

static const struct store_ops sqlite_ops = {
    .write = sqlite_store_write,
    .read = sqlite_store_read,
    .stats = sqlite_store_stats,
    .close = sqlite_store_close,
};

int store_sqlite_open(struct loop *l, const struct store_sqlite *config, struct store **ret,
                      struct store_error *ret_error)
{
    struct sqlite_store *s = calloc(1, sizeof *s);
    if (!s) {
        return say(ret_error, -ENOMEM, "store", "no memory");
    }
    s->base.ops = &sqlite_ops;
    s->loop = l;
    s->watch = LOOP_WATCH_INIT(on_done, s);
    s->lock_fd = -1;
    s->max_bytes = config->waiting_bytes ? config->waiting_bytes : (size_t)128 << 20;
    int err = open_parts(s, config, ret_error);
    if (err != 0) {
        sqlite_store_close(&s->base);
        return err;
    }
    *ret = &s->base;
    return 0;
}
