// Every statement that the running store has, with its values by place: no SQL is put together
// from anything.
#include "store/sqlite_internal.h"

#include "base/fd.h"

#include <assert.h>

#define WI(member)                                                                                 \
    {                                                                                              \
        PLACE_INT, offsetof(struct store_write, member)                                            \
    }
#define WT(member)                                                                                 \
    {                                                                                              \
        PLACE_TEXT, offsetof(struct store_write, member)                                           \
    }

// A request and a result have the seq of their job, which was inserted just before them. In the
// order of their kinds: the writer finds the first of a kind and goes on while it lasts.
const struct sql_step sql_steps[] = {
    {STORE_JOB_SUBMIT,
     SQL_FIND,
     "known caller key",
     "SELECT job, request_hash = ?3 FROM caller_keys WHERE team = ?1 AND caller_key = ?2",
     {WT(job.team), WT(job.caller_key), WT(job.request_hash)},
     WT(job.caller_key)},
    {STORE_JOB_SUBMIT,
     SQL_CHANGE,
     "queued job",
     "INSERT INTO jobs (id, team, session, status, submitted_ms, started_ms, ended_ms, epoch)"
     " VALUES (?1, ?2, ?3, 0, ?4, 0, 0, 0)",
     {WT(job.id), WT(job.team), WT(job.session), WI(job.submitted_ms)}},
    {STORE_JOB_SUBMIT,
     SQL_CHANGE,
     "its request",
     "INSERT INTO requests (seq, body) VALUES (last_insert_rowid(), ?1)",
     {WT(job.request)},
     WT(job.request)},
    {STORE_JOB_SUBMIT,
     SQL_CHANGE,
     "its caller key",
     "INSERT INTO caller_keys (team, caller_key, request_hash, job) VALUES (?1, ?2, ?3, ?4)",
     {WT(job.team), WT(job.caller_key), WT(job.request_hash), WT(job.id)},
     WT(job.caller_key)},

    {STORE_JOB_RECORD,
     SQL_CHANGE,
     "ended job",
     "INSERT INTO jobs (id, team, session, status, reason, submitted_ms, started_ms, ended_ms,"
     " epoch) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
     {WT(job.id), WT(job.team), WT(job.session), WI(job.status), WT(job.reason),
      WI(job.submitted_ms), WI(job.started_ms), WI(job.ended_ms), WI(job.epoch)}},
    {STORE_JOB_RECORD,
     SQL_CHANGE,
     "its request",
     "INSERT INTO requests (seq, body) VALUES (last_insert_rowid(), ?1)",
     {WT(job.request)},
     WT(job.request)},
    {STORE_JOB_RECORD,
     SQL_CHANGE,
     "its result",
     "INSERT INTO results (seq, body) VALUES (last_insert_rowid(), ?1)",
     {WT(job.result)},
     WT(job.result)},

    {STORE_JOB_STATUS,
     SQL_NEED,
     "job goes on",
     "UPDATE jobs SET status = ?2, epoch = ?4, started_ms = iif(?3 > 0, ?3, started_ms)"
     " WHERE id = ?1 AND status < 4 AND status < ?2",
     {WT(job.id), WI(job.status), WI(job.started_ms), WI(job.epoch)}},

    {STORE_JOB_BACK,
     SQL_NEED,
     "job waits again",
     "UPDATE jobs SET status = 0, started_ms = 0, epoch = 0 WHERE id = ?1 AND status = 1",
     {WT(job.id)}},

    {STORE_JOB_END,
     SQL_NEED,
     "job ends",
     "UPDATE jobs SET status = ?2, reason = ?3, ended_ms = ?4 WHERE id = ?1 AND status < 4",
     {WT(job.id), WI(job.status), WT(job.reason), WI(job.ended_ms)}},
    {STORE_JOB_END,
     SQL_CHANGE,
     "its result",
     "INSERT INTO results (seq, body) SELECT seq, ?2 FROM jobs WHERE id = ?1",
     {WT(job.id), WT(job.result)},
     WT(job.result)},

    {STORE_JOB_DELETE,
     SQL_CHANGE,
     "its request",
     "DELETE FROM requests WHERE seq = (SELECT seq FROM jobs WHERE id = ?1)",
     {WT(job.id)}},
    {STORE_JOB_DELETE,
     SQL_CHANGE,
     "its result",
     "DELETE FROM results WHERE seq = (SELECT seq FROM jobs WHERE id = ?1)",
     {WT(job.id)}},
    {STORE_JOB_DELETE,
     SQL_CHANGE,
     "its caller key",
     "DELETE FROM caller_keys WHERE job = ?1",
     {WT(job.id)}},
    {STORE_JOB_DELETE, SQL_NEED, "job goes", "DELETE FROM jobs WHERE id = ?1", {WT(job.id)}},

    {STORE_SESSION_CREATE,
     SQL_FIND,
     "known names",
     "SELECT id, 1 FROM sessions WHERE team = ?1 AND conversation = ?2 AND agent IS ?3"
     " AND user IS ?4 AND state = 0 AND expires_ms > ?5",
     {WT(session.team), WT(session.conversation), WT(session.agent), WT(session.user),
      WI(session.created_ms)},
     WT(session.conversation)},
    {STORE_SESSION_CREATE,
     SQL_CHANGE,
     "session",
     "INSERT INTO sessions (id, team, conversation, agent, user, state, created_ms, expires_ms,"
     " accessed_ms, disk_bytes, uid) VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9, ?10)",
     {WT(session.id), WT(session.team), WT(session.conversation), WT(session.agent),
      WT(session.user), WI(session.created_ms), WI(session.expires_ms), WI(session.accessed_ms),
      WI(session.disk_bytes), WI(session.uid)}},
    {STORE_SESSION_EXTEND,
     SQL_NEED,
     "later end",
     "UPDATE sessions SET expires_ms = ?2, accessed_ms = ?3"
     " WHERE id = ?1 AND state = 0 AND expires_ms > ?3",
     {WT(session.id), WI(session.expires_ms), WI(session.accessed_ms)}},
    {STORE_SESSION_TOUCH,
     SQL_NEED,
     "last use",
     "UPDATE sessions SET accessed_ms = max(accessed_ms, ?2), disk_bytes = ?3 WHERE id = ?1",
     {WT(session.id), WI(session.accessed_ms), WI(session.disk_bytes)}},
    {STORE_SESSION_STATE,
     SQL_NEED,
     "session goes on",
     "UPDATE sessions SET state = ?2 WHERE id = ?1 AND state < ?2",
     {WT(session.id), WI(session.state)}},
    {STORE_SESSION_DELETE,
     SQL_NEED,
     "session goes",
     "DELETE FROM sessions WHERE id = ?1",
     {WT(session.id)}},

    {STORE_KEY_CREATE,
     SQL_CHANGE,
     "key",
     "INSERT INTO keys (id, team, name, salt, hash, admin, created_ms, revoked_ms, used_ms)"
     " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
     {WT(key.id), WT(key.team), WT(key.name), WT(key.salt), WT(key.hash), WI(key.admin),
      WI(key.created_ms), WI(key.revoked_ms), WI(key.used_ms)}},
    {STORE_KEY_REVOKE,
     SQL_NEED,
     "revoked",
     "UPDATE keys SET revoked_ms = iif(revoked_ms > 0, revoked_ms, ?2) WHERE id = ?1",
     {WT(key.id), WI(key.revoked_ms)}},
    {STORE_KEY_TOUCH,
     SQL_NEED,
     "last use",
     "UPDATE keys SET used_ms = max(used_ms, ?2) WHERE id = ?1",
     {WT(key.id), WI(key.used_ms)}},
};
const size_t sql_n_steps = ARRAY_LEN(sql_steps);
static_assert(ARRAY_LEN(sql_steps) <= SQL_STEPS_MAX, "room in struct sqlite_writer");

