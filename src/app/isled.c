// isled: the service. What `isle serve` executes is its front: it keeps the rights of who started
// it, binds the sockets, starts the instance, forwards signals, waits, and removes what is left.
// The same image, executed again inside the outer user namespace, is the service itself (serve.c).
#include "app/inner.h"
#include "app/listen.h"
#include "app/notify.h"
#include "app/places.h"
#include "app/serve.h"
#include "app/talk.h"
#include "base/fd.h"
#include "base/msg.h"
#include "cli/front.h"
#include "cli/serve.h"
#include "cli/signals.h"
#include "cli/verb.h"
#include "log/log.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { LOST = 1 };

#define complain(...) verb_complain("serve", __VA_ARGS__)

struct isled {
    struct serve_options options;
    struct front_settings settings;
    struct bwrap_found bwrap;
    struct listen_tcp tcp[LISTEN_MAX_TCP];
    size_t n_tcp;
    char socket_path[START_PLACE_MAX + 16];
    int local; // the Unix socket
    struct stat local_file;
    int audit; // -1: no audit log
    int signals;
    struct log *log; // the front's lines: of any level, as each is there once
    struct front front;
    unsigned asked; // how often it was asked to end
    bool listens;
    bool reloads, reload_again; // one order at a time: many would leave no room for that to end
};

// ---- Before the start: what needs the rights of who started us ----------------------------------

static int open_audit(const struct conf *c, int *ret)
{
    const char *path = c->text[SETTING_AUDIT_LOG];
    *ret = -1;
    int e = *path ? log_open_file(AT_FDCWD, path, ret) : 0;
    return e ? complain("ISLE_AUDIT_LOG %.300s: %s", path, strerror(-e)) : 0;
}

// The run folder is made and looked at by the start; the socket in it must be there before.
static int open_local(struct isled *d)
{
    const struct conf *c = &d->settings.conf;
    const char *given = c->text[SETTING_SOCKET], *run = c->text[SETTING_RUN_DIR];
    struct listen_error why;
    if (!*given && mkdir(run, 0700) && errno != EEXIST) {
        return complain("folder %.300s: %m", run);
    }
    snprintf(d->socket_path, sizeof d->socket_path, *given ? "%s" : "%s/isle.sock",
             *given ? given : run);
    d->local = listen_open_unix(d->socket_path, &why);
    if (d->local >= 0 && stat(d->socket_path, &d->local_file)) {
        return complain("%.300s: %m", d->socket_path);
    }
    return d->local < 0 ? complain("%s", why.text) : 0;
}

// Unless another has its own there by now: the next service may have begun before this one's end.
static void remove_local(const struct isled *d)
{
    const struct stat *own = &d->local_file;
    struct stat now;
    if (d->local >= 0 && !lstat(d->socket_path, &now) && now.st_dev == own->st_dev &&
        now.st_ino == own->st_ino && now.st_ctim.tv_sec == own->st_ctim.tv_sec &&
        now.st_ctim.tv_nsec == own->st_ctim.tv_nsec) {
        unlink(d->socket_path);
    }
}

// Jobs without isolation are for whoever develops on this very host.
static int check_isolation(const struct isled *d)
{
    for (size_t i = 0; i < d->n_tcp; i++) {
        if (!conf_bool(&d->settings.conf, SETTING_FILESYSTEM_ISOLATION_ENABLED) &&
            !d->tcp[i].loopback) {
            return complain(
                "SANDBOX_FILESYSTEM_ISOLATION_ENABLED is false, and jobs without isolation "
                "are for loopback only: %s is not (ISLE_LISTEN, --listen)",
                d->tcp[i].text);
        }
    }
    return 0;
}

static int open_all(struct isled *d)
{
    struct listen_error why;
    if (listen_open(d->settings.conf.text[SETTING_LISTEN], d->tcp, &d->n_tcp, &why)) {
        return complain("%s", why.text);
    }
    int status = check_isolation(d);
    status = status ? status : open_audit(&d->settings.conf, &d->audit);
    return status ? status : open_local(d);
}

