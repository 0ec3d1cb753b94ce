#include "store/sqlite_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

// Texts are BLOBs: compared and kept byte by byte, whatever they hold. `seq` is the order in which
// rows were written. Requests and results have tables of their own, so that a change of a status
// writes a short row, and a list reads short ones; they share the `seq` of their job.
static const char version_1[] =
    "CREATE TABLE meta (only INTEGER PRIMARY KEY CHECK (only = 1), epoch INTEGER NOT NULL);"
    "INSERT INTO meta VALUES (1, 0);"

    "CREATE TABLE jobs ("
    " seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, team BLOB NOT NULL, session BLOB,"
    " status INTEGER NOT NULL, reason BLOB, submitted_ms INTEGER NOT NULL,"
    " started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, epoch INTEGER NOT NULL);"
    "CREATE INDEX jobs_of_team ON jobs (team, submitted_ms);"
    "CREATE INDEX jobs_of_status ON jobs (team, status, submitted_ms);"
    "CREATE INDEX jobs_open ON jobs (status) WHERE status < 4;"
    "CREATE INDEX jobs_ended ON jobs (ended_ms) WHERE ended_ms > 0;"
    "CREATE TABLE requests (seq INTEGER PRIMARY KEY, body BLOB);"
    "CREATE TABLE results (seq INTEGER PRIMARY KEY, body BLOB);"
    "CREATE TABLE caller_keys ("
    " team BLOB NOT NULL, caller_key BLOB NOT NULL, request_hash BLOB NOT NULL, job BLOB NOT NULL,"
    " PRIMARY KEY (team, caller_key)) WITHOUT ROWID;"
    "CREATE INDEX caller_keys_of_job ON caller_keys (job);"

    "CREATE TABLE sessions ("
    " seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, team BLOB NOT NULL, conversation BLOB,"
    " agent BLOB, user BLOB, state INTEGER NOT NULL, created_ms INTEGER NOT NULL,"
    " expires_ms INTEGER NOT NULL, accessed_ms INTEGER NOT NULL, disk_bytes INTEGER NOT NULL,"
    " uid INTEGER NOT NULL);"
    "CREATE INDEX sessions_of_team ON sessions (team, state, created_ms);"
    "CREATE INDEX sessions_of_names ON sessions (team, conversation)"
    " WHERE conversation IS NOT NULL;"
    "CREATE INDEX sessions_by_end ON sessions (state, expires_ms);"

    "CREATE TABLE keys ("
    " seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, team BLOB NOT NULL, name BLOB,"
    " salt BLOB NOT NULL, hash BLOB NOT NULL, admin INTEGER NOT NULL, created_ms INTEGER NOT NULL,"
    " revoked_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL);"
    "CREATE INDEX keys_of_team ON keys (team);";

// One row of tool_access for each team that sees a tool, its owner's among them, with the tool's
// name: so that what a team sees stands in order in one index. The body of a version never changes.
static const char version_2[] =
    "CREATE TABLE tools ("
    " seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, team BLOB NOT NULL,"
    " name BLOB NOT NULL, enabled INTEGER NOT NULL, version INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " UNIQUE (team, name));"
    "CREATE TABLE tool_versions ("
    " tool INTEGER NOT NULL, version INTEGER NOT NULL, name BLOB NOT NULL,"
    " made_ms INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE (tool, version));"
    "CREATE TABLE tool_access ("
    " seq INTEGER PRIMARY KEY, tool INTEGER NOT NULL, team BLOB NOT NULL, name BLOB NOT NULL,"
    " shared INTEGER NOT NULL, permission INTEGER NOT NULL, given_ms INTEGER NOT NULL,"
    " UNIQUE (tool, team));"
    "CREATE INDEX tool_access_of_team ON tool_access (team, name, shared);"
    "CREATE INDEX tool_access_of_tool ON tool_access (tool, shared);";

// Also in the order of seq, that of their rows: a list's pages go on behind what no rename moves.
static const char version_3[] = "CREATE INDEX tool_access_in_order ON tool_access (team);";

static_assert(STATUS_COMPLETED == 4, "jobs_open and the statements name the first final status");

const char *const sqlite_migrations[] = {version_1, version_2, version_3};
const int sqlite_n_migrations = sizeof sqlite_migrations / sizeof *sqlite_migrations;

static int version_of(sqlite3 *db, int *ret)
{
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &st, NULL) != SQLITE_OK ||
        sqlite3_step(st) != SQLITE_ROW) {
        int err = sqlite_errno(db);
        sqlite3_finalize(st);
        return err;
    }
    *ret = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    return 0;
}

int sqlite_migrate(sqlite3 *db, const char *const *steps, int n)
{
    int version = 0;
    int err = version_of(db, &version);
    if (err != 0) {
        return err;
    }
    if (version > n) {
        return -EPROTONOSUPPORT;
    }
    for (; version < n; version++) {
        char done[64]; // user_version is part of the transaction
        snprintf(done, sizeof done, "PRAGMA user_version = %d; COMMIT", version + 1);
        if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
            sqlite3_exec(db, steps[version], NULL, NULL, NULL) != SQLITE_OK ||
            sqlite3_exec(db, done, NULL, NULL, NULL) != SQLITE_OK) {
            err = sqlite_errno(db);
            if (!sqlite3_get_autocommit(db)) {
                sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
            }
            return err;
        }
    }
    return 0;
}
