// client.h: one run of isle-client: what it was told, whom it speaks to, what its parts share.
#ifndef ISLE_CLIENT_CLIENT_H
#define ISLE_CLIENT_CLIENT_H

#include "cli/remote.h"
#include "client/call.h"
#include "codec/json.h"

#include <signal.h>

#define CLIENT_API "/api/v1"

enum { CLIENT_CANCELLED = 130 };

struct client {
    struct remote_command command;
    struct address to;
    struct caller caller;
    sigset_t unheld; // the caller's mask
};

// What an action of a verb does: exit status of the process.
typedef int (*client_action)(struct client *c);

int jobs_list(struct client *c), jobs_show(struct client *c), jobs_submit(struct client *c);
int jobs_wait(struct client *c), jobs_events(struct client *c), jobs_cancel(struct client *c);
int sessions_list(struct client *c), sessions_create(struct client *c);
int sessions_show(struct client *c), sessions_extend(struct client *c);
int sessions_delete(struct client *c);
int files_list(struct client *c), files_get(struct client *c), files_put(struct client *c);
int files_delete(struct client *c), files_move(struct client *c);
int artifacts_list(struct client *c), artifacts_get(struct client *c);
int tools_list(struct client *c), tools_show(struct client *c), tools_create(struct client *c);
int tools_update(struct client *c), tools_delete(struct client *c), tools_enable(struct client *c);
int tools_disable(struct client *c), tools_share(struct client *c);
int tools_unshare(struct client *c), tools_shares(struct client *c);
int tools_versions(struct client *c), tools_restore(struct client *c), tools_run(struct client *c);
int tools_schemas(struct client *c), tools_export(struct client *c);
int tools_import(struct client *c);
int key_list(struct client *c), key_create(struct client *c), key_revoke(struct client *c);
// `isle run --url`; argv[0] is "run".
int client_run(struct client *c, char **argv);

// Complains of a call that failed. The process's exit status.
int client_fail(const struct client *c, int error, const struct call_error *why);

// While something is read that may never end, and nothing is left behind: a signal ends the process
// at once. sigprocmask(2) puts `ret_held` back.
static inline void client_unhold(const struct client *c, sigset_t *ret_held)
{
    sigprocmask(SIG_SETMASK, &c->unheld, ret_held);
}

// "/api/v1" and the format, in which every %s is escaped. 0 or -errno (sticky in the buffer).
int client_path(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
// "?NAME=VALUE" or "&NAME=VALUE"; nothing for NULL.
void client_query(struct buf *path, const char *name, const char *value);

// One call whose answer is JSON: its `data`, which *ret_doc owns; NULL after a complaint, and
// *ret_status is the process's.
yyjson_val *client_ask(struct client *c, struct call *call, yyjson_doc **ret_doc, int *ret_status);

// A call whose answer is printed: with --json whole, else by `print`. Exit status.
int client_tell(struct client *c, struct call *call, int (*print)(yyjson_val *data));
// What printing an answer came to: exit status. -EPROTO: it was none of isle's.
int client_printed(const struct client *c, int e);
// client_tell() of a page of "/sandbox/jobs" and the like, as the options say which. A verb has
// those that its row in cli/remote_verbs.c takes; the others are not given.
int client_list(struct client *c, const char *collection, int (*print)(yyjson_val *data));

// Reads the whole file, or standard input for "-". 0 or an exit status after a complaint.
int client_read(const struct client *c, const char *path, struct buf *out);

// What was read of `path` is no JSON, for the reason that the parser gave: complains of that, with
// what to do. `path` "-" is standard input. CLI_REFUSED.
int client_no_json(const struct client *c, const char *path, const struct buf *text,
                   const struct json_error *why, const char *advice);

// Artifacts of a job (`data`: its result or answer), all or the one called `only`, into
// --output-dir. Exit status.
int artifacts_take(struct client *c, const char *job_id, yyjson_val *data, const char *only);

// A number as JSON has it: digits, at most one point. Else a complaint, and false.
bool client_number(const struct client *c, const char *option, const char *text);

#endif
