// isle-client: what of isle speaks to a service. `isle` starts it for its verbs jobs, sessions,
// files, artifacts, tools, key and run --url, with the same words; ISLE_URL and ISLE_KEY say where
// and who.
#include "base/fd.h"
#include "cli/run_end.h"
#include "cli/signals.h"
#include "client/client.h"

#include <signal.h>
#include <string.h>

static const struct {
    const char *verb, *action;
    client_action act;
} actions[] = {
    {"jobs", "list", jobs_list},
    {"jobs", "show", jobs_show},
    {"jobs", "submit", jobs_submit},
    {"jobs", "wait", jobs_wait},
    {"jobs", "events", jobs_events},
    {"jobs", "cancel", jobs_cancel},
    {"sessions", "list", sessions_list},
    {"sessions", "create", sessions_create},
    {"sessions", "show", sessions_show},
    {"sessions", "extend", sessions_extend},
    {"sessions", "delete", sessions_delete},
    {"files", "list", files_list},
    {"files", "get", files_get},
    {"files", "put", files_put},
    {"files", "delete", files_delete},
    {"files", "move", files_move},
    {"artifacts", "list", artifacts_list},
    {"artifacts", "get", artifacts_get},
    {"tools", "list", tools_list},
    {"tools", "show", tools_show},
    {"tools", "create", tools_create},
    {"tools", "update", tools_update},
    {"tools", "delete", tools_delete},
    {"tools", "enable", tools_enable},
    {"tools", "disable", tools_disable},
    {"tools", "share", tools_share},
    {"tools", "unshare", tools_unshare},
    {"tools", "shares", tools_shares},
    {"tools", "versions", tools_versions},
    {"tools", "restore", tools_restore},
    {"tools", "run", tools_run},
    {"tools", "schemas", tools_schemas},
    {"tools", "export", tools_export},
    {"tools", "import", tools_import},
    {"key", "list", key_list},
    {"key", "create", key_create},
    {"key", "revoke", key_revoke},
};

static int act(struct client *c)
{
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        if (strcmp(actions[i].verb, c->command.verb->name) == 0 &&
            strcmp(actions[i].action, c->command.action->name) == 0) {
            return actions[i].act(c);
        }
    }
    return verb_complain(c->command.verb->name, "%s: not known here; install isle as a whole",
                         c->command.action->name);
}

// Where and who, then the verb. `v` NULL: run.
static int speak(struct client *c, const struct verb *v, char **argv)
{
    const char *given = c->command.options.url ? c->command.options.url : getenv("ISLE_URL");
    const char *key = getenv("ISLE_KEY");
    struct address_error where;
    if (address_parse(given && *given ? given : REMOTE_DEFAULT_URL, &c->to, &where)) {
        return verb_complain(argv[0], "%s", where.text);
    }
    if (key && *key && c->to.overt && isatty(STDERR_FILENO)) {
        verb_complain(argv[0], "%s: the key goes there unencrypted; https:// would hide it",
                      c->to.shown);
    }
    AUTO_CLOSE int signals = signals_hold(&c->unheld);
    if (caller_open(&c->caller, &c->to, key, signals)) {
        return verb_complain(argv[0], "not enough memory");
    }
    int status = v ? act(c) : client_run(c, argv);
    caller_close(&c->caller);
    return status ? status : verb_end_output(argv[0]);
}

int main(int argc, char **argv)
{
    struct client c = {};
    int status = 0;
    const struct verb *v = argc > 0 ? remote_find(argv[0]) : NULL;
    run_open_standard_streams();
    signal(SIGPIPE, SIG_IGN);
    if (!v && (argc == 0 || strcmp(argv[0], "run") != 0)) {
        return verb_complain(NULL, "isle-client is started by isle: see `isle --help`");
    }
    if (!v || remote_parse(v, argv, &c.command, &status)) {
        status = speak(&c, v, argv);
    }
    remote_done(&c.command);
    return status;
}
