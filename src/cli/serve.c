// `isle serve`: its options are checked here, and isled (app/isled.c), which brings HTTP and SQLite
// along, takes over this process.
#include "cli/serve.h"

#include "base/buf.h"
#include "cli/beside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define AT(field) offsetof(struct serve_options, field)
static const struct option option_rows[] = {
    {"--listen", NULL, "HOST:PORT", OPTION_LIST, AT(listen),
     "an address, localhost or *, and a port (0: a free one); each is listened on; 127.0.0.1:4753",
     NULL},
    {"--data", NULL, "DIR", OPTION_TEXT, AT(data),
     "the data folder (SANDBOX_WORKSPACE_ROOT): jobs, results, sessions, keys", VALUES_FOLDER},
    FRONT_OPTIONS(struct serve_options, given),
    {"--socket", NULL, "FILE", OPTION_TEXT, AT(socket),
     "the administrator's Unix socket (isle.sock of the run folder)", VALUES_FILE},
    {"--log-format", NULL, "FORMAT", OPTION_TEXT, AT(log_format), "text or json", "text json"},
    {"--log-level", NULL, "LEVEL", OPTION_TEXT, AT(log_level), "debug, info, warning or error",
     "debug info warning error"},
    VERB_HELP(struct serve_options, help),
};

// Its last part is made, as for an --output-dir. NULL with errno.
static char *make_data(const char *path)
{
    return mkdir(path, 0711) && errno != EEXIST ? NULL : realpath(path, NULL);
}

static char *join(const struct option_list *list)
{
    struct buf all = BUF_INIT(4096);
    for (size_t i = 0; i < list->n; i++) {
        buf_printf(&all, "%s%s", i ? "," : "", list->words[i]);
    }
    bool failed = all.error != 0;
    char *text = buf_take(&all);
    if (failed) {
        free(text);
        return NULL;
    }
    return text;
}

static int fill(struct serve_options *o)
{
    size_t n = 0;
    if (o->listen.n) {
        o->listen_words = join(&o->listen);
        if (!o->listen_words) {
            return verb_complain("serve", "--listen: too many");
        }
    }
    if (o->data) {
        o->data_dir = make_data(o->data);
        if (!o->data_dir) {
            return verb_complain("serve", "--data %.300s: %m%s", o->data,
                                 errno == ENOENT ? "; only its last part is made" : "");
        }
    }
    o->own[n++] = (struct conf_option){SETTING_LISTEN, o->listen_words};
    o->own[n++] = (struct conf_option){SETTING_WORKSPACE_ROOT, o->data_dir};
    o->own[n++] = (struct conf_option){SETTING_SOCKET, o->socket};
    o->own[n++] = (struct conf_option){SETTING_LOG_FORMAT, o->log_format};
    o->own[n++] = (struct conf_option){SETTING_LOG_LEVEL, o->log_level};
    o->given.options = o->own;
    o->given.n_options = n;
    return 0;
}

bool serve_options_parse(char **argv, struct serve_options *ret, int *ret_status)
{
    struct option_rest rest;
    *ret = (struct serve_options){.help = false};
    if (!verb_begin(&verb_serve, argv, ret, &rest, ret_status)) {
        return false;
    }
    if (rest.n_operands || rest.command) {
        *ret_status =
            verb_complain("serve", "%.60s: isle serve takes options only (see its --help)",
                          rest.n_operands ? rest.operands[0] : "--");
    } else {
        *ret_status = fill(ret);
    }
    if (*ret_status) {
        serve_options_done(ret);
    }
    return *ret_status == 0;
}

void serve_options_done(struct serve_options *o)
{
    free(o->listen.words);
    free(o->given.set.words);
    free(o->listen_words);
    free(o->data_dir);
}

static int serve_main(int argc, char **argv, const struct cli_places *places)
{
    struct serve_options o;
    struct front_error why;
    char program[] = "isled";
    int status;
    (void)argc;
    if (!serve_options_parse(argv, &o, &status)) {
        return status;
    }
    serve_options_done(&o);
    if (front_check_places(places, &why)) {
        return verb_complain("serve", "%s", why.text);
    }
    argv[0] = program;
    return beside_execute(places, "serve", program, argv);
}

static const struct verb_form forms[] = {{"[OPTION...]", NULL}, {NULL, NULL}};

static const struct verb_status statuses[] = {
    {"0", "it ended as it was told to (SIGTERM, SIGINT, Ctrl-C)"},
    {"1", "it lost its launcher, or was killed; the next start puts things in order"},
    {"125", "it could not start: isle says why on stderr"},
    {NULL, NULL}};

static const char *const examples[] = {
    "isle serve", "isle serve --listen 127.0.0.1:8080 --data ./data",
    "isle serve --listen 127.0.0.1:4753 --listen [::1]:4753 --log-format json", NULL};

const struct verb verb_serve = {
    .name = "serve",
    .summary = "serve jobs over HTTP",
    .forms = forms,
    .about = "Serves the HTTP API: jobs, sessions, files, artifacts; nothing else is needed.",
    .notes =
        "It runs until SIGTERM, SIGINT or Ctrl-C: then it takes nothing new and ends when the\n"
        "running jobs have ended (SANDBOX_DRAIN_SECONDS at most); a second one ends it at\n"
        "once. SIGHUP reads the settings file again: isle config says what that changes.\n"
        "Without a key (isle key create) it listens on loopback only, and who calls there\n"
        "needs none. The Unix socket is the administrator's.\n"
        "A data folder has one service at a time; what is accepted there outlives it.",
    .options = option_rows,
    .n_options = sizeof option_rows / sizeof *option_rows,
    .statuses = statuses,
    .examples = examples,
    .run = serve_main,
};