static int open_log(struct isled *d)
{
    enum log_format format = LOG_TEXT;
    log_format_find(d->settings.conf.text[SETTING_LOG_FORMAT], &format);
    int e = log_new(STDERR_FILENO, -1, format, LOG_DEBUG, &d->log);
    return e ? complain("log: %s", strerror(-e)) : 0;
}

// What the settings do that an operator may not expect of them.
static void tell_settings(const struct isled *d)
{
    AUTO_BUF struct buf preset = BUF_INIT(4096), idle = BUF_INIT(4096);
    front_preset_words(&d->settings, &preset);
    front_idle_words(&d->settings, &idle);
    if (preset.len || idle.len) {
        log_say(d->log, LOG_WARNING, "settings",
                LOG_T("SANDBOX_PRESET", preset.len ? "platform" : NULL),
                LOG_T("preset_changes", preset.len ? buf_text(&preset) : NULL),
                LOG_T("not_used_yet", idle.len ? buf_text(&idle) : NULL));
    }
}

static void tell_data_folder(const struct isled *d)
{
    const char *fix = front_noexec_advice(&d->settings);
    if (fix) {
        log_say(d->log, LOG_WARNING, "data folder is mounted noexec",
                LOG_T("data", d->settings.conf.text[SETTING_WORKSPACE_ROOT]),
                LOG_T("effect",
                      "nothing in a workspace on disk can be executed: Permission denied, status "
                      "126; those in memory (SANDBOX_TMPFS_WORKSPACE_MB) are not concerned"),
                LOG_T("fix", fix));
    }
}

static int prepare(struct isled *d, const struct cli_places *places)
{
    struct front_error why;
    enum seat_launcher launcher;
    if (front_settings_load(&d->options.given, &d->settings, &why) ||
        front_check_places(places, &why) ||
        front_choose_launcher(&d->settings, NULL, &launcher, &why) ||
        (launcher == SEAT_BWRAP && front_find_bwrap(&d->settings, &d->bwrap, &why))) {
        return complain("%s", why.text);
    }
    int status = open_log(d);
    if (status) {
        return status;
    }
    tell_settings(d);
    d->signals = signals_hold(&(sigset_t){});
    return d->signals < 0 ? complain("signals: %m") : open_all(d);
}

static int start(struct isled *d, const struct cli_places *places)
{
    struct start_config c = front_start_config(&d->settings, places);
    int passed[START_MAX_PASSED];
    uint32_t n = 0;
    _Static_assert(LISTEN_MAX_TCP + 2 <= START_MAX_PASSED,
                   "room for all sockets and the audit log");
    for (size_t i = 0; i < d->n_tcp; i++) {
        passed[n++] = d->tcp[i].fd;
    }
    passed[n++] = d->local;
    if (d->audit >= 0) {
        passed[n++] = d->audit;
    }
    c.serves = 1;
    c.passed = passed;
    c.n_passed = n;
    c.bwrap = d->bwrap.path[0] ? &d->bwrap : NULL;
    char word[] = TALK_SERVE, *argv[] = {word, NULL};
    char **settings = conf_environment(&d->settings.conf);
    struct start_error why = {.text = "not enough memory"};
    int e = settings ? start_front(&c, argv, settings, &d->front, &why) : -ENOMEM;
    conf_environment_free(settings);
    // the service has its own; ours would keep the ports when it is gone
    for (uint32_t i = 0; i < n; i++) {
        close(passed[i]);
    }
    if (e) {
        struct front_error text;
        front_explain(&why, &text);
        return complain("%s", text.text);
    }
    return 0;
}

// ---- While it serves ----------------------------------------------------------------------------

