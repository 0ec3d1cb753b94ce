// store.h: what must outlive the service: jobs, sessions, keys, code tools. An interface: `struct
// store_ops` has one implementation per place where the records can be (sqlite.h).
//
// Everything happens on the loop's thread, as the caller sees it. A write is copied and answered
// later by its `done`, from the loop: when that says 0 the write is durable, as far as the place
// can promise it. Writes take effect in the order in which they were handed in. A read calls `row`
// for each record and then `end`, possibly before store_read() returns; it sees every write that
// was answered before.
//
// A `done` and an `end` may read and write; a `row` must not read (-EDEADLK), and none may close.
//
// No clock is read here: times are the caller's, in ms since the epoch. Texts are bytes: any value,
// any encoding, bounded by the table in record.c.
#ifndef ISLE_STORE_STORE_H
#define ISLE_STORE_STORE_H

#include "base/shared.h"
#include "model/result.h"

#include <stddef.h>
#include <stdint.h>

enum {
    STORE_ID_MAX = 64,             // bytes of an id
    STORE_NAME_MAX = 256,          // of a team, a name, a caller's own key
    STORE_BODY_MAX = 64 << 20,     // of a request or a result
    STORE_LIST_MAX = 1000,         // records that one read gives
    STORE_TOOL_MAX = 2 << 20,      // of a code tool's definition
    STORE_TOOLS_MAX = 1000,        // code tools of a team
    STORE_TOOLS_BYTES = 256 << 20, // of a team's tools, with all versions
    STORE_VERSIONS_MAX = 50,       // of a tool
    STORE_SHARES_MAX = 100,        // teams that one tool is shared with
};

struct store_text {
    const char *data; // NULL: there is none, which differs from an empty one
    size_t len;
};
static inline struct store_text store_text_of(const char *text)
{
    return (struct store_text){text, text ? __builtin_strlen(text) : 0};
}

struct store_job {
    struct store_text id, team, session;
    struct store_text reason;                   // name of enum reason; NULL: has not ended
    struct store_text request, result;          // JSON; in lists left out
    struct store_text caller_key, request_hash; // of an idempotent submission; never read back
    int64_t status;                             // enum job_status
    int64_t submitted_ms, started_ms, ended_ms; // 0: not yet
    int64_t epoch;                              // of the worker that took it; 0: none yet
};

enum store_session_state {
    STORE_SESSION_ACTIVE,
    STORE_SESSION_REMOVING, // its files are being removed
    STORE_SESSION_GONE,     // remembered, so that "expired" and "never existed" can be told apart
};

struct store_session {
    struct store_text id, team;
    struct store_text conversation, agent, user; // the caller's names
    int64_t state;
    int64_t created_ms, expires_ms, accessed_ms;
    int64_t disk_bytes, uid;
};

struct store_key {
    struct store_text id, team, name;
    struct store_text salt, hash; // the key itself is nowhere
    int64_t admin;                // 0, 1
    int64_t created_ms, revoked_ms, used_ms;
};

// A code tool. Its name is one of a kind within its team.
struct store_tool {
    struct store_text id, team, name;
    struct store_text body; // the definition, JSON (tools/tool.h); in lists of versions left out
    struct store_text with; // of a share: the team that is given it. Read for a team that is not
                            // the owner: that team. Else NULL
    int64_t permission;     // enum store_permission: of `with`; the owner's is STORE_OWNS
    int64_t enabled;        // 0, 1
    int64_t version;        // 1, 2, ...: one more with each change of name or body
    // Of the tool; a share's: when it was first given. Of a version, updated_ms: when it was made.
    int64_t created_ms, updated_ms;
};

enum store_permission { STORE_OWNS, STORE_MAY_READ, STORE_MAY_EXECUTE };

// What each write needs of its record, and what it answers beside 0 and -errno. A record that is
// named by its id alone is one that the caller has read for its team before.
enum store_write_kind {
    // A job that was accepted: id, team, session, request, submitted_ms; it is QUEUED. With a
    // caller_key: SAME (the key has made a job of the same request_hash, `id` says which) or
    // CONFLICT (of another one). -EEXIST: the id is taken.
    STORE_JOB_SUBMIT,
    // A job whose caller has had its answer: the whole record. -EEXIST as above.
    STORE_JOB_RECORD,
    // Forward to PREPARING, RUNNING or COLLECTING: id, status, started_ms, epoch. MISSING: there is
    // no such job, or it is as far already.
    STORE_JOB_STATUS,
    // It was PREPARING and has not begun after all: QUEUED again. MISSING: no such job, or it is
    // not PREPARING.
    STORE_JOB_BACK,
    // The end: id, status, reason, ended_ms, result. MISSING: no such job, or it has ended before;
    // the first end stays.
    STORE_JOB_END,
    STORE_JOB_DELETE, // id; with everything that belongs to it. MISSING.