#define QI(member)                                                                                 \
    {                                                                                              \
        PLACE_INT, offsetof(struct read_params, member)                                            \
    }
#define QT(member)                                                                                 \
    {                                                                                              \
        PLACE_TEXT, offsetof(struct read_params, member)                                           \
    }
#define RI(member)                                                                                 \
    {                                                                                              \
        PLACE_INT, offsetof(struct store_record, member)                                           \
    }
#define RT(member)                                                                                 \
    {                                                                                              \
        PLACE_TEXT, offsetof(struct store_record, member)                                          \
    }

#define JOB_SQL                                                                                    \
    "SELECT id, team, session, reason, status, submitted_ms, started_ms, ended_ms, epoch"
#define JOB_PLACES                                                                                 \
    RT(job.id), RT(job.team), RT(job.session), RT(job.reason), RI(job.status),                     \
        RI(job.submitted_ms), RI(job.started_ms), RI(job.ended_ms), RI(job.epoch)
#define SESSION_SQL                                                                                \
    "SELECT id, team, conversation, agent, user, state, created_ms, expires_ms, accessed_ms,"      \
    " disk_bytes, uid FROM sessions"
#define SESSION_PLACES                                                                             \
    RT(session.id), RT(session.team), RT(session.conversation), RT(session.agent),                 \
        RT(session.user), RI(session.state), RI(session.created_ms), RI(session.expires_ms),       \
        RI(session.accessed_ms), RI(session.disk_bytes), RI(session.uid)
