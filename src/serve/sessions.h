// sessions.h: workspaces that outlive a job. A session is a record in the store and a folder
// "kept/ID" below the workspace root (workspace/folder.h: `w` its workspace, `t` its /tmp), both
// under one uid of the instance that is its own as long as it lives.
//
// A session ends by its time or by being deleted: from then on nothing new begins in it. Its files
// go in the background, in batches, once no job of it runs; the record stays, so that "expired" and
// "never existed" can be told apart.
#ifndef ISLE_SERVE_SESSIONS_H
#define ISLE_SERVE_SESSIONS_H

#include "io/loop.h"
#include "io/work.h"
#include "store/store.h"
#include "workspace/files.h"

#include <stdint.h>

struct log;
struct sessions;
struct uids;

struct sessions_config {
    struct loop *loop;
    struct store *store;
    struct work_pool *pool;
    struct log *log;
    struct uids *uids;     // of the instance, shared with one-shot jobs
    int workspace_root;    // holds kept/ and trash/, on one mount
    bool single_uid;       // files belong to inner root (PLAN_UID_LAUNCHER) in that case
    int64_t ttl_hours;     // of a session that does not say
    int64_t cleanup_batch; // sessions looked at in one go
};

// Takes up what the store knows (STORE_LIST_KEPT), removes folders that no record names. The loop
// must run afterwards. 0 or -errno.
int sessions_new(const struct sessions_config *c, struct sessions **ret);
void sessions_free(struct sessions *s);

enum sessions_refusal {
    SESSIONS_MISSING = 1, // never existed, or another team's
    SESSIONS_EXPIRED,     // expired or deleted
    SESSIONS_NO_UID,      // as many sessions and jobs live as there are uids
    SESSIONS_NO_DISK,
};

// A session while a job or a file call works in it: its folder stays until it is let go.
struct session_lease {
    char id[37];
    char workspace[64]; // "kept/ID", for a plan
    uint32_t uid;       // inner; whose its files are: files.uid
    struct files files; // its workspace, opened
    int tmp;            // its /tmp, opened; -1: none
    struct session_lease *next;
};
// `team` NULL: any. 0, a refusal, or -errno. At once: sessions that live are in memory.
int sessions_lease(struct sessions *s, const char *team, const char *id, struct session_lease *ret);
// Notes the access. disk_bytes: what it takes now, or -1: not measured.
void sessions_release(struct sessions *s, struct session_lease *l, int64_t disk_bytes);

struct sessions_stats {
    uint64_t active, removing;
    uint64_t disk_bytes; // as last measured
};
void sessions_stats(const struct sessions *s, struct sessions_stats *ret);

#endif