    // id, team, names, times, uid. SAME: the same names have an active session that ends after
    // created_ms, `id` says which; asked only when there is a conversation. -EEXIST: id is taken.
    STORE_SESSION_CREATE,
    STORE_SESSION_EXTEND, // id, expires_ms, accessed_ms: now. MISSING also when it has expired.
    STORE_SESSION_TOUCH,  // id, accessed_ms, disk_bytes. MISSING.
    STORE_SESSION_STATE,  // id, state; forward only. MISSING.
    STORE_SESSION_DELETE, // id. MISSING.

    STORE_KEY_CREATE, // the whole record. -EEXIST.
    STORE_KEY_REVOKE, // id, revoked_ms; the first time stays. MISSING.
    STORE_KEY_TOUCH,  // id, used_ms. MISSING.

    // id, team, name, body, enabled, created_ms: version 1. CONFLICT: the team has a tool of that
    // name, `id` says which. -EEXIST: the id is taken. IS_FULL: the team has STORE_TOOLS_MAX, or
    // would have more than STORE_TOOLS_BYTES.
    STORE_TOOL_CREATE,
    // id, name, body, enabled (-1: as it is), updated_ms; version: the one that it is a change of,
    // 0: any. Name and body as they are: no new version; enabled, too: nothing changes. Versions
    // before the last STORE_VERSIONS_MAX go. CONFLICT as above; STALE: the version is another one.
    // IS_FULL: of
    // bytes. MISSING.
    STORE_TOOL_UPDATE,
    STORE_TOOL_ENABLE, // id, enabled, updated_ms. MISSING.
    STORE_TOOL_DELETE, // id; with its versions and shares. MISSING.
    // id, with, permission, created_ms; a second time changes the permission, and the share keeps
    // its place. MISSING: no such tool, or it is that team's own. IS_FULL: it is shared with
    // STORE_SHARES_MAX.
    STORE_TOOL_SHARE,
    STORE_TOOL_UNSHARE, // id, with. MISSING.

    // Writes of the kinds TOOL_CREATE and TOOL_UPDATE, in their order: all of them or none. What
    // the first that cannot be answers is the answer, `at` says which it was. Its texts are lent,
    // and so are the writes.
    STORE_TOOL_IMPORT,
    STORE_WRITE_KINDS
};

// Positive answers.
enum store_answer { STORE_SAME = 1, STORE_CONFLICT, STORE_MISSING, STORE_STALE, STORE_IS_FULL };

struct store_write {
    enum store_write_kind kind;
    bool lazy; // may wait a moment for company: nobody waits for it
    bool lent; // the texts stay as they are until `done`: they are not copied
    union {
        struct store_job job;
        struct store_session session;
        struct store_key key;
        struct store_tool tool;
        struct {
            const struct store_write *writes;
            size_t n;
        } import;
    };
};

struct store_outcome {
    // 0, an answer, or -errno: nothing of the write is there. -ENOSPC and -EIO: of the place;
    // later ones may succeed, and to try again is safe.
    int error;
    size_t id_len; // with SAME and CONFLICT: the record that is there; else 0
    char id[STORE_ID_MAX];
    size_t at; // of an import that has an answer: the number of that write
};
typedef void (*store_done)(void *ctx, const struct store_outcome *o);

