// `isle run`: the front. It keeps the user's own rights, opens what the user named, and stays
// outside; everything with power over jobs happens in the processes that start_front() makes.
#include "base/fd.h"
#include "base/text.h"
#include "cli/front.h"
#include "cli/outdir.h"
#include "cli/report.h"
#include "cli/run_job.h"
#include "cli/run_options.h"
#include "cli/session.h"
#include "cli/show_plan.h"
#include "model/result.h"
#include "plan/plan.h"
#include "start/bwrap.h"
#include "start/start.h"
#include "workspace/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct run {
    struct run_options options;
    struct front_settings settings;
    struct run_job job;
    struct outdir artifacts;
    enum seat_launcher launcher;
    struct bwrap_found bwrap; // with SEAT_BWRAP
    const struct cli_places *places;
    sigset_t caller_mask;
};

#define complain(...) verb_complain("run", __VA_ARGS__)

// ---- Before anything runs

// Settings and the job, checked. 0 or an exit status.
static int prepare(struct run *r, char **argv)
{
    struct option_error option;
    struct front_error setting;
    struct run_error job;
    if (run_options_parse(argv, &r->options, &option)) {
        return verb_complain_option(&verb_run, &option);
    }
    if (r->options.help) {
        return 0;
    }
    if (front_settings_load(&r->options.given, &r->settings, &setting)) {
        return complain("%s", setting.text);
    }
    front_tell_preset(&r->settings, "run");
    if (front_choose_launcher(&r->settings, r->options.launcher, &r->launcher, &setting)) {
        return complain("%s", setting.text);
    }
    if (run_job_build(&r->options, &r->settings.host, &r->job, &job)) {
        return complain("%s", job.text);
    }
    return 0;
}

