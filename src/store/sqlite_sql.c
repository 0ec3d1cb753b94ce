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

// Bounds of store.h and answers, as they stand in the statements.
#define TOOLS_MAX "1000"
#define TOOLS_BYTES "268435456"
#define VERSIONS_MAX "50"
#define SHARES_MAX "100"
static_assert(STORE_TOOLS_MAX == 1000 && STORE_TOOLS_BYTES == 268435456 &&
                  STORE_VERSIONS_MAX == 50 && STORE_SHARES_MAX == 100,
              "the texts above");
static_assert(STORE_SAME == 1 && STORE_CONFLICT == 2 && STORE_MISSING == 3 && STORE_STALE == 4 &&
                  STORE_IS_FULL == 5,
              "the second columns of SQL_FIND");

// A request and a result have the seq of their job, which was inserted just before them. In the
// order of their kinds: the writer finds the first of a kind and goes on while it lasts.
const struct sql_step sql_steps[] = {
    {STORE_JOB_SUBMIT,
     SQL_FIND,
     "known caller key",
     "SELECT job, iif(request_hash = ?3, 1, 2) FROM caller_keys WHERE team = ?1 AND caller_key = "
     "?2",
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

    {STORE_TOOL_CREATE,
     SQL_FIND,
     "tool of that name",
     "SELECT id, 2 FROM tools WHERE team = ?1 AND name = ?2",
     {WT(tool.team), WT(tool.name)}},
    {STORE_TOOL_CREATE,
     SQL_FIND,
     "too many tools",
     "SELECT NULL, 5 FROM (SELECT count(*) AS n, sum(bytes) AS bytes FROM tools WHERE team = ?1)"
     " WHERE n >= " TOOLS_MAX " OR bytes + length(?2) > " TOOLS_BYTES,
     {WT(tool.team), WT(tool.body)}},
    {STORE_TOOL_CREATE,
     SQL_CHANGE,
     "tool",
     "INSERT INTO tools (id, team, name, enabled, version, created_ms, updated_ms, bytes)"
     " VALUES (?1, ?2, ?3, ?4, 1, ?5, ?5, length(?6))",
     {WT(tool.id), WT(tool.team), WT(tool.name), WI(tool.enabled), WI(tool.created_ms),
      WT(tool.body)}},
    {STORE_TOOL_CREATE,
     SQL_CHANGE,
     "its first version",
     "INSERT INTO tool_versions (tool, version, name, made_ms, body)"
     " VALUES (last_insert_rowid(), 1, ?1, ?2, ?3)",
     {WT(tool.name), WI(tool.created_ms), WT(tool.body)}},
    {STORE_TOOL_CREATE,
     SQL_CHANGE,
     "its owner",
     "INSERT INTO tool_access (tool, team, name, shared, permission, given_ms)"
     " SELECT seq, team, name, 0, 0, created_ms FROM tools WHERE id = ?1",
     {WT(tool.id)}},

    {STORE_TOOL_UPDATE,
     SQL_FIND,
     "no tool",
     "SELECT NULL, 3 WHERE NOT EXISTS (SELECT 1 FROM tools WHERE id = ?1)",
     {WT(tool.id)}},
    {STORE_TOOL_UPDATE,
     SQL_FIND,
     "another version",
     "SELECT NULL, 4 FROM tools WHERE id = ?1 AND ?2 <> 0 AND version <> ?2",
     {WT(tool.id), WI(tool.version)}},
    {STORE_TOOL_UPDATE,
     SQL_FIND,
     "another of that name",
     "SELECT other.id, 2 FROM tools AS own JOIN tools AS other"
     " ON other.team = own.team AND other.name = ?2 AND other.seq <> own.seq WHERE own.id = ?1",
     {WT(tool.id), WT(tool.name)}},
    {STORE_TOOL_UPDATE,
     SQL_FIND,
     "too many bytes",
     "SELECT NULL, 5 FROM tools AS own JOIN tool_versions AS v"
     " ON v.tool = own.seq AND v.version = own.version"
     " WHERE own.id = ?1 AND (v.name <> ?3 OR v.body <> ?2) AND length(?2) +"
     " (SELECT sum(bytes) FROM tools WHERE team = own.team) > " TOOLS_BYTES,
     {WT(tool.id), WT(tool.body), WT(tool.name)}},
    {STORE_TOOL_UPDATE,
     SQL_CHANGE,
     "its next version",
     "INSERT INTO tool_versions (tool, version, name, made_ms, body)"
     " SELECT tools.seq, v.version + 1, ?2, ?3, ?4 FROM tools JOIN tool_versions AS v"
     " ON v.tool = tools.seq AND v.version = tools.version"
     " WHERE tools.id = ?1 AND (v.name <> ?2 OR v.body <> ?4)",
     {WT(tool.id), WT(tool.name), WI(tool.updated_ms), WT(tool.body)}},
    {STORE_TOOL_UPDATE,
     SQL_CHANGE,
     "versions too old",
     "DELETE FROM tool_versions WHERE tool = (SELECT seq FROM tools WHERE id = ?1) AND version <="
     " (SELECT max(v.version) FROM tool_versions AS v WHERE v.tool = tool_versions.tool)"
     " - " VERSIONS_MAX,
     {WT(tool.id)}},
    {STORE_TOOL_UPDATE,
     SQL_CHANGE,
     "tool changes",
     "UPDATE tools SET name = ?2, enabled = iif(?3 < 0, enabled, ?3), updated_ms = ?4,"
     " version = (SELECT max(version) FROM tool_versions WHERE tool = seq),"
     " bytes = (SELECT sum(length(body)) FROM tool_versions WHERE tool = seq)"
     " WHERE id = ?1 AND (enabled <> iif(?3 < 0, enabled, ?3) OR"
     " version <> (SELECT max(version) FROM tool_versions WHERE tool = seq))",
     {WT(tool.id), WT(tool.name), WI(tool.enabled), WI(tool.updated_ms)}},
    {STORE_TOOL_UPDATE,
     SQL_CHANGE,
     "its name, as others see it",
     "UPDATE tool_access SET name = ?2"
     " WHERE tool = (SELECT seq FROM tools WHERE id = ?1) AND name <> ?2",
     {WT(tool.id), WT(tool.name)}},

    {STORE_TOOL_ENABLE,
     SQL_NEED,
     "tool on or off",
     "UPDATE tools SET enabled = ?2, updated_ms = iif(enabled <> ?2, ?3, updated_ms)"
     " WHERE id = ?1",
     {WT(tool.id), WI(tool.enabled), WI(tool.updated_ms)}},

    {STORE_TOOL_DELETE,
     SQL_CHANGE,
     "its versions",
     "DELETE FROM tool_versions WHERE tool = (SELECT seq FROM tools WHERE id = ?1)",
     {WT(tool.id)}},
    {STORE_TOOL_DELETE,
     SQL_CHANGE,
     "who sees it",
     "DELETE FROM tool_access WHERE tool = (SELECT seq FROM tools WHERE id = ?1)",
     {WT(tool.id)}},
    {STORE_TOOL_DELETE, SQL_NEED, "tool goes", "DELETE FROM tools WHERE id = ?1", {WT(tool.id)}},

    {STORE_TOOL_SHARE,
     SQL_FIND,
     "too many shares",
     "SELECT NULL, 5 FROM (SELECT count(*) AS n FROM tool_access"
     " WHERE tool = (SELECT seq FROM tools WHERE id = ?1) AND shared = 1 AND team <> ?2)"
     " WHERE n >= " SHARES_MAX,
     {WT(tool.id), WT(tool.with)}},
    {STORE_TOOL_SHARE,
     SQL_NEED,
     "share",
     "INSERT INTO tool_access (tool, team, name, shared, permission, given_ms)"
     " SELECT seq, ?2, name, 1, ?3, ?4 FROM tools WHERE id = ?1"
     " ON CONFLICT (tool, team) DO UPDATE SET permission = excluded.permission WHERE shared = 1",
     {WT(tool.id), WT(tool.with), WI(tool.permission), WI(tool.created_ms)}},
    {STORE_TOOL_UNSHARE,
     SQL_NEED,
     "share goes",
     "DELETE FROM tool_access WHERE tool = (SELECT seq FROM tools WHERE id = ?1) AND team = ?2"
     " AND shared = 1",
     {WT(tool.id), WT(tool.with)}},
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
// `a`: who sees it; whose own it is sees it with permission 0 (OWNS).
#define TOOL_SQL                                                                                   \
    "SELECT t.id, t.team, a.name, v.body, iif(a.shared, a.team, NULL), a.permission, t.enabled,"   \
    " t.version, t.created_ms, t.updated_ms FROM tool_access AS a JOIN tools AS t ON t.seq ="      \
    " a.tool JOIN tool_versions AS v ON v.tool = a.tool AND v.version = t.version"
#define TOOL_PLACES                                                                                \
    RT(tool.id), RT(tool.team), RT(tool.name), RT(tool.body), RT(tool.with), RI(tool.permission),  \
        RI(tool.enabled), RI(tool.version), RI(tool.created_ms), RI(tool.updated_ms)
#define SEEN_TOOL_SQL                                                                              \
    "SELECT 0, a.seq FROM tools AS t JOIN tool_access AS a ON a.tool = t.seq"                      \
    " WHERE t.id = ?1 AND a.team = ?2"
#define OWN_SQL "SELECT t.id, t.team, t.name, t.enabled, t.version, t.created_ms, t.updated_ms"
#define OWN_PLACES                                                                                 \
    RT(tool.id), RT(tool.team), RT(tool.name), RI(tool.enabled), RI(tool.version),                 \
        RI(tool.created_ms), RI(tool.updated_ms)
#define VERSION_SQL "SELECT t.id, t.team, v.name, t.enabled, v.version, t.created_ms, v.made_ms"
#define VERSION_FROM " FROM tools AS t JOIN tool_versions AS v ON v.tool = t.seq"

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
                           JOB_SQL " FROM jobs"
                                   " WHERE status = 0 AND status < 4 AND jobs.seq > ?1"
                                   " ORDER BY jobs.seq LIMIT ?2",
                           {QI(at_order), QI(q.limit)},
                           {JOB_PLACES},
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
                         KEY_SQL " WHERE (?1 IS NULL OR team = ?1) AND seq > ?3"
                                 " ORDER BY seq LIMIT ?2",
                         {QT(q.team), QI(q.limit), QI(at_order)},
                         {KEY_PLACES},
                         "SELECT 0, seq FROM keys WHERE id = ?1"},
    [STORE_FIND_KEY] = {"a key of a team",
                        KEY_SQL " WHERE team = ?1 AND revoked_ms = 0 ORDER BY seq LIMIT 1",
                        {QT(q.team)},
                        {KEY_PLACES},
                        .one = true},
    // A statement of its own, as that of a team is to find its index.
    [SQL_FIND_ANY_KEY] = {"a key of any team",
                          KEY_SQL " WHERE revoked_ms = 0 ORDER BY seq LIMIT 1",
                          {{PLACE_END, 0}},
                          {KEY_PLACES},
                          .one = true},
    [STORE_LIST_KEY_TEAMS] =
        {"teams with a key",
         "SELECT DISTINCT team FROM keys WHERE team > coalesce(?1, x'') AND revoked_ms = 0"
         " ORDER BY team LIMIT ?2",
         {QT(q.team), QI(q.limit)},
         {RT(key.team)}},
    [STORE_GET_TOOL] = {"one tool",
                        TOOL_SQL " WHERE t.id = ?1 AND a.team = coalesce(?2, t.team)",
                        {QT(q.id), QT(q.team)},
                        {TOOL_PLACES},
                        .one = true},
    [STORE_FIND_TOOL] = {"tools of a name",
                         TOOL_SQL " WHERE a.team = ?1 AND a.name = ?2 AND a.shared = NOT EXISTS"
                                  " (SELECT 1 FROM tools WHERE team = ?1 AND name = ?2)"
                                  " ORDER BY a.seq LIMIT ?3",
                         {QT(q.team), QT(q.name), QI(q.limit)},
                         {TOOL_PLACES}},
    [STORE_LIST_SEEN_TOOLS] = {"tools that a team sees, in order",
                               TOOL_SQL " WHERE a.team = ?1 AND a.seq > ?2 ORDER BY a.seq LIMIT ?3",
                               {QT(q.team), QI(at_order), QI(q.limit)},
                               {TOOL_PLACES},
                               SEEN_TOOL_SQL},
    // The cursor is a row's seq, as its name is no number. A name that was changed since would lead
    // elsewhere.
    [STORE_LIST_TOOLS] = {"tools that a team sees",
                          TOOL_SQL
                          " WHERE a.team = ?1 AND (a.name, a.shared, a.seq) >"
                          " (coalesce(?4, (SELECT name FROM tool_access WHERE seq = ?2), x''),"
                          " coalesce((SELECT shared FROM tool_access WHERE seq = ?2), 0), ?2)"
                          " ORDER BY a.name, a.shared, a.seq LIMIT ?3",
                          {QT(q.team), QI(at_order), QI(q.limit), QT(q.name)},
                          {TOOL_PLACES},
                          SEEN_TOOL_SQL},
    [STORE_LIST_OWN_TOOLS] = {"tools of a team",
                              OWN_SQL ", v.body FROM tools AS t JOIN tool_versions AS v"
                                      " ON v.tool = t.seq AND v.version = t.version"
                                      " WHERE t.team = ?1 AND t.name > coalesce(?3, x'')"
                                      " ORDER BY t.name LIMIT ?2",
                              {QT(q.team), QI(q.limit), QT(q.name)},
                              {OWN_PLACES, RT(tool.body)}},
    [STORE_LIST_TOOL_NAMES] = {"names of a team's tools",
                               OWN_SQL
                               " FROM tools AS t WHERE t.team = ?1 ORDER BY t.name LIMIT ?2",
                               {QT(q.team), QI(q.limit)},
                               {OWN_PLACES}},
    [STORE_LIST_SHARES] = {"who a tool is shared with",
                           "SELECT t.id, t.team, t.name, a.team, a.permission, a.given_ms"
                           " FROM tools AS t JOIN tool_access AS a ON a.tool = t.seq"
                           " WHERE t.id = ?1 AND a.shared = 1 ORDER BY a.seq LIMIT ?2",
                           {QT(q.id), QI(q.limit)},
                           {RT(tool.id), RT(tool.team), RT(tool.name), RT(tool.with),
                            RI(tool.permission), RI(tool.created_ms)}},
    [STORE_LIST_VERSIONS] = {"versions of a tool",
                             VERSION_SQL VERSION_FROM
                             " WHERE t.id = ?1 ORDER BY v.version DESC LIMIT ?2",
                             {QT(q.id), QI(q.limit)},
                             {OWN_PLACES}},
    [STORE_GET_VERSION] = {"a version of a tool",
                           VERSION_SQL ", v.body" VERSION_FROM
                                       " WHERE t.id = ?1 AND v.version = ?2",
                           {QT(q.id), QI(q.version)},
                           {OWN_PLACES, RT(tool.body)},
                           .one = true},
};