enum store_read_kind {
    STORE_GET_JOB,         // id; team (NULL: any); everything
    STORE_LIST_JOBS,       // team, status (-1: any), cursor, limit: newest first
    STORE_LIST_QUEUED,     // cursor, limit: of all teams in the order of submission
    STORE_LIST_ENDED,      // before_ms, limit: that ended before it, oldest first
    STORE_GET_SESSION,     // id; team (NULL: any)
    STORE_LIST_SESSIONS,   // team, cursor, limit: the active ones, newest first
    STORE_LIST_GONE,       // before_ms, limit: remembered sessions that expired before it
    STORE_LIST_KEPT,       // cursor, limit: all sessions that have files, oldest first
    STORE_GET_KEY,         // id
    STORE_LIST_KEYS,       // team (NULL: all), cursor, limit: oldest first, revoked ones too
    STORE_FIND_KEY,        // team (NULL: any): the oldest key that is not revoked
    STORE_LIST_KEY_TEAMS,  // team, limit: teams with such a key, by name, behind that name (NULL:
                           // from the first on); only `team` is there
    STORE_GET_TOOL,        // id, team (NULL: any): the team's own, or shared with it
    STORE_FIND_TOOL,       // name, team, limit: its own; else those shared with it, oldest first
    STORE_LIST_SEEN_TOOLS, // team, cursor, limit: its own and those shared with it, in the order in
                           // which it came to have them, which no rename changes
    STORE_LIST_TOOLS,      // team, cursor, limit: its own and those shared with it, by name; of one
                           // name its own first, then the oldest share. name: that the cursor's
                           // tool had when it was read (NULL: that which it has now)
    STORE_LIST_OWN_TOOLS,  // team, limit, name: its own alone, by name, behind that name (NULL:
                           // from the first on); a team has no more than a read gives
    STORE_LIST_TOOL_NAMES, // team, limit: all of them, without bodies
    STORE_LIST_SHARES,     // id, limit: oldest first; `with`, permission and created_ms of each
    STORE_LIST_VERSIONS,   // id, limit: newest first, without bodies
    STORE_GET_VERSION,     // id, version
    STORE_READ_KINDS
};

struct store_query {
    enum store_read_kind kind;
    struct store_text id, team, name;
    int64_t version;
    struct store_text cursor; // id of the last record of the page before; NULL: the first page
    int64_t status, before_ms;
    int64_t limit; // 1 to STORE_LIST_MAX
};

// One of these, by the kind of the query. Texts are valid during the call only.
struct store_record {
    struct store_job job;
    struct store_session session;
    struct store_key key;
    struct store_tool tool;
    bool shared; // request and result of a job are texts that may be held (base/shared.h)
};

struct store_reader {
    void (*row)(void *ctx, const struct store_record *r);
    // 0; MISSING: no such record, or the cursor's is not there any more; or -errno.
    void (*end)(void *ctx, int error);
    void *ctx;
    const bool *enough; // may be NULL; once a row has made it true, none follows, as at the end
};

struct store_stats {
    int error;        // of the last commit, 0: it went well. Not 0: the service is not ready. The
                      // store finds out by itself, within seconds, that writing works again
    uint64_t commits; // since the start
    uint64_t writes;  // that they held
    uint64_t disk_bytes; // that its files take
    size_t waiting;      // writes that are not answered yet
    size_t waiting_bytes;
    int64_t epoch;   // of this start: one more than of the last
    uint64_t lost;   // jobs that the last start had begun: FAILED, worker_lost since this one
    uint64_t queued; // jobs that waited at this start
};

struct store;
struct store_ops {
    int (*write)(struct store *st, const struct store_write *w, store_done done, void *ctx);
    void (*read)(struct store *st, const struct store_query *q, const struct store_reader *r);
    void (*stats)(struct store *st, struct store_stats *ret);
    void (*close)(struct store *st);
};
struct store {
    const struct store_ops *ops;
};

// A long text of a record, in a row(): as one of base/shared.h, held. NULL: no memory.
static inline char *store_take_text(const struct store_record *r, const struct store_text *t)
{
    if (r->shared && t->data) {
        shared_hold(t->data);
        return (char *)(uintptr_t)t->data;
    }
    return shared_of(t->data, t->len);
}

// 0: `done` (may be NULL) will be called, never before this returns. -errno: it will not: -EMSGSIZE
// (a text is over its bound), -EINVAL, -EAGAIN (too much waits already), -ENOMEM, -ESHUTDOWN (it is
// being closed).
static inline int store_write(struct store *st, const struct store_write *w, store_done done,
                              void *ctx)
{
    return st->ops->write(st, w, done, ctx);
}

static inline void store_read(struct store *st, const struct store_query *q,
                              const struct store_reader *r)
{
    st->ops->read(st, q, r);
}

static inline void store_stats(struct store *st, struct store_stats *ret)
{
    st->ops->stats(st, ret);
}

// Writes what waits, lazy or not, calls every `done` that is due, and ends. NULL is harmless.
static inline void store_close(struct store *st)
{
    if (st) {
        st->ops->close(st);
    }
}

#endif