// Many input files are many descriptors; what the shell set as soft limit is often just 1024.
static void raise_descriptor_limit(const struct run *r)
{
    struct rlimit l;
    if (r->options.files.n > 500 && getrlimit(RLIMIT_NOFILE, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
}

// ---- The end of a job that has no result of the service's

static int print_own_result(const struct run *r, enum reason reason, const char *text)
{
    struct result result;
    AUTO_BUF struct buf json = BUF_INIT(1 << 20);
    result_init(&result, r->job.job.id, 0, 0);
    result_fail(&result, reason, STAGE_PREPARATION, "%s", text);
    result.isolation.launcher = seat_launcher_names[r->launcher];
    if (r->options.json && result_write(&json, &result) == 0) {
        puts(buf_text(&json));
    } else if (!r->options.json) {
        fprintf(stderr, "isle: %s: %s\n", reason_names[reason], text);
    }
    int status = result_exit_status(&result);
    result_done(&result);
    return status;
}

static int print_lost(const struct run *r, int wait_status)
{
    char text[160];
    if (WIFSIGNALED(wait_status)) {
        snprintf(text, sizeof text, "the service was ended by signal %d (SIG%s)",
                 WTERMSIG(wait_status), sigabbrev_np(WTERMSIG(wait_status)));
    } else {
        snprintf(text, sizeof text, "the service ended without a result (status %d)",
                 WEXITSTATUS(wait_status));
    }
    return print_own_result(r, REASON_INTERNAL, text);
}

// ---- The job

static void make_ready(int once, uint32_t uid_base)
{
    folder_make_ready(once, CLI_READY_WORKSPACE, uid_base + PLAN_UID_SERVICE,
                      uid_base + PLAN_UID_WORKSPACE_0);
}

static struct start_config start_config_of(const struct run *r)
{
    struct start_config c = front_start_config(&r->settings, r->places);
    // a small workspace is a tmpfs, which only the launcher can make
    if (r->job.job.limits.value[LIMIT_DISK] > r->settings.host.tmpfs_max_mb) {
        c.meanwhile = make_ready;
    }
    if (r->job.job.network == JOB_NETWORK_HOST) {
        c.ahead_network = PLAN_NETWORK_HOST;
    }
    c.bwrap = r->launcher == SEAT_BWRAP ? &r->bwrap : NULL;
    return c;
}

// 0 or an exit status.
static int find_bwrap(struct run *r)
{
    struct front_error why;
    if (r->launcher != SEAT_BWRAP) {
        return 0;
    }
    return front_find_bwrap(&r->settings, &r->bwrap, &why)
               ? print_own_result(r, REASON_ISOLATION_UNAVAILABLE, why.text)
               : 0;
}

// All of it, even where another process made our standard output O_NONBLOCK (it is shared with
// whoever gave it to us, so the flag stays as it is).
static int write_patiently(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd ready = {fd, POLLOUT, 0};
            poll(&ready, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            return -errno;
        }
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int print_final(struct report *report, const struct buf *final)
{
    if (!(fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK)) {
        return report_print(report, final);
    }
    AUTO_FREE char *text = NULL;
    size_t len = 0;
    report->out = open_memstream(&text, &len);
    if (!report->out) {
        return -errno;
    }
    int status = report_print(report, final);
    int e = fclose(report->out) ? -errno : write_patiently(STDOUT_FILENO, text, len);
    return e ? complain("output: %s", strerrordesc_np(-e)) : status;
}

// Does the word of a command name a file here that nobody put into /workspace?
static bool is_left_behind(const struct job *j, const char *word)
{
    struct stat st;
    if (word[0] == '/' || word[0] == '-' || stat(word, &st) || !S_ISREG(st.st_mode)) {
        return false;
    }
    for (size_t i = 0; i < j->n_files; i++) {
        if (strcmp(j->files[i].target, word) == 0) {
            return false;
        }
    }
    return true;
}

// `isle run -- python3 job.py` fails with Python's own words, which know nothing of --file. Only
// where a person reads: a caller that passes on what others wrote would tell them of its files.
static void print_left_behind(const struct job *j)
{
    bool there = j->kind == JOB_COMMAND && !strcmp(j->cwd, "/workspace");
    for (size_t i = 0; there && j->argv[i]; i++) {
        const char *word = j->argv[i];
        bool searched = i == 0 && !strchr(word, '/'); // in PATH
        word += strncmp(word, "./", 2) == 0 ? 2 : 0;
        if (searched || strlen(word) > 200 || !is_left_behind(j, word)) {
            continue;
        }
        char text[256];
        snprintf(text, sizeof text, "%s", word);
        text_no_controls(text);
        bool base = !strchr(text, '/'); // without DEST a copy gets the base name
        fprintf(stderr, "isle: %s is here, not in /workspace: --file %s%s%s puts a copy there\n",
                text, text, base ? "" : ":", base ? "" : text);
        return;
    }
}

static int end_status(struct run *r, struct session *s, enum session_end end, int wait_status)
{
    struct report report = {.json = r->options.json,
                            .snippet = r->job.job.kind == JOB_SNIPPET,
                            .terminal = isatty(STDERR_FILENO),
                            .quiet = s->out_error != 0, // `isle run ... | head`
                            .line_open = s->line_open,
                            .out = stdout,
                            .err = stderr};
    if (end == SESSION_CANCELLED || (end == SESSION_LOST && s->cancelled && !s->out_error)) {
        return print_own_result(r, REASON_CANCELLED, "cancelled; the job was killed");
    }
    int status = end == SESSION_FINAL ? print_final(&report, &s->final) : -EBADMSG;
    if (status < 0) {
        return print_lost(r, wait_status);
    }
    if (status > 0 && report.terminal && !report.json && !report.quiet) {
        print_left_behind(&r->job.job);
    }
    if (r->artifacts.error[0]) {
        return complain("%s", r->artifacts.error);
    }
    return status;
}

// Output that could not be written is a failure even if the job was none.
static int output_status(const struct session *s, int status)
{
    bool failed = fflush(stdout) || ferror(stdout);
    int error = s->out_error ? s->out_error : s->err_error ? s->err_error : failed ? errno : 0;
    if (error == 0 || error == ETIMEDOUT) {
        return status;
    }
    if (error == EPIPE) { // the reader has what it wanted
        return status ? status : CLI_REFUSED;
    }
    errno = error;
    return complain("output: %m");
}

static int talk(struct run *r, struct front *front, int signals)
{
    struct start_error why;
    enum session_end end;
    bool live = !r->options.json;
    struct session s = {.service = front->service,
                        .signals = signals,
                        .out = live ? STDOUT_FILENO : -1,
                        .err = live ? STDERR_FILENO : -1,
                        .artifacts = &r->artifacts};
    int wait_status = 0;
    int e = session_run(&s, &r->job, &end);
    if (e || end != SESSION_FINAL) { // nothing more is expected of it
        syscall(SYS_pidfd_send_signal, front->pidfd, SIGKILL, NULL, 0);
    }
    int left = start_finish(front, &wait_status, &why);
    sigprocmask(SIG_SETMASK, &r->caller_mask, NULL);
    outdir_done(&r->artifacts);
    int status = e ? print_own_result(r, REASON_INTERNAL, strerrordesc_np(-e))
                   : end_status(r, &s, end, wait_status);
    status = output_status(&s, status);
    session_done(&s);
    if (left) {
        fprintf(stderr, "isle: %s: %s\n", why.step, why.text);
    }
    return status;
}

static int start_and_talk(struct run *r, char **settings)
{
    struct start_config config = start_config_of(r);
    struct start_error why;
    struct front front;
    char *argv[] = {NULL};
    AUTO_CLOSE int signals = front_hold_signals(&r->caller_mask);
    int e = start_front(&config, argv, settings, &front, &why);
    if (!e) {
        return talk(r, &front, signals);
    }
    struct signalfd_siginfo info;
    if (signals >= 0 && read(signals, &info, sizeof info) == sizeof info) {
        return print_own_result(r, REASON_CANCELLED, "cancelled before the job began");
    }
    struct front_error text;
    front_explain(&why, &text);
    if (r->options.json) {
        print_own_result(r, REASON_ISOLATION_UNAVAILABLE, text.text);
    }
    return complain("%s", text.text);
}

static int run_job(struct run *r)
{
    const char *folder = r->options.output_dir;
    struct front_error why;
    if (front_check_places(r->places, &why)) {
        return complain("%s", why.text);
    }
    int e = outdir_open(&r->artifacts, folder, &r->job.job);
    if (e) {
        return complain("--output-dir: %.300s: %s%s", folder, strerrordesc_np(-e),
                        e == -ENOENT ? "; only its last part is made" : "");
    }
    int status = find_bwrap(r);
    if (status) {
        return status;
    }
    if (r->launcher == SEAT_NONE) {
        fputs("isle: warning: this job is not isolated "
              "(SANDBOX_FILESYSTEM_ISOLATION_ENABLED=false)\n",
              stderr);
    }
    char **settings = conf_environment(&r->settings.conf);
    status = settings ? start_and_talk(r, settings) : complain("not enough memory");
    conf_environment_free(settings);
    return status;
}

// 0 to 2 are open, or else a file opened later would get such a number and the job's output with
// it.
static void open_standard_streams(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    fd_close(fd);
}

int run_main(int argc, char **argv, const struct cli_places *places)
{
    (void)argc;
    open_standard_streams();
    struct run r = {.places = places,
                    .job.job.stdin_fd = -1,
                    .artifacts = {.dir = -1, .folder = -1, .file = -1}};
    int status = prepare(&r, argv);
    if (status == 0 && r.options.help) {
        verb_help(&verb_run, stdout);
    } else if (status == 0 && r.options.show_plan) {
        status = find_bwrap(&r);
        status = status ? status
                        : show_plan_print(&r.job, &r.settings.host, &r.settings.conf,
                                          r.launcher == SEAT_BWRAP ? &r.bwrap : NULL,
                                          r.options.json, stdout);
    } else if (status == 0) {
        raise_descriptor_limit(&r);
        status = run_job(&r);
    }
    status = status ? status : verb_end_output("run");
    outdir_done(&r.artifacts);
    run_job_done(&r.job);
    front_settings_done(&r.settings);
    run_options_done(&r.options);
    return status;
}