#define KEY_SQL                                                                                    \
    "SELECT id, team, name, salt, hash, admin, created_ms, revoked_ms, used_ms FROM keys"
#define KEY_PLACES                                                                                 \
    RT(key.id), RT(key.team), RT(key.name), RT(key.salt), RT(key.hash), RI(key.admin),             \
        RI(key.created_ms), RI(key.revoked_ms), RI(key.used_ms)

const struct sql_read sql_reads[SQL_READS] = {
    [STORE_GET_JOB] = {"one job",
                       JOB_SQL ", requests.body, results.body FROM jobs"
                               " LEFT JOIN requests USING (seq) LEFT JOIN results USING (seq)"
                               " WHERE id = ?1 AND (?2 IS NULL OR team = ?2)",
                       {QT(q.id), QT(q.team)},
                       {JOB_PLACES, RT(job.request), RT(job.result)},
                       .one = true},
    [STORE_LIST_JOBS] = {"jobs of a team",
                         JOB_SQL " FROM jobs WHERE team = ?1 AND (submitted_ms, seq) < (?2, ?3)"
                                 " ORDER BY submitted_ms DESC, seq DESC LIMIT ?4",
                         {QT(q.team), QI(at_ms), QI(at_order), QI(q.limit)},
                         {JOB_PLACES},
                         "SELECT submitted_ms, seq FROM jobs WHERE id = ?1 AND team IS ?2",
                         .descending = true},
    // A statement of its own, for an index of its own.
    [SQL_LIST_JOBS_OF_STATUS] =
        {"jobs of a team and a status",
         JOB_SQL " FROM jobs WHERE team = ?1 AND status = ?5 AND (submitted_ms, seq) < (?2, ?3)"
                 " ORDER BY submitted_ms DESC, seq DESC LIMIT ?4",
         {QT(q.team), QI(at_ms), QI(at_order), QI(q.limit), QI(q.status)},
         {JOB_PLACES},
         "SELECT submitted_ms, seq FROM jobs WHERE id = ?1 AND team IS ?2",
         .descending = true},
    [STORE_LIST_QUEUED] = {"queued jobs",
                           JOB_SQL ", body FROM jobs LEFT JOIN requests USING (seq)"
                                   " WHERE status = 0 AND status < 4 AND jobs.seq > ?1"
                                   " ORDER BY jobs.seq LIMIT ?2",
                           {QI(at_order), QI(q.limit)},
                           {JOB_PLACES, RT(job.request)},
                           "SELECT 0, seq FROM jobs WHERE id = ?1"},
    [STORE_LIST_ENDED] = {"ended jobs",
                          JOB_SQL " FROM jobs WHERE ended_ms > 0 AND ended_ms < ?1"
                                  " ORDER BY ended_ms LIMIT ?2",
                          {QI(q.before_ms), QI(q.limit)},
                          {JOB_PLACES}},
    [STORE_GET_SESSION] = {"one session",
                           SESSION_SQL " WHERE id = ?1 AND (?2 IS NULL OR team = ?2)",
                           {QT(q.id), QT(q.team)},
                           {SESSION_PLACES},
                           .one = true},
    [STORE_LIST_SESSIONS] = {"sessions of a team",
                             SESSION_SQL " WHERE team = ?1 AND state = 0"
                                         " AND (created_ms, seq) < (?2, ?3)"
                                         " ORDER BY created_ms DESC, seq DESC LIMIT ?4",
                             {QT(q.team), QI(at_ms), QI(at_order), QI(q.limit)},
                             {SESSION_PLACES},
                             "SELECT created_ms, seq FROM sessions WHERE id = ?1 AND team IS ?2",
                             .descending = true},
    [STORE_LIST_GONE] = {"remembered sessions",
                         SESSION_SQL " WHERE state = 2 AND expires_ms < ?1"
                                     " ORDER BY expires_ms LIMIT ?2",
                         {QI(q.before_ms), QI(q.limit)},
                         {SESSION_PLACES}},
    [STORE_LIST_KEPT] = {"sessions with files",
                         SESSION_SQL " WHERE state < 2 AND seq > ?1 ORDER BY seq LIMIT ?2",
                         {QI(at_order), QI(q.limit)},
                         {SESSION_PLACES},
                         "SELECT 0, seq FROM sessions WHERE id = ?1"},
    [STORE_GET_KEY] = {"one key", KEY_SQL " WHERE id = ?1", {QT(q.id)}, {KEY_PLACES}, .one = true},
    [STORE_LIST_KEYS] = {"keys",
                         KEY_SQL " WHERE (?1 IS NULL OR team = ?1) ORDER BY seq LIMIT ?2",
                         {QT(q.team), QI(q.limit)},
                         {KEY_PLACES}},
};