// One line of the log; where somebody sits in front of it, a sentence.
static void tell_listens(const struct isled *d)
{
    const struct conf *c = &d->settings.conf;
    char urls[LISTEN_MAX_TCP * 80] = "", docs[96] = "";
    size_t at = 0;
    for (size_t i = 0; i < d->n_tcp; i++) {
        at += (size_t)snprintf(urls + at, sizeof urls - at, "%shttp://%s", i ? " " : "",
                               d->tcp[i].text);
    }
    if (d->n_tcp) {
        const char *port = strrchr(d->tcp[0].text, ':');
        snprintf(docs, sizeof docs, "http://%s%s/docs", d->tcp[0].any ? "localhost" : "",
                 d->tcp[0].any ? port : d->tcp[0].text);
    }
    const char *data = c->text[SETTING_WORKSPACE_ROOT];
    if (isatty(STDERR_FILENO) && strcmp(c->text[SETTING_LOG_FORMAT], "json") != 0) {
        fprintf(stderr,
                "isle: serving on %s and %s; data in %s; documentation at %s; Ctrl-C stops it\n",
                urls, d->socket_path, data, docs);
    } else {
        log_say(d->log, LOG_INFO, "serving", LOG_T("urls", urls), LOG_T("socket", d->socket_path),
                LOG_T("data", data), LOG_T("docs", docs),
                LOG_T("stop", isatty(STDERR_FILENO) ? "Ctrl-C" : "SIGTERM"));
    }
}

static void reload(struct isled *d);

static void take_note(struct isled *d, uint32_t what)
{
    switch (what) {
    case TALK_LISTENS:
        d->listens = true;
        tell_listens(d);
        break;
    case TALK_READY:
        notify("READY=1\nSTATUS=ready");
        break;
    case TALK_NOT_READY:
        notify("STATUS=not ready: /readyz says why");
        break;
    case TALK_LOG_TEXT:
    case TALK_LOG_JSON:
        log_change(d->log, what == TALK_LOG_JSON ? LOG_JSON : LOG_TEXT, LOG_DEBUG);
        break;
    case TALK_RELOADED:
        notify("READY=1");
        d->reloads = false;
        if (d->reload_again) {
            d->reload_again = false;
            reload(d);
        }
        break;
    default: // of a service that was taken over: nothing to be done for it
        break;
    }
}

static void order(const struct isled *d, enum talk_order what, const void *payload, size_t len,
                  const int *fds, int n)
{
    struct {
        struct talk_head head;
        char payload[TALK_MAX_BYTES];
    } all = {.head = {what, (uint32_t)len}};
    if (len <= sizeof all.payload) {
        memcpy(all.payload, len ? payload : "", len);
        // it arrives, or nobody listens any more, which is noticed elsewhere
        msg_send(d->front.service, &all, sizeof all.head + len, fds, n, MSG_DONTWAIT);
    }
}

