// sessions_inner.h: what the parts of sessions.h share: sessions.c answers callers, sessions_end.c
// is what happens by itself (start, ends, removal), sessions_room.c who works in one and what it
// takes, sessions_share.c how many there may be.
#ifndef ISLE_SERVE_SESSIONS_INNER_H
#define ISLE_SERVE_SESSIONS_INNER_H

#include "serve/cleaner.h"
#include "serve/sessions.h"
#include "serve/shares.h"
#include "workspace/walk.h"

enum {
    SESSIONS_BUCKETS = 4096,
    SESSIONS_HASHES = 256,
    SESSIONS_MEASURED = 4, // at once
};

// Who waits for the end of a session to be durable.
struct session_deleter {
    sessions_answer answer;
    void *ctx;
    struct session_deleter *next;
};

// One that lives, or whose files are being removed.
struct session {
    struct sessions *of;
    char id[37];
    char *team, *conversation, *agent, *user; // NULL: none
    struct share *share;                      // of the team; has disk_bytes and charged_bytes
    int64_t created_ms, expires_ms, accessed_ms, disk_bytes;
    uint32_t uid;
    bool removing;                   // has ended
    bool unrecorded;                 // and the store has not taken that
    bool removed;                    // and its files are gone
    char trashed[FILES_RANDOM_NAME]; // the name of its folder in trash/; "": it is in kept/
    unsigned leases;
    uint64_t charged_bytes; // by all leases
    int64_t retry_ms;       // when its end is to go on, as the last try failed; 0: no try failed
    unsigned tries;         // that failed
    struct session_deleter *deleters;
    struct session *next_unmeasured;
    bool unmeasured; // waits to be measured
    struct work measure;
    bool measure_again;
    bool recorded;    // disk_bytes is what the record said at the start
    bool cut;         // there is more than disk_bytes and `entries`, until it is measured
    uint64_t entries; // in its folders when it was last measured, or about; 0: not since the start
    struct walk walk; // the thread's while `measure` is queued
    int measure_pieces;
    bool measured;        // it is over
    struct session *next; // in its bucket
};

struct session_hash {
    struct stat of; // zeroed: none
    char hex[SHA256_HEX];
};

struct sessions {
    struct sessions_config config;
    int kept, trash;
    struct cleaner *cleaner;
    struct session *buckets[SESSIONS_BUCKETS];
    struct session_hash hashes[SESSIONS_HASHES];
    struct session *unmeasured, *measuring[SESSIONS_MEASURED];
    size_t buckets_measured;                 // in which no session is as it was recorded
    uint64_t n_active, n_removing, n_making; // making: with the store, in no bucket yet
    struct loop_timer due;
    char page[STORE_ID_MAX + 1]; // of the list that is read at the start: its last id
    int64_t page_rows;
    int load_error;
};

// sessions.c
struct session *session_new(struct sessions *s, const struct store_session *record); // NULL: ENOMEM
void session_free(struct session *e);
void session_record(const struct session *e, struct store_session *ret);
struct session *session_find(const struct sessions *s, const char *id, size_t len);
void session_insert(struct session *e);
void session_take_out(struct session *e); // one that has ended
// Its folder, new. 0 or -errno, then nothing is left.
int session_make_folder(const struct session *e);

// sessions_end.c
int sessions_load(struct sessions *s);
void session_end(struct session *e);  // by its time, or deleted
void session_left(struct session *e); // nobody works in it: if it has ended, its files go
void sessions_look_later(struct sessions *s, int64_t at_ms); // at ends, not later than then
void sessions_look(struct loop_timer *t);

// sessions_share.c
int sessions_why_not(const struct sessions *s, const char *team); // one more: 0, or a refusal
// The one that lives and has these names; NULL: none, or no conversation is named.
const struct session *session_of_names(const struct sessions *s, const struct sessions_create *c,
                                       int64_t now_ms);

// sessions_room.c
void session_measure(struct session *e);   // soon
void sessions_measure(struct sessions *s); // also those that were there at the start
void session_unmeasure(struct session *e); // not, unless it is under way
// What it takes from here on, and what of that is promised to who writes in it.
void session_takes(struct session *e, int64_t disk_bytes, uint64_t charged_bytes);

#endif
