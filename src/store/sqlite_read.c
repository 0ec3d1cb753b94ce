#include "store/sqlite_internal.h"

#include <errno.h>

enum { LONG_BYTES = 256 << 10 };

// The length of a value is read without the value.
static const char length_sql[] =
    "SELECT ifnull(length(requests.body), 0) + ifnull(length(results.body), 0) FROM jobs"
    " LEFT JOIN requests USING (seq) LEFT JOIN results USING (seq)"
    " WHERE id = ?1 AND (?2 IS NULL OR team = ?2)";

int sqlite_reader_open(struct sqlite_reader *r, sqlite3 *db)
{
    r->db = db;
    if (sqlite3_prepare_v3(db, length_sql, -1, SQLITE_PREPARE_PERSISTENT, &r->length, NULL)) {
        int err = sqlite_errno(db);
        sqlite_reader_close(r);
        return err;
    }
    for (int i = 0; i < SQL_READS; i++) {
        const struct sql_read *read = &sql_reads[i];
        if (sqlite3_prepare_v3(db, read->sql, -1, SQLITE_PREPARE_PERSISTENT, &r->reads[i], NULL) !=
                SQLITE_OK ||
            (read->cursor_sql &&
             sqlite3_prepare_v3(db, read->cursor_sql, -1, SQLITE_PREPARE_PERSISTENT, &r->cursors[i],
                                NULL) != SQLITE_OK)) {
            int err = sqlite_errno(db);
            sqlite_reader_close(r);
            return err;
        }
    }
    return 0;
}

void sqlite_reader_close(struct sqlite_reader *r)
{
    for (int i = 0; i < SQL_READS; i++) {
        sqlite3_finalize(r->reads[i]);
        sqlite3_finalize(r->cursors[i]);
    }
    sqlite3_finalize(r->length);
    sqlite3_close(r->db);
    *r = (struct sqlite_reader){0};
}

bool sqlite_reader_is_long(struct sqlite_reader *r, const struct store_query *q)
{
    bool is_long = false;
    if (q->kind == STORE_GET_JOB && !r->in_row) {
        sqlite3_bind_blob64(r->length, 1, q->id.data, q->id.len, SQLITE_STATIC);
        sqlite3_bind_blob64(r->length, 2, q->team.data, q->team.len, SQLITE_STATIC);
        is_long = sqlite3_step(r->length) == SQLITE_ROW &&
                  sqlite3_column_int64(r->length, 0) > LONG_BYTES;
        sqlite3_reset(r->length);
        sqlite3_clear_bindings(r->length);
    }
    return is_long;
}

// Where the page begins. The statement is not reset: one read transaction goes from here to the
// page's end, as a cursor's record that were removed in between would begin the list anew. 0,
// MISSING or -errno.
static int find_cursor(struct sqlite_reader *r, int which, struct read_params *p)
{
    static const struct sql_place places[] = {
        {PLACE_TEXT, offsetof(struct read_params, q.cursor)},
        {PLACE_TEXT, offsetof(struct read_params, q.team)},
        {PLACE_END, 0},
    };
    sqlite3_stmt *st = r->cursors[which];
    p->at_ms = p->at_order = sql_reads[which].descending ? INT64_MAX : 0;
    if (!st || !p->q.cursor.data) {
        return 0;
    }
    // Only as many as the statement has: those of all teams name none.
    struct sql_place used[3] = {places[0], places[1], places[2]};
    used[sqlite3_bind_parameter_count(st)].type = PLACE_END;
    int err = sqlite_bind(st, used, p);
    if (err == 0) {
        int got = sqlite3_step(st);
        err = got == SQLITE_ROW ? 0 : got == SQLITE_DONE ? STORE_MISSING : sqlite_errno(r->db);
    }
    if (err == 0) {
        p->at_ms = sqlite3_column_int64(st, 0);
        p->at_order = sqlite3_column_int64(st, 1);
    }
    return err;
}

int sqlite_fill(sqlite3_stmt *st, const struct sql_place *columns, struct store_record *ret)
{
    *ret = (struct store_record){0};
    for (int i = 0; i < SQL_COLUMNS_MAX && columns[i].type != PLACE_END; i++) {
        void *to = (char *)ret + columns[i].offset;
        if (columns[i].type == PLACE_INT) {
            *(int64_t *)to = sqlite3_column_int64(st, i);
        } else if (sqlite3_column_type(st, i) != SQLITE_NULL) {
            const void *data = sqlite3_column_blob(st, i);
            int len = sqlite3_column_bytes(st, i);
            if (!data && len > 0) {
                return -ENOMEM;
            }
            // An empty BLOB has no data, which would be no text.
            *(struct store_text *)to = (struct store_text){data ? data : "", (size_t)len};
        }
    }
    return 0;
}

void sqlite_reader_run(struct sqlite_reader *r, const struct store_query *q,
                       const struct store_reader *to)
{
    struct read_params p = {.q = *q};
    int which = (int)q->kind;
    if ((unsigned)which >= STORE_READ_KINDS) {
        to->end(to->ctx, -EINVAL);
        return;
    }
    if (q->kind == STORE_LIST_JOBS && q->status >= 0) {
        which = SQL_LIST_JOBS_OF_STATUS;
    } else if (q->kind == STORE_FIND_KEY && !q->team.data) {
        which = SQL_FIND_ANY_KEY;
    }
    const struct sql_read *read = &sql_reads[which];
    if (!read->one && (q->limit < 1 || q->limit > STORE_LIST_MAX)) {
        to->end(to->ctx, -EINVAL);
        return;
    }
    sqlite3_stmt *st = r->reads[which];
    if (r->in_row) {
        to->end(to->ctx, -EDEADLK);
        return;
    }
    int err = find_cursor(r, which, &p);
    if (err == 0) {
        err = sqlite_bind(st, read->params, &p);
    }
    bool any = false;
    while (err == 0 && !(to->enough && *to->enough)) {
        int got = sqlite3_step(st);
        if (got == SQLITE_DONE) {
            err = read->one && !any ? STORE_MISSING : 0;
            break;
        }
        struct store_record record;
        err = got == SQLITE_ROW ? sqlite_fill(st, read->columns, &record) : sqlite_errno(r->db);
        if (err == 0) {
            any = true;
            r->in_row = true;
            to->row(to->ctx, &record);
            r->in_row = false;
        }
    }
    // Both end the read transaction: an open one would keep the log from being reused.
    sqlite3_reset(r->cursors[which]);
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    to->end(to->ctx, err);
}