// The file is read by the service, opened by whoever has the right to; and a log that was moved
// away is begun anew. What cannot be opened is the service's to tell, in its log.
static void reload(struct isled *d)
{
    const struct conf *c = &d->settings.conf;
    int fds[2], n = 0;
    struct talk_reload what = {};
    AUTO_CLOSE int audit = -1;
    if (d->reloads) {
        d->reload_again = true;
        return;
    }
    d->reloads = true;
    notify_reloading();
    AUTO_CLOSE int file =
        c->file ? open(c->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    if (c->file && file < 0 && (errno != ENOENT || c->file_read)) {
        what.file_error = (uint32_t)errno;
    }
    const char *path = c->text[SETTING_AUDIT_LOG];
    if (*path) {
        what.audit_error = (uint32_t)-log_open_file(AT_FDCWD, path, &audit);
    }
    if (file >= 0) {
        what.file = 1;
        fds[n++] = file;
    }
    if (audit >= 0) {
        what.audit = 1;
        fds[n++] = audit;
    }
    order(d, TALK_RELOAD, &what, sizeof what, fds, n);
}

static void end_it(struct isled *d)
{
    if (d->asked++ == 0) {
        notify("STOPPING=1");
        order(d, TALK_DRAIN, NULL, 0, NULL, 0);
        if (isatty(STDERR_FILENO)) {
            fprintf(stderr, "\nisle: ending when the running jobs have ended; again: at once\n");
        }
    } else if (d->asked == 2) {
        order(d, TALK_STOP, NULL, 0, NULL, 0);
    } else {
        syscall(SYS_pidfd_send_signal, d->front.pidfd, SIGKILL, NULL, 0);
    }
}

static void take_signal(struct isled *d)
{
    struct signalfd_siginfo info;
    if (read(d->signals, &info, sizeof info) != sizeof info) {
        return;
    }
    // from kill(1), or because the terminal is gone
    if (info.ssi_signo == SIGHUP && info.ssi_code != SI_KERNEL) {
        reload(d);
    } else {
        end_it(d);
    }
}

// False: the service has closed its side.
static bool take_notes(struct isled *d)
{
    struct talk_head head;
    ssize_t n = recv(d->front.service, &head, sizeof head, MSG_DONTWAIT);
    if (n == sizeof head && !head.length) {
        take_note(d, head.what);
    }
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void watch(struct isled *d)
{
    struct pollfd p[] = {
        {d->front.pidfd, POLLIN, 0}, {d->signals, POLLIN, 0}, {d->front.service, POLLIN, 0}};
    while (!p[0].revents) {
        if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR) {
            return;
        }
        if (p[1].revents) {
            take_signal(d);
        }
        if (p[2].revents && !take_notes(d)) {
            p[2].fd = -1;
        }
    }
}

// The last line of the log, also when the service could not write one itself. A service that has
// refused to serve has said why.
static void tell_end(const struct isled *d, int status, int sig, const char *left)
{
    char name[32] = "";
    if (!d->listens && !sig && !left) {
        return;
    }
    if (sig && sigabbrev_np(sig)) {
        snprintf(name, sizeof name, "SIG%s", sigabbrev_np(sig));
    } else if (sig) {
        snprintf(name, sizeof name, "%d", sig);
    }
    enum log_level level = status ? LOG_ERROR : sig || left ? LOG_WARNING : LOG_INFO;
    log_say(d->log, level, "ended", LOG_I("status", status), LOG_T("signal", sig ? name : NULL),
            LOG_T("left", left));
}

static int finish(struct isled *d)
{
    struct start_error why;
    int ended;
    bool left = start_finish(&d->front, &ended, &why) != 0;
    int sig = WIFSIGNALED(ended) ? WTERMSIG(ended) : 0;
    int status = !sig ? WEXITSTATUS(ended) : d->asked ? 0 : LOST;
    tell_end(d, status, sig, left ? why.text : NULL);
    return status;
}

static int run_front(struct isled *d, const struct cli_places *places)
{
    int status = prepare(d, places);
    status = status ? status : start(d, places);
    if (!status) {
        tell_data_folder(d);
        watch(d);
        status = finish(d);
    }
    remove_local(d);
    log_free(d->log);
    front_settings_done(&d->settings);
    return status;
}

static int be_front(char **argv)
{
    AUTO_FREE struct isled *d = calloc(1, sizeof *d);
    struct places places;
    int status;
    if (!d) {
        return complain("not enough memory");
    }
    d->local = d->audit = -1;
    if (!serve_options_parse(argv, &d->options, &status)) {
        return status;
    }
    int found = places_find(&places);
    status = run_front(d, &(struct cli_places){places.libexec, places.guest, found == 0});
    serve_options_done(&d->options);
    return status;
}

static const struct inner_service services[] = {{TALK_SERVE, serve_run}};

int main(int argc, char **argv)
{
    inner_raise_stack_limit();
    return start_is_inner(argc, argv) ? inner_main(argc, argv, services, ARRAY_LEN(services))
                                      : be_front(argv);
}
