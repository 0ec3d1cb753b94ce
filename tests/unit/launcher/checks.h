// checks.h: what the files of the launcher's integration test share.
#ifndef TEST_LAUNCHER_CHECKS_H
#define TEST_LAUNCHER_CHECKS_H

#include "client.h"

extern char output[65536]; // of the last job: stdout and stderr together

void check(const char *name, bool ok, const char *detail);
// Text about a record, for failures.
const char *say(const struct plan_record *r, int e);
bool clean_exit(const struct plan_record *r, int e, int status);

struct try try_of(const char *const *argv);
int run_try(struct client *c, const struct try *t, int timeout_ms, struct plan_record *ret);
int run_sh(struct client *c, const char *script, struct plan_record *ret);
int run_python(struct client *c, const char *script, struct plan_record *ret);
void slurp(int fd);
int memory_file(void);

void check_exits(struct client *c);
void check_execution(struct client *c);
void check_limits(struct client *c);
void check_signals(struct client *c);
void check_view(struct client *c);
void check_policy(struct client *c);
void check_border(struct client *c);
void check_parked(struct client *c);
void check_stock(struct client *c);
void check_requests(struct client *c);
void check_bare(struct client *c);
void check_full(struct client *c);
// rogue_shim.c's letter.
void check_rogue(struct client *c, const char *mode);
void check_rogue_bwrap(struct client *c);
void check_bwrap_requests(struct client *c);
void check_old_bwrap(struct client *c);
void check_network(struct client *c);
void check_plain(struct client *c);
void check_asked(struct client *c);
void check_locks(struct client *c);
void check_speed(struct client *c);
#ifdef ISLE_INJECT
// In the service before its drop; the checks themselves.
void check_inject_open(void);
void check_inject(struct client *c);
void check_inject_rung(struct client *c);
void check_inject_ahead(struct client *c);
void check_inject_loop(struct client *c);
void check_inject_bwrap(struct client *c);
void check_inject_plain(struct client *c);
void check_inject_single(struct client *c);
void check_inject_network(struct client *c);
void check_inject_locks(struct client *c);
void check_inject_single_bwrap(struct client *c);
void check_inject_end(struct client *c, const char *how);
#endif
// check_kills.c: the service's side, and the front's side of one round.
void serve_soak(struct client *c);
// stay: what a dead launcher's jobs leave is the front's to end, as no namespace ends them
bool kill_and_look(struct front *f, int round, const char *data, bool stay);
// The last thing an instance does: the launcher ends by it.
void check_flood(struct client *c);
void check_rung(struct client *c, uint32_t rung);

#endif
