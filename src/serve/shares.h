// shares.h: what each team has of the data folder's disk, and how much more it may have, so that
// one that keeps all it can leaves room for the others. Sums, kept up by whoever writes or removes
// something of a team's; asking costs the same however much there is. On the loop's thread.
//
// With a bound (SANDBOX_TEAM_DISK_MB) a team has that much. Without one, and with more than one
// team, it has no more than is left for all: one that takes all it can leaves half, two leave a
// third. SHARES_SMALL_BYTES it may have in any case, as what is small fills no disk.
#ifndef ISLE_SERVE_SHARES_H
#define ISLE_SERVE_SHARES_H

#include <stddef.h>
#include <stdint.h>

struct share; // of one team
struct shares;
struct store;

enum { SHARES_SMALL_BYTES = 64 << 20, SHARES_TEXT = 400 };

// What is kept of a team.
enum share_kind { SHARE_SESSIONS, SHARE_ARTIFACTS, SHARE_KINDS };

struct shares_config {
    struct store *store; // who has a key
    int data_folder;     // the caller's
    uint64_t team_bytes; // SANDBOX_TEAM_DISK_MB; 0: by what is left
};

// 0 or -errno.
int shares_new(const struct shares_config *c, struct shares **ret);
void shares_change(struct shares *s, uint64_t team_bytes); // SIGHUP
// When nobody holds one any more. NULL is harmless.
void shares_free(struct shares *s);

// Keys were made or revoked: looks again who has one.
void shares_look(struct shares *s);
// Teams that may come: those with a key, or those that have something here if these are more.
uint32_t shares_teams(const struct shares *s);

// A team's share, held until it is released; NULL: no memory.
struct share *shares_hold(struct shares *s, const char *team);
void share_release(struct share *h); // NULL is harmless
const char *share_team(const struct share *h);
// So much more, or less, is kept of the team.
void share_add(struct share *h, enum share_kind kind, int64_t bytes);
// What the team may have more; UINT64_MAX: no bound.
uint64_t share_room(const struct share *h);
// The same of a team that holds none.
uint64_t shares_room(struct shares *s, const char *team);
// The sentence for whoever is refused, who is counted: what the team has, what its bound is, and
// what to do.
const char *shares_refuse(struct shares *s, const char *team, char ret[SHARES_TEXT]);

struct shares_stats {
    uint64_t bytes[SHARE_KINDS]; // of all teams
    uint64_t largest_bytes;      // of the team that has most
    uint64_t refused;            // shares_refuse()
};
void shares_stats(const struct shares *s, struct shares_stats *ret);

#endif
