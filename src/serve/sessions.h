// sessions.h: workspaces that outlive a job. A session is a record in the store and a folder
// "kept/ID" below the workspace root (workspace/folder.h: `w` its workspace; `t` its /tmp), both
// under one uid of the instance that is its own as long as it lives.
//
// A session ends by its time or by being deleted: from then on nothing new begins in it. Its folder
// leaves "kept" as a whole once nobody works in it, and is removed in the background (cleaner.h);
// the record stays for SESSIONS_REMEMBER_HOURS, so that "expired" and "never existed" can be told
// apart. All on the loop's thread; nothing polls: one timer waits for the next end.
#ifndef ISLE_SERVE_SESSIONS_H
#define ISLE_SERVE_SESSIONS_H

#include "io/loop.h"
#include "io/work.h"
#include "store/store.h"
#include "workspace/files.h"

#include <stdbool.h>
#include <stdint.h>

struct log;
struct sessions;
struct shares;
struct uids;

enum {
    SESSIONS_MIN_TTL_HOURS = 1,
    SESSIONS_MAX_TTL_HOURS = 720,
    SESSIONS_REMEMBER_HOURS = 720, // after the end it was to have
};

struct sessions_config {
    struct loop *loop;
    struct store *store;
    struct work_pool *pool;
    struct log *log;
    struct shares *shares; // of the disk, that teams have
    struct uids *uids;     // of the instance, shared with one-shot jobs
    int workspace_root;    // holds kept/ and trash/, on one mount; made where they are missing
    bool single_uid;       // files belong to inner root (PLAN_UID_LAUNCHER) in that case
    int64_t ttl_hours;     // of a session that does not say
    int64_t cleanup_batch; // sessions that one look at their ends takes
    uint64_t disk_bytes;   // that uploads may fill a session to
};

// Takes up what the store knows (STORE_LIST_KEPT), removes folders that no record names and what
// lies in trash/. The loop must run afterwards. 0 or -errno.
int sessions_new(const struct sessions_config *c, struct sessions **ret);
// Another time to live, batch, disk limit (SIGHUP); the rest of c is not looked at.
void sessions_change(struct sessions *s, const struct sessions_config *c);
// Call work_pool_stop() and store_close() before it. NULL is harmless.
void sessions_free(struct sessions *s);

enum sessions_refusal {
    SESSIONS_MISSING = 1, // never existed, or another team's
    SESSIONS_EXPIRED,     // expired or deleted
    SESSIONS_NO_UID,      // as many live as there may be, of all or of the team: come back later
    SESSIONS_NO_DISK,     // the disk of the workspaces is full
    SESSIONS_NO_SHARE,    // create: as much is kept of the team as it may have (shares.h)
};

// How a call ends; possibly before it returns.
struct sessions_outcome {
    int error;                           // 0, a refusal, or -errno
    bool same;                           // create: it was there already; extend: no later end
    const struct store_session *session; // when error is 0; its texts are valid during the call
};
typedef void (*sessions_answer)(void *ctx, const struct sessions_outcome *o);

struct sessions_create {
    const char *team, *conversation, *agent, *user; // NULL: not given (but team)
    int64_t ttl_hours;                              // 0: the setting's
};
// A new session, durable when it is answered; or, with a conversation, the one of the same names
// that lives.
void sessions_create(struct sessions *s, const struct sessions_create *c, sessions_answer answer,
                     void *ctx);
void sessions_get(struct sessions *s, const char *team, const char *id, sessions_answer answer,
                  void *ctx);
// It is there, the team's, and has not ended: known at once.
bool sessions_lives(const struct sessions *s, const char *team, const char *id);
// Its end is ttl_hours (0: the setting's) from now, or what it was if that is later.
void sessions_extend(struct sessions *s, const char *team, const char *id, int64_t ttl_hours,
                     sessions_answer answer, void *ctx);
