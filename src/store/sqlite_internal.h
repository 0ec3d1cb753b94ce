// sqlite_internal.h: what the files of the SQLite store share.
#ifndef ISLE_STORE_SQLITE_INTERNAL_H
#define ISLE_STORE_SQLITE_INTERNAL_H

#include "store/sqlite.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>

enum { SQL_PARAMS_MAX = 14, SQL_COLUMNS_MAX = 12, SQL_STEPS_MAX = 64 };

// A value's place in the struct that a statement reads or fills.
struct sql_place {
    enum { PLACE_END, PLACE_INT, PLACE_TEXT } type;
    size_t offset;
};

// What the outcome of a statement means to its write.
enum sql_role {
    SQL_CHANGE, // whatever it changes
    SQL_NEED,   // nothing changed: MISSING, and the write is over
    SQL_FIND,   // a row (id or NULL, an answer of store.h): that one, and the write is over
};

// A write is the rows of this table of its kind, in order.
struct sql_step {
    enum store_write_kind kind;
    enum sql_role role;
    const char *name;
    const char *sql;
    struct sql_place params[SQL_PARAMS_MAX]; // in struct store_write; ?1 is the first
    struct sql_place only_with;              // a text: without it the step is left out
};
extern const struct sql_step sql_steps[];
extern const size_t sql_n_steps;

struct sql_read {
    const char *name;
    const char *sql;
    struct sql_place params[SQL_PARAMS_MAX];   // in struct read_params
    struct sql_place columns[SQL_COLUMNS_MAX]; // in struct store_record
    // Where the cursor's record stands: id in, two numbers out (a time, an order); NULL: none.
    const char *cursor_sql;
    bool descending;
    bool one; // no row: MISSING
};
// The kinds of reads, and two more.
enum { SQL_LIST_JOBS_OF_STATUS = STORE_READ_KINDS, SQL_FIND_ANY_KEY, SQL_READS };
extern const struct sql_read sql_reads[SQL_READS];

struct read_params {
    struct store_query q;
    int64_t at_ms, at_order; // the cursor, resolved
};

// --- sqlite.c

// What SQLite says of its last call as a negative errno.
int sqlite_errno(sqlite3 *db);
// Binds ?1, ?2, ... to the values at these places of `from`, which must live until the statement is
// reset. 0 or -errno.
int sqlite_bind(sqlite3_stmt *st, const struct sql_place *params, const void *from);

// --- sqlite_schema.c

extern const char *const sqlite_migrations[];
extern const int sqlite_n_migrations;
// Brings a database from its user_version to version n, each step in a transaction of its own.
// 0; -EPROTONOSUPPORT: it is newer than n; -errno: stays at the last version that it reached.
int sqlite_migrate(sqlite3 *db, const char *const *steps, int n);

// --- sqlite_read.c

struct sqlite_reader {
    sqlite3 *db;
    sqlite3_stmt *reads[SQL_READS], *cursors[SQL_READS], *length;
    bool in_row;
};
// db is the reader's from here on. 0 or -errno.
int sqlite_reader_open(struct sqlite_reader *r, sqlite3 *db);
void sqlite_reader_close(struct sqlite_reader *r);
// A job of so many bytes that it is better read on a thread.
bool sqlite_reader_is_long(struct sqlite_reader *r, const struct store_query *q);
void sqlite_reader_run(struct sqlite_reader *r, const struct store_query *q,
                       const struct store_reader *to);
// The record of the row at which the statement stands, as long as it stands there. 0 or -ENOMEM.
int sqlite_fill(sqlite3_stmt *st, const struct sql_place *columns, struct store_record *ret);

// --- sqlite_large.c

struct sqlite_large {
    sqlite3 *db;
    sqlite3_stmt *get;
    pthread_t thread;
    bool made, started;
    int event_fd; // the writer's: something is over

    pthread_mutex_t lock; // of all below
    pthread_cond_t wake;
    struct sqlite_large_read *todo, *over;
    bool stop;
};
// db is its own from here on. 0 or -errno; close() is due in both cases.
int sqlite_large_open(struct sqlite_large *l, sqlite3 *db, int event_fd);
// A job, by STORE_GET_JOB. 0 or -errno: then nothing will be called.
int sqlite_large_add(struct sqlite_large *l, const struct store_query *q,
                     const struct store_reader *to);
// Calls those that are over; *in_row while a row is told.
void sqlite_large_answer(struct sqlite_large *l, bool *in_row);
// Calls all. Harmless on one that is all zeroes.
void sqlite_large_close(struct sqlite_large *l);

// --- sqlite_writer.c

struct sqlite_write {
    struct sqlite_write *next;
    struct store_write w;
    struct store_outcome outcome;
    store_done done;
    void *ctx;
    size_t bytes;
    char texts[];
};

struct sqlite_list {
    struct sqlite_write *first, *last;
};

struct sqlite_writer {
    sqlite3 *db;
    sqlite3_stmt *steps[SQL_STEPS_MAX];
    pthread_t thread;
    bool made, started;
    int event_fd; // says to the loop that something is done
    uint32_t lazy_ms;

    pthread_mutex_t lock; // of all below
    pthread_cond_t wake;
    struct sqlite_list todo, done;
    size_t todo_lazy, todo_count;
    bool stop;
    int error;
    uint64_t commits, writes;
};

// db is the writer's from here on. 0 or -errno; free() is due in both cases.
int sqlite_writer_start(struct sqlite_writer *w, sqlite3 *db, uint32_t lazy_ms);
void sqlite_writer_add(struct sqlite_writer *w, struct sqlite_write *op);
// What is done and not collected yet, in order.
struct sqlite_write *sqlite_writer_collect(struct sqlite_writer *w);
// Returns when everything is written and the thread has ended; what is done can still be collected.
void sqlite_writer_stop(struct sqlite_writer *w);
// Closes db. Both are harmless on one that is all zeroes.
void sqlite_writer_free(struct sqlite_writer *w);

#endif