// Ends it. Answered when that is durable; its files go once nobody works in it.
void sessions_delete(struct sessions *s, const char *team, const char *id, sessions_answer answer,
                     void *ctx);
// The team's that live, newest first, `limit` at most; cursor: id of the last one before, or NULL.
// One that has ended while they were read is a row, too, as others may follow, but does not live.
// end: 0; SESSIONS_MISSING: the cursor's session is not there any more; -errno.
void sessions_list(struct sessions *s, const char *team, const char *cursor, int64_t limit,
                   void (*row)(void *ctx, const struct store_session *session, bool lives),
                   void (*end)(void *ctx, int error), void *ctx);

// A session while a job or a file call works in it: its folder stays until it is let go. Not to be
// moved in memory.
struct session_lease {
    char id[37];
    char workspace[64]; // "kept/ID", for a plan
    uint32_t uid;       // inner, for a plan
    struct files files; // its workspace, opened; whose its files are
    int tmp;            // its /tmp, opened
    // inner
    void *session;
    uint64_t charged_bytes;
    bool measure; // when it is released
};
// `team` NULL: any. 0, a refusal, or -errno. At once: sessions that live are in memory.
int sessions_lease(struct sessions *s, const char *team, const char *id, struct session_lease *ret);
// Notes the access, and what the session takes now: bytes of its folder as disk.h counts them, or
// one of these. Harmless on a zeroed or released one.
enum { SESSIONS_UNCHANGED = -1, SESSIONS_MEASURE = -2 }; // MEASURE: in the background
void sessions_release(struct sessions *s, struct session_lease *l, int64_t disk_bytes);
// What it takes, with what is being written. -1: not known.
void sessions_takes(const struct session_lease *l, int64_t *ret_bytes, int64_t *ret_entries);
// Before the release: so many files and folders were counted, and there are more. Then it is
// measured in the background, whatever the release says.
void sessions_counted(struct session_lease *l, uint64_t entries, bool more);
// Before so many more bytes are written through l: false when the session would be larger than
// disk_bytes, or its team's share is used up. Counts until the release.
bool sessions_charge(struct sessions *s, struct session_lease *l, uint64_t bytes);
// What sessions_charge() would still take. 0 also where there are as many files and folders as a
// job may make: then nothing new is to be made, be it empty.
uint64_t sessions_room(const struct sessions *s, const struct session_lease *l);
uint64_t sessions_disk_bytes(const struct sessions *s); // the setting
// Is it the team's share that ends first?
bool sessions_share_is_less(const struct sessions *s, const struct session_lease *l);
// Before the release, what the session takes more (or less) than before is known to the byte: what
// was charged through l counts no more, and nothing needs to be measured.
void sessions_take(struct sessions *s, struct session_lease *l, int64_t more_bytes);
// The folder that its workspace lies in: the service's own, which no job sees; gone with the
// session. For what is kept beside its files, under a name other than "w" and "t". On any thread.
// Descriptor, the caller's, or -errno.
int sessions_open_beside(const struct session_lease *l);

// trash/: for what is not whole yet (files_write_options.parts) and what is thrown away; emptied at
// start.
int sessions_trash(const struct sessions *s);
// Removes this entry of trash/ in the background (`owner`: as io/work.h has it).
void sessions_trashed(struct sessions *s, const char *name, uint64_t owner);

// Hashes of contents that were read of late, so that a download in pieces reads a big file once. By
// identity, size and times; known: false where there is none, or where the file was written so
// shortly before it was opened that its times might not tell of another write.
bool sessions_known_hash(const struct sessions *s, const struct files_file *file,
                         char ret[SHA256_HEX]);
void sessions_keep_hash(struct sessions *s, const struct files_file *file, int64_t opened_ms,
                        const char *hash);

struct sessions_stats {
    uint64_t active, removing;
    uint64_t disk_bytes; // as last measured
};
void sessions_stats(const struct sessions *s, struct sessions_stats *ret);

#endif
